"""The objects of the vocabularies, and the gangs that they declare something of."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from app.dialects.registry import Dialects
from app.dialects.spec import NO_PODS, GangKey, GangSpec, LeafPods, Said
from app.kube.core.objects import ObjectRecord
from app.state.cache.kept_keys import KeptKeys, Lacking


@dataclass(slots=True)
class Objects:
    """What the watch shows of them; `by_gang` has the uids of those that concern a gang."""

    dialects: Dialects
    kept_keys: KeptKeys
    names_keys: bool = field(init=False)
    """Whether some vocabulary has objects that name label keys of pods."""
    by_uid: dict[str, ObjectRecord] = field(default_factory=dict)
    by_gang: dict[GangKey, dict[str, None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.names_keys = self.dialects.names_keys

    def of(self, key: GangKey) -> Collection[ObjectRecord]:
        """The objects that concern a gang."""
        return [self.by_uid[uid] for uid in self.by_gang.get(key, ())]

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

    def of_kind(self, kind: str) -> list[str]:
        """The uids of every object of a kind."""
        return [uid for uid, record in self.by_uid.items() if record.kind == kind]

    def put(self, record: ObjectRecord) -> Iterator[GangKey]:
        """Add or replace an object: the gangs that it concerns or did, none if nothing changed."""
        before = self.by_uid.get(record.uid)
        self.by_uid[record.uid] = record  # a status that is written names its version
        if before is not None and before == msgspec.structs.replace(record, version=before.version):
            return  # most events of a Job are news of its status, which does not concern its gang
        if self.names_keys:
            self.kept_keys.put(record)
        # A JobSet that restarts, a Job with other labels and fewer groups concern other gangs.
        left = dict.fromkeys(self.dialects.keys_of(before) if before else ())
        for key in self.dialects.keys_of(record):
            self.by_gang.setdefault(key, {})[record.uid] = None
            left.pop(key, None)
            yield key
        for key in left:
            self._leave(key, record.uid)
            yield key

    def drop(self, uid: str) -> Collection[GangKey]:
        """Forget an object that is gone: the gangs that it concerned."""
        record = self.by_uid.pop(uid, None)
        if self.names_keys:
            self.kept_keys.drop(uid)
        keys = [] if record is None else list(self.dialects.keys_of(record))
        for key in keys:
            self._leave(key, uid)
        return keys

    def _leave(self, key: GangKey, uid: str) -> None:
        of_gang = self.by_gang[key]
        del of_gang[uid]
        if not of_gang:
            del self.by_gang[key]
