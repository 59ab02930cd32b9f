"""PodCliqueSets of Grove: their PodGangs, and the pods of these.

    cliques that are in no scaling group, and as many replicas of each group as it needs
                                      one PodGang of each replica of the PodCliqueSet: the base
    each further replica of a group   a PodGang of its own

Levels are named as users write them: a topology knows its levels by these names as well.
Source: grove operator/internal/controller/podcliqueset/components/podgang/syncflow.go,
podclique/components/pod/pod.go, webhook/admission/pcs/defaulting (v0.1.0-alpha.8).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from app.dialects.grove import keys
from app.dialects.grove.pod_clique_sets import DEFAULT_TOPOLOGY
from app.dialects.grove.pod_gangs import MOST_POD_GROUPS
from app.dialects.making.parts import (
    Misfit,
    Object,
    Part,
    listed,
    made,
    mapping,
    name_of,
    number,
    numbered,
    pod,
    text,
    texts,
)

POD_GANG = ("scheduler.grove.io/v1alpha1", "PodGang")
_CLIQUE = ("grove.io/v1alpha1", "PodClique")
_IN = "spec.template"


@dataclass(frozen=True, slots=True)
class _Clique:
    """One clique, or that of a replica of a scaling group."""

    name: str
    """With those of all that it is a part of."""
    where: str
    said: Object
    scaled: tuple[str, int] | None = None
    """The scaling group that it is in and the replica of that; None: in none."""

    @property
    def pods(self) -> int:
        return number(self.said, "spec.replicas", 1, self.where) or 1  # as its webhook has it

    @property
    def least(self) -> int:
        return number(self.said, "spec.minAvailable", self.pods, self.where)


@dataclass(frozen=True, slots=True)
class _Scaled:
    """One scaling group."""

    name: str
    where: str
    said: Object
    cliques: tuple[tuple[str, Object], ...]

    @property
    def replicas(self) -> int:
        return number(self.said, "replicas", 1, self.where)

    @property
    def least(self) -> int:
        return min(number(self.said, "minAvailable", 1, self.where), self.replicas)

    def replica(self, of: str, at: int) -> list[_Clique]:
        """The cliques of one replica."""
        name = f"{of}-{self.name}"
        return [
            _Clique(f"{name}-{at}-{text(said, 'name', where)}", where, said, (name, at))
            for where, said in self.cliques
        ]


def pod_clique_set(of: Object) -> Iterator[Part]:
    """The PodGangs of a PodCliqueSet and their pods; it is no object that is read itself."""
    cliques = list(numbered(listed(of, f"{_IN}.cliques"), f"{_IN}.cliques"))
    path = f"{_IN}.podCliqueScalingGroups"
    groups = [_group(where, each, cliques) for where, each in numbered(listed(of, path), path)]
    _check(groups)
    scaled = {id(said) for group in groups for _, said in group.cliques}
    for replica in range(number(of, "spec.replicas", 0)):
        whole = f"{name_of(of)}-{replica}"
        alone = [
            _Clique(f"{whole}-{text(said, 'name', where)}", where, said)
            for where, said in cliques
            if id(said) not in scaled
        ]
        yield from _base(of, whole, replica, alone, groups)
        for group in groups:
            for at in range(group.least, group.replicas):
                name = f"{whole}-{group.name}-{at - group.least}"
                own = _pack(of, group.said, group.where) or _pack(of, mapping(of, _IN), f"{_IN}.")
                its = group.replica(whole, at)
                yield Part(_gang(of, name, its, own, []))
                yield from _pods(of, name, replica, its, base=whole)


def _group(where: str, said: Object, cliques: list[tuple[str, Object]]) -> _Scaled:
    names = said.get("cliqueNames") or []
    its = tuple(each for each in cliques if each[1].get("name") in names)
    return _Scaled(text(said, "name", where), where, said, its)


def _check(groups: list[_Scaled]) -> None:
    """Raises: Misfit for more cliques in one PodGang than one is read with.

    A group without cliques counts as one: what is made of it is as long.
    """
    pod_groups = 0
    for group in groups:
        pod_groups += group.least * max(1, len(group.cliques))
        if pod_groups > MOST_POD_GROUPS:
            problem = f"with its cliques these are more pod groups than {MOST_POD_GROUPS}"
            raise Misfit(f"{group.where}minAvailable", group.least, problem)


def _base(
    of: Object, whole: str, replica: int, alone: list[_Clique], groups: list[_Scaled]
) -> Iterator[Part]:
    its, configs = list(alone), []
    for group in groups:
        pack = _pack(of, group.said, group.where)
        for at in range(group.least):
            inside = group.replica(whole, at)
            its.extend(inside)
            if pack is not None:
                names = [each.name for each in inside]
                config = {"name": f"{whole}-{group.name}-{at}", "podGroupNames": names, **pack}
                configs.append(config)
    own = _pack(of, mapping(of, _IN), f"{_IN}.")
    yield Part(_gang(of, whole, its, own, configs))
    yield from _pods(of, whole, replica, its)


def _gang(
    of: Object, name: str, cliques: list[_Clique], own: Object | None, configs: list[Object]
) -> Object:
    groups = [
        {
            "name": each.name,
            "minReplicas": each.least,
            "podReferences": [],
            **(_pack(of, each.said, each.where) or {}),
        }
        for each in cliques
    ]
    spec: Object = {"podgroups": groups, **(own or {})}
    if configs:
        spec["topologyConstraintGroupConfigs"] = configs
    if priority := text(of, f"{_IN}.priorityClassName"):
        spec["priorityClassName"] = priority
    is_constrained = own is not None or configs or any("topologyConstraint" in g for g in groups)
    said = {keys.TOPOLOGY: _topology(of) or DEFAULT_TOPOLOGY} if is_constrained else {}
    return made(of, POD_GANG, name, {"spec": spec, "status": {}}, annotations=said)


def _topology(of: Object) -> str:
    """The first ClusterTopology that a constraint names, which all of them do."""
    template = mapping(of, _IN)
    parts = (template, *listed(of, f"{_IN}.podCliqueScalingGroups"), *listed(of, f"{_IN}.cliques"))
    names = (text(each, "topologyConstraint.topologyName") for each in parts)
    return next(filter(None, names), "")


def _pack(of: Object, part: Object, where: str) -> Object | None:
    """The constraint of a part as a PodGang has it; None: there is none."""
    said = mapping(part, "topologyConstraint", where)
    inside = f"{where}topologyConstraint."
    both = {
        "required": text(said, "pack.required", inside) or text(said, "packDomain", inside),
        "preferred": text(said, "pack.preferred", inside),
    }
    pack = {field: level for field, level in both.items() if level}
    return {"topologyConstraint": {"packConstraint": pack}} if pack else None


def _pods(
    of: Object, gang: str, replica: int, cliques: list[_Clique], base: str = ""
) -> Iterator[Part]:
    for clique in cliques:
        labels = {
            **texts(clique.said, "labels", clique.where),
            keys.PART_OF: name_of(of),
            keys.POD_CLIQUE: clique.name,
            keys.POD_GANG: gang,
            keys.REPLICA: str(replica),
            **({keys.BASE_POD_GANG: base} if base else {}),
        }
        if clique.scaled is not None:
            labels[keys.SCALING_GROUP] = clique.scaled[0]
            labels[keys.SCALING_GROUP_REPLICA] = str(clique.scaled[1])
        annotations = texts(clique.said, "annotations", clique.where)
        owner = made(of, _CLIQUE, clique.name, {})
        template = {"spec": mapping(clique.said, "spec.podSpec", clique.where)}
        for at in range(clique.pods):
            where = f"{clique.where}spec.podSpec."
            yield pod(owner, template, f"{clique.name}-{at}", labels, annotations, where)
