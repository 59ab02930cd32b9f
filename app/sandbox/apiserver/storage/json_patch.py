"""JSON Patch (RFC 6902): a list of operations, each at a place named by a JSON pointer (RFC 6901).

As kube-apiserver applies it: strict, so a path that is not there refuses the whole patch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any

JSON_PATCH = "application/json-patch+json"


class InvalidPatch(ValueError):
    """The patch is malformed or does not apply to this object; the text says why."""


def apply(body: Any, operations: Any) -> Any:
    """The body after all operations, in order; the one given stays as it is.

    Raises: InvalidPatch.
    """
    if not isinstance(operations, Sequence) or isinstance(operations, str | bytes):
        raise InvalidPatch("a JSON patch is a list of operations")
    changed = deepcopy(body)
    for operation in operations:
        if not isinstance(operation, Mapping):
            raise InvalidPatch("an operation of a JSON patch is an object")
        carry_out = _OPERATIONS.get(operation.get("op"))
        if carry_out is None:
            raise InvalidPatch(f"unexpected kind: {operation.get('op')}")
        changed = carry_out(changed, operation)
    return changed


def _add(body: Any, operation: Mapping[str, Any]) -> Any:
    return _put(body, _path(operation, "path"), deepcopy(_value(operation)))


def _remove(body: Any, operation: Mapping[str, Any]) -> Any:
    _take(body, _path(operation, "path"))
    return body


def _replace(body: Any, operation: Mapping[str, Any]) -> Any:
    path, value = _path(operation, "path"), deepcopy(_value(operation))
    if not path:
        return value
    parent, last = _get(body, path[:-1]), path[-1]
    _get(parent, [last])  # it must be there
    parent[_index(parent, last) if isinstance(parent, list) else last] = value
    return body


def _move(body: Any, operation: Mapping[str, Any]) -> Any:
    return _put(body, _path(operation, "path"), _take(body, _path(operation, "from")))


def _copy(body: Any, operation: Mapping[str, Any]) -> Any:
    copied = deepcopy(_get(body, _path(operation, "from")))
    return _put(body, _path(operation, "path"), copied)


def _test(body: Any, operation: Mapping[str, Any]) -> Any:
    present = _get(body, _path(operation, "path"))
    if present != _value(operation):
        raise InvalidPatch(f"testing value {operation['path']} failed: test failed")
    return body


_OPERATIONS: Mapping[Any, Callable[[Any, Mapping[str, Any]], Any]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}


def _value(operation: Mapping[str, Any]) -> Any:
    if "value" not in operation:
        raise InvalidPatch(f"{operation['op']} operation has no value")
    return operation["value"]


def _path(operation: Mapping[str, Any], name: str) -> list[str]:
    """The steps of a pointer; none for the whole object."""
    pointer = operation.get(name)
    if not isinstance(pointer, str) or (pointer and not pointer.startswith("/")):
        raise InvalidPatch(f"{operation['op']} operation has no {name} that is a JSON pointer")
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]


def _get(body: Any, path: Sequence[str]) -> Any:
    for step in path:
        if isinstance(body, list):
            body = body[_index(body, step)]
        elif isinstance(body, dict) and step in body:
            body = body[step]
        else:
            raise InvalidPatch(f"missing value: /{'/'.join(path)} does not exist")
    return body


def _put(body: Any, path: Sequence[str], value: Any) -> Any:
    if not path:
        return value
    parent, last = _get(body, path[:-1]), path[-1]
    if isinstance(parent, list):
        parent.insert(len(parent) if last == "-" else _index(parent, last, end=1), value)
    elif isinstance(parent, dict):
        parent[last] = value
    else:
        raise InvalidPatch(f"missing value: /{'/'.join(path[:-1])} holds nothing")
    return body


def _take(body: Any, path: Sequence[str]) -> Any:
    if not path:
        raise InvalidPatch("the whole object cannot be removed")
    parent, last = _get(body, path[:-1]), path[-1]
    _get(parent, [last])  # it must be there
    return parent.pop(_index(parent, last) if isinstance(parent, list) else last)


def _index(items: Sequence[Any], step: str, *, end: int = 0) -> int:
    """end: 1 where the place behind the last item may be named too."""
    if not (step.isascii() and step.isdigit()) or int(step) >= len(items) + end:
        raise InvalidPatch(f"invalid index {step!r} in a list of {len(items)}")
    return int(step)
