"""When running pods are likely to end: by what is said of them, else by how long the last ones ran.

    a pod is bound ──▶ counted from now ──▶ its end: began + the deadline, else + what its like took
    it succeeds    ──▶ its like took so long: the mean of the last two runs of a kind

A deadline is that of the pod, of the workload that owns it or of its gang, the earliest of these.
It counts only where the controller that ends such pods is the one that manages them. With the time
that a pod may take to end it is an upper bound, if its node works and its owner is who the pod
says. So the first one that is seen counts, whatever is said later. A pod that outlasts it by
LATE_SECONDS has no known end any more, and until it is gone no pod of its namespace that waits is
believed.

Without a deadline it is a guess: what has run longer than its like is expected to take as long
again. Pods are alike that have the same namespace, kind of owner and request, and gangs if they are
as large too. Two short runs of a namespace have it expect the next one of a kind to be short: this
is for namespaces that may be trusted.

Nothing is kept of pods that do not end by themselves, and nothing at all with `backfill` off. After
a restart those that run are counted as begun then: their ends are expected too late.
Source of the mean of two: "Backfilling Using System-Generated Predictions Rather than User Runtime
Estimates", Tsafrir, Etsion, Feitelson, IEEE TPDS 2007.
"""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Literal

from app.kube.core.cached import weight
from app.kube.core.objects import Amounts, PodRecord
from app.state.gang.gang import Gang
from app.state.gang.gangs import Gangs

Backfill = Literal["off", "deadlines", "history"]

LAST_RUNS = 2  # of a kind: more of them say less of the next one
MOST_KINDS = 64  # of a namespace; then the one that ran longest ago is forgotten
MOST_NAMESPACES = 64  # then the one whose last run is longest ago is forgotten
MOST_BYTES = 2_048  # of a request; pods have four or five amounts
LEAST_SECONDS = 60.0  # that are left of what should have ended already
LATE_SECONDS = 60.0  # after its deadline and its grace: the kubelet, or the controller, is late

_Kind = tuple[str, Amounts, int]  # of the owner; of a gang how many pods it has, 0: it is none
_Run = tuple[object, float]  # which, and how long its longest pod ran
Runs = Mapping[str, Mapping[_Kind, Sequence[_Run]]]


@dataclass(slots=True)
class _Running:
    """A pod that runs. `deadline`: its own, 0: none; `said`: the first one seen, grace included."""

    since: float
    deadline: int
    grace: int
    namespace: str
    owner: str
    run: str
    """The owner's uid: pods of one owner are one run."""
    request: Amounts
    said: int = 0


@dataclass(slots=True)
class RunTimes:
    """Of pods by uid, and of the last runs by kind. `deadline_of`: a workload's, by uid; 0: none.

    Invariant: what is in `_late`, by namespace, is in `_running`.
    """

    backfill: Backfill
    gangs: Gangs
    deadline_of: Callable[[str], int]
    _running: dict[str, _Running] = field(default_factory=dict)
    _late: dict[str, set[str]] = field(default_factory=dict)
    _runs: OrderedDict[str, OrderedDict[_Kind, deque[_Run]]] = field(default_factory=OrderedDict)

    def __bool__(self) -> bool:
        return self.backfill != "off"

    def begin(self, pod: PodRecord, now: float) -> None:
        """Count a pod that is bound from now on."""
        if self and not pod.lasts and pod.uid not in self._running:
            self._running[pod.uid] = known = _running(pod, now)
            known.said = self._said(known, self.gangs.of_pod(pod.uid))

    def end(self, uid: str, now: float, *, has_succeeded: bool) -> None:
        """Forget a pod that is gone; one that has succeeded says how long its like take."""
        known = self._running.pop(uid, None)
        if known is not None and (late := self._late.get(known.namespace)):
            late.discard(uid)
            if not late:
                del self._late[known.namespace]
        if known is None or not has_succeeded or self.backfill != "history":
            return
        if weight(known.request, MOST_BYTES) > MOST_BYTES:
            return
        gang = self.gangs.of_pod(uid)
        kinds = self._runs.setdefault(known.namespace, OrderedDict())
        self._runs.move_to_end(known.namespace)
        kind = _kind(known, gang)
        runs = kinds.setdefault(kind, deque(maxlen=LAST_RUNS))
        kinds.move_to_end(kind)
        run, seconds = (gang.number if gang else known.run or uid), now - known.since
        if runs and runs[-1][0] == run:
            seconds = max(seconds, runs.pop()[1])
        runs.append((run, seconds))
        if len(kinds) > MOST_KINDS:
            kinds.popitem(last=False)
        if len(self._runs) > MOST_NAMESPACES:
            self._runs.popitem(last=False)

    # -- questions -------------------------------------------------------------------------------

    def end_of(self, uid: str, now: float) -> float:
        """When a pod that runs is likely to have ended; infinity if nothing says so."""
        known = self._running.get(uid)
        if known is None:
            return math.inf
        gang = self.gangs.of_pod(uid)
        if not known.said:
            known.said = self._said(known, gang)
        if known.said:
            end = known.since + known.said
            if now < end + LATE_SECONDS:
                return end if now < end else end + LATE_SECONDS
            self._late.setdefault(known.namespace, set()).add(uid)
            return math.inf
        usual = self._usual(known, gang)
        if known.since + usual > now:
            return known.since + usual
        return now + max(LEAST_SECONDS, now - known.since)

    def seconds_of(self, pod: PodRecord) -> float:
        """How long a pod outside gangs is likely to run; infinity if nothing says so."""
        if not self or pod.lasts or pod.namespace in self._late:
            return math.inf
        like = _running(pod, 0.0)
        return self._said(like, None) or self._usual(like, None)

    def seconds_of_gang(self, gang: Gang) -> float:
        """How long the pods of a gang that wait are likely to run; infinity if nothing says so."""
        if not self or gang.key.namespace in self._late:
            return math.inf
        alike = {
            (
                *(pod.deadline_seconds, pod.termination_seconds, pod.request, pod.namespace),
                pod.owner.uid if pod.owner else "",
            ): pod
            for pod in (each.pod for each in gang.unplanned())
        }
        longest = 0.0
        for pod in alike.values():
            like = _running(pod, 0.0)
            seconds = math.inf if pod.lasts else self._said(like, gang) or self._usual(like, gang)
            longest = max(longest, seconds)
        return longest or math.inf

    def _said(self, pod: _Running, gang: Gang | None) -> int:
        """The earliest of the deadlines that count, and what it takes to end; 0: there is none."""
        spec = None if gang is None else gang.membership.spec
        whole = 0 if spec is None else spec.lifecycle.deadline_seconds
        owner = self.deadline_of(pod.run) if pod.run else 0
        said = min(filter(None, (pod.deadline, owner, whole)), default=0)
        return said + pod.grace if said else 0

    def _usual(self, pod: _Running, gang: Gang | None) -> float:
        if self.backfill != "history":
            return math.inf
        kinds = self._runs.get(pod.namespace)
        runs = kinds.get(_kind(pod, gang)) if kinds else None
        return fmean(seconds for _, seconds in runs) if runs else math.inf

    # -- of a copy -------------------------------------------------------------------------------

    def remembered(self) -> Runs:
        """The last runs, by namespace and kind."""
        return {
            namespace: {kind: tuple(runs) for kind, runs in kinds.items()}
            for namespace, kinds in self._runs.items()
        }

    def recall(self, remembered: Runs) -> None:
        """Know the runs of another one."""
        for namespace, kinds in remembered.items():
            self._runs[namespace] = OrderedDict(
                (kind, deque(runs, maxlen=LAST_RUNS)) for kind, runs in kinds.items()
            )


def _running(pod: PodRecord, since: float) -> _Running:
    owner = pod.owner
    return _Running(
        since,
        pod.deadline_seconds,
        pod.termination_seconds,
        pod.namespace,
        owner.kind if owner else "",
        owner.uid if owner else "",
        pod.request,
    )


def _kind(pod: _Running, gang: Gang | None) -> _Kind:
    return (pod.owner, pod.request, len(gang.members) if gang else 0)
