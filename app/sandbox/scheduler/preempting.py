"""Carries a preemption out beside the loop, while the pod that preempts is not tried.

    nominations of lower pods end ─▶ the victims but one, all at once ─▶ the last victim
                                      each: DisruptionTarget ─▶ DELETE ─▶ event

The pod may be tried again once its last victim is seen to end, or all calls are made. A call that
fails spares the last victim, and has the pod tried at once. Victims that end already are left as
they are. A pod that is bound in memory only is deleted like any other: none waits in Permit here.
Source: kubernetes 1.36 pkg/scheduler/framework/preemption/executor.go (SchedulerAsyncPreemption,
on by default). Up to 1.34 a victim that is gone was an error as well, and the pod might be tried
before the last call.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from app.sandbox.apiserver.rules.pod_rules import with_condition
from app.sandbox.apiserver.rules.registry import Registry
from app.sandbox.apiserver.storage.failures import Refused
from app.sandbox.apiserver.storage.kinds import POD, Key
from app.sandbox.apiserver.storage.patch import MERGE
from app.sandbox.scheduler.facts.pod_facts import BY_SCHEDULER, TARGET, PodFacts
from app.sandbox.scheduler.recorder import Recorder


@dataclass(frozen=True, slots=True)
class Preempting:
    """What is to be done for one pod."""

    preemptor: PodFacts
    node: str
    victims: Sequence[PodFacts]  # the most important first
    nominated_below: Sequence[PodFacts]  # pods of lower priority that are nominated for the node


class Executor:
    """`activate`: has a pod, by its uid, tried at once."""

    def __init__(
        self, registry: Registry, recorder: Recorder, activate: Callable[[str], None]
    ) -> None:
        self._registry = registry
        self._recorder = recorder
        self._activate = activate
        self._last: dict[str, Key | None] = {}
        # ^ by preemptor: its last victim, once the calls about all the others are made
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, asked: Preempting) -> None:
        """Carry it out, unless all victims end already."""
        victims = [pod for pod in asked.victims if not pod.is_going]
        if not victims:
            return
        self._last[asked.preemptor.uid] = None
        task = asyncio.create_task(self._carry_out(replace(asked, victims=victims)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def holds(self, uid: str) -> bool:
        """Whether the pod may not be tried: calls about its victims are still to be made."""
        if uid not in self._last:
            return False
        last = self._last[uid]
        if last is None:
            return True
        stored = self._registry.store.get(POD, last)
        return stored is not None and not stored.body["metadata"].get("deletionTimestamp")

    async def stop(self) -> None:
        """End what is under way."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _carry_out(self, asked: Preempting) -> None:
        uid = asked.preemptor.uid
        are_nominations_over = self._end_nominations(asked.nominated_below)
        *others, last = asked.victims
        preempted = await asyncio.gather(*(self._preempt(asked, each) for each in others))
        if all(preempted):
            self._last[uid] = last.key
            preempted.append(await self._preempt(asked, last))
        del self._last[uid]
        if not (are_nominations_over and all(preempted)):
            self._activate(uid)

    def _end_nominations(self, pods: Iterable[PodFacts]) -> bool:
        """Whether every call succeeded."""
        refused = 0
        for pod in pods:
            change = {"metadata": {"uid": pod.uid}, "status": {"nominatedNodeName": None}}
            try:
                self._registry.patch(POD, pod.key, change, MERGE, "status")
            except Refused:
                refused += 1
        return not refused

    async def _preempt(self, asked: Preempting, victim: PodFacts) -> bool:
        """Whether the victim ends, or is gone. Its condition and its deletion are two calls."""
        try:
            self._condemn(asked.preemptor, victim)
            await asyncio.sleep(0)
            self._registry.delete(POD, victim.key, {"uid": victim.uid})
        except Refused as refused:
            return refused.code == 404
        text = f"Preempted by pod {asked.preemptor.uid} on node {asked.node}"
        told = replace(victim, scheduler=asked.preemptor.scheduler)
        with contextlib.suppress(Refused):  # the namespace may be gone by now
            self._recorder.record(told, "Normal", "Preempted", "Preempting", text)
        return True

    def _condemn(self, preemptor: PodFacts, victim: PodFacts) -> None:
        """Raises: Refused."""
        condition = {
            "type": TARGET,
            "status": "True",
            "reason": BY_SCHEDULER,
            "message": f"{preemptor.scheduler}: preempting to accommodate a higher priority pod",
        }
        status = self._registry.read(POD, victim.key).body.get("status") or {}
        after = with_condition(status, condition, now=self._registry.now())
        change = {"metadata": {"uid": victim.uid}, "status": {"conditions": after["conditions"]}}
        self._registry.patch(POD, victim.key, change, MERGE, "status")
