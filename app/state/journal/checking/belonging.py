"""Which pods belong to which gang, and what the gang is, from a journal's objects alone.

The vocabularies read pods and objects, as they do for the engine; no part of the engine is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from app.dialects.registry import Dialects
from app.dialects.spec import Claim, GangKey, GangSpec, GroupSpec, LeafPods, LeafSpec
from app.kube.core.objects import ObjectRecord, PodRecord
from app.kube.watch.events import Applied, Event, Listed
from app.state.settings import EngineSettings

MOST_AROUND = 16  # objects inside one another

_Key = TypeVar("_Key")


@dataclass(slots=True)
class Belonging:
    """Claims of the pods that a journal shows, those that are gone by now too."""

    settings: EngineSettings
    dialects: Dialects
    """As the settings want them read."""
    claims: dict[str, Claim] = field(default_factory=dict)
    """By uid."""
    members: dict[GangKey, dict[str, None]] = field(default_factory=dict)
    """The uids of a gang's pods that are there."""
    pods: dict[str, PodRecord] = field(default_factory=dict)
    """By uid: those that may be members and are there."""
    _objects: dict[str, ObjectRecord] = field(default_factory=dict)
    _by_key: dict[GangKey, dict[str, None]] = field(default_factory=dict)
    _naming: dict[tuple[str, str], dict[str, None]] = field(default_factory=dict)

    def hear(self, event: Event) -> None:
        """Follow one event."""
        if isinstance(event, Listed):
            self._replace(event)
        elif isinstance(event, Applied):
            self._put(event.record)
        else:
            self._drop(event.record)

    def _replace(self, event: Listed) -> None:
        listed = {each.uid for each in event.records}
        if event.kind == "Pod":
            for uid in [uid for uid in self.pods if uid not in listed]:
                self._drop(self.pods[uid])
        else:
            gone = [each for each in self._objects.values() if each.kind == event.kind]
            for each in gone:
                if each.uid not in listed:
                    self._drop(each)
        for record in event.records:
            self._put(record)

    def _put(self, record: object) -> None:
        if isinstance(record, PodRecord):
            if self.settings.is_ours(record):
                self.pods[record.uid] = record
                self._claim(record)
        elif isinstance(record, ObjectRecord):
            self._index(self._objects.pop(record.uid, None), is_there=False)
            self._objects[record.uid] = record
            self._index(record, is_there=True)
            self._claim_anew()

    def _drop(self, record: object) -> None:
        if isinstance(record, PodRecord):
            if self.pods.pop(record.uid, None) is not None:
                self._unclaim(record.uid)
        elif isinstance(record, ObjectRecord):
            self._index(self._objects.pop(record.uid, None), is_there=False)
            self._claim_anew()

    def _index(self, record: ObjectRecord | None, *, is_there: bool) -> None:
        if record is None:
            return
        keys = [*self.dialects.keys_of(record)]
        inside = self.dialects.inside(record)
        for key in (*keys, *(() if inside is None else (inside,))):
            _note(self._by_key, key, record.uid, is_there=is_there)
        for named in self.dialects.pods_named(record):
            if record.namespace in ("", named.namespace):
                at = named.namespace, named.name
                _note(self._naming, at, record.uid, is_there=is_there)

    def _claim_anew(self) -> None:
        """Claim the pods again of which objects may say where they belong."""
        for pod in self.pods.values():
            if self.dialects.may_be_named(pod):
                self._claim(pod)

    def _claim(self, pod: PodRecord) -> None:
        is_managed = self.dialects.is_managed(pod.labels, pod.annotations, pod.gates, pod.pod_group)
        claim = None if is_managed else self.dialects.claim(pod, self._naming_objects(pod))
        before = self.claims.get(pod.uid)
        if before is not None and (claim is None or claim.gang != before.gang):
            self._unclaim(pod.uid)
        if claim is not None:
            self.claims[pod.uid] = claim
            self.members.setdefault(claim.gang, {})[pod.uid] = None

    def _unclaim(self, uid: str) -> None:
        claim = self.claims.get(uid)
        if claim is not None:
            self.members.get(claim.gang, {}).pop(uid, None)

    def _naming_objects(self, pod: PodRecord) -> tuple[ObjectRecord, ...]:
        keys = self.dialects.sorted_by(pod)
        uids = dict.fromkeys(() if keys else self._naming.get((pod.namespace, pod.name), ()))
        for key in keys:
            for around in (key, *self._around(key)):
                uids.update(dict.fromkeys(each.uid for each in self._of(around)))
        found = (self._objects[uid] for uid in uids)
        return tuple(sorted(found, key=lambda each: (each.kind, each.key, each.uid)))

    def _of(self, key: GangKey) -> list[ObjectRecord]:
        """The objects that name a gang themselves."""
        found = (self._objects[uid] for uid in self._by_key.get(key, ()))
        return [each for each in found if key in self.dialects.keys_of(each)]

    def _around(self, key: GangKey) -> Iterator[GangKey]:
        for _ in range(MOST_AROUND):
            parents = (self.dialects.inside(each) for each in self._of(key))
            parent = next((each for each in parents if each is not None), None)
            if parent is None:
                return
            yield parent
            key = parent

    def _within(self, key: GangKey) -> Iterator[ObjectRecord]:
        """The objects of a gang, and those inside others."""
        found: dict[str, None] = {}
        waiting, seen = [key], {key}
        while waiting:
            for uid in self._by_key.get(waiting.pop(0), ()):
                found[uid] = None
                inner = list(self.dialects.keys_of(self._objects[uid]))
                waiting.extend(each for each in inner if each not in seen)
                seen.update(inner)
        return (self._objects[uid] for uid in found)

    def live(self, key: GangKey) -> list[PodRecord]:
        """The gang's pods that run or may still start, the ones that have nodes first."""
        pods = (self.pods[uid] for uid in self.members.get(key, ()))
        live = [each for each in pods if not (each.is_finished or each.is_terminating)]
        return sorted(live, key=lambda pod: (not pod.node, pod.created, pod.name))

    def spec(self, key: GangKey) -> GangSpec | None:
        """What the gang is now; None: that is not known."""
        pods = [self.pods[uid] for uid in self.members.get(key, ())]
        said = [self.claims[each.uid].said for each in self.live(key)]
        ended = [self.claims[each.uid].said for each in pods if each.phase == "Failed"]
        by_leaf: dict[str, list[int]] = {}
        for each in pods:
            if each.phase == "Succeeded" or not (each.is_finished or each.is_terminating):
                by_leaf.setdefault(self.claims[each.uid].leaf, []).append(each.priority)
        leaves = {leaf: LeafPods(len(its), max(its)) for leaf, its in by_leaf.items()}
        return self.dialects.spec(key, list(self._within(key)), said, ended, leaves)


def _note(index: dict[_Key, dict[str, None]], key: _Key, uid: str, *, is_there: bool) -> None:
    if is_there:
        index.setdefault(key, {})[uid] = None
    elif key in index:
        index[key].pop(uid, None)


def least_pods(spec: GangSpec) -> int:
    """The fewest pods that the gang starts with."""
    if spec.starts_with is not None:
        return max(spec.starts_with, 1)
    return _least(spec.root)


def _least(part: GroupSpec | LeafSpec) -> int:
    if isinstance(part, LeafSpec):
        return part.least
    return sum(sorted(map(_least, part.members))[: part.least])


def parts_of(spec: GangSpec, leaves: Iterable[str]) -> dict[str, tuple[GroupSpec | LeafSpec, ...]]:
    """The groups around each of these leaves and the leaf itself, by the name that claims give."""
    known = {leaf.name: leaf for leaf in spec.leaves()}
    return {
        name: (*spec.path_to(name), *((known[name],) if name in known else ())) for name in leaves
    }
