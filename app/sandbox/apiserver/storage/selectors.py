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
_EXISTS = re.compile(r"(?P<op>!?)\s*(?P<key>[^\s!=,()]+)")


def predicate(kind: Kind, labels: str, fields: str) -> Predicate | None:
    """What both selectors ask for together; None if they ask for nothing.

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
    return all(_expression_holds(each, labels) for each in selector.get("matchExpressions") or [])


def _expression_holds(wanted: Object, labels: Mapping[str, str]) -> bool:
    key, values = wanted["key"], wanted.get("values") or []
    match wanted["operator"]:
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return key not in labels or labels[key] not in values
        case "Exists":
            return key in labels
    return key not in labels  # DoesNotExist


def _split(selector: str) -> list[str]:
    """Cut at the commas that are not inside parentheses."""
    parts = re.split(r",(?![^(]*\))", selector)
    return [part.strip() for part in parts if part.strip()]


def _label_requirement(part: str) -> _Requirement:
    if match := _SET.fullmatch(part):
        key = match["key"]
        values = {value.strip() for value in match["values"].split(",")}
        if match["op"] == "in":
            return lambda labels: labels.get(key) in values
        # As upstream: an object without the label is not in any set of values.
        return lambda labels: key not in labels or labels[key] not in values
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
