"""K1 to K3: what must hold of PodGroups on several Topologies after every step.

    K1    a gang starts with all that its sub-groups need at once: minMember, minSubGroup
    K2    the pods of the PodGroup, and those of each sub-group, are in one domain of its level, by
          the Topology that it names, those that run included
    K3    no pod goes because a PodGroup changes or goes

By what a Corral has been told; what an engine remembers is looked at only for what it holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.dialects.spec import GangKey
from app.kube.core.objects import PodRecord
from app.state.effects import Bind, Effect
from app.state.gang.gang import Gang
from tests.sim.api import KAI_GROUP
from tests.sim.corral import Corral
from tests.sim.faults import Hits
from tests.sim.isolation import Subject
from tests.sim.kai.tree import Sub, Tree, leaf_of, tree_of
from tests.sim.life import Life
from tests.sim.native.checks import check_together
from tests.sim.objects import Objects
from tests.sim.starts import placed_whole, starts
from tests.sim.told import gone_by, is_live, key_of, life_of, members_of
from tests.sim.violation import require

SOURCE = "kai"


@dataclass(frozen=True, slots=True)
class _Packed:
    """A sub-group, as it is named where its pods are not together."""

    name: str
    key: str


@dataclass(slots=True)
class PartsChecks:
    """One for all Corrals."""

    objects: Objects
    hits: Hits

    def taken(self, corral: Corral, subject: Subject, effects: Sequence[Effect]) -> None:
        """K3. Raises: Violation."""
        record: Any = getattr(subject, "record", None)
        if getattr(record, "kind", "") == KAI_GROUP:
            gone = gone_by(life_of(corral), effects)
            require(not gone, f"K3: PodGroup {record.name} changes, and {gone}")

    def decided(self, corral: Corral, effects: Sequence[Effect]) -> None:
        """K1. Raises: Violation."""
        life = life_of(corral)
        begun = set[GangKey | None]()
        for gang, members in starts(life, effects, SOURCE):
            self._starts_whole(life, gang, members)
            begun.add(gang.key)
        keys = {key_of(life, each.uid) for each in effects if isinstance(each, Bind)}
        if any(key is not None and key.source == SOURCE for key in keys - begun):
            self.hits.hit("W kai part again")

    def took(self, life: Life) -> None:
        """K2. Raises: Violation."""
        engine = life.engine
        for key in engine.gangs.planned:
            if key.source == SOURCE and key not in engine.gangs.unreviewed:
                gang = engine.gangs.by_key[key]
                self.together(life, gang, gang.plan.nodes)

    def _starts_whole(self, life: Life, gang: Gang, members: Sequence[PodRecord]) -> None:
        its = self._told(life, gang.key.name)
        require(its is not None, f"K1: {gang.key} starts, and its PodGroup is not known")
        assert its is not None
        placed = placed_whole(life, gang, members, its.is_whole, "K1")
        leaves = {leaf_of(pod) for pod in placed}
        if len({its.topologies(each) for each in leaves}) > 1:
            self.hits.hit("W kai in parts")
            if its.within is not None:
                self.hits.hit("W kai in parts of a block")
        if leaves < {each.name for each in its.leaves}:
            self.hits.hit("W kai in some parts")

    def together(self, life: Life, gang: Gang, places: Mapping[str, str]) -> None:
        """K2 of a gang whose pods have these nodes, by uid. Raises: Violation."""
        its = self._told(life, gang.key.name)
        if its is None:
            return
        live = [pod for pod in members_of(life, gang.key) if is_live(pod)]
        for sub in (its.root, *its.subs):
            if sub.within is None:
                continue
            inside = [pod for pod in live if _is_in(its, sub, pod)]
            there = {pod.uid: places[pod.uid] for pod in inside if pod.uid in places}
            packed = _Packed(f"{gang.key.name} {sub.name}".strip(), sub.within.key)
            check_together(life, "K2", packed, inside, there, sub.within.domain)

    def _told(self, life: Life, name: str) -> Tree | None:
        record = life.streams[KAI_GROUP].mirror.get(name)
        return None if record is None else tree_of(self.objects.told(record))


def _is_in(its: Tree, sub: Sub, pod: PodRecord) -> bool:
    """Whether a pod is in this sub-group, or in one inside it."""
    return sub in its.path(leaf_of(pod))
