"""What a workload writes into a CompositePodGroup and its PodGroups, and what these say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from app.kube.core.objects import PodRecord
from tests.sim.native.pod_group import NativeGroup, Policy, group_of
from tests.sim.objects import Json

KIND = "composite"  # of the workloads
SOURCE = "composite"  # of the keys of its gangs
PATH = "/apis/scheduling.k8s.io/"
CONDITION = "CompositePodGroupInitiallyScheduled"


@dataclass(frozen=True, slots=True)
class Tree:
    """What is required of a composite. `least`: None: basic. `key`: the level of all, or ""."""

    least: int | None
    key: str
    groups: tuple[Policy, ...]

    def spec(self) -> Json:
        """As the CompositePodGroup has it."""
        many = {"gang": {"minGroupCount": self.least}}
        said: Json = {"schedulingPolicy": {"basic": {}} if self.least is None else many}
        if self.key:
            said["schedulingConstraints"] = {"topology": [{"key": self.key}]}
        return said


def name_of(composite: str, group: int) -> str:
    """The name of one of its PodGroups."""
    return f"{composite}-g{group}"


def part_of(group: int) -> str:
    """What the workload calls the pods of a PodGroup."""
    return f"g{group}"


@dataclass(frozen=True, slots=True)
class Told:
    """A composite as its objects say, as far as they are there."""

    name: str
    least: int
    key: str
    groups: Mapping[str, NativeGroup]
    condition: Json
    """Corral's, empty if it has none."""
    others: Mapping[str, Json]
    """Conditions of others."""

    def is_whole(self, pods: Iterable[PodRecord]) -> bool:
        """Whether these are as many as it takes."""
        there = Counter(each.pod_group for each in pods)
        whole = sum(there[name] >= its.least for name, its in self.groups.items())
        return whole >= self.least


def told_by(body: Json, groups: Iterable[Json]) -> Told:
    """What the JSON of a composite says, and of all PodGroups those inside."""
    name, spec = body["metadata"]["name"], body["spec"]
    inside = [
        group_of(each) for each in groups if each["spec"].get("parentCompositePodGroupName") == name
    ]
    keys = spec.get("schedulingConstraints", {}).get("topology", [{"key": ""}])
    least = spec["schedulingPolicy"].get("gang", {"minGroupCount": 1})["minGroupCount"]
    conditions = {each["type"]: each for each in (body.get("status") or {}).get("conditions") or ()}
    own = conditions.pop(CONDITION, {})
    groups_by_name = {each.name: each for each in inside}
    return Told(name, least, keys[0]["key"], groups_by_name, own, conditions)
