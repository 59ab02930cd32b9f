"""A model of kube-scheduler towards its extender: one pod at a time, bindings beside it.

    watch ─▶ cache + queue ─▶ pop ─▶ own filters ─▶ /filter ─▶ (/prioritize) ─▶ assume ─▶ /bind
                                ▲                      │ rejected, error             │ error, 30 s
                                ├──── /preempt ────────┤                             │
                                └──────────────────────┴─────────────────────────────┘

It sees the cluster through streams of its own, late by its own lag, and counts assumed pods until
their bindings fail: an assumed pod never expires. Nodes are never sampled. Where it preempts,
`post_filter.py` does that, and a nominated node is tried before all others.
Source: kubernetes pkg/scheduler/extender.go and schedule_one.go (v1.36).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from random import Random

import msgspec

from app.kube.core.objects import PodRecord
from app.kube.watch.events import Applied, Event, Listed
from tests.sim.api import ApiServer
from tests.sim.cache import Cache
from tests.sim.clock import Clock, History
from tests.sim.extender import Extender, Unavailable, left_of
from tests.sim.faults import Hits
from tests.sim.post_filter import PostFilter, Preemption
from tests.sim.queue import Queue, Queued
from tests.sim.watch import Stream

HTTP_TIMEOUT = 30.0
SCHEDULER = "corral"


class KubeScheduler:
    """One process that leads. Ended by `end`; its bindings may outlive it."""

    def __init__(
        self,
        clock: Clock,
        api: ApiServer,
        rng: Random,
        history: History,
        hits: Hits,
        extender: Extender,
        *,
        name: str,
        rest_seconds: float,
        pops_from_backoff: bool,
        oddities: float,
        named: dict[tuple[str, str], str],
        lacks_volume: Callable[[PodRecord], bool],
        preemption: Preemption | None = None,
    ) -> None:
        self.is_ended = False
        self.stalled_until = 0.0  # another extender, or a plugin, takes its time
        self.extender = extender
        self.name = name
        self.oddities = oddities  # share of attempts in which something unusual happens
        self.named = named  # (uid, node) of every /bind of any leader -> who
        self._clock, self._api, self._rng = clock, api, rng
        self._history, self._hits = history, hits
        self._lacks_volume = lacks_volume
        self._queue = Queue(rest_seconds, pops_from_backoff=pops_from_backoff)
        self._told: dict[str, str] = {}  # uid -> the text of its PodScheduled condition
        self._unschedulable_pods: set[str] = set()  # uids of which that has this reason
        self._cycle_at = math.inf
        self.streams = [
            Stream(clock, api, rng, kind, self._hear, lambda: 0.0) for kind in ("Node", "Pod")
        ]
        self.cache = Cache(self.streams[0])
        self._post_filter: PostFilter | None = None
        if preemption is not None:
            self._post_filter = PostFilter(
                clock, api, history, hits, preemption, self.cache, self._queue, extender, name
            )
        for stream in self.streams:
            stream.start(rng.uniform(0.05, 1.0))

    def end(self) -> None:
        """Stop scheduling; bindings that are on their way still arrive."""
        self.is_ended = True
        if self._post_filter is not None:
            self._post_filter.is_ended = True
        for stream in self.streams:
            stream.close()

    @property
    def pods_waiting(self) -> int:
        """How many pods have no node yet."""
        return len(self._queue.pods)

    def calls_unschedulable(self, pod: PodRecord) -> bool:
        """Whether the last it said of the pod is that no node takes it; an error is not that."""
        return pod.uid in self._unschedulable_pods

    @property
    def puts_off_nominated(self) -> bool:
        """Whether a pod that others ended for is not tried again before its back-off is over."""
        return any(
            queued.place == "backoff" and uid in self.cache.nominated
            for uid, queued in self._queue.pods.items()
        )

    # -- what the watch says -------------------------------------------------------------------

    def _hear(self, event: Event) -> None:
        now = self._clock.now
        if isinstance(event, Listed):
            if event.kind == "Pod":
                self._relist(event)
            self._queue.happened(now, helps_filters=True)
        elif isinstance(event.record, PodRecord):
            if isinstance(event, Applied):
                self._pod_is(event.record)
            else:
                self._pod_went(event.record.uid)
        else:
            self._queue.happened(now, helps_filters=True)
        self._plan_cycle(now)

    def _relist(self, event: Listed) -> None:
        listed = {record.uid for record in event.records if isinstance(record, PodRecord)}
        known = [*self.cache.bound, *self._queue.pods, *self.cache.assumed]
        for uid in [uid for uid in dict.fromkeys(known) if uid not in listed]:
            self._pod_went(uid)
        for record in event.records:
            assert isinstance(record, PodRecord)
            self._pod_is(record)

    def _pod_is(self, pod: PodRecord) -> None:
        now = self._clock.now
        if pod.is_finished:
            self._pod_went(pod.uid)
        elif pod.node:
            self._queue.remove(pod.uid)
            self.cache.nominate(pod, "")
            self.cache.assumed.pop(pod.uid, None)
            self.cache.bound[pod.uid] = pod
            if pod.is_terminating:
                self._queue.victim_ends(pod.uid)
            self._queue.happened(now, helps_filters=False)
        elif pod.scheduler == SCHEDULER and pod.uid not in self.cache.assumed:
            before = self._queue.pods.get(pod.uid)
            self._nomination_is(pod, before.pod.nominated_node if before else "")
            self._queue.put(pod, now)

    def _nomination_is(self, pod: PodRecord, before: str) -> None:
        """Follow the watch; an event older than our own nomination does not end that."""
        if before or pod.nominated_node:
            self.cache.nominate(pod, pod.nominated_node)
        if before and before != pod.nominated_node:
            self._queue.happened(self._clock.now, helps_filters=True)

    def _pod_went(self, uid: str) -> None:
        self._queue.remove(uid)
        self._queue.victim_ends(uid)
        was_assumed = self.cache.assumed.pop(uid, None)
        was_nominated = self.cache.nominated.pop(uid, None)
        if self.cache.bound.pop(uid, None) or was_assumed or was_nominated:
            self._queue.happened(self._clock.now, helps_filters=True)

    # -- the loop ------------------------------------------------------------------------------

    def _plan_cycle(self, when: float) -> None:
        if when < self._cycle_at:
            self._cycle_at = when
            self._clock.at(when, self._cycle)

    def _cycle(self) -> None:
        now = self._clock.now
        if self.is_ended or now < self._cycle_at:
            return
        self._cycle_at = math.inf
        if not all(stream.is_synced for stream in self.streams):
            self._plan_cycle(now + 0.1)
            return
        hangs_until = max(self.extender.paused_until, self.stalled_until)
        if hangs_until > now:  # one call hangs, and with it the one loop
            self._plan_cycle(hangs_until)
            return
        queued = self._queue.pop(now)
        if queued is None:
            self._plan_cycle(self._queue.next_at(now) + 0.001)
            return
        if queued.pod.is_terminating or queued.pod.uid in self.cache.assumed:
            self._queue.remove(queued.pod.uid)
        else:
            self._attempt(queued)
        self._plan_cycle(self._clock.now + self._rng.uniform(0.002, 0.008))

    def _attempt(self, queued: Queued) -> None:
        pod = queued.pod
        if any(stream.pending and stream.lag[1] >= 1.0 for stream in self.streams):
            self._hits.hit("F3 scheduler lags")
        names = self._fitting(pod)
        if not names:
            self._unschedulable(queued, (), "0 nodes are available")
            return
        try:
            left, why = self._ask(pod, names)
        except Unavailable:
            self._unschedulable_pods.discard(pod.uid)
            self._nominate_nowhere(pod)
            self._queue.failed(queued, self._clock.now, is_error=True, by_extender=False)
            return
        if left:
            self._assume(queued, self._best(pod, left))
        else:
            self._unschedulable(queued, names, why)

    def _unschedulable(self, queued: Queued, refused: Collection[str], why: str) -> None:
        """No node is left for the pod. `refused`: those that the extender left none of."""
        if self._post_filter is not None and not self._lacks_volume(queued.pod):
            self._post_filter.run(queued.pod, refused)
        now = self._clock.now
        self._unschedulable_pods.add(queued.pod.uid)
        self._queue.failed(queued, now, is_error=False, by_extender=bool(refused))
        self._tell(queued.pod, why)

    def _nominate_nowhere(self, pod: PodRecord) -> None:
        if self._post_filter is not None:
            self._post_filter.nominate(pod, "")

    def _fitting(self, pod: PodRecord) -> list[str]:
        """The nodes that pass its own filters, in no order."""
        if self._lacks_volume(pod):
            self._hits.hit("F10 unasked")
            return []
        names = self.cache.fitting(pod)
        self._rng.shuffle(names)
        return names

    def _ask(self, pod: PodRecord, names: list[str]) -> tuple[list[str], str]:
        """What the extender leaves of these names, and why if nothing.

        Raises: Unavailable.
        """
        if pod.nominated_node in names and (left := self._ask_nominated(pod)):
            return left, ""
        odd = self._rng.random() < self.oddities
        kind = self._rng.choice(("probe", "twice", "unheard")) if odd else ""
        if kind == "probe":
            self._hits.hit("F10 probe")
            probe = names[:1]
            pod = msgspec.structs.replace(pod, nominated_node=probe[0])
            left, _ = left_of(probe, self.extender.filter(pod, probe))
            if left:
                return left, ""
        answer = self.extender.filter(pod, names)
        if kind == "twice":
            self._hits.hit("F10 asked twice")
            answer = self.extender.filter(pod, names[::-1])
        if kind == "unheard":
            self._hits.hit("F10 unheard")
            raise Unavailable
        return left_of(names, answer)

    def _ask_nominated(self, pod: PodRecord) -> list[str]:
        """The nominated node, if the extender leaves it; an error there is none of the attempt."""
        names = [pod.nominated_node]
        try:
            return left_of(names, self.extender.filter(pod, names))[0]
        except Unavailable:
            return []

    def _best(self, pod: PodRecord, names: list[str]) -> str:
        if len(names) == 1:
            return names[0]
        if self._rng.random() < self.oddities:
            self._hits.hit("F10 unscored")
            return self._rng.choice(names)
        scores = self.extender.prioritize(pod, names)
        return max(zip(scores, names, strict=True))[1]

    def _tell(self, pod: PodRecord, text: str) -> None:
        """Patch the pod's condition, which is an update of the pod, where its text is new."""
        if self._told.get(pod.uid) == text:
            return
        self._told[pod.uid] = text
        live = self._api.pods.get(pod.name)
        if live is not None and live.uid == pod.uid:
            self._api.change("Pod", pod.name)

    # -- binding -------------------------------------------------------------------------------

    def _assume(self, queued: Queued, node: str) -> None:
        pod = queued.pod
        self.cache.assumed[pod.uid] = (pod, node)
        self.cache.nominate(pod, "")
        self.named[pod.uid, node] = self.name
        is_answered = False

        def answered(sentence: str) -> None:
            nonlocal is_answered
            if not is_answered:
                is_answered = True
                self._binding_ended(queued, node, sentence)

        def post() -> None:
            if self.is_ended:
                self._hits.hit("F10 old binds")
            try:
                self.extender.bind(pod.namespace, pod.name, pod.uid, node, answered)
            except Unavailable:
                answered("connection refused")

        slow = self._rng.random() < self.oddities
        self._clock.after(self._rng.uniform(1.0, 8.0) if slow else self._quick(), post)
        self._clock.after(HTTP_TIMEOUT, lambda: answered("context deadline exceeded"))

    def _quick(self) -> float:
        return self._rng.uniform(0.001, 0.02)

    def _binding_ended(self, queued: Queued, node: str, sentence: str) -> None:
        pod, now = queued.pod, self._clock.now
        if self.is_ended or not sentence or self.cache.assumed.get(pod.uid, (pod, ""))[1] != node:
            return
        self._history.say(f"{self.name}: bind {pod.name}: {sentence}")
        if self.cache.assumed.pop(pod.uid, None) is None:
            return
        self._queue.happened(now, helps_filters=True)
        self._nominate_nowhere(pod)
        self._unschedulable_pods.discard(pod.uid)
        self._queue.failed(queued, now, is_error=True, by_extender=False)
        self._tell(pod, sentence)
        self._plan_cycle(now)
