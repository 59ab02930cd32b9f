"""How many pods and gangs may go for others, and for which gangs: what the settings say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from app.dialects.spec import GangKey
from app.state.effects import RoomAnswer
from app.state.gang.gang import Gang
from app.state.pods.occupants import EVERYWHERE
from app.state.preempt.left_alone import Recent
from app.state.preempt.plans.room_plan import RoomPlan
from app.state.settings import EngineSettings

NAMESPACE_SECONDS = 600.0  # `preempt_per_namespace` counts for so long


@dataclass(frozen=True, slots=True)
class Limits:
    """Looks at what is under way, and counts what was begun."""

    settings: EngineSettings
    of: Mapping[GangKey, RoomPlan]
    """What is under way."""
    going: Mapping[str, GangKey]
    """By uid: the gang that a pod goes for."""
    _made: Recent = field(default_factory=lambda: Recent(NAMESPACE_SECONDS))  # by namespace

    @property
    def is_full(self) -> bool:
        """Whether as many gangs as may be make room."""
        return sum(not plan.is_slow for plan in self.of.values()) >= self.settings.preempt_plans

    @property
    def pods_left(self) -> int:
        """How many more pods may go now."""
        at_once = sum(not self.of[key].is_slow for key in self.going.values())
        return max(0, self.settings.preempt_pods_at_once - at_once)

    def most_pods_for(self, gang: Gang) -> int | None:
        """How many pods may go for a gang; None: none is evicted for it."""
        if self.settings.preempt != "on" or not self._is_in(gang.key.namespace):
            return None
        return self.pods_left

    def _is_in(self, namespace: str) -> bool:
        return any(name in self.settings.preempt_in for name in (namespace, EVERYWHERE))

    def note_made(self, namespace: str, now: float) -> None:
        """Pods go for a gang of this namespace."""
        self._made.note(namespace, now)

    def why_none(self, namespace: str, answer: RoomAnswer, now: float) -> str:
        """Why no pod is evicted for a gang that this was answered to; "": they may be."""
        settings = self.settings
        if settings.preempt != "on":
            return f"preempt is {settings.preempt}"
        if not self._is_in(namespace):
            return f"preempt_in does not have namespace {namespace}"
        if answer.pods > settings.preempt_pods_at_once:
            return f"preempt_pods_at_once is {settings.preempt_pods_at_once}"
        if answer.pods and (self._made.count(namespace, now) >= settings.preempt_per_namespace):
            return f"preempt_per_namespace is {settings.preempt_per_namespace} in ten minutes"
        return ""
