"""Kueue's groups of pod sets as our gangs, and our numbers as Kueue's sentences.

A Question is asked over the cluster of one scenario; what Kueue assumes without saying so is
listed in `cases`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from tests.parity.kueue.cases import Answer, Cluster, Domains, Json
from topology import (
    Constraint,
    Gang,
    Group,
    InvalidRequest,
    Mask,
    NoFit,
    Options,
    Placement,
    PodSet,
    Slice,
    Strategy,
    complete,
    find,
    invariants,
)
from topology.fit import fit
from topology.fit.unit import units_of

Kept = dict[str, list[tuple[int, int]]]
"""Pod set -> (slot, pods) that stay."""

UNNAMED = "(no name)"
"""The name of a pod set to which Kueue's tables give none."""


def groups_of(scenario: Json) -> list[list[Json]]:
    """Pod sets that share a group name, in order of first sight; each other one on its own."""
    groups: dict[object, list[Json]] = {}
    for index, pod_set in enumerate(scenario["podSets"]):
        groups.setdefault(pod_set.get("podSetGroupName") or index, []).append(pod_set)
    return list(groups.values())


def workers_of(group: list[Json]) -> Json:
    """The pod set that decides for its group."""
    if len(group) > 1 and group[1]["count"] > group[0]["count"]:
        return group[1]
    return group[0]


def layers_of(pod_set: Json) -> list[Json]:
    """Slice layers as {topology, size}, outermost first."""
    request = pod_set.get("topologyRequest") or {}
    layers = request.get("podsetSliceRequiredTopologyConstraints")
    if layers:
        return list(layers)
    if request.get("podSetSliceRequiredTopology"):
        level = request["podSetSliceRequiredTopology"]
        return [{"topology": level, "size": request.get("podSetSliceSize")}]
    return []


def has_remainder(scenario: Json) -> bool:
    """Kueue drops pods of it without a word: a slice size does not divide them (0.4 a)."""
    return any(
        workers["count"] % (layer["size"] or 1)
        for workers in map(workers_of, groups_of(scenario))
        for layer in layers_of(workers)[:1]
    )


class Question:
    """Groups of one scenario as one gang, over the scenario's cluster.

    `scenario["asked"]` is no part of the format: what `changes` asks otherwise than Kueue would.
    """

    def __init__(self, scenario: Json, cluster: Cluster | None = None) -> None:
        self.scenario = scenario
        self.cluster = cluster or Cluster(scenario)
        self.gates: dict[str, bool] = scenario["featureGates"]
        self.asked: Json = scenario.get("asked", {})
        self.masks: dict[object, Mask] = {}
        self.is_replacement = bool((scenario.get("workload") or {}).get("unhealthyNodes"))
        self.kept_pods = 0
        self.options = Options(
            unconstrained=Strategy.LEAST_FREE
            if self.gates["TASProfileMixed"]
            else Strategy.BEST_FIT,
            tries=self.asked.get("tries", 0),
        )

    def gang(self, groups: list[list[Json]]) -> Gang:
        """The gang that asks for these groups. Raises: InvalidRequest as the core does."""
        return Gang("ns/gang", Group("root", tuple(self._member(group) for group in groups)))

    def _member(self, group: list[Json]) -> Group:
        workers = workers_of(group)
        members = []
        for pod_set in group[:2]:
            slices: tuple[Slice, ...] = ()
            pods = pod_set["count"]
            if pod_set is workers:
                slices = tuple(
                    Slice(layer["size"], self.cluster.level(layer["topology"]))
                    for layer in layers_of(workers)
                )
            if pod_set is not workers:
                pods = 1
            elif slices and not self.is_replacement:
                new = max(0, pods - self.kept_pods)
                pods -= new % slices[0].pods  # what Kueue places
            members.append(
                PodSet(
                    name=name_of(pod_set),
                    pods=pods,
                    request=self.cluster.axis.vector({"pods": 1, **pod_set["requests"]}.items()),
                    shape=self._shape(pod_set if self.asked.get("leaders_shape") else workers),
                    slices=slices,
                    partial_last_slice=self.is_replacement or self.kept_pods > 0,
                )
            )
        return Group(f"group of {name_of(workers)}", tuple(members), self._constraint(workers))

    def _shape(self, pod_set: Json) -> str:
        shape = name_of(pod_set)
        if shape not in self.masks:
            reasons = self.cluster.refusals(pod_set)
            self.masks[shape] = np.array([not reason for reason in reasons], dtype=np.bool_)
            scores = self.cluster.scores(pod_set)
            self.options = replace(
                self.options,
                reasons={**self.options.reasons, shape: reasons},
                scores=dict(self.options.scores) | ({} if scores is None else {shape: scores}),
            )
        return shape

    def _constraint(self, pod_set: Json) -> Constraint:
        request = pod_set.get("topologyRequest") or {}
        required, preferred = request.get("required"), request.get("preferred")
        return Constraint(
            required=self.cluster.level(required) if required else None,
            preferred=self.cluster.level(preferred) if preferred and not required else None,
            balanced=bool(preferred and not required and self.gates["TASBalancedPlacement"]),
        )

    def find(self, groups: list[list[Json]]) -> Placement | NoFit:
        """Asks for a place for these groups, and checks the answer."""
        self.kept_pods = 0  # those of a group before these are none of theirs
        gang = self.gang(groups)
        tree, capacity = self.cluster.tree, self.cluster.capacity
        answer = find(tree, capacity, gang, self.masks, self.options)
        if isinstance(answer, Placement):
            invariants.check(tree, capacity, gang=gang, placement=answer, masks=self.masks)
        return answer

    def complete(self, group: list[Json], kept: Kept) -> Placement | NoFit:
        """Asks for a place for the pods of one group that are not kept."""
        self.kept_pods = sum(pods for _, pods in kept.get(name_of(workers_of(group)), []))
        gang = self.gang([group])
        tree, capacity, masks = self.cluster.tree, self.cluster.capacity, dict(self.masks)
        preferred = self._constraint(workers_of(group)).preferred
        slots = [slot for entries in kept.values() for slot, _ in entries]
        if self.asked.get("beside") and preferred and slots:
            for level in range(tree.levels.index(preferred), -1, -1):
                domain_of = tree.domain_of[level]
                inside = domain_of == np.bincount(domain_of[slots]).argmax()
                narrowed = {shape: mask & inside for shape, mask in masks.items()}
                answer = complete(tree, capacity, gang, narrowed, kept, self.options)
                if isinstance(answer, Placement):
                    return answer
        return complete(tree, capacity, gang, masks, kept, self.options)

    def assigned(self, pod_set: Json) -> Domains | None:
        """Where the pods of a pod set are; None if that is not recorded."""
        for one in self.scenario["workload"].get("podSetAssignments") or []:
            if one["name"] == pod_set["name"] and one.get("topologyAssignment"):
                return decoded(one["topologyAssignment"])
        return None

    def stays(self, domains: Domains) -> Domains:
        """What is not on the lost node; Kueue looks at one."""
        lost = self.scenario["workload"]["unhealthyNodes"][0]
        return [(values, pods) for values, pods in domains if values[-1] != lost]

    def on_slots(self, domains: Domains) -> list[tuple[int, int]]:
        """The same pods by slot, of slots that are open."""
        slots = [(self.cluster.open_slot(values), pods) for values, pods in domains]
        return [(slot, pods) for slot, pods in slots if slot is not None]

    def domains_made_whole(self, pod_set: Json) -> list[int]:
        """Domains whose slices the pods on the lost node would make whole (2.8, step 2)."""
        domains, layers = self.assigned(pod_set), layers_of(pod_set)
        if domains is None or not layers:
            return []
        stays = self.stays(domains)
        missing = sum(pods for _, pods in domains) - sum(pods for _, pods in stays)
        if missing % layers[0]["size"] == 0:
            return []
        layer = [layer for layer in layers if missing % layer["size"]][-1]
        tree = self.cluster.tree
        level = tree.levels.index(self.cluster.level(layer["topology"]))
        by_domain: Counter[int] = Counter()
        for slot, pods in self.on_slots(stays):
            by_domain[int(tree.domain_of[level][slot])] += pods
        return [
            domain for domain, pods in by_domain.items() if (pods + missing) % layer["size"] == 0
        ]

    def in_kueues_form(self, placement: Placement) -> dict[str, Answer]:
        """Domains by pod set; values and counts as Kueue writes them."""
        return {
            "" if placed.pod_set == UNNAMED else placed.pod_set: [
                (self.cluster.values_of(slot), pods) for slot, pods in placed.slots
            ]
            for placed in placement.pod_sets
        }

    def reason(self, group: list[Json], answer: NoFit) -> str:
        """The sentence Kueue writes for the same numbers.

        Of several layers it counts what is needed from the pods it drops, too.
        """
        workers = workers_of(group)
        sizes = {layer["topology"]: layer["size"] for layer in layers_of(workers)}
        if answer.nodes == 0:
            return f"no topology domains at level: {self._level_key(workers)}"
        if answer.layers:
            text = "doesn't allow to fit"
            for level, fitting, needed in answer.layers:
                if not self.is_replacement and not self.kept_pods:
                    needed = workers["count"] // sizes[self.cluster.key(level)]
                text += f"; {fitting}/{needed} slice(s) fit on level {self.cluster.key(level)}"
        elif answer.available == 0 or (answer.leader and not answer.level):
            # Over several domains Kueue counts no worker before the leader has a place.
            text = f"doesn't allow to fit any of {answer.needed} {answer.unit}(s)"
        else:
            text = f"allows to fit only {answer.available} out of {answer.needed} {answer.unit}(s)"
        entries = sorted(
            f"{_kueues_reason(reason)}: {nodes}"
            for reason, nodes in answer.excluded
            if reason != fit.NOT_OPEN
        )
        suffix = f". Total nodes: {answer.nodes}; excluded: {', '.join(entries)}"
        return f'topology "default" {text}' + (suffix if entries else "")

    def _level_key(self, pod_set: Json) -> str:
        request = pod_set.get("topologyRequest") or {}
        levels = self.scenario["levels"]
        free = levels[0] if layers_of(pod_set) else levels[-1]
        return str(request.get("required") or request.get("preferred") or free)

    def is_mistake(self, group: list[Json]) -> bool:
        """The core refuses to be asked this."""
        try:
            units_of(self.cluster.tree, self.gang([group]), self.options.unconstrained)
        except InvalidRequest:
            return True
        return False

    def mistake(self, group: list[Json]) -> str:
        """The sentence Kueue writes for a request that cannot be meant."""
        workers = workers_of(group)
        levels, level = self.scenario["levels"], self._level_key(workers)
        if level not in levels:
            return f"no requested topology level: {level}"
        layers = layers_of(workers)
        for layer in layers:
            if not layer["size"]:
                return "slice topology requested, but slice size not provided"
            if layer["topology"] not in levels:
                return f"no requested topology level for slices: {layer['topology']}"
        if layers and levels.index(layers[0]["topology"]) < levels.index(level):
            slice_level = layers[0]["topology"]
            return f"podset slice topology {slice_level} is above the podset topology {level}"
        return ""


def names_of(group: list[Json]) -> list[str]:
    """Names as Kueue has them."""
    return [pod_set["name"] for pod_set in group]


def name_of(pod_set: Json) -> str:
    """Its name; Kueue's tables leave some without."""
    return str(pod_set["name"] or UNNAMED)


def _kueues_reason(reason: str) -> str:
    if reason == fit.OUTSIDE:
        return "topologyDomain"
    if reason.startswith("insufficient "):
        return f'resource "{reason.removeprefix("insufficient ")}"'
    return reason


def decoded(assignment: Json) -> Domains:
    """Kueue's compact form of an assignment, domain by domain."""
    domains: Domains = []
    for part in assignment["slices"]:
        number = part["domainCount"]
        columns = []
        for values in part["valuesPerLevel"]:
            if "universal" in values and values["universal"] is not None:
                columns.append([values["universal"]] * number)
                continue
            one = values["individual"]
            prefix, suffix = one.get("prefix") or "", one.get("suffix") or ""
            columns.append([f"{prefix}{root}{suffix}" for root in one["roots"]])
        counts = part["podCounts"].get("individual") or [part["podCounts"]["universal"]] * number
        domains += zip(zip(*columns, strict=True), counts, strict=True)
    return domains
