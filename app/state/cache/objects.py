"""The objects of the vocabularies, and the gangs that they declare something of."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from app.dialects.registry import Dialects
from app.dialects.spec import GangKey, GangSpec, Said
from app.kube.core.objects import ObjectRecord


@dataclass(slots=True)
class Objects:
    """What the watch shows of them; `by_gang` has the objects of `by_uid` that concern a gang."""

    dialects: Dialects
    by_uid: dict[str, ObjectRecord] = field(default_factory=dict)
    by_gang: dict[GangKey, dict[str, ObjectRecord]] = field(default_factory=dict)

    def of(self, key: GangKey) -> Collection[ObjectRecord]:
        """The objects that concern a gang."""
        return self.by_gang.get(key, {}).values()

    def spec(self, key: GangKey, said: Sequence[Said], ended: Sequence[Said]) -> GangSpec | None:
        """What a gang is, from its objects, its live pods and its failed ones."""
        return self.dialects.spec(key, self.of(key), said, ended)

    def of_kind(self, kind: str) -> list[str]:
        """The uids of every object of a kind."""
        return [uid for uid, record in self.by_uid.items() if record.kind == kind]

    def put(self, record: ObjectRecord) -> Iterator[GangKey]:
        """Add or replace an object: the gangs that it concerns, none if nothing changed."""
        if self.by_uid.get(record.uid) == record:
            return
        self.by_uid[record.uid] = record
        for key in self.dialects.keys_of(record):
            self.by_gang.setdefault(key, {})[record.uid] = record
            yield key

    def drop(self, uid: str) -> Iterator[GangKey]:
        """Forget an object that is gone: the gangs that it concerned."""
        record = self.by_uid.pop(uid, None)
        for key in self.dialects.keys_of(record) if record else ():
            of_gang = self.by_gang[key]
            del of_gang[uid]
            if not of_gang:
                del self.by_gang[key]
            yield key
