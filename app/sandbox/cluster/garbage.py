"""The garbage collector: what an object owns goes with it.

    DELETED ─▶ what names it as owner, and no other owner that is there ─▶ deleted

At once and in the background: whatever a deletion says of its dependents, `Foreground` and `Orphan`
are not known. An object whose owner was never there stays; upstream it is deleted soon.
Source: kubernetes 1.36 pkg/controller/garbagecollector.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable

from app.sandbox.apiserver.rules.registry import Registry
from app.sandbox.apiserver.storage.failures import Refused
from app.sandbox.apiserver.storage.kinds import DEFINITION, Home, Key, Kind, Object
from app.sandbox.apiserver.storage.store import Change


class GarbageCollector:
    """Follows every kind that is served, from `start` on."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._ends: dict[Home, Callable[[], None]] = {}
        self._alive: set[str] = set()  # uids of all objects
        self._owned: dict[str, set[tuple[Kind, Key]]] = {}  # by the uid of an owner

    def start(self) -> Callable[[], None]:
        """Returns the call that ends it."""
        end_definitions = self._registry.store.subscribe(DEFINITION, self._on_definition)
        self._follow_all()

        def end() -> None:
            for each in (end_definitions, *self._ends.values()):
                each()

        return end

    def _on_definition(self, _change: Change) -> None:
        self._follow_all()

    def _follow_all(self) -> None:
        store = self._registry.store
        for kind in self._registry.kinds:
            if kind.home not in self._ends:
                self._ends[kind.home] = store.subscribe(kind, self._on_change)
                for stored in store.values(kind):
                    self._came(kind, stored.body)

    def _on_change(self, change: Change) -> None:
        if change.before is not None:
            for uid in _owners(change.before.body):
                self._owned.get(uid, set()).discard((change.kind, change.key))
        if change.type != "DELETED":
            self._came(change.kind, change.now.body)
            return
        uid = change.now.body["metadata"]["uid"]
        self._alive.discard(uid)
        for kind, key in sorted(self._owned.pop(uid, ()), key=lambda each: each[1]):
            self._collect(kind, key, uid)

    def _came(self, kind: Kind, body: Object) -> None:
        own = body["metadata"]
        self._alive.add(own["uid"])
        for uid in _owners(body):
            self._owned.setdefault(uid, set()).add((kind, (own.get("namespace", ""), own["name"])))

    def _collect(self, kind: Kind, key: Key, owner: str) -> None:
        """Delete an object, whose owner this was, unless another one is there."""
        stored = self._registry.store.get(kind, key)
        owners = set() if stored is None else set(_owners(stored.body))
        if stored is None or owner not in owners or self._alive & owners:
            return
        with contextlib.suppress(Refused):  # it has gone meanwhile
            self._registry.delete(kind, key, {"uid": stored.body["metadata"]["uid"]})


def _owners(body: Object) -> Iterable[str]:
    return [each["uid"] for each in body["metadata"].get("ownerReferences") or []]
