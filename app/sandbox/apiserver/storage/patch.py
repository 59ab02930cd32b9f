"""The two patch formats clients of pods and nodes use: JSON merge patch and strategic merge.

Both return a new body and share what they leave alone with the old one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from app.sandbox.apiserver.storage.failures import Refused, bad_request
from app.sandbox.apiserver.storage.kinds import Object

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"

# Lists of objects merged by a key; the path is that of the list, without indexes.
# Source: the patchMergeKey tags of k8s.io/api core/v1 and meta/v1.
_MERGE_KEYS = {
    "metadata.ownerReferences": "uid",
    "spec.schedulingGates": "name",
    "spec.containers": "name",
    "spec.initContainers": "name",
    "spec.volumes": "name",
    "spec.imagePullSecrets": "name",
    "spec.topologySpreadConstraints": "topologyKey",
    "spec.containers.env": "name",
    "spec.containers.ports": "containerPort",
    "spec.containers.volumeMounts": "mountPath",
    "status.conditions": "type",
    "status.addresses": "type",
}
_MERGED_SETS = {"metadata.finalizers"}  # lists of words that are united instead of replaced
_ORDER, _DELETE_WORDS = "$setElementOrder/", "$deleteFromPrimitiveList/"


def unsupported_format(accepted: Iterable[str]) -> Refused:
    return Refused(
        415,
        "UnsupportedMediaType",
        "the body of the request was in an unknown format - accepted media types include:"
        f" {', '.join(accepted)}",
    )


def inapplicable() -> Refused:
    """A JSON patch that does not apply to the object it was sent for."""
    text = "the server rejected our request due to an error in our request"
    return Refused(422, "Invalid", text)


def merge(body: Any, change: Any) -> Any:
    """Apply a JSON merge patch (RFC 7386): null deletes, objects merge, all else replaces."""
    if not isinstance(change, dict):
        return change
    merged = dict(body) if isinstance(body, dict) else {}
    for name, value in change.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge(merged.get(name), value)
    return merged


def strategic_merge(body: Object, change: Object) -> Object:
    """Apply a strategic merge patch, as its directives and the merge keys of the API say.

    Raises: Refused (400) if a list item lacks its merge key or a directive is unknown.
    """
    return _merge_object(body, change, "")


def _merge_object(body: Object, change: Object, path: str) -> Object:
    directive = change.get("$patch")
    if directive == "replace":
        return {name: value for name, value in change.items() if name != "$patch"}
    if directive == "delete":
        return {}
    merged = dict(body)
    if (kept := change.get("$retainKeys")) is not None:
        merged = {name: value for name, value in merged.items() if name in kept}
    for name, value in change.items():
        where = f"{path}.{name}" if path else name
        if name.startswith(_DELETE_WORDS):
            target = name.removeprefix(_DELETE_WORDS)
            merged[target] = [word for word in merged.get(target) or [] if word not in value]
        elif not name.startswith("$"):
            _merge_field(merged, name, value, where, change.get(f"{_ORDER}{name}"))
        elif not name.startswith((_ORDER, "$patch", "$retainKeys")):
            raise bad_request(f"invalid strategic merge directive {name!r}")
    return merged


def _merge_field(
    merged: Object, name: str, value: Any, path: str, order: list[Object] | None
) -> None:
    """Set, merge or delete one field of `merged`, which is a copy of our own.

    order: what the patch says of the order of a list of objects.
    """
    present = merged.get(name)
    if value is None:
        merged.pop(name, None)
    elif isinstance(value, dict):
        merged[name] = _merge_object(present if isinstance(present, dict) else {}, value, path)
        if not merged[name] and value.get("$patch") == "delete":
            del merged[name]
    elif isinstance(value, list) and path in _MERGE_KEYS:
        merged[name] = _merge_list(present or [], value, path, order)
        if not merged[name]:
            del merged[name]  # an empty list is not serialised by the real API either
    elif isinstance(value, list) and path in _MERGED_SETS:
        merged[name] = [*(present or []), *(word for word in value if word not in (present or []))]
    else:
        merged[name] = value


def _merge_list(
    present: list[Object], change: list[Object], path: str, order: list[Object] | None
) -> list[Object]:
    key = _MERGE_KEYS[path]
    if any(item.get("$patch") == "replace" for item in change):
        return [item for item in change if item.get("$patch") != "replace"]
    items = {item[key]: item for item in present}
    for item in change:
        if key not in item:
            raise bad_request(f"map: {item} does not contain declared merge key: {key}")
        if item.get("$patch") == "delete":
            items.pop(item[key], None)
        else:
            items[item[key]] = _merge_object(items.get(item[key], {}), item, path)
    named = [item[key] for item in (change if order is None else order) if item[key] in items]
    before = [item[key] for item in present if item[key] in items]
    return [items[each] for each in _interleaved(list(dict.fromkeys(named)), before)]


def _interleaved(named: list[str], before: list[str]) -> list[str]:
    """The order of a merged list: items that the patch names, and those that only the server had.

    The patch's come in the patch's order. One of the server's comes before the first of them that
    came after it on the server, and behind those that are new.
    Source: apimachinery strategicpatch.mergeSortedSlice (v0.36).
    """
    place = {each: index for index, each in enumerate(before)}
    rest = [each for each in before if each not in named]
    found: list[str] = []
    for each in named:
        while rest and each in place and place[rest[0]] < place[each]:
            found.append(rest.pop(0))
        found.append(each)
    return found + rest
