"""The objects of a body as they would be created: named, in a namespace, of a kind that is read."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from app.dialects.making import MAKERS, Object
from app.simulate.body import Unreadable

PRIORITY_CLASS = ("scheduling.k8s.io", "PriorityClass")
LONGEST_NAME, LONGEST_NAMESPACE = 253, 63
# What an object has that was read of a cluster, and none that is created: the API server leaves it
# out. A status it leaves out as well, but of kinds whose status is no part of its own.
_READ = (
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "resourceVersion",
)
_KEEPS_STATUS = (("scheduling.volcano.sh", "PodGroup"),)
_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_NAMESPACE = re.compile(_LABEL, re.ASCII)
_NAME = re.compile(rf"{_LABEL}(\.{_LABEL})*", re.ASCII)


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
    # To a generateName the API server adds characters.
    if not _NAME.fullmatch(name if metadata.get("name") else f"{name}0"):
        raise Unreadable(
            f"{where}, {kind}: metadata.name: {name!r}: must be lowercase letters, digits, '-' and"
            " '.', as the API server takes them"
        )
    its = metadata.get("namespace") or namespace
    if not isinstance(its, str):
        raise Unreadable(f"{where}, {kind} {name}: metadata.namespace: must be a text")
    if len(its) > LONGEST_NAMESPACE or not _NAMESPACE.fullmatch(its):
        raise Unreadable(
            f"{where}, {kind} {name}: metadata.namespace: {its!r}: must be 63 lowercase letters,"
            " digits and '-' at most, as the API server takes them"
        )
    if (group, kind) not in MAKERS and (group, kind) != PRIORITY_CLASS:
        kinds = ", ".join(sorted({each for _, each in MAKERS}))
        raise Unreadable(
            f"{where}, {kind} {name} of {api_version}: cannot be simulated: Corral does not read"
            f" which pods it makes; it reads {kinds}"
        )
    kept = {key: value for key, value in metadata.items() if key not in _READ}
    named = {**kept, "name": name, "namespace": its, "uid": f"simulated-{at}"}
    made = {**content, "metadata": named}
    if (group, kind) not in _KEEPS_STATUS:
        made.pop("status", None)
    return Given(group, kind, its, name, made)
