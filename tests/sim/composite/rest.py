"""L1 and C4 when all is quiet: no gang waits that need not, and each object says what its pods are.

A gang counts as one that has a place only where one domain has room for it that is inside one of
each level that it names, each of its pods taken to be as large as the largest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from app.kube.core.objects import PodRecord
from tests.records import BLOCK, RACK
from tests.sim.api import COMPOSITE, NATIVE_GROUP, ApiServer
from tests.sim.composite.checks import said_by
from tests.sim.composite.tree import Told, told_by
from tests.sim.faults import Hits
from tests.sim.native.rest import domain_with_room
from tests.sim.objects import Objects
from tests.sim.oracle import Cluster, Taken
from tests.sim.places import is_ready
from tests.sim.told import is_live
from tests.sim.violation import require


@dataclass(frozen=True, slots=True)
class AtRest:
    """Looks at the API server's truth."""

    api: ApiServer
    objects: Objects
    hits: Hits

    def check_conditions(self) -> None:
        """Every object with pods says whether it has started. Raises: Violation."""
        groups = self.objects.of(NATIVE_GROUP)
        for name, body in self.objects.of(COMPOSITE).items():
            its = told_by(body, groups.values())
            pods = [pod for pod in self.api.list("Pod") if pod.pod_group in its.groups]
            if not pods or all(pod.is_finished for pod in pods):
                continue
            self.hits.hit("W composite at rest")
            placed = [
                pod for pod in pods if pod.phase == "Succeeded" or (pod.node and is_live(pod))
            ]
            there = Counter(pod.pod_group for pod in placed)
            for group, one in its.groups.items():
                said = said_by(groups[group])[0]
                if there[group] >= one.least:
                    require(said == "True", f"C4: PodGroup {group} says {said!r}, and has started")
            said = said_by(body)[0]
            if its.is_whole(placed):
                require(said == "True", f"C4: {name} says {said!r}, and has started")
            elif its.is_whole([pod for pod in pods if is_live(pod) and is_ready(pod)]):
                require(said in ("False", "True"), f"C4: {name} says {said!r}, and waits")

    def waits_in_vain(
        self,
        name: str,
        members: Collection[PodRecord],
        taken: Taken,
        among: Cluster | None = None,
    ) -> str:
        """Where the waiting pods of a gang have a place; "" if they have none for certain.

        `among`: the nodes, and the pods that count; None: all.
        """
        body = self.objects.get(COMPOSITE, name)
        if body is None:
            return ""
        its = told_by(body, self.objects.of(NATIVE_GROUP).values())
        live = [pod for pod in members if is_live(pod)]
        waiting = [pod for pod in live if not pod.node and is_ready(pod)]
        bound = {pod.node for pod in live if pod.node}
        needed = _needed(its, members, waiting)
        if not needed:
            return ""
        level = next((each for each in (RACK, BLOCK) if each in _levels(its)), "")
        return domain_with_room(among or self.api, level, waiting, bound, needed, taken)


def _levels(its: Told) -> set[str]:
    return {its.key, *(each.key for each in its.groups.values())}


def _needed(its: Told, members: Collection[PodRecord], waiting: Collection[PodRecord]) -> int:
    """How many of the pods that wait are enough for more to start; 0: none of them would be.

    Once the gang runs any pod of a group that has started may follow.
    """
    done = [pod for pod in members if pod.phase == "Succeeded"]
    runs = [pod for pod in members if is_live(pod) and pod.node]
    ready = Counter(pod.pod_group for pod in waiting)
    if runs:
        there = Counter(pod.pod_group for pod in (*runs, *done))
        started = [name for name, one in its.groups.items() if there[name] >= one.least]
        is_begun = len(started) >= its.least
        return int(is_begun and any(ready[name] for name in started))
    if done:
        return 0  # of what is gone not all is known
    whole = sorted(one.least for name, one in its.groups.items() if ready[name] >= one.least)
    return sum(whole[: its.least]) if len(whole) >= its.least else 0
