"""KAI's PodGroups in one world: what a seed draws of them, and what happens until all is healed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import Random
from typing import Any, ClassVar

from app.kube.core.objects import Owner, PodRecord
from app.kube.watch.events import Kind
from tests.records import BLOCK, RACK
from tests.sim.api import KAI, KAI_TOPOLOGY
from tests.sim.kai.pod_group import GROUP_NAME, TOPOLOGY, WORDS
from tests.sim.kinds import Template, Workload
from tests.sim.native.controller import PodGroupController
from tests.sim.native.life import Native
from tests.sim.native.pod_group import HOST, Words
from tests.sim.objects import Objects
from tests.sim.owners import Said

PARTS_SHARE = 1 / 2  # of the seeds with PodGroups of KAI's: these have sub-groups there


def has_parts(seed: int) -> bool:
    """Whether PodGroups of KAI's are on several Topologies in this world, if it has any."""
    return Random(f"kai in parts {seed}").random() < PARTS_SHARE


class KaiController(PodGroupController):
    """It names the PodGroup in an annotation of each pod."""

    def said_on(self, made: Workload, _name: str, _template: Template) -> Said:
        """What one pod says about where it belongs."""
        owner = Owner("apps/v1", "ReplicaSet", made.name, made.owner_uid)
        return {GROUP_NAME: made.name}, {}, owner

    def as_created(self, made: Workload, pod: PodRecord) -> PodRecord:
        return pod


class Kai(Native):
    """All of it, in worlds whose PodGroups have no sub-groups."""

    words: ClassVar[Words] = WORDS
    source: ClassVar[str] = WORDS.source
    kinds: ClassVar[tuple[Kind, ...]] = KAI
    settings: ClassVar[Mapping[str, Any]] = {}
    controller: ClassVar[type[PodGroupController]] = KaiController
    in_parts: ClassVar[bool] = False
    """Whether the PodGroups are on several Topologies."""

    @classmethod
    def is_in(cls, seed: int) -> bool:
        return super().is_in(seed) and has_parts(seed) is cls.in_parts

    def create(self) -> None:
        """Make the Topology that all PodGroups name."""
        create_topology(self._objects, TOPOLOGY, (BLOCK, RACK, HOST))

    def judge(self) -> None:
        """Nothing: no condition is judged."""


def create_topology(objects: Objects, name: str, levels: Iterable[str]) -> None:
    """Make a Topology of these levels, widest first."""
    spec = {"levels": [{"nodeLabel": each} for each in levels]}
    objects.create(KAI_TOPOLOGY, name, spec=spec)
