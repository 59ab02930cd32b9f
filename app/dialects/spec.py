"""What a gang is, in one vocabulary of our own; every dialect translates into these values.

    objects ─┐                                GangSpec ── root: GroupSpec ── members ─┬─ LeafSpec
             ├─▶ GangSpec: what the gang is               └─ constraint               └─ GroupSpec …
    pods  ───┴─▶ Claim: where one pod belongs in it

A claim is what one pod says: my gang, my leaf of its tree, my index. A spec is what the gang is as
its objects say, or its pods where no object declares it. State and planner know these values and
never a vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from app.dialects.declared import Join, TreePart
from app.kube.core.objects import PodRecord
from topology.model.request import Constraint, DomainOrder, Slice, Strategy
from topology.model.resources import PODS_ROW, ResourceAxis
from topology.pod_set.gaps import NO_GAPS, Gaps

ANYWHERE = Constraint()
MOST_PODS = 100_000  # of one gang: more than that is a typing error
MOST_KINDS = 64  # of pods in one gang; those of two leaves are of two kinds, alike or not


@dataclass(frozen=True, slots=True)
class GangKey:
    """Names a gang. `epoch` tells a recreated owner of the same name from the earlier one."""

    namespace: str
    name: str
    source: str
    epoch: str = ""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, order=True)
class Index:
    """The number a controller gave a pod; `topology.pod_set.ranks.rank_of` makes a rank of it.

    Source: kueue pkg/controller/tas/topology_ungater.go (v0.16), the index labels it reads.
    """

    index: int
    """The pod's own number, within its part where there are parts."""
    part: int = 0
    """The sub-group it is numbered in (of a JobSet: which of the replicated Jobs)."""
    parts: int = 0
    """How many such sub-groups there are; 0: the pods are numbered throughout."""
    offset: int = 0
    """The number of the pod set's first pod: workers may count on from their leader."""
    is_across: bool = False
    """The gang's pods are numbered together, whichever leaf they belong to."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """The numbers of pods that are made later, part by part; each is made when it is asked for.

    A workload of a hundred bytes may declare MOST_PODS of them, and is read at each of its changes.
    """

    pods: int = 0
    """In each part, or in all where there are no parts."""
    parts: int = 0
    first: int = 0
    offset: int = 0
    is_across: bool = False

    def __len__(self) -> int:
        return max(self.pods, 0) * max(self.parts, 1)

    def __iter__(self) -> Iterator[Index]:
        for part in range(max(self.parts, 1)):
            for index in range(self.first, self.first + self.pods):
                yield Index(index, part, self.parts, self.offset, self.is_across)


@dataclass(frozen=True, slots=True)
class Family:
    """Gangs that are in one domain together: of the level that their leader's root requires."""

    name: str
    """Within the namespace and the vocabulary; for messages too: "replica 0 of …"."""
    is_leader: bool = False
    """Whether this gang's required level is that of all of them."""


@dataclass(frozen=True, slots=True)
class Said:
    """What one pod says of its gang; the pods of a template share one object."""

    constraint: Constraint = ANYWHERE
    slices: tuple[Slice, ...] = ()
    offset: int = 0
    """The number of the pod set's first pod."""
    pod_set_group: str = ""
    """Leaves that share this name are a leader and its workers."""
    together: Constraint = ANYWHERE
    """Of all pods of the gang, whatever their leaves."""
    pods: int | None = None
    """How many pods the gang has; None: the pod leaves that to others."""
    where: str = ""
    """Where the pod says that, for messages."""
    is_sure: bool = False
    """Whether that counts before what its workload declares by now."""
    leaves: tuple[LeafSpec, ...] = ()
    """Every leaf of the gang, from a driver that will make the pods of the others."""
    is_retriable: bool = True  # False: this pod's end is the end of its gang
    is_serving: bool = False
    reserves_all: bool = False
    spares: int = 0
    absent_seconds: float | None = None
    ends_together: bool | None = None
    family: Family | None = None
    """That its gang is in."""


NOTHING_SAID = Said()


def ends_together(said: Iterable[Said]) -> bool | None:
    """Whether a gang ends as a whole, as its pods say: one that says so is enough."""
    found = [each.ends_together for each in said if each.ends_together is not None]
    return any(found) if found else None


@dataclass(frozen=True, slots=True)
class LeafPods:
    """The pods of a leaf that live or have succeeded."""

    pods: int
    priority: int = 0
    """The highest among them."""


NO_PODS: Mapping[str, LeafPods] = {}
"""By leaf."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What the pods of a leaf will be like, where places are reserved before they exist."""

    pod: PodRecord
    said: Said = NOTHING_SAID
    numbers: Numbers = Numbers()
    """The numbers they will have, none if they have none."""


@dataclass(frozen=True, slots=True)
class LeafSpec:
    """Pods of a gang that are made from one template."""

    name: str
    """What claims call it; "": request and shape tell such pods apart."""
    pods: int
    constraint: Constraint | None = None
    """None: each pod has it in its claim."""
    slices: tuple[Slice, ...] = ()
    like: Expected | None = None
    """None: places are not reserved before the pods exist."""
    needed: int | None = None
    """How many of the pods it takes to start; None: all of them. The rest may come later."""
    turn: int = 0
    """Of the pods that it does not take to start smaller turns come first, in the whole gang."""
    gaps: Gaps = NO_GAPS
    """Numbers that none of its pods has."""
    ended: int = 0
    """Pods that ran beside these and have ended for good; `pods` has them no more."""

    @property
    def least(self) -> int:
        """How many pods it takes."""
        return self.pods if self.needed is None else min(max(self.needed, 0), self.pods)


@dataclass(frozen=True, slots=True)
class Within:
    """One domain of a tier or of a narrower one, the narrowest that has room.

    The tiers are those of the gang's topology, which is made of domains (`TopologySpec.domain`);
    one more than its widest, if it has any, and the first otherwise, is the whole cluster.
    """

    tier: int | None = None
    """The widest that may be; None: as `name` says."""
    name: str = ""
    """What the domains of that tier call it."""
    is_soft: bool = False
    """Neither is given, and if no domain has room the pods may be anywhere."""


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """Members that share a constraint."""

    name: str
    members: tuple[GroupSpec | LeafSpec, ...]
    constraint: Constraint = ANYWHERE
    within: Within | None = None
    """The constraint instead, where tiers and not levels are named."""
    needed: int | None = None
    """How many of the members it takes to start; None: all of them. The rest may come later."""

    @property
    def least(self) -> int:
        """How many members it takes."""
        size = len(self.members)
        return size if self.needed is None else min(max(self.needed, 0), size)


@dataclass(frozen=True, slots=True)
class Suspension:
    """A workload whose controller deletes all its pods while it is suspended.

    None of them counts as failed, and they are made again at once when it goes on.
    """

    path: str
    """Of all such objects of its namespace."""
    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class FailureLimit:
    """How many more pods a controller may lose, failed or evicted, until it gives up for good."""

    left: int
    counted: int = 0  # of those that have failed or been deleted, and are not among `left`
    of_running: bool = False  # those that never had a node do not count

    def beside(self, ending: int) -> int:
        """How many more, where so many end already; below zero: it gives up without any."""
        return self.left - max(0, ending - self.counted)


@dataclass(frozen=True, slots=True)
class Lifecycle:
    """How a gang lives on when pods end; the defaults are a Job's."""

    counts_succeeded: bool = False  # pods that have succeeded are among those the spec counts …
    remembers_succeeded: bool = False  # … and stay so when they are deleted
    spares: int = 0  # placeholders beside those of the members
    absent_seconds: float | None = None  # how long places wait for pods to come; None: as set
    ends_together: bool | None = None
    """Whether all its pods are evicted when one is preempted; None: as set."""
    restarts_together: bool = False  # its owner makes all pods anew when one is lost
    repairs_together: bool = False
    """Of a gang that runs, pods that a leaf lacks of what it needs get nodes all at once, or none.

    Else each gets one as there is room. Those that come later do not wait for one another.
    """
    failures: FailureLimit | None = None
    """When the owner gives up for good; None: never."""
    deadline_seconds: int = 0
    """Its owner ends all its pods at the latest so long after they start; 0: never."""
    suspension: Suspension | None = None
    """What makes all its pods anew when it is suspended and goes on; None: nothing."""


@dataclass(frozen=True, slots=True)
class SearchPolicy:
    """Which of several places a gang gets; the defaults are Kueue's."""

    order: DomainOrder = DomainOrder.TIGHTEST
    """Which domain of a level a group tries first."""
    unconstrained: Strategy = Strategy.LEAST_FREE
    """Which domains pods without a level fill first."""
    floor_first: bool = False
    """Pods that are not needed get a place after all that are, and nothing moves for them."""


@dataclass(frozen=True, slots=True)
class TierPacking:
    """What makes a domain that has a tier full; pods go to the fuller ones."""

    resources: tuple[tuple[str, int], ...] | None = None
    """The weight of each resource that counts if a pod requests it; None: all, alike."""
    fading: float = 0.8
    """What a tier weighs of the next narrower one, for ordinary pods."""
    for_ordinary_pods: bool = True
    """Whether it decides where pods outside gangs go."""

    def weights_by_row(self, axis: ResourceAxis) -> Mapping[int, int] | None:
        """The weights of those resources that nodes offer; None: as of `resources`."""
        if self.resources is None and not axis.of_devices:
            return None
        if self.resources is None:
            rows = range(len(axis))
            return {row: 1 for row in rows if row != PODS_ROW and row not in axis.of_devices}
        return {axis.row(name): weight for name, weight in self.resources if name in axis}


@dataclass(frozen=True, slots=True)
class GangSpec:
    """What a gang is."""

    key: GangKey
    root: GroupSpec
    where: str
    """What says how many pods it has, for messages: "parallelism of Job train"."""
    parts_are: str = ""
    """The field of that object which declares its leaves, for messages; "": none alone does."""
    starts_with: int | None = None
    """How many pods must exist before the first may start; None: all, 0: any that do.

    Fewer where the rest are made only once those run: to wait for all is to wait for ever.
    """
    reserves_all: bool = False
    """Placeholders are reserved for pods that do not exist yet, like those that do."""
    topology: str | None = None
    """The Topology it is placed on; None: the first that has its levels."""
    join: Join | None = None
    """Of several topologies, where `topology` is one that is made of them."""
    parts: tuple[TreePart, ...] = ()
    """The leaves on each topology, where it is placed on several; `topology` is None then.

    A group around leaves of several has no constraint, or one on a topology that is the outermost
    of them all, and then all its leaves have that. All parts start together.
    """
    drops_wider_preferred: bool = False
    """A preferred level of `topology` that is wider than the required one says nothing.

    Else the gang is invalid.
    """
    family: Family | None = None
    """The gangs that it is in one domain with."""
    priority: int | None = None
    """Whose turn it is: larger ones come first; None: its pods have their own."""
    successor_of: GangKey | None = None
    """It goes where this one was, unless another place is nearer together."""
    has_successors: bool = False
    """Another gang may name it so."""
    policy: SearchPolicy = field(default_factory=SearchPolicy)
    lifecycle: Lifecycle = field(default_factory=Lifecycle)
    levels_named: tuple[tuple[str, Constraint], ...] = ()
    """By the name of an object that does: what it requests for all its pods together."""
    is_said: bool = False
    """Its pods say what it is; no object does."""
    flaw: str = ""
    """Why its objects make no gang together, for messages; it does not start."""
    awaits: str = ""
    """Which objects have to come before all pods that it needs can be there, for messages."""
    says_by_leaf: bool = False
    """Its objects say of parts of it whether these have started."""
    most_roles: int | None = None
    """How many kinds of pods it may have where the pods alone tell them apart; None: any number."""

    @property
    def pods(self) -> int:
        """How many pods the gang has."""
        return sum(leaf.pods for leaf in self.leaves())

    @property
    def topologies(self) -> frozenset[str]:
        """Those that it names."""
        named = (self.topology, *(part.topology for part in self.parts))
        return frozenset(each for each in named if each is not None)

    def is_across(self, group: GroupSpec) -> bool:
        """Whether leaves of several parts are inside a group."""
        if not self.parts:
            return False
        leaves = {path[-1].name for path in _paths(group)}
        return sum(not leaves.isdisjoint(part.leaves) for part in self.parts) > 1

    def topology_of(self, leaf: str) -> str | None:
        """The one that a leaf's constraints are on."""
        if not self.parts:
            return self.topology
        return next((part.topology for part in self.parts if leaf in part.leaves), None)

    @property
    def depth(self) -> int:
        """How many groups are inside one another."""
        depth, layer = 0, [self.root]
        while layer:
            members = (member for group in layer for member in group.members)
            layer = [member for member in members if isinstance(member, GroupSpec)]
            depth += 1
        return depth

    @property
    def is_elastic(self) -> bool:
        """Whether the gang may start without some of its pods."""
        waiting: list[GroupSpec | LeafSpec] = [self.root]
        while waiting:
            member = waiting.pop()
            if isinstance(member, GroupSpec):
                if member.least < len(member.members):
                    return True
                waiting.extend(member.members)
            elif member.least < member.pods:
                return True
        return False

    @property
    def counts_by_leaf(self) -> bool:
        """Whether it matters which leaves the pods with nodes are of, and not only how many."""
        return self.lifecycle.repairs_together or self.says_by_leaf or self.is_elastic

    @property
    def has_tiers(self) -> bool:
        """Whether some group names a tier."""
        waiting = [self.root]
        while waiting:
            group = waiting.pop()
            if group.within is not None:
                return True
            waiting.extend(each for each in group.members if isinstance(each, GroupSpec))
        return False

    def constraints(self) -> Iterator[Constraint]:
        """Those of all groups, and of the leaves that have their own."""
        waiting: list[GroupSpec | LeafSpec] = [self.root]
        while waiting:
            member = waiting.pop()
            if member.constraint is not None:
                yield member.constraint
            if isinstance(member, GroupSpec):
                waiting.extend(member.members)

    def requires_more_than(self, before: GangSpec) -> bool:
        """Whether pods of a leaf that was there have to be in a domain that they had not to be in.

        Which that is depends on the topology, and on the group of pods that share it.
        """
        required, now = before.required_levels(), self.required_levels()
        return any(
            now[leaf] - required[leaf]
            or (now[leaf] and self.topology_of(leaf) != before.topology_of(leaf))
            for leaf in now.keys() & required.keys()
        )

    def required_levels(self) -> dict[str, frozenset[tuple[str, str]]]:
        """By leaf: (group or leaf, level) of each domain that its pods have to be in."""
        found = {}
        for path in _paths(self.root):
            levels = {(each.name, each.constraint.required) for each in path if each.constraint}
            *_, leaf = path
            if isinstance(leaf, LeafSpec):
                levels |= {(leaf.name, each.level) for each in leaf.slices}
            found[leaf.name] = frozenset((name, level) for name, level in levels if level)
        return found

    def leaves(self) -> Iterator[LeafSpec]:
        """Every leaf, at any depth, in the order they are written."""
        for *_, leaf in _paths(self.root):
            assert isinstance(leaf, LeafSpec)
            yield leaf

    def gaps_of(self, leaf: str) -> Gaps:
        """The numbers that none of a leaf's pods has."""
        return next((each.gaps for each in self.leaves() if each.name == leaf), NO_GAPS)

    def path_to(self, leaf: str) -> tuple[GroupSpec, ...]:
        """The groups around a leaf, the root first.

        A name that no leaf has is of the leaf without a name, or of the gang as a whole.
        """
        open_path: tuple[GroupSpec, ...] = (self.root,)
        for path in _paths(self.root):
            groups = tuple(group for group in path if isinstance(group, GroupSpec))
            name = path[-1].name
            if name == leaf:
                return groups
            if not name:
                open_path = groups
        return open_path


def _paths(root: GroupSpec) -> Iterator[tuple[GroupSpec | LeafSpec, ...]]:
    """The way from the root to each leaf, in the order they are written."""
    waiting: list[tuple[GroupSpec | LeafSpec, ...]] = [(root,)]
    while waiting:
        path = waiting.pop()
        last = path[-1]
        if isinstance(last, LeafSpec):
            yield path
        else:
            waiting.extend((*path, member) for member in reversed(last.members))


@dataclass(frozen=True, slots=True)
class Claim:
    """Where one pod belongs. With a `flaw` it belongs to that gang and cannot join it."""

    gang: GangKey
    leaf: str = ""
    index: Index | None = None
    said: Said = NOTHING_SAID
    flaw: str = ""
