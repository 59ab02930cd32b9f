"""What gangs have of a pool together, and which of those that wait have room in it.

    objects say what a pool may have, what gangs have of it, and what others want
        a gang without pods asks ──▶ refusal: why it waits ──▶ granted, if there is none
        something of a pool gets free ──▶ the gangs that fit now ask again, the oldest first

What is granted counts before the object shows it, or two would be given the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from app.dialects.declared import Draw, Pool
from app.dialects.registry import Dialects
from app.dialects.spec import GangKey
from app.kube.core.objects import ObjectRecord

MOST_FREED = 64  # gangs that ask again in one tick; each costs as much as a status


@dataclass(slots=True)
class _Known:
    uid: str
    draw: Draw
    is_granted: bool = False

    @property
    def counts(self) -> bool:
        return self.is_granted or self.draw.is_drawn


@dataclass(slots=True)
class Pools:
    """The pools and draws that the watch shows.

    Invariant: `_taken` is the sum of the draws that count, by pool and resource.
    """

    dialects: Dialects
    _pools: dict[str, tuple[str, Pool]] = field(default_factory=dict)  # by name, with the uid
    _pool_of: dict[str, str] = field(default_factory=dict)  # by uid
    _known: dict[GangKey, _Known] = field(default_factory=dict)
    _gang_of: dict[str, GangKey] = field(default_factory=dict)  # by uid
    _taken: dict[str, Counter[str]] = field(default_factory=dict)
    _waiting: dict[str, dict[GangKey, None]] = field(default_factory=dict)  # by pool
    _freed: dict[str, None] = field(default_factory=dict)  # pools of which something got free

    def put(self, record: ObjectRecord) -> None:
        """Learn of an object, which may be a pool, or draw on one."""
        uid, pool, draw = record.uid, self.dialects.pool(record), self.dialects.draw(record)
        name = None if pool is None else pool.name
        key = None if draw is None else next(iter(self.dialects.keys_of(record)), None)
        if (self._pool_of.get(uid), self._gang_of.get(uid)) != (name, key):
            self.drop(uid)
        if pool is not None and self._pools.get(pool.name) != (uid, pool):
            self._pools[pool.name] = uid, pool
            self._pool_of[uid] = pool.name
            self._freed[pool.name] = None
        if draw is not None and key is not None:
            self._put_draw(key, uid, draw)

    def drop(self, uid: str) -> None:
        """Forget an object that is gone; another one of its name may be there already."""
        key, name = self._gang_of.pop(uid, None), self._pool_of.pop(uid, None)
        if key in self._known and self._known[key].uid == uid:
            self._forget(key)
        if name in self._pools and self._pools[name][0] == uid:
            del self._pools[name]
            self._freed[name] = None

    def refusal(self, key: GangKey) -> str:
        """Why a gang has to wait for its pool; "" if it has what it wants of it, or may have it.

        A gang whose object does not show what it was granted is looked at again: another Corral may
        have given the same to others.
        """
        known = self._known.get(key)
        if known is None or known.draw.is_drawn:
            return ""
        if known.is_granted:
            self._take(known.draw, -1)
            known.is_granted = False
        _, pool = self._pools.get(known.draw.pool, ("", None))
        why = "" if pool is None else self._short(pool, known.draw)
        if why:
            self._waiting.setdefault(known.draw.pool, {})[key] = None
        return why

    def grant(self, key: GangKey) -> None:
        """Count what a gang gets, from now on."""
        known = self._known.get(key)
        if known is not None and not known.counts:
            known.is_granted = True
            self._take(known.draw, 1)
            self._waiting.get(known.draw.pool, {}).pop(key, None)

    def since(self, key: GangKey) -> str:
        """The order in which gangs ask; "" for those that do not wait for a pool."""
        known = self._known.get(key)
        return "" if known is None or known.counts else known.draw.since

    def taken_freed(self) -> list[GangKey]:
        """The gangs that fit into what has got free, the oldest first, each by itself; so many."""
        freed, self._freed = self._freed, {}
        found: list[GangKey] = []
        for name in freed:
            fitting = self._fitting(name)
            found.extend(islice(fitting, MOST_FREED - len(found)))
            if next(fitting, None) is not None:
                self._freed[name] = None
        for key in found:
            del self._waiting[self._known[key].draw.pool][key]  # until it is refused again
        return found

    def differences(self) -> Iterator[str]:
        """Where what is taken differs from what counts."""
        wanted = self._counted()
        for name in {*wanted, *self._taken}:
            there, due = self._taken.get(name, Counter()), wanted.get(name, Counter())
            if there != due:
                yield f"{dict(there)} is taken of {name}, and {dict(due)} counts"

    def heal(self) -> None:
        """Take what counts, and no more."""
        self._freed.update(dict.fromkeys(self._taken))
        self._taken = self._counted()

    def _counted(self) -> dict[str, Counter[str]]:
        """The sums of the draws that count, by pool."""
        found: dict[str, Counter[str]] = {}
        for known in self._known.values():
            if known.counts:
                found.setdefault(known.draw.pool, Counter()).update(dict(known.draw.amounts))
        return found

    def _fitting(self, name: str) -> Iterator[GangKey]:
        _, pool = self._pools.get(name, ("", None))
        waiting = self._waiting.get(name, {})
        for key in sorted(waiting, key=lambda key: (self._known[key].draw.since, str(key))):
            if pool is None or not self._short(pool, self._known[key].draw):
                yield key

    def _short(self, pool: Pool, draw: Draw) -> str:
        """What a pool lacks for a draw; "": nothing."""
        if not pool.is_open:
            return f"{pool.name} is closed"
        taken, most = self._taken.get(pool.name, Counter()), dict(pool.most)
        for resource, wanted in draw.amounts:
            if resource in most and taken[resource] + wanted > most[resource]:
                unit = "m" if resource == "cpu" else ""
                return f"{pool.name} has no {wanted}{unit} {resource} left"
        return ""

    def _put_draw(self, key: GangKey, uid: str, draw: Draw) -> None:
        known = self._known.get(key)
        if known is not None and known.uid == uid and known.draw == draw:
            return
        is_granted = known is not None and known.uid == uid and known.is_granted
        if known is not None:
            self._forget(key)
        known = self._known[key] = _Known(uid, draw, is_granted and not draw.is_drawn)
        self._gang_of[uid] = key
        if known.counts:
            self._take(draw, 1)

    def _forget(self, key: GangKey) -> None:
        known = self._known.pop(key)
        self._waiting.get(known.draw.pool, {}).pop(key, None)
        if known.counts:
            self._take(known.draw, -1)

    def _take(self, draw: Draw, sign: int) -> None:
        taken = self._taken.setdefault(draw.pool, Counter())
        for resource, amount in draw.amounts:
            taken[resource] += sign * amount
            if not taken[resource]:
                del taken[resource]
        if not taken:
            del self._taken[draw.pool]
        if sign < 0:
            self._freed[draw.pool] = None
