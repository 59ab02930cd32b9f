"""The objects of the vocabularies, and the gangs that they declare something of.

    by_gang   gang ──▶ objects that name it
    inside    gang ──▶ objects that are inside the one of this key, which need not be there
    referred  name ──▶ objects that others refer to by it, and which those are

Objects inside one another are parts of the outermost one's gang. They come in any order, and may be
inside themselves by mistake: a look up or down stops where it has been.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from app.dialects.registry import Dialects
from app.dialects.spec import NO_PODS, GangKey, GangSpec, LeafPods, Said, Suspension
from app.kube.core.objects import ObjectRecord
from app.state.objects.kept_keys import KeptKeys, Lacking

_K = TypeVar("_K")

MOST_INSIDE = 512  # objects of one gang that are read; a vocabulary refuses fewer
MOST_AROUND = 16  # keys around an object; the same
MOST_KNOWN = 64  # gangs whose objects are known without a walk, until one changes


@dataclass(slots=True)
class Objects:
    """What the watch shows of them; `by_gang` has the uids of those that concern a gang."""

    dialects: Dialects
    kept_keys: KeptKeys
    names_keys: bool = field(init=False)
    """Whether some vocabulary has objects that name label keys of pods."""
    by_uid: dict[str, ObjectRecord] = field(default_factory=dict)
    by_gang: dict[GangKey, dict[str, None]] = field(default_factory=dict)
    inside: dict[GangKey, dict[str, None]] = field(default_factory=dict)
    suspended: dict[str, Suspension] = field(default_factory=dict)
    """By uid: workloads that Corral has suspended."""
    _referred: dict[str, dict[str, None]] = field(default_factory=dict)
    _referring: dict[str, dict[str, None]] = field(default_factory=dict)
    _nests: bool = field(init=False)
    _known: dict[GangKey, Sequence[ObjectRecord]] = field(default_factory=dict)
    """What `of` has found of what others are inside: each of its pods that comes asks again."""

    def __post_init__(self) -> None:
        self.names_keys = self.dialects.names_keys
        self._nests = self.dialects.nests_objects

    def of(self, key: GangKey) -> Collection[ObjectRecord]:
        """The objects that concern a gang, those inside others after them: MOST_INSIDE at most."""
        if key not in self.inside:
            return self.named(key)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            known = self._known[key] = self._of(key)
        return known

    def _of(self, key: GangKey) -> Sequence[ObjectRecord]:
        found: dict[str, None] = {}
        for each in self.within(key):
            if len(found) >= MOST_INSIDE:
                break
            found.update(dict.fromkeys(self.by_gang.get(each, ())))
        return [self.by_uid[uid] for uid in found]

    def named(self, key: GangKey) -> Collection[ObjectRecord]:
        """The objects that name a gang themselves, and after them those that these refer to."""
        found = [self.by_uid[uid] for uid in self.by_gang.get(key, ())]
        names = filter(None, map(self.dialects.refers_to, found)) if self._referring else ()
        uids = [uid for name in dict.fromkeys(names) for uid in self._referred.get(name, ())]
        return [*found, *(self.by_uid[uid] for uid in uids)]

    def around(self, key: GangKey) -> Sequence[GangKey]:
        """The keys of what the object of this key is inside, the nearest first."""
        found: dict[GangKey, None] = {}
        parent = self._parent(key)
        while parent is not None and parent not in found and len(found) < MOST_AROUND:
            found[parent] = None
            parent = self._parent(parent)
        return list(found)

    def within(self, key: GangKey) -> Iterator[GangKey]:
        """This key, and those of all objects inside, as deep as `around` looks the other way."""
        found, waiting = {key}, deque(((key, 0),))
        while waiting:
            each, depth = waiting.popleft()
            yield each
            for uid in self.inside.get(each, ()) if depth < MOST_AROUND else ():
                inner = set(self.dialects.keys_of(self.by_uid[uid])) - found
                found |= inner
                waiting.extend((one, depth + 1) for one in sorted(inner, key=str))

    def _parent(self, key: GangKey) -> GangKey | None:
        if not self._nests:
            return None
        records = self.named(key)
        return next((found for each in records if (found := self.dialects.inside(each))), None)

    def spec(
        self,
        key: GangKey,
        said: Sequence[Said] = (),
        ended: Sequence[Said] = (),
        pods: Mapping[str, LeafPods] = NO_PODS,
    ) -> GangSpec | None:
        """What a gang is, from its objects, its live pods and its failed ones.

        It is not known before the pods were read with every label key that its objects name.
        """
        if self.names_keys and self.lacking(key):
            return None
        return self.dialects.spec(key, self.of(key), said, ended, pods)

    def lacking(self, key: GangKey) -> Lacking | None:
        """The label keys that objects of a gang name and pods were read without."""
        return self.kept_keys.lacking(self.of(key))

    def gangs_with_keys(self) -> list[GangKey]:
        """The gangs with objects that name label keys of pods."""
        named = (self.by_uid[uid] for uid in self.kept_keys.objects)
        return list(dict.fromkeys(key for each in named for key in self.dialects.keys_of(each)))

    def keys_of(self, uid: str) -> list[GangKey]:
        """The gangs that an object concerns."""
        record = self.by_uid.get(uid)
        return [] if record is None else list(self.dialects.keys_of(record))

    def deadline_of(self, uid: str) -> int:
        """How long after its start a workload ends its pods at the latest; 0: never."""
        return int(getattr(self.by_uid.get(uid), "deadline_seconds", 0))

    def is_suspended(self, uid: str) -> bool:
        """Whether an object is a workload that is suspended, by Corral or others."""
        return bool(getattr(self.by_uid.get(uid), "is_suspended", False))

    def of_kind(self, kind: str) -> list[str]:
        """The uids of every object of a kind."""
        return [uid for uid, record in self.by_uid.items() if record.kind == kind]

    def put(self, record: ObjectRecord) -> Iterator[GangKey]:
        """Add or replace an object: the gangs that it concerns or did, none if nothing changed."""
        before = self.by_uid.get(record.uid)
        self._known.clear()
        self.by_uid[record.uid] = record  # a status that is written names its version
        if before is not None and before == msgspec.structs.replace(record, version=before.version):
            return  # most events of a Job are news of its status, which does not concern its gang
        if self.names_keys:
            self.kept_keys.put(record)
        self.suspended.pop(record.uid, None)
        if found := self.dialects.suspended(record):
            self.suspended[record.uid] = found
        yield from self._refer(before, record)
        # A JobSet that restarts, a Job with other labels and fewer groups concern other gangs.
        left = dict.fromkeys(self.dialects.keys_of(before) if before else ())
        if before is not None and self._nests:
            yield from self._moved(before, record)
        for key in self.dialects.keys_of(record):
            self.by_gang.setdefault(key, {})[record.uid] = None
            left.pop(key, None)
            yield key
        for key in left:
            self._leave(key, record.uid)
            yield key
        parent = self.dialects.inside(record) if self._nests else None
        if parent is not None:
            self.inside.setdefault(parent, {})[record.uid] = None
            yield parent
            yield from self.around(parent)

    def drop(self, uid: str) -> Collection[GangKey]:
        """Forget an object that is gone: the gangs that it concerned."""
        record = self.by_uid.pop(uid, None)
        self._known.clear()
        self.suspended.pop(uid, None)
        if self.names_keys:
            self.kept_keys.drop(uid)
        if record is None:
            return ()
        keys = list(self.dialects.keys_of(record))
        for key in keys:
            self._leave(key, uid)
        keys += self._refer(record, None)
        return [*keys, *self._outgoing(record)] if self._nests else keys

    def _moved(self, before: ObjectRecord, record: ObjectRecord) -> Collection[GangKey]:
        """What an object was inside of before this change, and is not any more."""
        is_same = self.dialects.inside(before) == self.dialects.inside(record)
        return () if is_same else self._outgoing(before)

    def _outgoing(self, record: ObjectRecord) -> Collection[GangKey]:
        """Take an object out of what it is inside: the keys of that, and of what is around it."""
        parent = self.dialects.inside(record)
        if parent is None:
            return ()
        _take_out(self.inside, parent, record.uid)
        return [parent, *self.around(parent)]

    def _refer(self, before: ObjectRecord | None, now: ObjectRecord | None) -> list[GangKey]:
        """Follow what an object refers to, and is referred to by: the gangs that hear of it."""
        _refile(self._referring, self.dialects.refers_to, before, now)
        names = _refile(self._referred, self.dialects.referred, before, now)
        uids = [uid for name in names for uid in self._referring.get(name, ())]
        return [key for uid in uids for key in self.keys_of(uid)]

    def _leave(self, key: GangKey, uid: str) -> None:
        _take_out(self.by_gang, key, uid)


def _refile(
    uids: dict[str, dict[str, None]],
    name_of: Callable[[ObjectRecord], str],
    before: ObjectRecord | None,
    now: ObjectRecord | None,
) -> Iterable[str]:
    """Put an object under the name that it has now; the names that it had, and has."""
    was = "" if before is None else name_of(before)
    its = "" if now is None else name_of(now)
    if before is not None and was and was != its:
        _take_out(uids, was, before.uid)
    if now is not None and its:
        uids.setdefault(its, {})[now.uid] = None
    return dict.fromkeys(filter(None, (was, its)))


def _take_out(uids: dict[_K, dict[str, None]], key: _K, uid: str) -> None:
    of_key = uids[key]
    del of_key[uid]
    if not of_key:
        del uids[key]
