"""The outcome of a search for a gang: a plan, or why there is none, as data.

It becomes text only where it is shown (`str`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from app.state.gang.parts import DomainNodes
from app.state.gang.reasons import Reason
from topology.model.answer import NoFit

NARROWED_APART = "its pods were narrowed to different nodes, which cannot serve it together"
NO_NODES = "the cluster has no nodes"
BESIDE_OTHERS = "beside its pods on other Topologies"
NOTHING_FOR_PARTS = (
    "its pods are on different Topologies, so no room is made and no nodes are kept for it"
)
CLAIMS_NOT_COUNTED = "resource claims of its pods are not counted"


def absent(pods: int, of: str = "") -> str:
    """So many pods that do not exist yet, in words; `of`: whose they are."""
    return (
        f"a pod{of} that does not exist yet"
        if pods == 1
        else f"{pods} pods{of} that do not exist yet"
    )


@dataclass(frozen=True, slots=True)
class Plan:
    """A node for each unplanned member of a gang, by uid, and its domain, also in words."""

    nodes: dict[str, str] = field(default_factory=dict)
    domains: dict[str, str] = field(default_factory=dict)
    domain_nodes: dict[str, DomainNodes] = field(default_factory=dict)
    fallback: tuple[tuple[str, str], ...] = ()
    """(leaf, why) where pods have indexes but were not assigned by rank; "": the gang."""
    topology: str = ""
    """By name, whose levels it was made by; "": it is where another plan was."""


@dataclass(frozen=True, slots=True)
class UnknownTopology:
    """The gang names levels, or a Topology, that the cluster does not have together."""

    levels: tuple[str, ...]
    known: tuple[str, ...]
    """Of that Topology; () if it does not exist."""
    topology: str = ""

    def __str__(self) -> str:
        known = ", ".join(self.known)
        unknown = ", ".join(sorted(set(self.levels) - set(self.known)))
        if self.topology and not self.known:
            return f"Topology {self.topology} does not exist, or its levels are not valid"
        if self.topology:
            return f"Topology {self.topology} has no level {unknown}; its levels: {known}"
        if not unknown:
            return f"no topology has these levels together: {', '.join(self.levels)}"
        return f"topology level not known: {unknown}; known levels: {known}"


@dataclass(frozen=True, slots=True)
class InvalidGang:
    """The gang's constraints are invalid, or became so by the nodes its pods were narrowed to."""

    text: str
    is_permanent: bool = True

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class TooManyAbsent:
    """The namespace would have places held for more pods that do not exist than it may."""

    namespace: str
    pods: int  # of this gang
    most_pods: int
    share: float  # of the cluster, 0 to 1; 0: the namespace has a number of its own

    def __str__(self) -> str:
        or_share = f" or {self.share:.0%} of the cluster" if self.share else ""
        return (
            f"places would be held for {absent(self.pods)}, and namespace {self.namespace} may"
            f" hold {self.most_pods}{or_share} for all of these together"
        )


@dataclass(frozen=True, slots=True)
class TooManyAwaited:
    """The gangs of the namespace wait for as many pods that do not exist as they may."""

    namespace: str
    pods: int  # of this gang
    awaited: int
    most_pods: int

    def __str__(self) -> str:
        return (
            f"places would be held for {absent(self.pods)}, and gangs of namespace"
            f" {self.namespace} wait for {self.awaited} of at most {self.most_pods} already"
        )


@dataclass(frozen=True, slots=True)
class BeyondQuota:
    """A quota would keep some of the gang's pods that do not exist yet from being made."""

    where: str  # which
    resource: str
    most: int  # what the namespace may have of it in all
    pods: int  # of this gang

    def __str__(self) -> str:
        return (
            f"{self.where} allows {self.most} {self.resource} in all, which leaves too little for"
            f" {absent(self.pods)}"
        )


AbsentRefusal = TooManyAbsent | TooManyAwaited | BeyondQuota


@dataclass(frozen=True, slots=True)
class SearchFailed:
    """The search raised an error; whether the gang fits is not known."""

    error: str

    def __str__(self) -> str:
        return f"the search failed for an error of Corral's own, {self.error}"


@dataclass(frozen=True, slots=True)
class StillSearching:
    """The search takes long and is not over; whether the gang fits is not known."""

    is_put_off: bool = False
    """It was over a few times, and what it had found was taken by then."""

    def __str__(self) -> str:
        if self.is_put_off:
            return "the search for a place takes long, and others took what it found; it is retried"
        return "the search for a place takes long and is not over yet"


@dataclass(frozen=True, slots=True)
class NoPlan:
    """Why there is no plan now."""

    why: NoFit | UnknownTopology | InvalidGang | AbsentRefusal | SearchFailed | StillSearching
    note: str = ""
    """What the search does not take into account, or who is in the way."""
    explain: Callable[[], NoFit] | None = field(default=None, compare=False, repr=False)
    """Looks up why nodes are closed, when the verdict is read."""
    is_narrowed_apart: bool = field(default=False, compare=False)
    """Its pods were narrowed to different nodes, of which none serves all that are alike."""

    def __str__(self) -> str:
        why = self.explain() if self.explain else self.why
        apart = NARROWED_APART if self.is_narrowed_apart else ""
        return "; ".join(filter(None, (str(why), apart, self.note)))

    @property
    def reason(self) -> Reason:
        """The verdict in one word."""
        if isinstance(self.why, InvalidGang):
            return Reason.INVALID if self.why.is_permanent else Reason.NARROWED_APART
        return _REASONS[type(self.why)]

    @property
    def is_mistake(self) -> bool:
        """Whether the gang does not fit whatever becomes free."""
        if isinstance(self.why, InvalidGang):
            return self.why.is_permanent
        return isinstance(self.why, UnknownTopology)

    @property
    def is_about_cluster(self) -> bool:
        """Whether the cluster has no room for the gang."""
        return isinstance(self.why, NoFit)

    @property
    def is_fault(self) -> bool:
        """Whether it is not known if the gang fits."""
        return isinstance(self.why, SearchFailed)

    @property
    def is_pending(self) -> bool:
        """Whether that is found out elsewhere."""
        return isinstance(self.why, StillSearching)

    @property
    def is_put_off(self) -> bool:
        """Whether the next search is to wait."""
        return isinstance(self.why, StillSearching) and self.why.is_put_off

    @property
    def kind(self) -> str:
        """Equal for verdicts that differ only in numbers and in reasons why nodes are excluded."""
        if isinstance(self.why, NoFit):
            return f"{self.why.level} {self.why.unit} {self.note}"
        return str(self.why)


_REASONS: Mapping[type, Reason] = {
    NoFit: Reason.DOES_NOT_FIT,
    UnknownTopology: Reason.UNKNOWN_TOPOLOGY,
    TooManyAbsent: Reason.NAMESPACE_BUDGET,
    TooManyAwaited: Reason.NAMESPACE_BUDGET,
    BeyondQuota: Reason.QUOTA,
    SearchFailed: Reason.SEARCH_FAILED,
    StillSearching: Reason.SEARCHING,
}
