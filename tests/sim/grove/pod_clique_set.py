"""What a user of Grove writes, and the PodGangs that follow from it.

    cliques that are in no scaling group, and its first replicas    one PodGang, "0": the base
    each further replica of the scaling group                       a PodGang of its own, "0-sg-0" …

Levels have names here; a PodGang has the keys of those that the ClusterTopology has now.
Source: grove operator/internal/controller/podcliqueset/components/podgang/syncflow.go
(v0.1.0-alpha.8).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tests.records import BLOCK, RACK
from tests.sim.objects import Json

HOST = "kubernetes.io/hostname"
KEYS = {"block": BLOCK, "rack": RACK, "host": HOST}  # widest first
GROUP = "sg"  # the name of the scaling group
BASE = "0"  # the base PodGang, without the name of its PodCliqueSet

GATE = "grove.io/podgang-pending-creation"
POD_GANG, POD_CLIQUE = "grove.io/podgang", "grove.io/podclique"
BASE_GANG = "grove.io/base-podgang"
TOPOLOGY_NAME = "grove.io/topology-name"  # annotation of a PodGang


@dataclass(frozen=True, slots=True)
class Pack:
    """Names of levels; "": none."""

    required: str = ""
    preferred: str = ""

    def said(self, levels: Sequence[str]) -> Json | None:
        """The constraint of a PodGang, without the levels that there are not."""
        both = {"required": self.required, "preferred": self.preferred}
        keys = {field: KEYS[name] for field, name in both.items() if name in levels}
        return {"packConstraint": keys} if keys else None


@dataclass(frozen=True, slots=True)
class Clique:
    """Pods that are alike, of which so many are needed."""

    name: str
    least: int
    pack: Pack = Pack()
    is_scaled: bool = False  # it is in the scaling group


@dataclass(frozen=True, slots=True)
class Part:
    """One pod group of a PodGang: its name without that of the PodCliqueSet, and its clique."""

    name: str
    clique: Clique
    replica: int | None  # of the scaling group


@dataclass(frozen=True, slots=True)
class PodCliqueSet:
    """One, of one replica. `replicas`, `least`: of the scaling group, if it has one."""

    cliques: tuple[Clique, ...]
    pack: Pack = Pack()
    group_pack: Pack = Pack()
    replicas: int = 0
    least: int = 0
    is_by_reference: bool = False  # its pods have no labels of Grove's: PodGangs name them

    def gangs(self) -> dict[str, tuple[Part, ...]]:
        """The pod groups of each PodGang, by its name without that of the PodCliqueSet."""
        alone = [Part(f"0-{each.name}", each, None) for each in self.cliques if not each.is_scaled]
        base = [*alone, *(each for at in range(self.least) for each in self.replica(at))]
        found = {BASE: tuple(base)}
        for at in range(self.least, self.replicas):
            found[f"0-{GROUP}-{at - self.least}"] = tuple(self.replica(at))
        return found

    def replica(self, at: int) -> Iterator[Part]:
        """The pod groups of one replica of the scaling group."""
        for each in self.cliques:
            if each.is_scaled:
                yield Part(f"0-{GROUP}-{at}-{each.name}", each, at)

    def gang_of(self, part: str) -> str:
        """The PodGang that a pod group is in."""
        return next(
            gang for gang, parts in self.gangs().items() if part in {each.name for each in parts}
        )

    def spec(
        self, name: str, gang: str, levels: Sequence[str], pods: Mapping[str, Sequence[str]]
    ) -> Json:
        """The spec of a PodGang. `pods`: the names of those that exist, by pod group."""
        parts = self.gangs()[gang]
        said: Json = {"podgroups": [_pod_group(name, each, levels, pods) for each in parts]}
        is_base = gang == BASE
        own = self.pack if is_base else (self.group_pack if self.group_pack.required else self.pack)
        constraint = own.said(levels)
        if constraint is not None:
            said["topologyConstraint"] = constraint
        if is_base and self.group_pack != Pack():
            configs = [
                _config(f"{name}-0-{GROUP}-{at}", name, self.replica(at), self.group_pack, levels)
                for at in range(self.least)
            ]
            said["topologyConstraintGroupConfigs"] = configs
        return said


def _pod_group(
    name: str, part: Part, levels: Sequence[str], pods: Mapping[str, Sequence[str]]
) -> Json:
    names = pods.get(part.name, ())
    said: Json = {
        "name": f"{name}-{part.name}",
        "minReplicas": part.clique.least,
        "podReferences": [{"namespace": "default", "name": each} for each in names],
    }
    constraint = part.clique.pack.said(levels)
    if constraint is not None:
        said["topologyConstraint"] = constraint
    return said


def _config(
    config: str, name: str, parts: Iterator[Part], pack: Pack, levels: Sequence[str]
) -> Json:
    said: Json = {"name": config, "podGroupNames": [f"{name}-{each.name}" for each in parts]}
    constraint = pack.said(levels)
    return said if constraint is None else {**said, "topologyConstraint": constraint}
