"""The scheduler: watches the store, tries one pod at a time, binds in the background.

    store ─▶ table + queue ─▶ pop ─▶ Cycle.find_node ─┬─ node ──▶ assume ─▶ task: /bind or Binding
                                ▲                      └─ none ──▶ event, condition ─▶ queue
                                │                            └───▶ task: victims are deleted
                                └───────────── an error of the binding ◀──┘

Serial: while an extender thinks, no other pod of any profile is tried. Bindings and preemptions
are not: every pod has its own task, without limit.
Source: schedule_one.go, eventhandlers.go of kubernetes 1.36.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from random import Random
from typing import Literal

from app.sandbox.apiserver.rules.pod_actions import bind
from app.sandbox.apiserver.rules.pod_rules import with_condition
from app.sandbox.apiserver.rules.registry import Registry
from app.sandbox.apiserver.storage.failures import Refused
from app.sandbox.apiserver.storage.kinds import (
    DEVICE_CLAIM,
    DISRUPTION_BUDGET,
    NODE,
    POD,
    VOLUME_CLAIM,
)
from app.sandbox.apiserver.storage.patch import MERGE
from app.sandbox.apiserver.storage.store import Change
from app.sandbox.scheduler.cluster_events import ClusterEvent, Happening, node_events
from app.sandbox.scheduler.cycle.cycle import Cycle
from app.sandbox.scheduler.cycle.diagnosis import SchedulingFailure, event_text
from app.sandbox.scheduler.cycle.extender import Extender, ExtenderError
from app.sandbox.scheduler.facts.node_table import NodeTable
from app.sandbox.scheduler.facts.pod_facts import PodFacts, facts_of
from app.sandbox.scheduler.facts.scheduler_config import SchedulerConfig
from app.sandbox.scheduler.preempting import Executor, Preempting
from app.sandbox.scheduler.queue import QueuedPod, QueueSettings, SchedulingQueue
from app.sandbox.scheduler.recorder import Recorder

UNSCHEDULABLE, ERROR = "Unschedulable", "SchedulerError"


class Scheduler:
    """Runs from `start` to `stop`.

    speed: how many of the queue's seconds pass in one real second; back-offs and the five
        minutes of rest shrink by it. Extender timeouts stay real.
    """

    def __init__(
        self, registry: Registry, config: SchedulerConfig, *, rng: Random, speed: float = 1.0
    ) -> None:
        self._recorder = Recorder(registry)
        self._executor = Executor(registry, self._recorder, self._activate)
        self.queue = SchedulingQueue(
            QueueSettings(initial_backoff=config.initial_backoff, max_backoff=config.max_backoff),
            is_held=self._executor.holds,
        )
        self._registry = registry
        self._config = config
        self._ignored = config.ignored_resources
        self._rng = rng
        self._speed = speed
        self._table = NodeTable()
        self._known: dict[str, PodFacts] = {}  # the last version seen, by uid
        self._nominated: dict[str, PodFacts] = {}
        self._extenders: list[Extender] = []
        self._cycle: Cycle | None = None
        self._ends: list[Callable[[], None]] = []
        self._woken = asyncio.Event()
        self._loop: asyncio.Task[None] | None = None
        self._bindings: set[asyncio.Task[None]] = set()

    @property
    def pods_binding(self) -> int:
        """How many binding tasks are open now."""
        return len(self._bindings)

    async def start(self) -> None:
        """Read nodes and pods, then follow their changes and schedule."""
        config, store = self._config, self._registry.store
        self._extenders = [Extender(each) for each in config.extenders]
        self._cycle = Cycle(
            self._table,
            self._extenders,
            percentages={
                name: config.percentage_of_nodes_to_score if own is None else own
                for name, own in config.profiles.items()
            },
            rng=self._rng,
            budgets=lambda: [each.body for each in store.values(DISRUPTION_BUDGET)],
            candidate_percentages=config.candidate_percentages,
            has_claim=lambda kind, key: store.get(kind, key) is not None,
        )
        self._table.set_nodes(store.values(NODE))
        for stored in store.values(POD):
            facts = self._known[stored.body["metadata"]["uid"]] = facts_of(stored, self._ignored)
            self._pod_came(facts)
        self._ends = [
            store.subscribe(NODE, self._on_node),
            store.subscribe(POD, self._on_pod),
            store.subscribe(VOLUME_CLAIM, self._on_claim),
            store.subscribe(DEVICE_CLAIM, self._on_claim),
        ]
        self._loop = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """End the loop and every binding that is still open.

        Raises: whatever ended the loop before its time.
        """
        for end in self._ends:
            end()
        tasks = [*self._bindings, *([self._loop] if self._loop else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._executor.stop()
        for extender in self._extenders:
            await extender.close()
        if self._loop and not self._loop.cancelled() and (error := self._loop.exception()):
            raise error

    def _now(self) -> float:
        return asyncio.get_running_loop().time() * self._speed

    # --- watch events ---------------------------------------------------------------

    def _on_node(self, change: Change) -> None:
        node = change.now.body
        if change.type == "DELETED":
            self._table.remove_node(node["metadata"]["name"])
            self._happened(ClusterEvent(Happening.NODE_REMOVED, node=node))
            return
        self._table.set_node(change.now)
        if change.before is None:
            self._happened(ClusterEvent(Happening.NODE_ADDED, node=node))
        else:
            for event in node_events(change.before.body, node):
                self._happened(event)

    def _on_claim(self, change: Change) -> None:
        if change.before is None:
            self._happened(ClusterEvent(Happening.CLAIM_ADDED))

    def _on_pod(self, change: Change) -> None:
        facts = facts_of(change.now, self._ignored)
        before = self._known.pop(facts.uid, None)
        if change.type != "DELETED":
            self._known[facts.uid] = facts
        # A finished pod leaves the scheduler's informer as if it were deleted.
        if change.type == "DELETED" or facts.is_finished:
            if before is None or not before.is_finished:
                self._pod_went(facts)
        elif before is None or before.is_finished:
            self._pod_came(facts)
        elif facts.node and before.node:
            self._table.add_pod(facts, facts.node)
            self._happened(ClusterEvent(Happening.POD_UPDATED, pod=facts))
        elif facts.node:
            self.queue.remove(facts.uid)
            self._pod_came(facts)
        elif self._table.is_assumed(facts.uid):
            if facts.is_going:  # it gives its place back; its binding will fail by itself
                self._table.remove_pod(facts.uid)
                self._happened(ClusterEvent(Happening.POD_REMOVED, pod=facts))
        elif self._is_ours(facts):
            self._nominate(facts)
            self.queue.update(before, facts, self._now())
            if before.nominated_node != facts.nominated_node:
                self._nomination_ended(before)
            self._woken.set()

    def _pod_came(self, facts: PodFacts) -> None:
        if facts.is_finished:
            return
        if facts.node:
            self._nominated.pop(facts.uid, None)
            self._table.add_pod(facts, facts.node)
            self._happened(ClusterEvent(Happening.POD_BOUND, pod=facts))
        elif self._is_ours(facts):
            self._nominate(facts)
            self.queue.add(facts, self._now())
            self._woken.set()

    def _pod_went(self, facts: PodFacts) -> None:
        self._nominated.pop(facts.uid, None)
        self.queue.remove(facts.uid)
        # Also a pod that was only assumed here: it gives its place back.
        if self._table.remove_pod(facts.uid):
            self._happened(ClusterEvent(Happening.POD_REMOVED, pod=facts))
        elif self._is_ours(facts):
            self._nomination_ended(facts)

    def _nomination_ended(self, facts: PodFacts) -> None:
        """What the pod kept on its nominated node is for those of no higher priority now."""
        if facts.nominated_node:
            event = ClusterEvent(Happening.POD_REMOVED, pod=facts)
            self.queue.happened(event, self._now(), up_to=facts.priority)
            self._woken.set()

    def _happened(self, event: ClusterEvent) -> None:
        self.queue.happened(event, self._now())
        self._woken.set()

    def _activate(self, uid: str) -> None:
        self.queue.activate(uid, self._now())
        self._woken.set()

    def _is_ours(self, facts: PodFacts) -> bool:
        return facts.scheduler in self._config.profiles

    def _nominate(self, facts: PodFacts) -> None:
        self._nominated.pop(facts.uid, None)
        if facts.nominated_node:
            self._nominated[facts.uid] = facts

    # --- the loop --------------------------------------------------------------------------

    async def _run(self) -> None:
        while True:
            self._woken.clear()
            pod = self.queue.pop(self._now())
            if pod is None:
                idle = self.queue.seconds_to_next_flush(self._now()) / self._speed
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(idle):
                        await self._woken.wait()
                continue
            await self._schedule_one(pod)
            await asyncio.sleep(0)  # the API answers others between two pods

    async def _schedule_one(self, pod: QueuedPod) -> None:
        facts = pod.facts
        assert self._cycle is not None
        if facts.is_going or self._table.knows(facts.uid):
            self.queue.settled(pod)
            if facts.is_going:
                text = f"skip schedule deleting pod: {'/'.join(facts.key)}"
                self._record(facts, "Warning", "FailedScheduling", "Scheduling", text)
            return
        try:
            node = await self._cycle.find_node(facts, self._nominated.values())
        except SchedulingFailure as failure:
            self._failed(pod, failure)
            return
        self.queue.settled(pod)
        if self._table.knows(facts.uid):
            # Another client bound it while the extender was called.
            text = f"pod {facts.uid}({'/'.join(facts.key)}) is in the cache, so can't be assumed"
            self._failed(pod, SchedulingFailure(text))
            return
        self._nominated.pop(facts.uid, None)
        self._table.add_pod(facts, node, is_assumed=True)
        task = asyncio.create_task(self._bind(pod, node))
        self._bindings.add(task)
        task.add_done_callback(self._bindings.discard)

    async def _bind(self, pod: QueuedPod, node: str) -> None:
        facts = pod.facts
        try:
            await self._bind_by_extender_or_api(facts, node)
        except (ExtenderError, Refused) as error:
            if self._table.is_assumed(facts.uid):
                self._table.remove_pod(facts.uid)
            self._happened(ClusterEvent(Happening.POD_REMOVED, pod=facts))
            self._failed(pod, SchedulingFailure(str(error)))
            return
        text = f"Successfully assigned {'/'.join(facts.key)} to {node}"
        self._record(facts, "Normal", "Scheduled", "Binding", text)

    async def _bind_by_extender_or_api(self, facts: PodFacts, node: str) -> None:
        """The first interested binder binds; one that may be ignored hands over on error.

        Raises: ExtenderError, Refused.
        """
        for extender in self._extenders:
            if extender.config.bind_verb and extender.is_interested(facts):
                try:
                    await extender.bind(facts, node)
                except ExtenderError:
                    if not extender.config.ignorable:
                        raise
                else:
                    return
        namespace, name = facts.key
        metadata = {"name": name, "namespace": namespace, "uid": facts.uid}
        target = {"kind": "Node", "name": node}
        bind(self._registry, namespace, name, {"metadata": metadata, "target": target})

    # --- failure ---------------------------------------------------------------------------

    def _failed(self, pod: QueuedPod, failure: SchedulingFailure) -> None:
        """Requeue the pod, emit an event and update its condition and nominated node.

        A pod that got a node meanwhile is not requeued, but the event is emitted: so it is with a
        binding that succeeded and whose answer was lost.
        """
        if failure.nominates:
            self._preempt(pod.facts, failure)
        stored = self._registry.store.get(POD, pod.facts.key)
        current = facts_of(stored, self._ignored) if stored else None
        if current is None or current.uid != pod.facts.uid:
            self.queue.settled(pod)
            return
        if current.node or current.is_finished:
            self.queue.settled(pod)
        else:
            pod.facts = current
            self.queue.failed(pod, failure.rejectors, self._now())
            self._woken.set()
        reason = UNSCHEDULABLE if failure.is_rejection else ERROR
        text = event_text(failure.message)
        self._record(current, "Warning", "FailedScheduling", "Scheduling", text)
        self._report(current, reason, failure)

    def _report(self, facts: PodFacts, reason: str, failure: SchedulingFailure) -> None:
        """Patch the condition and the nominated node if either changes."""
        status = facts.body["status"]
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": reason,
            "message": failure.message,
        }
        after = with_condition(status, condition, now=self._registry.now())
        if failure.nominates or failure.clears_nomination:
            after = {name: value for name, value in after.items() if name != "nominatedNodeName"}
            if failure.nominates:
                after["nominatedNodeName"] = failure.nominates
        if after == status:
            return
        change = {"nominatedNodeName": None} | after
        with contextlib.suppress(Refused):  # the pod may be gone by now
            self._registry.patch(POD, facts.key, {"status": change}, MERGE, "status")

    def _preempt(self, facts: PodFacts, failure: SchedulingFailure) -> None:
        below = [
            pod
            for pod in self._nominated.values()
            if pod.nominated_node == failure.nominates and pod.priority < facts.priority
        ]
        self._executor.begin(Preempting(facts, failure.nominates, failure.victims, below))

    def _record(
        self,
        facts: PodFacts,
        type_: Literal["Normal", "Warning"],
        reason: str,
        action: str,
        text: str,
    ) -> None:
        with contextlib.suppress(Refused):  # the namespace may be gone by now
            self._recorder.record(facts, type_, reason, action, text)
