"""The objects of a body as they would be created: named, in a namespace, of a kind that is read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from app.dialects.making import MAKERS, Object
from app.simulate.body import Unreadable

PRIORITY_CLASS = ("scheduling.k8s.io", "PriorityClass")
LONGEST_NAME = 253


@dataclass(frozen=True, slots=True)
class Given:
    """One object of the body."""

    group: str
    kind: str
    namespace: str
    name: str
    content: Object

    @property
    def is_class(self) -> bool:
        """Whether it only says what a priority is."""
        return (self.group, self.kind) == PRIORITY_CLASS

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


def all_given(objects: Iterable[Object], namespace: str) -> tuple[Given, ...]:
    """Every object; `namespace`: of those that name none.

    Raises: Unreadable naming the object and the field, also for a kind that cannot be simulated.
    """
    return tuple(_given(at, each, namespace) for at, each in enumerate(objects, 1))


def namespaces_of(given: Iterable[Given]) -> tuple[str, ...]:
    """The namespaces that the objects would be created in."""
    return tuple(dict.fromkeys(each.namespace for each in given if not each.is_class))


def _given(at: int, content: Object, namespace: str) -> Given:
    where, kind = f"object {at}", content["kind"]
    api_version = content.get("apiVersion")
    if not isinstance(api_version, str) or not api_version:
        raise Unreadable(f"{where}, {kind}: apiVersion: must be set")
    group = api_version.rpartition("/")[0]
    metadata = content.get("metadata")
    if not isinstance(metadata, dict):
        raise Unreadable(f"{where}, {kind}: metadata: must be an object")
    name = metadata.get("name") or metadata.get("generateName")
    if not isinstance(name, str) or not name or len(name) > LONGEST_NAME:
        raise Unreadable(f"{where}, {kind}: metadata.name: must be set, and no longer than 253")
    its = metadata.get("namespace") or namespace
    if not isinstance(its, str):
        raise Unreadable(f"{where}, {kind} {name}: metadata.namespace: must be a text")
    if (group, kind) not in MAKERS and (group, kind) != PRIORITY_CLASS:
        kinds = ", ".join(sorted({each for _, each in MAKERS}))
        raise Unreadable(
            f"{where}, {kind} {name} of {api_version}: cannot be simulated: Corral does not read"
            f" which pods it makes; it reads {kinds}"
        )
    named = {**metadata, "name": name, "namespace": its, "uid": f"simulated-{at}"}
    return Given(group, kind, its, name, {**content, "metadata": named})
