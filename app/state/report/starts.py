"""How long gangs take to start, for metrics and traces.

    first pod ──▶ complete ──▶ decided: a plan, or a verdict ──▶ planned ──▶ started: all are bound

Only a start that this engine has planned is told, once: gangs that ran before it are no news, nor
is a repair. A gang whose pods have all gone and come anew starts anew.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from app.dialects.spec import GangKey
from app.state.gang.gang import Gang, Phase
from app.state.gang.parts import Milestones

MOST_KEPT = 4_096  # that have not been taken; each takes some 200 bytes

_ENDED = (Phase.RUNNING, Phase.REPAIRING, Phase.DONE)


@dataclass(frozen=True, slots=True)
class Decision:
    """A gang that was complete has its first plan or verdict."""

    seconds: float  # since it was complete


@dataclass(frozen=True, slots=True)
class Start:
    """Every pod that a gang needed is bound. Units: seconds of the engine's clock."""

    gang: GangKey
    pods: int  # that have a node now
    first_pod_at: float
    complete_at: float
    planned_at: float  # when the last plan before the start was made
    started_at: float
    plans: int  # made until then: 1 where the first one was used


@dataclass(slots=True)
class Starts:
    """Follows gangs until they run; the only writer of `Gang.milestones`."""

    _decisions: deque[Decision] = field(default_factory=lambda: deque(maxlen=MOST_KEPT))
    _starts: deque[Start] = field(default_factory=lambda: deque(maxlen=MOST_KEPT))

    def note_pod(self, gang: Gang, now: float) -> None:
        """A pod of the gang has come."""
        if gang.milestones.first_pod_at is None:
            gang.milestones.first_pod_at = now

    def note_decision(self, gang: Gang, now: float, *, is_plan: bool) -> None:
        """A search for the gang has ended."""
        if gang.has_started:
            return
        milestones = gang.milestones
        if not milestones.is_decided:
            milestones.is_decided = True
            self._decisions.append(Decision(max(0.0, now - gang.complete_at)))
        if is_plan:
            milestones.planned_at = now
            milestones.plans += 1

    def note_phase(self, gang: Gang, was: Phase, now: float) -> None:
        """The gang has entered another phase."""
        milestones = gang.milestones
        if was in _ENDED and not gang.has_started:
            gang.milestones = Milestones(first_pod_at=now)
        elif gang.phase is Phase.RUNNING and milestones.planned_at is not None:
            first = now if milestones.first_pod_at is None else milestones.first_pod_at
            bound, planned_at = len(gang.membership.bound), milestones.planned_at
            self._starts.append(
                Start(gang.key, bound, first, gang.complete_at, planned_at, now, milestones.plans)
            )
            gang.milestones = Milestones(first_pod_at=first, is_decided=True)

    def decisions(self) -> Iterator[Decision]:
        """Those that have not been taken yet."""
        while self._decisions:
            yield self._decisions.popleft()

    def taken(self) -> Iterator[Start]:
        """The starts that have not been taken yet."""
        while self._starts:
            yield self._starts.popleft()
