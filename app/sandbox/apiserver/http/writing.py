"""A write on its way through admission.

    create:  draft ─▶ mutating webhooks ─▶ creation ────▶ validating webhooks ─▶ commit
    update:  plan ──▶ mutating webhooks ─▶ update again ─▶ validating webhooks ─▶ commit
              ▲                                                                   │ overtaken
              └───────────────────────────────────────────────────────────────────┘

Other clients write while webhooks are called. A new object may find its name taken; an update of
an object that was changed meanwhile is planned again on its present state, as in kube-apiserver.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from app.sandbox.apiserver.admission.attributes import Attributes
from app.sandbox.apiserver.admission.webhooks import Webhooks
from app.sandbox.apiserver.rules.registry import Registry, Write
from app.sandbox.apiserver.storage import failures
from app.sandbox.apiserver.storage.failures import Refused
from app.sandbox.apiserver.storage.kinds import MUTATING, VALIDATING, Kind, Object
from app.sandbox.apiserver.storage.store import Stored

_MOST_TRIES = 5  # of one update; kube-apiserver's MaxRetryWhenPatchConflicts
_EXEMPT = (MUTATING, VALIDATING)  # no webhook is called for changes of webhook configurations


class Writer:
    """The writes of one cluster. `close` cancels those that still wait for a webhook."""

    def __init__(self, registry: Registry, webhooks: Webhooks) -> None:
        self._registry = registry
        self._webhooks = webhooks
        self._tasks: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def create(
        self, kind: Kind, namespace: str, body: Object, *, is_dry_run: bool = False
    ) -> Stored:
        """Raises: Refused: as `Registry.create`, or by a webhook."""
        registry = self._registry
        draft = registry.draft(kind, namespace, body)
        name = draft["metadata"].get("name", "")
        attributes = Attributes("CREATE", kind, namespace, name, draft, is_dry_run=is_dry_run)
        if kind not in _EXEMPT:
            changed = await self._webhooks.mutate(attributes)
            if changed is not draft:
                draft = registry.draft(kind, namespace, {"kind": kind.name} | changed)
        write = registry.creation(kind, draft)
        if kind not in _EXEMPT:
            await self._webhooks.validate(replace(attributes, name=write.key[1], after=write.after))
        return registry.commit(write, is_dry_run=is_dry_run)

    async def update(self, plan: Callable[[], Write], *, is_dry_run: bool = False) -> Stored:
        """plan: the write as the rules allow it, on the object's present state.

        Raises: Refused: what `plan` raises, by a webhook, 409 if it was overtaken too often.
        """
        for _ in range(_MOST_TRIES):
            write = plan()
            if write.kind not in _EXEMPT:
                write = await self._admitted(write, is_dry_run=is_dry_run)
            if self._registry.is_current(write):
                return self._registry.commit(write, is_dry_run=is_dry_run)
        raise failures.stale(write.kind, write.key[1])

    async def _admitted(self, write: Write, *, is_dry_run: bool) -> Write:
        assert write.before is not None
        namespace, name = write.key
        attributes = Attributes(
            "UPDATE",
            write.kind,
            namespace,
            name,
            write.after,
            write.before.body,
            write.subresource,
            is_dry_run,
        )
        changed = await self._webhooks.mutate(attributes)
        if changed is not write.after:
            write = self._registry.update(write.kind, write.before, changed, write.subresource)
        await self._webhooks.validate(replace(attributes, after=write.after))
        return write

    def create_soon(
        self, kind: Kind, namespace: str, body: Object, done: Callable[[Stored | None], None]
    ) -> None:
        """Create at once if no webhook is configured, else as soon as they have answered.

        done: is called with the stored object, or None if it was refused.
        """
        if self._webhooks.are_configured():
            task = asyncio.create_task(self._create_later(kind, namespace, body, done))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            return
        try:
            stored = self._registry.create(kind, namespace, body)
        except Refused:
            done(None)
        else:
            done(stored)

    async def _create_later(
        self, kind: Kind, namespace: str, body: Object, done: Callable[[Stored | None], None]
    ) -> None:
        try:
            stored = await self.create(kind, namespace, body)
        except Refused:
            done(None)
        else:
            done(stored)
