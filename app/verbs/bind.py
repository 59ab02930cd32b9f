"""/bind: holds each request until its gang may start, and answers it exactly once.

    /bind ──bind_arrived──▶ engine ──Bind──▶ controllers/pods/bind ─outcome─▶ `finished` ─▶ answer
                               └───RejectBind───────────────────────────────▶ `refuse` ───▶ answer

A held request is what Permit is inside kube-scheduler. There is one waiter per pod uid: the same
question asked again joins the older one, another node asked for the same pod replaces it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from app.fair_queue import FairQueue
from app.state.effects import Bind, BindOutcome, Bound, Effect, RejectBind
from app.state.inputs import Inputs

DONE = ""  # what kube-scheduler takes for success
CROWDED = "too many pods wait for their gangs; kube-scheduler tries this one again"


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """One pod's unanswered /bind; `answer` resolves to DONE or a sentence."""

    namespace: str
    node: str
    answer: asyncio.Future[str]


class BindDesk:
    """The /bind requests that wait.

    Units: `answer_seconds` is the absolute bound of one request; it lies a little over
    `gang_bind_seconds` plus the time of one binding, so the engine's own deadline comes first.
    `most_held` requests wait at most, so that /filter always finds a free connection. One more
    takes the place of the oldest of the namespace with the most; the engine knows that its pod has
    arrived.
    """

    def __init__(
        self,
        inputs: Inputs,
        feed: Callable[[Iterable[Effect]], None],
        *,
        answer_seconds: float,
        most_held: int,
    ) -> None:
        self._inputs = inputs
        self._feed = feed
        self._answer_seconds = answer_seconds
        self._most_held = most_held
        self._held_by_uid: dict[str, Held] = {}
        self._uids: FairQueue[str, None] = FairQueue()  # by namespace, the oldest first

    def __len__(self) -> int:
        """How many pods have a request waiting."""
        return len(self._held_by_uid)

    async def bind(self, namespace: str, name: str, uid: str, node: str) -> str:
        """Wait until the pod is bound (DONE) or will not be (why, in one sentence)."""
        held = self._held_by_uid.get(uid)
        if held is None or held.node != node:
            if held is not None:
                self._answer(uid, f"the pod was sent to node {node} meanwhile")
            held = Held(namespace, node, asyncio.get_running_loop().create_future())
            self._hold(uid, held)
            try:
                self._feed(self._inputs.bind_arrived(namespace, name, uid, node, time.monotonic()))
            except BaseException:
                self._answer(uid, "Corral failed to take the binding")
                raise
        done, _ = await asyncio.wait((held.answer,), timeout=self._answer_seconds)
        if not done:
            if self._held_by_uid.get(uid) is held:
                self._answer(uid, "the gang did not start in time")
            else:
                return "the gang did not start in time"
        return held.answer.result()

    def refuse(self, refuse: RejectBind) -> None:
        """Answer the pod's request with an error; without a request there is nothing to answer."""
        self._answer(refuse.uid, refuse.sentence)

    def finished(self, bind: Bind, outcome: BindOutcome) -> None:
        """Answer with what became of the binding.

        A request that meanwhile names another node is not answered with success.
        """
        held = self._held_by_uid.get(bind.uid)
        if held is None:
            return
        if not isinstance(outcome, Bound):
            self._answer(bind.uid, outcome.sentence)
        elif held.node != bind.node:
            self._answer(bind.uid, f"the pod is already bound to node {bind.node}")
        else:
            self._answer(bind.uid, DONE)

    def refuse_all(self, sentence: str) -> None:
        """Answer whatever is still held: the last step of a shutdown."""
        for uid in tuple(self._held_by_uid):
            self._answer(uid, sentence)

    def _hold(self, uid: str, held: Held) -> None:
        if len(self._held_by_uid) >= self._most_held:
            gone = self._uids.make_room(held.namespace)
            oldest = self._uids.take()[1] if gone is None else gone[0]
            self._answer(oldest, CROWDED)
        self._held_by_uid[uid] = held
        self._uids.put(held.namespace, uid, None)

    def _answer(self, uid: str, sentence: str) -> None:
        held = self._held_by_uid.pop(uid, None)
        if held is None:
            return
        self._uids.remove(held.namespace, uid)
        if not held.answer.done():
            held.answer.set_result(sentence)
