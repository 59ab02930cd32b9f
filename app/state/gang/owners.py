"""How many pods controllers may lose until they give up for good, as their objects say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from app.dialects.registry import Dialects
from app.dialects.spec import FailureLimit
from app.kube.core.objects import ObjectRecord
from app.state.gang.gang import Gang
from app.state.gang.members.member import Member


@dataclass(frozen=True, slots=True)
class Owners:
    """The controllers of pods, and theirs."""

    dialects: Dialects
    by_uid: Mapping[str, ObjectRecord]

    def copy(self) -> Owners:
        """The same, as they are now; may be read in another thread."""
        return replace(self, by_uid=dict(self.by_uid))

    def limit(self, uid: str) -> FailureLimit | None:
        """What a controller makes of pods that are evicted; None: it never gives up."""
        record = self.by_uid.get(uid)
        if record is None:
            return None
        owner = getattr(record, "owner", None)
        return self.dialects.failure_limit(record, owner and self.by_uid.get(owner.uid))

    def left(self, uid: str, ending: int) -> int | None:
        """How many more pods a controller may lose, of which so many end; None: any number."""
        said = self.limit(uid)
        return None if said is None else max(0, said.beside(ending))

    def give_up(self, gang: Gang, members: Collection[Member]) -> bool:
        """Whether some owner would give up for good if these pods of a gang were evicted.

        The gang's own object says so of its pods; of all others, those that control them.
        """
        had_nodes = [each for each in members if each.pod.node]
        if gang.failures is not None:
            lost_pods = len(had_nodes if gang.failures.of_running else members)
            return bool(lost_pods) and gang.ends_if_lost(lost_pods)
        lost = _by_owner(members)
        if all(self.limit(uid) is None for uid in lost):
            return False
        ending = _by_owner([each for each in gang.members.values() if each.is_lost])
        running = _by_owner(had_nodes)
        for uid in lost:
            if (limit := self.limit(uid)) is not None and limit.of_running:
                lost[uid] = running[uid]
        lefts = ((self.left(uid, ending[uid]), pods) for uid, pods in lost.items() if pods)
        return any(left is not None and pods > left for left, pods in lefts)


def _by_owner(members: Collection[Member]) -> Counter[str]:
    """How many of them each controller has."""
    return Counter(each.pod.owner.uid for each in members if each.pod.owner is not None)
