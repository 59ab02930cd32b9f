"""Pods on nodes with more resources than are counted: read again once nodes offer another one.

    watch ──pod that requests 1,000 resources──▶ those that nodes offer then are counted
    node ──first to offer one──▶ new row ──▶ it may be among the others: a list is wanted

A pod may name its node itself and so is counted whatever it requests. A tenant cannot make us list
all the time: only nodes add rows, and these are bounded (`resource_rows.py`). When Corral starts,
pods may be read before nodes are: nothing is planned until the second list is in.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from app.kube.core.objects import PodRecord
from topology.model.resources import ResourceAxis


@dataclass(slots=True)
class PartCounted:
    """Such pods, with how many resources were known to be offered when each was read."""

    axis: ResourceAxis
    then_of: dict[str, int] = field(default_factory=dict)  # by uid
    _pods: Counter[int] = field(default_factory=Counter)  # by that number
    _asked: int = 0  # how many were, when a list was last asked for

    def put(self, pod: PodRecord) -> None:
        """Learn of a pod that is bound and has not ended."""
        self.drop(pod.uid)
        if pod.offered_then is not None:
            self.then_of[pod.uid] = pod.offered_then
            self._pods[pod.offered_then] += 1

    def drop(self, uid: str) -> None:
        """Forget a pod that has ended or is gone."""
        then = self.then_of.pop(uid, None)
        if then is not None:
            self._pods[then] -= 1
            if not self._pods[then]:
                del self._pods[then]

    @property
    def is_behind(self) -> bool:
        """Whether some pod was read before a resource was offered."""
        return any(then < len(self.axis) for then in self._pods)

    @property
    def wants_list(self) -> bool:
        """Whether no list was asked for since a resource was offered that pods may lack."""
        return self._asked < len(self.axis) and self.is_behind

    def note_asked(self) -> None:
        """Note that a list is asked for, which will count every resource of now."""
        self._asked = len(self.axis)
