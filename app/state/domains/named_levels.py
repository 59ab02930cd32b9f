"""Label keys that objects name as a level for their gangs, though no topology may have them.

    objects, by namespace ──▶ keys in no topology ──▶ as many as there is room for ──▶ a level each

So are the topologies that objects name together (`joined.py`): a key is then such a combination.

Each costs a tree and a copy of the books, and who may write such an object may name any key. So
there is room for a few: those that came first stay for as long as some object names them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

MOST_NAMED = 16  # levels in use that no topology has …
MOST_PER_NAMESPACE = 2  # … and that objects of one namespace are the first to name

_Key = TypeVar("_Key", bound=Hashable)


@dataclass(slots=True)
class NamedLevels(Generic[_Key]):
    """Which objects name which keys; dicts to None are sets that keep their order.

    Invariant: `_uids[namespace][key]` are the objects of that namespace whose `_said` has the key.
    """

    used: dict[_Key, str] = field(default_factory=dict)
    """The keys that are levels now, each with the namespace that it counts for."""
    _said: dict[str, tuple[str, str, tuple[_Key, ...]]] = field(default_factory=dict)
    """By the uid of an object: its kind, its namespace, the keys that it names."""
    _uids: dict[str, dict[_Key, dict[str, None]]] = field(default_factory=dict)

    def put(self, uid: str, kind: str, namespace: str, keys: Iterable[_Key]) -> bool:
        """Learn which keys an object names now; True if these are others than before."""
        said = (kind, namespace, tuple(dict.fromkeys(keys)))
        if self._said.get(uid, (kind, namespace, ())) == said:
            return False
        self.drop(uid)
        self._said[uid] = said
        for key in said[2]:
            self._uids.setdefault(namespace, {}).setdefault(key, {})[uid] = None
        return True

    def drop(self, uid: str) -> bool:
        """Forget an object; True if it named a key."""
        _, namespace, keys = self._said.pop(uid, ("", "", ()))
        for key in keys:
            of_namespace = self._uids[namespace]
            del of_namespace[key][uid]
            if not of_namespace[key]:
                del of_namespace[key]
            if not of_namespace:
                del self._uids[namespace]
        return bool(keys)

    def keep(self, kind: str, uids: Collection[str]) -> bool:
        """Forget the objects of a kind that are none of these; True if one of them named a key."""
        gone = [uid for uid, said in self._said.items() if said[0] == kind and uid not in uids]
        return any([self.drop(uid) for uid in gone])

    def choose(self, known: Container[_Key]) -> bool:
        """Choose which keys are levels, beside those that are `known`; True if these are others."""
        chosen = {
            key: namespace
            for key, namespace in self.used.items()
            if key not in known and key in self._uids.get(namespace, ())
        }
        has = Counter(chosen.values())
        for namespace, keys in self._uids.items():
            for key in keys:
                if len(chosen) >= MOST_NAMED or has[namespace] >= MOST_PER_NAMESPACE:
                    break
                if key not in known and key not in chosen:
                    chosen[key] = namespace
                    has[namespace] += 1
        is_other, self.used = chosen != self.used, chosen
        return is_other
