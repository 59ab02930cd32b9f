"""What a gang requests: one model for every vocabulary.

    Gang ── root: Group ── members ──┬─ PodSet   identical pods, one request vector
             │                       └─ Group ── members ...
             └─ constraint: required / preferred level of all pods below

Every value is frozen, hashable and checked where it is made: a request that exists can
be meant. Whether a level is known is not known here, since that depends on the tree;
whether all of it is enforced is up to `search`.

Raises: InvalidRequest naming the object, the field and the value, from every constructor.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise

from topology.errors import InvalidRequest
from topology.model.resources import AMOUNT_MAX, PODS_ROW

PODS_MAX = 2**31 - 1  # Kubernetes counts pods in an int32


def _check_number(
    owner: str, field_name: str, number: int, most: int = PODS_MAX, least: int = 1
) -> None:
    if type(number) is not int or not least <= number <= most:
        raise InvalidRequest(
            f"{owner}: {field_name} {number!r} is not a number from {least} to {most}"
        )


def must_divide(pods: int) -> str:
    """What is said of the size of slices that leave a rest of so many pods."""
    return f"must evenly divide pod set count {pods}"


def must_divide_layer(pods: int) -> str:
    """The same of slices of so many pods that are cut into smaller ones."""
    return f"must evenly divide the parent layer size {pods}"


def _check_name(owner: str, field_name: str, name: str) -> None:
    if not isinstance(name, str) or not name:
        raise InvalidRequest(f"{owner}: {field_name} {name!r} is not a name")


def _check_request(owner: str, request: tuple[int, ...]) -> None:
    if not isinstance(request, tuple) or not request:
        raise InvalidRequest(f"{owner}: request {request!r} is empty; a pod asks for a pod slot")
    for row, amount in enumerate(request):
        if type(amount) is not int or not 0 <= amount <= AMOUNT_MAX:
            raise InvalidRequest(
                f"{owner}: request row {row} is {amount!r}, not an amount from 0 to {AMOUNT_MAX}"
            )
    if request[PODS_ROW] < 1:
        raise InvalidRequest(f"{owner}: request row {PODS_ROW} (pods) is 0; a pod asks for one")


def _check_shape(owner: str, shape: Hashable) -> None:
    try:
        hash(shape)
    except TypeError as error:
        raise InvalidRequest(f"{owner}: shape {shape!r} is not hashable") from error


class Strategy(Enum):
    """Which domains are filled first when one does not take all."""

    BEST_FIT = "best fit"
    """Few domains: the roomiest whole, the last one the tightest that takes what is left."""
    LEAST_FREE = "least free"
    """The smallest holes first, so that large ones stay whole (Kueue: LeastFreeCapacity)."""


class DomainOrder(Enum):
    """Which domain of a level is tried first for a group of pods."""

    TIGHTEST = "tightest"
    """The one with the least capacity beyond the request; a pod set alone as Kueue places it."""
    FEWEST = "fewest"
    """The same, but where no domain of the preferred level takes a pod set: the wider one in which
    it needs the fewest domains of that level. The tightest may have all its room in broken ones."""
    TOPMOST = "topmost"
    """The tightest of the widest level first, then inside it (KAI: subset ordering)."""
    MOST_USED = "most used"
    """The one whose resources will be used most, against what it has (Volcano: HyperNodeOrder).

    Of a group whose members choose narrower domains: the one where those will be used most.
    """

    @property
    def is_kueues(self) -> bool:
        """A pod set that is not in a nested group looks for its domain as Kueue has it do."""
        return self in (DomainOrder.TIGHTEST, DomainOrder.FEWEST)


@dataclass(frozen=True, slots=True)
class Slice:
    """Cuts a pod set into equal parts, each inside one domain of a level."""

    pods: int
    """Pods in one slice."""
    level: str
    """Level key of the domain one slice must lie in."""

    def __post_init__(self) -> None:
        _check_number("slice", "pods", self.pods)
        _check_name("slice", "level", self.level)


@dataclass(frozen=True, slots=True)
class Constraint:
    """Where pods must be together. Neither level: they may be anywhere.

    Both levels: one domain of the preferred level, else of each wider one in turn, up to
    one domain of the required level, and nothing beyond.
    """

    required: str | None = None
    """Level key: all in one domain of it, or not at all."""
    preferred: str | None = None
    """Level key: where the widening starts."""
    balanced: bool = False
    """Spread evenly over the domains used."""

    def __post_init__(self) -> None:
        for field_name, level in (("required", self.required), ("preferred", self.preferred)):
            if level is not None:
                _check_name("constraint", field_name, level)
        if not isinstance(self.balanced, bool):
            raise InvalidRequest(f"constraint: balanced {self.balanced!r} is neither yes nor no")


@dataclass(frozen=True, slots=True)
class Leader:
    """The single pod that must sit with its workers; it follows their shape's constraint."""

    name: str
    request: tuple[int, ...]
    shape: Hashable = ""
    lacking: str = ""
    """As of a pod set."""

    def __post_init__(self) -> None:
        _check_name("leader", "name", self.name)
        _check_request(f"leader {self.name}", self.request)
        _check_shape(f"leader {self.name}", self.shape)


@dataclass(frozen=True, slots=True)
class PodSet:
    """Identical pods of a gang."""

    name: str
    pods: int
    request: tuple[int, ...]
    """Resources of one pod in rows of the ResourceAxis; rows it does not have are 0."""
    shape: Hashable = ""
    """Which nodes may host it: a key into the masks given to a search."""
    constraint: Constraint = field(default_factory=Constraint)
    needed: int | None = None
    """How many of the pods must be placed; None: all of them. 0: as many as fit, if any."""
    slices: tuple[Slice, ...] = ()
    """Layers from the coarsest to the finest, each dividing the one before."""
    leader: Leader | None = None
    partial_last_slice: bool = False
    """Pods that do not divide into slices leave the last slice smaller; else they are refused."""
    lacking: str = ""
    """The resource no node has, if `request` has a row past the axis' last: for NoFit.excluded."""
    turn: int = 0
    """Of what is not needed smaller turns come first, whichever groups the pods are in."""

    def __post_init__(self) -> None:
        _check_name("pod set", "name", self.name)
        owner = f"pod set {self.name}"
        _check_number(owner, "pods", self.pods)
        _check_request(owner, self.request)
        _check_shape(owner, self.shape)
        if self.needed is not None:
            _check_number(owner, "needed", self.needed, most=self.pods, least=0)
        _check_number(owner, "turn", self.turn, least=0)
        self._check_slices(owner)

    def _check_slices(self, owner: str) -> None:
        if not isinstance(self.partial_last_slice, bool):
            raise InvalidRequest(
                f"{owner}: partial_last_slice {self.partial_last_slice!r} is neither yes nor no"
            )
        if self.slices and self.pods % self.slices[0].pods and not self.partial_last_slice:
            size = self.slices[0].pods
            raise InvalidRequest(f"{owner}: slices of {size} pods {must_divide(self.pods)}")
        for coarse, fine in pairwise(self.slices):
            if coarse.pods % fine.pods:
                text = must_divide_layer(coarse.pods)
                raise InvalidRequest(f"{owner}: slices of {fine.pods} pods {text}")
        levels = [layer.level for layer in self.slices]
        for level in levels:
            if levels.count(level) > 1:
                raise InvalidRequest(f"{owner}: slices name the level {level} twice")


@dataclass(frozen=True, slots=True)
class Group:
    """Members that share a constraint; nothing else holds them together."""

    name: str
    members: tuple[Group | PodSet, ...]
    constraint: Constraint = field(default_factory=Constraint)
    needed: int | None = None
    """How many members must be placed; None: all of them. 0: whichever fit, if any."""

    def __post_init__(self) -> None:
        _check_name("group", "name", self.name)
        if not isinstance(self.members, tuple) or not self.members:
            raise InvalidRequest(f"group {self.name}: members {self.members!r} is empty")
        if self.needed is not None:
            owner = f"group {self.name}"
            _check_number(owner, "needed", self.needed, most=len(self.members), least=0)


@dataclass(frozen=True, slots=True)
class Gang:
    """The set of pods placed all or none."""

    key: str
    root: Group
    priority: int = 0

    def __post_init__(self) -> None:
        _check_name("gang", "key", self.key)
        if type(self.priority) is not int:
            raise InvalidRequest(f"gang {self.key}: priority {self.priority!r} is not a number")
        seen: set[str] = set()
        for name in self.names():
            if name in seen:
                raise InvalidRequest(f"gang {self.key}: pod set {name} is named twice")
            seen.add(name)

    def pod_sets(self) -> Iterator[PodSet]:
        """Every pod set of the gang, at any depth, in the order they are written."""
        waiting: list[Group | PodSet] = [self.root]
        while waiting:
            member = waiting.pop()
            if isinstance(member, PodSet):
                yield member
            else:
                waiting.extend(reversed(member.members))

    def names(self) -> Iterator[str]:
        """The name of everything that gets a place of its own: pod sets, and leaders after them."""
        for pod_set in self.pod_sets():
            yield pod_set.name
            if pod_set.leader is not None:
                yield pod_set.leader.name
