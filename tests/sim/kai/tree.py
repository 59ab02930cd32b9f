"""PodGroups of KAI's with sub-groups on several Topologies: what is written, and what one says.

    net     block ─ rack ─ host        racks   rack alone        rows    hall ─ row

A row has a node of each rack: domains of `rows` cross those of the other two. What a constraint
means is read here apart from `app/dialects/kai` and `topology`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from app.kube.core.objects import NodeRecord, PodRecord
from tests.records import BLOCK, RACK
from tests.sim.native.pod_group import HOST
from tests.sim.objects import Json

KIND = "kaiparts"  # of the workloads
SUB_GROUP = "kai.scheduler/subgroup-name"  # label of a pod
HALL, ROW = "example.com/hall", "example.com/row"
NET, RACKS, ROWS = "net", "racks", "rows"
LEVELS: Mapping[str, tuple[str, ...]] = {
    NET: (BLOCK, RACK, HOST),
    RACKS: (RACK,),
    ROWS: (HALL, ROW),
}


@dataclass(frozen=True, slots=True)
class Within:
    """Pods are in one domain of a level of a Topology."""

    topology: str
    key: str

    def domain(self, node: NodeRecord) -> str:
        """That of a node; "": it is in none."""
        levels = LEVELS[self.topology]
        path = [node.labels.get(key, "") for key in levels[: levels.index(self.key) + 1]]
        return "/".join(path) if all(path) else ""

    def spec(self) -> Json:
        """As it is written."""
        return {"topology": self.topology, "requiredTopologyLevel": self.key}


@dataclass(frozen=True, slots=True)
class Sub:
    """A sub-group, or the PodGroup itself, which has no name.

    `least`: pods of a leaf, members of the others; None: all of these.
    """

    name: str
    parent: str
    least: int | None
    within: Within | None


@dataclass(frozen=True, slots=True)
class Part:
    """What a part is drawn of: leaves of so many pods, with a sub-group around several."""

    kind: str
    sizes: tuple[int, ...]

    def names(self, at: int) -> list[str]:
        """Of its leaves: it is the part of this number."""
        if len(self.sizes) == 1:
            return [f"p{at}"]
        return [f"p{at}-{leaf}" for leaf in range(len(self.sizes))]


@dataclass(frozen=True, slots=True)
class Tree:
    """A PodGroup and its sub-groups, outer ones first."""

    within: Within | None
    subs: tuple[Sub, ...]
    drawn: tuple[Part, ...] = ()
    """Of what is written; what is read has none."""

    def spec(self) -> Json:
        """As the PodGroup has it."""
        said: Json = {"queue": "q", "subGroups": [self._written(each) for each in self.subs]}
        if self.within is not None:
            said["topologyConstraint"] = self.within.spec()
        return said

    def _written(self, each: Sub) -> Json:
        said: Json = {"name": each.name}
        if each.parent:
            said["parent"] = each.parent
        if each.least is not None:
            said["minMember" if self.is_leaf(each.name) else "minSubGroup"] = each.least
        if each.within is not None:
            said["topologyConstraint"] = each.within.spec()
        return said

    @property
    def root(self) -> Sub:
        return Sub("", "", None, self.within)

    @property
    def leaves(self) -> tuple[Sub, ...]:
        return tuple(each for each in self.subs if self.is_leaf(each.name))

    def is_leaf(self, name: str) -> bool:
        return not any(each.parent == name for each in self.subs)

    def members(self, name: str) -> tuple[Sub, ...]:
        """The sub-groups of one; "": of the PodGroup."""
        return tuple(each for each in self.subs if each.parent == name)

    def path(self, leaf: str) -> tuple[Sub, ...]:
        """The PodGroup, and what of it a leaf is inside of, with the leaf itself."""
        of = {each.name: each for each in self.subs}
        found: list[Sub] = []
        while leaf:
            found.insert(0, of[leaf])
            leaf = of[leaf].parent
        return (self.root, *found)

    def topologies(self, leaf: str) -> tuple[str, ...]:
        """Those that constraints on a leaf name."""
        return tuple(each.within.topology for each in self.path(leaf) if each.within is not None)

    def is_met(self, name: str, there: Mapping[str, int]) -> bool:
        """Whether these pods, by leaf, are as many as a sub-group takes; "": the PodGroup."""
        members = self.members(name)
        (its,) = [each for each in (self.root, *self.subs) if each.name == name]
        if not members:
            return there.get(name, 0) >= (its.least or 0)
        met = sum(self.is_met(each.name, there) for each in members)
        return met >= (len(members) if its.least is None else its.least)

    def is_whole(self, pods: Iterable[PodRecord]) -> bool:
        """Whether these are as many as it takes."""
        return self.is_met("", by_leaf(pods))


def leaf_of(pod: PodRecord) -> str:
    """The sub-group that a pod is in."""
    return pod.labels.get(SUB_GROUP, "")


def by_leaf(pods: Iterable[PodRecord]) -> Counter[str]:
    return Counter(map(leaf_of, pods))


def tree_of(body: Json) -> Tree:
    """What the JSON of a PodGroup says."""
    said = body["spec"]
    parents = {each.get("parent", "") for each in said["subGroups"]}
    return Tree(_within(said), tuple(_subs(said["subGroups"], parents)))


def _subs(said: Iterable[Json], parents: set[str]) -> Iterator[Sub]:
    for each in said:
        name = each["name"]
        least = each.get("minSubGroup") if name in parents else each["minMember"]
        yield Sub(name, each.get("parent", ""), least, _within(each))


def _within(said: Json) -> Within | None:
    its = said.get("topologyConstraint")
    return its and Within(its["topology"], its["requiredTopologyLevel"])
