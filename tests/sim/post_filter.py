"""kube-scheduler's preemption: what follows when an attempt of a pod ends without a node.

    eligible? ─▶ candidates with their victims ─▶ /preempt ─▶ nominated node ─▶ victims deleted

Candidates are the nodes that its own filters refuse and would not, with the pods of lower priority
gone; a node that /filter refused is none. Who goes from which node is chosen in `victims.py`.
Source: kubernetes v1.36 pkg/scheduler/framework/preemption, plugins/defaultpreemption.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial
from random import Random

from app.dialects.budgets.dialect import KIND as BUDGET
from app.kube.core.objects import PodRecord
from app.state.filter_result import Victims
from tests.sim.api import ApiServer
from tests.sim.cache import Cache
from tests.sim.clock import Clock, History
from tests.sim.extender import Extender, Unavailable
from tests.sim.faults import Hits
from tests.sim.node_filters import may_be_on
from tests.sim.queue import Queue
from tests.sim.victims import DryRun
from tests.sim.violation import require

SLOW_SECONDS = 5.0  # a victim that needs more to end takes its time
CALL_SECONDS = (0.001, 0.02)  # until a call about a victim arrives
LATE_SECONDS = (0.1, 3.0)  # the same, for some
LATE_SHARE = 0.1
AT_ONCE_SHARE = 0.3  # of victims, that end as they are deleted


@dataclass(slots=True)
class Preemption:
    """What a seed draws about it, with random numbers of its own; all its kube-schedulers share it.

    `failures`: the share of answers and of writes that are lost.
    """

    rng: Random
    failures: float
    grace: tuple[float, float]  # seconds that victims take to end

    def heal(self) -> None:
        """Nothing goes wrong any more, and victims end soon."""
        self.failures = 0.0
        self.grace = (0.2, 2.0)

    def fails(self) -> bool:
        return self.rng.random() < self.failures

    def grace_seconds(self) -> float:
        return 0.0 if self.rng.random() < AT_ONCE_SHARE else self.rng.uniform(*self.grace)

    def call_seconds(self) -> float:
        is_late = self.rng.random() < LATE_SHARE * (self.failures > 0)
        return self.rng.uniform(*(LATE_SECONDS if is_late else CALL_SECONDS))


@dataclass(slots=True)
class PostFilter:
    """Of one scheduler; what it has begun ends with that process."""

    _clock: Clock
    _api: ApiServer
    _history: History
    _hits: Hits
    _preemption: Preemption
    _cache: Cache
    _queue: Queue
    _extender: Extender
    _name: str
    is_ended: bool = False

    def run(self, pod: PodRecord, refused: Collection[str]) -> None:
        """Make room for a pod. `refused`: the nodes that only the extender keeps it from."""
        if not self._is_eligible(pod, refused):
            return
        dry_run = DryRun(self._cache, pod, self._api.list(BUDGET), self._api.started)
        offered = {
            name: victims
            for name in self._cache.nodes
            if name not in refused and (victims := dry_run.victims(name)) is not None
        }
        if not offered:
            self.nominate(pod, "")
            return
        try:
            answer = self._ask(pod, offered)
        except Unavailable:
            return
        if any(victims.pdb_violations for victims in offered.values()):
            self._hits.hit("F20 budget")
        if answer:
            node = dry_run.best(answer)
            self._carry_out(pod, node, answer[node].uids)
        else:
            self._hits.hit("F20 none")

    def nominate(self, pod: PodRecord, node: str) -> None:
        """Nominate the pod for a node, or for none any more: in memory, and in its status."""
        self._cache.nominate(pod, node)
        live = self._api.pods.get(pod.name)
        if live is None or live.uid != pod.uid or live.node or live.nominated_node == node:
            return
        if node and self._preemption.fails():
            self._hits.hit("F20 not nominated")
            self._history.say(f"{self._name}: {pod.name} is nominated for {node} in memory only")
            return
        self._history.say(f"{self._name}: {pod.name} is nominated for {node or 'no node'}")
        self._api.change("Pod", pod.name, nominated_node=node)

    # -- whom to ask about ---------------------------------------------------------------------

    def _is_eligible(self, pod: PodRecord, refused: Collection[str]) -> bool:
        """Not while pods end on its nominated node, unless it cannot be had any more."""
        if not pod.preempts:
            self._hits.hit("F20 never")
            return False
        name = pod.nominated_node
        node = self._cache.nodes.get(name)
        if name in refused or node is None or not may_be_on(node, pod.shape):
            return True
        return not any(
            each.is_terminating and each.is_preempted and each.priority < pod.priority
            for each in self._cache.on(name)
        )

    def _ask(self, pod: PodRecord, offered: Mapping[str, Victims]) -> Mapping[str, Victims]:
        """The extender's choice.

        Raises: Unavailable.
        """
        answer = self._extender.preempt(pod, offered)
        for name, victims in answer.items():
            is_part = name in offered and set(victims.uids) <= set(offered[name].uids)
            require(is_part and bool(victims.uids), f"P13: {pod.name} hears {answer} of {offered}")
        if self._preemption.fails():
            self._hits.hit("F20 unheard")
            self._history.say(f"{self._name}: the answer about {pod.name} is lost")
            raise Unavailable
        return answer

    # -- carrying it out -----------------------------------------------------------------------

    def _carry_out(self, pod: PodRecord, node: str, uids: Collection[str]) -> None:
        self._hits.hit("F20 preempted")
        for other, on in list(self._cache.nominated.values()):
            if on == node and other.priority < pod.priority:
                self.nominate(other, "")
        victims = [
            each for each in self._cache.on(node) if each.uid in uids and not each.is_terminating
        ]
        self.nominate(pod, node)
        if victims:
            self._wait_for(pod, victims)
            self._later(partial(self._mark, pod, victims))

    def _mark(self, pod: PodRecord, victims: list[PodRecord]) -> None:
        """Write the first one's condition; its deletion is another call."""
        first = victims[0]
        if self._is_there(first):
            since = self._clock.wall_time()
            self._api.change("Pod", first.name, is_preempted=True, preempted_at=since)
        self._later(partial(self._delete, pod, victims))

    def _delete(self, pod: PodRecord, victims: list[PodRecord]) -> None:
        """Delete the first one and go on with the rest; before the last the pod may be tried."""
        first, *rest = victims
        if not rest:
            self._queue.preempting.pop(pod.uid, None)
        if self._preemption.fails():
            self._hits.hit("F20 not deleted")
            self._history.say(f"{self._name}: {first.name} is not deleted")
            self._queue.preempting.pop(pod.uid, None)
            self._queue.activate(pod.uid, self._clock.now)
            return
        if self._is_there(first):
            seconds = self._preemption.grace_seconds()
            if seconds > SLOW_SECONDS:
                self._hits.hit("F20 slow victim")
            self._history.say(f"{self._name}: deletes {first.name} for {pod.name}")
            self._api.delete_pod(first.name, first.uid, seconds)
        if rest:
            self._wait_for(pod, rest)
            self._later(partial(self._mark, pod, rest))

    def _wait_for(self, pod: PodRecord, victims: list[PodRecord]) -> None:
        """Have the pod not tried until its last victim ends."""
        self._queue.preempting[pod.uid] = victims[0].uid if len(victims) == 1 else ""

    def _is_there(self, victim: PodRecord) -> bool:
        live = self._api.pods.get(victim.name)
        return live is not None and live.uid == victim.uid

    def _later(self, action: partial[None]) -> None:
        self._clock.after(
            self._preemption.call_seconds(), lambda: None if self.is_ended else action()
        )
