"""Turns between namespaces: a tenant with much work waits behind itself, not in front of others.

    put(namespace, key, item) ──▶ one line per namespace, in the order they came
                                    team-a: a1 a2 a3 a4 …
                                    team-b: b1             ──take──▶ a1 b1 a2 a3 a4 …

Between two items of a namespace every other namespace with items is taken from once at most, so an
item waits for those before it in its own line, each with one item of each other namespace.
Where there is room for so many items only, `Shares` says whose item is left out for a new one:
never that of a namespace that has fewer than its share. A queue counts into its own, or into one
that it has in common with others. Every operation is O(1).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

_Key = TypeVar("_Key", bound=Hashable)
_Item = TypeVar("_Item")


class Shares:
    """How many items each namespace has, and who gives one up where there is no more room.

    Invariants: `_namespaces[n]` are the namespaces with n items, and is not empty; `_most` is the
    largest n, 0 without any.
    """

    def __init__(self) -> None:
        self._items: dict[str, int] = {}
        self._namespaces: dict[int, OrderedDict[str, None]] = {}
        self._most = 0

    def of(self, namespace: str) -> int:
        """How many items the namespace has."""
        return self._items.get(namespace, 0)

    def add(self, namespace: str) -> None:
        """Count one more item of the namespace."""
        items = self.of(namespace)
        self._move(namespace, items, items + 1)
        self._most = max(self._most, items + 1)

    def remove(self, namespace: str) -> None:
        """Count one item of the namespace less; it must have one."""
        items = self._items[namespace]
        self._move(namespace, items, items - 1)
        if self._most not in self._namespaces:
            self._most = items - 1

    def to_leave_out(self, namespace: str) -> str:
        """Whose item is left out for a new one of this namespace.

        That of the namespace with the most; its own, unless that one keeps as many as it gets.
        """
        if self._most < self.of(namespace) + 2:
            return namespace
        return next(iter(self._namespaces[self._most]))

    def _move(self, namespace: str, before: int, after: int) -> None:
        if before:
            del self._namespaces[before][namespace]
            if not self._namespaces[before]:
                del self._namespaces[before]
        if after:
            self._items[namespace] = after
            self._namespaces.setdefault(after, OrderedDict())[namespace] = None
        else:
            del self._items[namespace]


class FairQueue(Generic[_Key, _Item]):
    """Items by namespace and key, taken in turns. A namespace has one item of a key at most.

    Invariant: no line is empty, so the namespaces in memory are those with items.
    """

    def __init__(self, shares: Shares | None = None) -> None:
        self.shares = Shares() if shares is None else shares
        self._lines: OrderedDict[str, OrderedDict[_Key, _Item]] = OrderedDict()  # next turn first
        self._items = 0

    def __len__(self) -> int:
        return self._items

    def contains(self, namespace: str, key: _Key) -> bool:
        """Whether there is an item of this key."""
        return namespace in self._lines and key in self._lines[namespace]

    def get(self, namespace: str, key: _Key) -> _Item | None:
        """The item of this key, None if there is none."""
        return self._lines[namespace].get(key) if namespace in self._lines else None

    def put(self, namespace: str, key: _Key, item: _Item) -> None:
        """Add an item at the end of its namespace's line, or in the place of that of its key."""
        line = self._lines.setdefault(namespace, OrderedDict())
        if key not in line:
            self._items += 1
            self.shares.add(namespace)
        line[key] = item

    def take(self) -> tuple[str, _Key, _Item]:
        """Remove the item whose turn it is.

        Raises: KeyError if there is none.
        """
        if not self._lines:
            raise KeyError("the queue is empty")
        namespace = next(iter(self._lines))
        key, item = self.drop(namespace, is_oldest=True)
        if namespace in self._lines:
            self._lines.move_to_end(namespace)
        return namespace, key, item

    def drop(self, namespace: str, *, is_oldest: bool) -> tuple[_Key, _Item]:
        """Remove the oldest or the newest item of a namespace; its turn stays.

        Raises: KeyError if it has none.
        """
        key, item = self._lines[namespace].popitem(last=not is_oldest)
        self._took_from(namespace)
        return key, item

    def make_room(self, namespace: str) -> tuple[_Key, _Item] | None:
        """Remove an item, for a new one of this namespace: the oldest of who gives one up.

        None: that is the namespace itself, and it has none; so many others have one.
        """
        giving = self.shares.to_leave_out(namespace)
        return self.drop(giving, is_oldest=True) if self.has(giving) else None

    def remove(self, namespace: str, key: _Key) -> _Item | None:
        """Remove the item of this key, None if there is none; the turn of its namespace stays."""
        if not self.contains(namespace, key):
            return None
        item = self._lines[namespace].pop(key)
        self._took_from(namespace)
        return item

    def has(self, namespace: str) -> bool:
        """Whether the namespace has items."""
        return namespace in self._lines

    def _took_from(self, namespace: str) -> None:
        self._items -= 1
        self.shares.remove(namespace)
        if not self._lines[namespace]:
            del self._lines[namespace]
