"""The parts of a gang's record: one file writes each of them, and its docstring names that file.

Every other file only reads, and calls the owner's functions for a change;
`tests/app/state/test_owners.py` checks that. Sets and dicts hold pod uids unless they say
otherwise.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from functools import partial

from app.dialects.spec import GangSpec
from app.state.gang.members.member import Member
from app.state.gang.reasons import Reason
from topology.model.answer import NoFit

MOST_ATTEMPTS = 5  # that are remembered, for people


@dataclass(frozen=True, slots=True, eq=False)
class DomainNodes:
    """The domain a member was placed in: its nodes in slot order, and the labels that name it.

    Members in the same domain of one plan share one object, so it is compared by identity.
    """

    nodes: tuple[str, ...]
    labels: tuple[tuple[str, str], ...]


@dataclass(slots=True)
class Placeholder:
    """Reserved capacity for a pod that does not exist. Written by `reserve/placeholders.py`."""

    member: Member  # what that pod will be like; its uid is ours
    until: float  # infinite: as long as the gang wants it; see `Absent` for pods to come
    instead_of: str = ""  # uid of the member that was lost …
    lost_on: str = ""  # … and its node
    is_spare: bool = False  # beside those of the members
    is_declared: bool = False  # for a pod of a template that makes its pods later

    @property
    def is_to_come(self) -> bool:
        """Whether it stands for a pod that has not existed yet, or may not start yet."""
        return not self.instead_of and not self.is_spare


@dataclass(frozen=True, slots=True)
class FailedNode:
    """What a gang had when a node failed under it."""

    pods: int = 0  # with a node, and those that had done their work
    spec: GangSpec | None = None  # what it was declared to be; None: not all of it was known yet


@dataclass(slots=True)
class Absent:
    """How long places are held for pods to come. Written by `reserve/placeholders.py`."""

    until: float = math.inf  # infinite while the gang has not started: then its plan ends
    most_present: int = 0  # how many of the declared pods had come at the same time
    due_at: float = math.inf  # no placeholder's time is up before
    too_many: int = 0  # pods to come that have no placeholders: more than the namespace may hold
    is_cut: bool = False  # some pods to come, or spares, have no placeholders for that reason
    is_between: bool = False  # all that ran have done their work, and the next are to come


@dataclass(slots=True)
class HeldPlan:
    """The nodes of planned members. Written by `reserve/reservations.py`.

    Invariant: it covers live members without a node and placeholders only, and the books hold each
    member's request on its node.
    """

    nodes: dict[str, str] = field(default_factory=dict)  # uid -> node
    domains: dict[str, str] = field(default_factory=dict)  # uid -> domain, for people
    domain_nodes: dict[str, DomainNodes] = field(default_factory=dict)  # uid -> the same, as nodes
    topology: str = ""  # whose levels the last search for it was made by
    version: int = 0  # moves on with every change


@dataclass(slots=True)
class Binding:
    """How far kube-scheduler has brought each planned member. Written by `reserve/binding.py`.

    Invariants: `arrived` and `posted` are parts of the plan; `at_bind` is a part of `arrived` and
    does not overlap with `posted`; `outdated` is a part of `posted`.
    """

    answered: set[str] = field(default_factory=set)  # /filter answered with the planned node
    arrived: set[str] = field(default_factory=set)  # came to /bind once with this plan
    at_bind: dict[str, float] = field(default_factory=dict)  # held there now, longest first: since
    posted: set[str] = field(default_factory=set)  # their Bind is under way or confirmed
    outdated: set[str] = field(default_factory=set)  # posted, and the plan was given up since
    awaited: set[str] = field(default_factory=set)  # no plan before these have come to /filter …
    awaited_until: float = -math.inf  # … until then at the latest
    awaits_rest: bool = False  # others of the gang ran or were being bound when that began
    moved_at: float = 0.0  # when the plan was made or last made progress
    again_at: float = 0.0  # when a member last came to /bind that had arrived before
    started_with: str | None = None  # pods per pod set when it started, as its pods remember it
    started_after: str = ""  # when the last pod it ended for began to end, as its pods remember it

    def awaits_members(self, now: float) -> bool:
        """Whether the gang is not planned before some members have come to /filter."""
        return bool(self.awaited) and now < self.awaited_until


@dataclass(slots=True)
class Ungating:
    """Which gates are being removed. Written by `queueing/ungating.py`.

    Invariant: `sent` are members whose gate the watch still shows.
    """

    sent: dict[str, float] = field(default_factory=dict)  # when their Ungate was sent
    unnarrowed: set[str] = field(default_factory=set)  # the API server refused to narrow them
    beside: tuple[str, ...] = ()  # nodes of other domains, where a lost plan may be made again
    pushed_at: float = 0.0  # when it was last looked at for gates that should be gone
    version: int = 0  # moves on whenever a member is narrowed to other nodes


@dataclass(frozen=True, slots=True)
class Narrowing:
    """What pods of one role are narrowed to at their creation: alike, as long as the plan stands.

    `domains`: those of their places; a search makes new ones.
    """

    nodes: tuple[str, ...]
    domains: frozenset[DomainNodes]


@dataclass(slots=True)
class Birth:
    """A gang planned when its first pod was created. Written by `born/births.py`.

    Its pods are created where they belong; places are held for those that have not come yet.
    """

    ends_at: float  # when its places end, unless more of its pods come
    starts_whole: bool = True  # else with the first of its pods, as it says itself
    beside: tuple[str, ...] = ()  # nodes near those planned, where it may go if it loses these
    most_present: int = 0  # how many have come at the same time
    narrowings: dict[tuple[object, ...], Narrowing] = field(default_factory=dict)  # by role


@dataclass(slots=True)
class Milestones:
    """How far the gang has come towards its start. Written by `report/starts.py`."""

    first_pod_at: float | None = None  # when its first pod came
    is_decided: bool = False  # it had a plan or a verdict
    planned_at: float | None = None  # when its last plan was made
    plans: int = 0  # that were made


@dataclass(frozen=True, slots=True)
class SentMark:
    """A mark that was sent. Units: seconds."""

    is_marked: bool
    at: float
    again_after: float  # if the watch does not show it
    pause: float = 0.0  # until it is written again if another client changes it back


@dataclass(slots=True)
class NodeNeed:
    """What the gang asks node autoscalers for. Written by `autoscaling/marks.py`.

    Invariant: `sent` are members whose condition the watch shows otherwise; what it showed of them
    since is in `shown`.
    """

    since: float | None = None  # when a search first found that capacity alone is lacking
    is_open: bool = False  # its members are marked, or about to be
    opened_at: float = 0.0  # when that began
    why: str = ""  # never, busy, fragmented or gradual
    looked_at: float = -math.inf  # when it was last looked into why no node comes
    lack: NoFit | None = None  # the last verdict, of a gang that lacks capacity
    is_unknown: bool = False  # it was looked at when there was no verdict on it as it is
    never_at: float = -math.inf  # when it was last looked whether it would fit on empty nodes
    is_never: bool = False  # what was found then
    sent: dict[str, SentMark] = field(default_factory=dict)
    shown: dict[str, SentMark] = field(default_factory=dict)
    marked: set[str] = field(default_factory=set)  # as the watch shows, by us or by others


@dataclass(frozen=True, slots=True)
class SentAsk:
    """An attempt to ask by a request that was made and that the watch does not show whole."""

    attempt: int
    first_at: float
    at: float
    again_after: float
    times: int = 1


@dataclass(slots=True)
class NodeAsk:
    """How the gang asks for nodes, if not by marks. Written by `autoscaling/requests.py`."""

    how: str = ""  # "request" or "mark", from when its need is open until it runs
    gang_uid: str = ""  # the gang in a label; "": not looked up yet
    request: str = ""  # the name of its ProvisioningRequest that brings nodes, or keeps them …
    class_name: str = ""  # … and its class; both as the watch shows them
    shown: str = ""  # how far it is, for people
    sent: SentAsk | None = None
    unwanted_at: float | None = None  # since when its request is not warranted any more


@dataclass(slots=True)
class Rejections:
    """Members that /filter rejected. Written by `queueing/requeue.py`.

    Invariant: `outdated` is a part of `sentences`, whose uids are members.
    """

    sentences: dict[str, str] = field(default_factory=dict)  # what /filter answered; "": unknown
    outdated: dict[str, None] = field(default_factory=dict)  # whose sentence holds no longer
    requeued_at: float = 0.0  # when planned ones among them were last requeued


@dataclass(slots=True)
class ToldFirst:
    """Nodes that kube-scheduler is told to look at first. Written by `queueing/nominating.py`."""

    nodes: dict[str, str] = field(default_factory=dict)
    """uid of a member -> node, as we had it written; "": taken back, and the watch may show it."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A search that found no place or a plan that was lost, and those after it that ended alike."""

    reason: Reason
    sentence: str
    first_at: float
    last_at: float
    times: int = 1


@dataclass(slots=True)
class Reporting:
    """What was reported about the gang. Written by `report/reports.py`."""

    sentence: str = ""  # what /filter rejects waiting members with
    sentence_at: float | None = None  # when its verdict was last rendered; None: it is no verdict
    verdict: str = ""  # the kind of the last verdict: without numbers that follow the cluster
    reason: Reason = Reason.QUEUED  # of the last verdict; see `sentence_at`
    is_narrowed_apart: bool = False  # of the same: its pods were narrowed apart
    problem: str = ""  # the sentence of the last event about a problem, "" when it is solved
    problem_reason: str = ""  # of the same event
    once: dict[str, str] = field(default_factory=dict)
    """Sentences by reason: events that are emitted once only, or are not the last problem."""
    pods: dict[str, str] = field(default_factory=dict)
    """What events about pods that are not part of the gang have said last."""
    outside: dict[str, tuple[str, bool]] = field(default_factory=dict)
    """Pods that are not part of the gang as last sorted out: why, and whether one too many."""
    attempts: deque[Attempt] = field(default_factory=partial(deque, maxlen=MOST_ATTEMPTS))
    """The last of them, the newest at the end."""

    @property
    def waits_for_room(self) -> bool:
        """Whether the gang has a verdict, which says that it does not fit."""
        return self.sentence_at is not None and self.reason is Reason.DOES_NOT_FIT

    @property
    def is_pending(self) -> bool:
        """Whether the gang's verdict is that a search for it goes on, mostly for a moment."""
        return self.sentence_at is not None and self.reason is Reason.SEARCHING


Version = tuple[int, int, int, bool]  # of a gang; see `Gang.version`


@dataclass(frozen=True, slots=True)
class Searched:
    """A search that was made for the gang: what for, and the gang's version then."""

    signature: tuple[object, ...]
    version: Version


@dataclass(slots=True)
class BackOff:
    """When the gang may be planned again. Written by `turns/queue.py`."""

    not_before: float = 0.0
    plans_lost: int = 0  # in a row
