"""What Volcano's objects mean, read from their JSON apart from `app/dialects` and `topology`.

Only what the simulated ones use: members by name or by one label, tiers by number, policies with
one key.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from app.kube.core.objects import NodeRecord, PodRecord
from tests.sim.objects import Json
from tests.sim.volcano.pod_group import GROUP_NAME, MIN_MEMBER, PARTITION, TASK

ANYWHERE = 1 << 30  # a tier that the whole cluster is


@dataclass(frozen=True, slots=True)
class Domain:
    """The nodes of one HyperNode, at any depth."""

    name: str
    tier: int
    nodes: frozenset[str]


@dataclass(frozen=True, slots=True)
class Domains:
    """Those of all HyperNodes."""

    each: tuple[Domain, ...]
    everything: Domain

    def up_to(self, tier: int) -> tuple[Domain, ...]:
        """Those of this tier or of a smaller one; one tier above the widest is the cluster."""
        widest = max((domain.tier for domain in self.each), default=0)
        if tier > widest:
            return (*self.each, self.everything)
        return tuple(domain for domain in self.each if domain.tier <= tier)

    def around(self, nodes: Collection[str], tier: int) -> Domain | None:
        """The smallest domain of such a tier that has all of these nodes; None: there is none.

        A node without a HyperNode of a tier is alone at that level, as README says.
        """
        found = [domain for domain in self.up_to(tier) if domain.nodes.issuperset(nodes)]
        alone = Domain("", tier, frozenset(nodes)) if len(nodes) == 1 else None
        return min(found, key=lambda domain: (len(domain.nodes), domain.name), default=alone)


def domains_of(bodies: Mapping[str, Json], nodes: Mapping[str, NodeRecord]) -> Domains:
    """The domains that HyperNodes are, by their names, over the nodes that there are."""
    found = (
        Domain(name, body["spec"]["tier"], _nodes(name, bodies, nodes))
        for name, body in sorted(bodies.items())
    )
    with_nodes = tuple(domain for domain in found if domain.nodes)
    return Domains(with_nodes, Domain("", ANYWHERE, frozenset(nodes)))


def _nodes(
    name: str, bodies: Mapping[str, Json], nodes: Mapping[str, NodeRecord]
) -> frozenset[str]:
    inside: set[str] = set()
    for member in bodies[name]["spec"]["members"]:
        selector = member["selector"]
        exact = selector.get("exactMatch", {}).get("name", "")
        if member["type"] == "HyperNode":
            inside |= _nodes(exact, bodies, nodes) if exact in bodies else set()
        elif exact:
            inside |= {exact} & nodes.keys()
        else:
            wanted = selector["labelMatch"]["matchLabels"].items()
            inside |= {each.name for each in nodes.values() if wanted <= each.labels.items()}
    return frozenset(inside)


# -- PodGroups -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Part:
    """Some pods that have to be in one domain of a tier."""

    name: str
    tier: int
    pods: tuple[PodRecord, ...]


@dataclass(frozen=True, slots=True)
class Policy:
    """The pods of one task in sub-groups, by their partitions."""

    task: str
    size: int
    least: int
    tier: int


@dataclass(frozen=True, slots=True)
class Group:
    """What a PodGroup says."""

    name: str
    uid: str
    least: int
    least_of: Mapping[str, int]
    tier: int
    policies: tuple[Policy, ...]
    queue: str
    requests: Mapping[str, int]
    phase: str
    counted: tuple[int, int, int]
    conditions: frozenset[str]

    @property
    def is_new(self) -> bool:
        """Whether it has not been let into its queue."""
        return self.phase in ("", "Pending")

    def is_whole(self, pods: Collection[PodRecord]) -> bool:
        """Whether these pods are what it takes to start."""
        tasks = Counter(task_of(pod) for pod in pods)
        if len(pods) < self.least:
            return False
        counts = sum(self.least_of.values()) <= self.least  # else Volcano leaves them out
        if counts and any(tasks[task] < least for task, least in self.least_of.items()):
            return False
        return all(
            sum(len(its) >= policy.size for its in sub_groups(policy, pods).values())
            >= policy.least
            for policy in self.policies
        )

    def parts(self, pods: Collection[PodRecord]) -> Iterable[Part]:
        """All of the pods, and each sub-group of them, with the widest tier that it may span."""
        yield Part(self.name, self.tier, tuple(pods))
        for policy in self.policies:
            for partition, its in sorted(sub_groups(policy, pods).items()):
                yield Part(f"{self.name} {policy.task}/{partition}", policy.tier, tuple(its))


def group_of(body: Json) -> Group:
    """What the JSON of a PodGroup says."""
    spec, status = body["spec"], body.get("status") or {}
    amounts = {key: _amount(text) for key, text in spec["minResources"].items()}
    amounts.pop("count/pods")
    conditions = status.get("conditions") or []
    return Group(
        body["metadata"]["name"],
        body["metadata"]["uid"],
        spec["minMember"],
        spec.get("minTaskMember", {}),
        _tier(spec.get("networkTopology")),
        tuple(
            Policy(
                each["labelSelector"]["matchLabels"][TASK],
                each["subGroupSize"],
                each["minSubGroups"],
                _tier(each.get("networkTopology")),
            )
            for each in spec.get("subGroupPolicy", ())
        ),
        spec["queue"],
        amounts,
        status.get("phase", ""),
        (status.get("running", 0), status.get("succeeded", 0), status.get("failed", 0)),
        frozenset(each["type"] for each in conditions if each["status"] == "True"),
    )


def capability(body: Json) -> dict[str, int]:
    """What the PodGroups of a Queue may have in all."""
    return {key: _amount(text) for key, text in body["spec"].get("capability", {}).items()}


def group_name_of(pod: PodRecord) -> str:
    """The PodGroup of a pod, that it names or that is made for its owner; "": none."""
    if MIN_MEMBER in pod.annotations and pod.owner is not None:
        return f"podgroup-{pod.owner.uid}"
    return pod.annotations.get(GROUP_NAME, "")


def task_of(pod: PodRecord) -> str:
    """The task that the pod is of."""
    return pod.annotations.get(TASK, "")


def sub_groups(policy: Policy, pods: Iterable[PodRecord]) -> dict[str, list[PodRecord]]:
    """The pods that a policy puts into sub-groups, by partition."""
    found: dict[str, list[PodRecord]] = {}
    for pod in pods:
        partition = pod.labels.get(PARTITION, "")
        if partition and pod.labels.get(TASK) == policy.task:
            found.setdefault(partition, []).append(pod)
    return found


def _tier(topology: Json | None) -> int:
    """The widest tier that the pods may span."""
    if topology is None or topology["mode"] == "soft":
        return ANYWHERE
    return int(topology["highestTierAllowed"])


def _amount(text: str) -> int:
    return int(text.removesuffix("m"))
