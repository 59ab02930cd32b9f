"""One gang's place, who goes for it, and how far that has come."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal

from app.kube.core.objects import Amounts, NodeRecord
from app.state.effects import RoomVictim
from app.state.gang.parts import Version
from app.state.pods.nominations import Nomination
from app.state.preempt.plans.in_vain import Needed

# How it ends. placed: the gang is where it was to be; needless: it has a place before all have
# gone; withdrawn: it needs none any more. All others are in vain, as `messages` says.
Result = Literal[
    "placed",
    "needless",
    "withdrawn",
    "refused",
    "unanswered",
    "changed",
    "stuck",
    "taken",
    "lost",
    "other_pods",
]


Domains = Mapping[str, str]  # by level


class Stage(Enum):
    """How far it has come."""

    CHECKING = "checking"
    EVICTING = "evicting"
    DRAINING = "draining"


@dataclass(slots=True)
class RoomPlan:
    """One gang's place, and who goes for it."""

    number: int  # of the gang
    priority: int
    where: str
    sought: tuple[object, ...]  # what it has to serve, as `Planner.sought` says
    seats: tuple[tuple[int, str, int], ...]  # (pod set, node, pods)
    places: dict[str, Nomination]  # the same of the gang's pods, by uid
    on: dict[str, list[Amounts]]  # the same by node: what they request
    asked_of: dict[str, tuple[NodeRecord, Domains]]
    """Its nodes as they were when it was searched, and what they were in."""
    victims: tuple[RoomVictim, ...]  # in the order they go in
    awaited: dict[str, None]  # uids of pods that have to be gone
    there: frozenset[str]  # uids of all pods on its nodes when it began
    wanted: frozenset[str]  # uids of all pods of the gang that needed a node then
    version: Version  # of the gang as it was looked at last
    stage: Stage = Stage.CHECKING
    unchecked: set[str] = field(default_factory=set)
    unseen: list[str] = field(default_factory=list)  # nodes to be looked at in this round
    is_seen: bool = False  # all nodes have been looked at
    begun: int = 0  # so many of the victims
    unsent: set[str] = field(default_factory=set)  # uids: what became of their eviction is unknown
    evicted: set[str] = field(default_factory=set)  # uids: they end, whether or not that is seen
    heard_at: float = 0.0  # when evictions were asked for, or the API server has answered, last
    draining_since: float | None = None  # all that go have been told to
    freed_at: float | None = None  # when the last pod was seen to be gone
    is_told: bool = False  # what it waits for
    is_taken_back: bool = False  # from before a restart: who went for it is not known any more
    is_slow: bool = False  # it has waited for so long that it counts for no limit any more

    @property
    def needed(self) -> Needed:
        """What the gang needs."""
        return self.priority, self.sought

    @property
    def nodes(self) -> Collection[str]:
        """Where the gang will be."""
        return self.on.keys()

    @property
    def is_sent(self) -> bool:
        """Whether every eviction of the plan has been sent."""
        return self.begun == len(self.victims) and not self.unsent

    @property
    def is_paid_for(self) -> bool:
        """Whether others have gone for it, or may have."""
        return self.begun > 0 or self.is_taken_back

    @property
    def pods(self) -> Iterator[str]:
        """The uids of all that go."""
        for victim in self.victims:
            yield from victim.uids
