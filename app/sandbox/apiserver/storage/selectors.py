"""labelSelector and fieldSelector of list and watch, as one predicate over an object."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from app.sandbox.apiserver.storage.failures import bad_request
from app.sandbox.apiserver.storage.kinds import Kind, Object

Predicate = Callable[[Object], bool]
_Requirement = Callable[[Mapping[str, str]], bool]

# The fields each kind may be selected by; every other label is refused, as upstream does.
_FIELDS: dict[str, frozenset[str]] = {
    "Pod": frozenset(
        {
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "status.phase",
            "status.nominatedNodeName",
        }
    ),
    "Node": frozenset({"spec.unschedulable"}),
    "Namespace": frozenset({"status.phase"}),
    "Job": frozenset({"status.successful"}),
    "Event": frozenset(
        {
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "reason",
            "reportingComponent",
            "source",
            "type",
        }
    ),
}
_SET = re.compile(r"(?P<key>[^\s!=,()]+)\s+(?P<op>in|notin)\s*\((?P<values>[^()]*)\)")
_EQUAL = re.compile(r"(?P<key>[^\s!=,()]+)\s*(?P<op>==|=|!=)\s*(?P<value>[^\s!=,()]*)")
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
_EXISTS = re.compile(r"(?P<op>!?)\s*(?P<key>[^\s!=,()]+)")


def predicate(kind: Kind, labels: str, fields: str) -> Predicate | None:
    """Whether an object matches both selectors; None if both are empty.

    Raises: Refused (400) if a selector cannot be read or names an unsupported field.
    """
    wanted_labels = [_label_requirement(part) for part in _split(labels)]
    wanted_fields = [_field_requirement(kind, part) for part in fields.split(",") if part.strip()]
    if not wanted_labels and not wanted_fields:
        return None

    def holds(body: Object) -> bool:
        own: Mapping[str, str] = body["metadata"].get("labels") or {}
        return all(wanted(own) for wanted in wanted_labels) and all(
            wanted(body) for wanted in wanted_fields
        )

    return holds


def matches_labels(selector: Object | None, labels: Mapping[str, str]) -> bool:
    """Whether a LabelSelector object picks these labels: none picks nothing, {} everything."""
    if selector is None:
        return False
    wanted: Mapping[str, str] = selector.get("matchLabels") or {}
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    expressions = selector.get("matchExpressions") or []
    return all(requirement_holds(each, labels.get(each["key"])) for each in expressions)


def requirement_holds(wanted: Object, value: str | None) -> bool:
    """Whether a value suits one expression of a selector; None: the key is not there.

    Source: apimachinery labels.Requirement.Matches; node affinity alone may use Gt and Lt.
    """
    values = wanted.get("values") or []
    match wanted["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt" as operator if value is not None and len(values) == 1:
            own, bound = _int64(value), _int64(values[0])
            if own is None or bound is None:
                return False
            return own > bound if operator == "Gt" else own < bound
    return False


def _int64(text: str) -> int | None:
    """The number as Go's strconv.ParseInt(text, 10, 64) reads it; None for anything else."""
    number = int(text) if _INTEGER.fullmatch(text) else None
    return number if number is not None and -(2**63) <= number < 2**63 else None


def _split(selector: str) -> list[str]:
    """Cut at the commas that are not inside parentheses."""
    parts = re.split(r",(?![^(]*\))", selector)
    return [part.strip() for part in parts if part.strip()]


def _label_requirement(part: str) -> _Requirement:
    if match := _SET.fullmatch(part):
        key = match["key"]
        values = {value.strip() for value in match["values"].split(",")}
        wanted = {"operator": "In" if match["op"] == "in" else "NotIn", "values": values}
        return lambda labels: requirement_holds(wanted, labels.get(key))
    if match := _EQUAL.fullmatch(part):
        key, value = match["key"], match["value"]
        if match["op"] == "!=":
            return lambda labels: labels.get(key) != value
        return lambda labels: labels.get(key) == value
    if match := _EXISTS.fullmatch(part):
        key = match["key"]
        if match["op"]:
            return lambda labels: key not in labels
        return lambda labels: key in labels
    raise bad_request(f"unable to parse requirement: {part!r}")


def _field_requirement(kind: Kind, part: str) -> Predicate:
    match = _EQUAL.fullmatch(part.strip())
    if match is None:
        raise bad_request(f"invalid selector: {part!r}; can't understand {part!r}")
    field, value, differs = match["key"], match["value"], match["op"] == "!="
    own = frozenset() if kind.is_custom else _FIELDS.get(kind.name, frozenset())
    supported = own | {"metadata.name", "metadata.namespace"}
    if field not in supported:
        raise bad_request(f"field label not supported: {field}")
    path = field.split(".")
    return lambda body: (_text_at(body, path) == value) != differs


def _text_at(body: Object, path: list[str]) -> str:
    """The field as the text selectors compare: absent is empty, booleans are lower case."""
    value: object = body
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    if value is None:
        return "false" if path[-1] == "unschedulable" else ""
    return str(value).lower() if isinstance(value, bool) else str(value)
