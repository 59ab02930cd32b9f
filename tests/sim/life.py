"""What dies with a Corral process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from app.dialects.spec import GangKey
from app.kube.core.objects import NodeRecord, PodRecord
from app.kube.watch.events import Kind
from app.state.cache.books import Booking
from app.state.effects import Requeue, WriteStatus
from app.state.engine import Engine
from app.state.journal.record import Recorder
from tests.sim.dialects import Remembering
from tests.sim.node_filters import Totals
from tests.sim.watch import Stream
from topology.model.tree import Tree


@dataclass(slots=True, eq=False)
class Held:
    """One pod's unanswered /bind."""

    node: str
    answer: Callable[[str], None]
    since: float


@dataclass(slots=True)
class OpenBirth:
    """A gang that places are held for before its pods exist, as far as the watch has told."""

    number: int  # of the gang
    starts_whole: bool
    pods: int  # that it needed then, to start as a whole
    moved_at: float  # when it was begun, or there were more of its pods than ever
    most_present: int = 0


@dataclass(slots=True)
class Life:
    """What dies with the process."""

    engine: Engine
    streams: dict[Kind, Stream]
    began: float
    clock_began: float  # what its monotonic clock said then; any number
    desk: dict[str, Held] = field(default_factory=dict)
    arrived: dict[str, Booking] = field(default_factory=dict)  # uid -> what was held as it came
    posted: dict[str, str] = field(default_factory=dict)  # uid -> node: bindings begun or done
    binding: dict[str, int] = field(default_factory=dict)  # uid -> bindings under way
    bound_for: dict[str, NodeRecord] = field(default_factory=dict)
    """By uid: the node of its last binding, as it was when that began."""
    ending: dict[str, float] = field(default_factory=dict)  # uid -> since when it is told to end
    wakes: dict[str, Requeue] = field(default_factory=dict)
    statuses: dict[str, WriteStatus] = field(default_factory=dict)  # not written yet, by uid
    let_in: dict[str, str] = field(default_factory=dict)
    """By uid: the version of each PodGroup of Volcano's as it was let into its queue."""
    levels_told: dict[tuple[str, ...], None] = field(default_factory=dict)
    """The levels, widest first, of each topology of labels that it has been told of so far."""
    planned: dict[GangKey, frozenset[tuple[str, str]]] = field(default_factory=dict)
    """What was planned of each PodGang, by uid and node, when its levels were known last."""
    ran_on: dict[GangKey, set[str]] = field(default_factory=dict)
    """Nodes of each PodGang's pods, as it has been told; also of those that are gone."""
    apart: set[tuple[str, str, str]] = field(default_factory=set)
    """Plans for pods, by level or tier, uid and node, beside pods that were not together."""
    absent: frozenset[str] = frozenset()  # what was held for pods that do not exist; uids
    births: dict[GangKey, OpenBirth] = field(default_factory=dict)
    births_failed: dict[GangKey, float] = field(default_factory=dict)
    """When gangs ended to be waited for of which not all pods had come."""
    given_back: dict[GangKey, frozenset[str]] = field(default_factory=dict)  # uids, the first time
    refused_at: dict[GangKey, float] = field(default_factory=dict)
    """When the API server forbade last that a pod of a gang is given back."""
    losing: frozenset[GangKey] = frozenset()
    """Gangs that, as the last input came, were to end for a pod that went for another one."""
    inputs: int = 0
    last_now: float = 0.0
    slept_until: float = 0.0
    is_drained: bool = False
    succeeded_and_gone: dict[GangKey, Counter[str]] = field(default_factory=dict)
    """Pods of groups that a Corral remembers, if it saw them: the API server's count."""
    recorder: Recorder | None = None  # of the engine's inputs
    trees: dict[str, Tree] = field(default_factory=dict)  # by topology: that was checked last
    read_anew: Remembering | None = None
    """What engines that start anew beside this one have read of pods; never by this one."""
    members: dict[GangKey, list[PodRecord]] = field(default_factory=dict)
    """Of each gang, as told when the mirrors of pods and PodGangs had changed so many times."""
    members_at: tuple[int, ...] = ()
    taken: dict[str, Totals] = field(default_factory=dict)
    """By node: what its pods requested when the mirror of pods had changed so many times."""
    taken_at: int = -1
