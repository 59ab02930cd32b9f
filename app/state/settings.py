"""The engine's settings: the operator's options, and the kinds that the program watches."""

from __future__ import annotations

from app.dialects.registry import DIALECTS
from app.dialects.spec import TierPacking
from app.kube.core.objects import PodRecord
from app.kube.watch.events import Kind
from app.settings import EngineOptions, is_named


class EngineSettings(EngineOptions):
    """Plain values. `levels` are label keys: a preset's name has become its labels by now."""

    kinds: tuple[Kind, ...] = DIALECTS.kinds  # all must be listed before the first plan
    # kube-scheduler goes on when another Corral leads; else it begins with the one beside it.
    scheduler_lives_on: bool = False
    packing: TierPacking = TierPacking()  # as a file of Volcano's scheduler has it, if there is one

    def is_ours(self, pod: PodRecord) -> bool:
        """Whether our scheduler is to bind a pod."""
        return is_named(pod.scheduler, self.scheduler_name)
