"""Fields of objects as users write them, and the parts that are made of them.

Objects are JSON of any content: a field of another type is an error that names it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from app.errors import DecodeError

Object = dict[str, Any]
MOST_NUMBER = 2**31 - 1  # of replicas and the like, as in the API


class Misfit(DecodeError):
    """A field that no controller could make anything of."""

    def __init__(self, field: str, value: object, problem: str) -> None:
        self.field, self.value, self.problem = field, value, problem
        super().__init__(f"{field}: Invalid value: {value!r}: {problem}")


@dataclass(frozen=True, slots=True)
class Part:
    """One object that a controller would create, or the object itself."""

    content: Object

    @property
    def is_pod(self) -> bool:
        """Whether it is a pod."""
        return self.content.get("kind") == "Pod"


def mapping(thing: Object, path: str, where: str = "") -> Object:
    """The mapping at a path such as `spec.template`; an empty one where nothing is.

    `where`: the path of the thing itself, for messages. Raises: Misfit.
    """
    found = _at(thing, path, where)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise Misfit(where + path, found, "must be an object")
    return found


def listed(thing: Object, path: str, where: str = "") -> list[Object]:
    """The mappings of a list. Raises: Misfit."""
    found = _at(thing, path, where)
    if found is None:
        return []
    if not isinstance(found, list):
        raise Misfit(where + path, found, "must be a list")
    for at, each in enumerate(found):
        if not isinstance(each, dict):
            raise Misfit(f"{where}{path}[{at}]", each, "must be an object")
    return found


def number(thing: Object, path: str, default: int, where: str = "") -> int:
    """A number of pods or the like. Raises: Misfit."""
    found = _at(thing, path, where)
    if found is None:
        return default
    if not isinstance(found, int) or isinstance(found, bool) or not 0 <= found <= MOST_NUMBER:
        raise Misfit(where + path, found, f"must be a whole number from 0 to {MOST_NUMBER}")
    return found


def text(thing: Object, path: str, where: str = "") -> str:
    """A text, "" where there is none. Raises: Misfit."""
    found = _at(thing, path, where)
    if found is None:
        return ""
    if not isinstance(found, str):
        raise Misfit(where + path, found, "must be a text")
    return found


def texts(thing: Object, path: str, where: str = "") -> dict[str, str]:
    """A mapping of texts, such as labels. Raises: Misfit."""
    found = mapping(thing, path, where)
    for key, value in found.items():
        if not isinstance(value, str):
            raise Misfit(f"{where}{path}[{key}]", value, "must be a text")
    return found


def _at(thing: Object, path: str, where: str) -> object:
    found: object = thing
    done: list[str] = []
    for name in path.split("."):
        if found is None:
            return None
        if not isinstance(found, dict):
            raise Misfit(where + ".".join(done), found, "must be an object")
        found = found.get(name)
        done.append(name)
    return found


def owner(of: Object) -> Object:
    """The ownerReference by which an object controls what is made of it."""
    metadata = mapping(of, "metadata")
    return {
        "apiVersion": of.get("apiVersion", ""),
        "kind": of.get("kind", ""),
        "name": metadata.get("name", ""),
        "uid": metadata.get("uid", ""),
        "controller": True,
    }


def made(
    of: Object,
    kind: tuple[str, str],
    name: str,
    content: Mapping[str, Any],
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> Object:
    """An object of this (apiVersion, kind) that another one controls, in its namespace."""
    return {
        **content,
        "apiVersion": kind[0],
        "kind": kind[1],
        "metadata": {
            "name": name,
            "namespace": mapping(of, "metadata").get("namespace", ""),
            "uid": f"{mapping(of, 'metadata').get('uid', '')}/{kind[1]}/{name}",
            "labels": dict(labels or {}),
            "annotations": dict(annotations or {}),
            "ownerReferences": [owner(of)],
        },
    }


def pod(
    of: Object,
    template: Object,
    name: str,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    where: str = "",
) -> Part:
    """A pod of a template; what a controller writes counts before what the template says."""
    labels = {**texts(template, "metadata.labels", where), **(labels or {})}
    said = {**texts(template, "metadata.annotations", where), **(annotations or {})}
    spec = mapping(template, "spec", where)
    return Part(made(of, ("v1", "Pod"), name, {"spec": spec}, labels, said))


def name_of(thing: Object) -> str:
    """The object's own name."""
    return text(thing, "metadata.name")


def numbered(things: list[Object], path: str) -> Iterator[tuple[str, Object]]:
    """Each of a list with its path, which ends in a dot."""
    return ((f"{path}[{at}].", each) for at, each in enumerate(things))
