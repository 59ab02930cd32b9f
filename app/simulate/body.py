"""The objects of a request: JSON, or YAML of several documents, each an object or a list of some.

YAML is read as JSON with another spelling: no aliases and no tags, for a small text of those may
stand for a large object.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, ClassVar

import msgspec
import yaml

from app.dialects.making import Object
from app.errors import DecodeError
from app.kube.core.turns import turn

MOST_BYTES = 1024 * 1024
MOST_OBJECTS = 256
MOST_EVENTS = 150_000  # of YAML, which is read a thousand times slower than JSON
MOST_NESTED = 100  # an object's own fields nest two dozen deep
_TEXT = "tag:yaml.org,2002:str"
_WORDS = (
    ("int", r"-?(?:0|[1-9][0-9]{0,17})", "-0123456789"),
    ("float", r"-?[0-9]{1,18}\.[0-9]{1,18}", "-0123456789"),
    ("bool", "true|True|false|False", "tTfF"),
    ("null", "null|~|", ["n", "~", ""]),
)


class Unreadable(DecodeError):
    """A body that is no list of objects; says where."""


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML whose plain words are what they are in JSON."""

    yaml_implicit_resolvers: ClassVar[dict[str, list[object]]] = {}

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        """Fields are named as they are written: 1, true and null are texts there."""
        turn()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                key.tag = _TEXT
        made: dict[Any, Any] = super().construct_mapping(node, deep=deep)
        return made


for _tag, _pattern, _first in _WORDS:
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}", re.compile(rf"(?:{_pattern})\Z", re.ASCII), list(_first)
    )


def objects_in(body: bytes) -> list[Object]:
    """The objects, those in lists one by one. Raises: Unreadable."""
    found = list(_objects(_documents(body)))
    if not found:
        raise Unreadable("the body has no object")
    return found


def _documents(body: bytes) -> list[Any]:
    if len(body) > MOST_BYTES:
        raise Unreadable(f"the body has {len(body)} bytes, more than {MOST_BYTES}")
    if body.lstrip()[:1] in (b"{", b"["):
        try:
            return [msgspec.json.decode(body)]
        except (ValueError, RecursionError) as error:
            raise Unreadable(f"the body is no JSON: {error}") from error
    try:
        _check_plain(body)
        return list(yaml.load_all(body, Loader=_Loader))  # a safe loader
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise Unreadable(f"the body is no YAML: line {line}: {error.problem}") from error
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        first = (str(error).splitlines() or [""])[0]
        raise Unreadable(f"the body is no YAML: {first}") from error


def _check_plain(body: bytes) -> None:
    """Raises: ValueError for YAML that has more to it than JSON has."""
    depth = 0
    for number, event in enumerate(yaml.parse(body, Loader=_Loader)):
        turn()
        if number > MOST_EVENTS:
            raise ValueError(f"more than {MOST_EVENTS} names and values, which JSON may have")
        if isinstance(event, yaml.AliasEvent) or getattr(event, "tag", None):
            mark = event.start_mark
            line = mark.line + 1 if mark else 1
            raise ValueError(f"line {line}: aliases and tags are not read")
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MOST_NESTED:
            raise ValueError(f"nested deeper than {MOST_NESTED}")


def _objects(documents: list[Any]) -> Iterator[Object]:
    waiting, number = documents[::-1], 0
    while waiting:
        each = waiting.pop()
        if each is None:
            continue  # an empty document
        if isinstance(each, list):
            waiting.extend(each[::-1])
            continue
        number += 1
        if number > MOST_OBJECTS:
            raise Unreadable(f"the body has more than {MOST_OBJECTS} objects")
        if not isinstance(each, dict):
            raise Unreadable(f"object {number} is no Kubernetes object: {str(each)[:60]!r}")
        kind = each.get("kind")
        if not isinstance(kind, str) or not kind:
            raise Unreadable(f"object {number}: kind: must be set")
        items = each.get("items")
        if kind.endswith("List") and isinstance(items, list):
            number -= 1
            of_it = kind.removesuffix("List")
            more = {"apiVersion": each.get("apiVersion"), "kind": of_it} if of_it else {}
            waiting.extend({**more, **one} if isinstance(one, dict) else one for one in items[::-1])
            continue
        yield each
