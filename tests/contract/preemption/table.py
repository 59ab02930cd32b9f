"""The scenarios: nodes, what runs there, what happens then, and who may be lost for it.

Nodes have 8 GPUs and 64 CPUs, pods take 8 GPUs and have priority 0 unless it says otherwise; `hp`
are ordinary pods of priority 1000; `t` is a gang of priority 1000 that requires a rack. Names say
who is what: `g-3` is one of `g`. Racks are numbered from r1 on, the nodes of r1 are r1-0, r1-1, …
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from tests.cluster import GPU, RACK

Amounts = Mapping[str, str | int]
EIGHT: Amounts = {GPU: 8}
OLD, YOUNG = "2026-01-01T00:00:00Z", "2026-06-01T00:00:00Z"  # when a pod started


# -- what is created -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Pods:
    """Ordinary pods, `name-0` and so on: one on each of the nodes in `on`, or `pods` anywhere.

    within: the nodes that they may go to. grace: for so many seconds they end. remade: so many
    seconds after one is gone, its owner has made it anew.
    """

    name: str
    on: tuple[str, ...] = ()
    pods: int = 1
    priority: int = 0
    amounts: Amounts = field(default_factory=lambda: EIGHT)
    started: str = ""
    grace: int = 0
    within: tuple[str, ...] = ()
    scheduler: str = "corral"
    remade: float | None = None


@dataclass(frozen=True, slots=True)
class Gang:
    """Pods of one group, started by Corral in the rack `on`, or found on the nodes `on`.

    A gang without `on` waits for its place. job: its pods are those of a Job, which makes them anew
    at once; `ends`: more than six pods that fail end it for good; `goes_on`: evicted pods do not
    count as failed.
    """

    name: str
    pods: int
    on: str | tuple[str, ...] = ""
    priority: int = 0
    required: str = RACK
    preferred: str = ""
    amounts: Amounts = field(default_factory=lambda: EIGHT)
    grace: int = 0
    job: Literal["", "ends", "goes_on"] = ""
    is_protected: bool = False
    """Whether its pods have the label that a budget selects."""
    preempts: bool = True
    disruption: str = ""
    remade: float | None = None


@dataclass(frozen=True, slots=True)
class Budget:
    """A PodDisruptionBudget for the pods that are protected."""

    name: str
    allowed: int


Thing = Pods | Gang | Budget


# -- what happens ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Lost:
    """Go on once so many pods are lost."""

    pods: int


@dataclass(frozen=True, slots=True)
class Bound:
    """Go on once so many pods of these are bound."""

    name: str
    pods: int


@dataclass(frozen=True, slots=True)
class AtBind:
    """Go on once so many members wait at /bind."""

    pods: int


@dataclass(frozen=True, slots=True)
class Told:
    """Go on once an event says this."""

    text: str


@dataclass(frozen=True, slots=True)
class Pass:
    """So much time passes."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Delete:
    """The user deletes these pods."""

    pods: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Gone:
    """These pods have ended, long before their grace period is over."""

    pods: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Again:
    """A pod that was deleted is made anew."""

    pod: str


@dataclass(frozen=True, slots=True)
class Cordon:
    """The node that the pod is nominated to is cordoned."""

    pod: str


@dataclass(frozen=True, slots=True)
class Fail:
    """The node fails; the pods there are deleted, as the controllers of nodes do."""

    node: str


@dataclass(frozen=True, slots=True)
class Steal:
    """Another scheduler binds pods of its own, one to each of these nodes."""

    name: str
    on: tuple[str, ...]
    grace: int = 0


@dataclass(frozen=True, slots=True)
class Ungate:
    """The next so many pods lose their gates late: they are not at /bind when the others are."""

    pods: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Nominate:
    """Another scheduler preempts the victim for a pod of its own, and nominates it there."""

    pod: str
    victim: str


@dataclass(frozen=True, slots=True)
class BindNominated:
    """Another scheduler binds the pod to the node that it was nominated to."""

    pod: str


@dataclass(frozen=True, slots=True)
class Offer:
    """kube-scheduler 1.37 asks for this pod, naming all of these victims for the first one's node.

    Of the victims only those that it is answered are deleted, and the pod is nominated.
    """

    pod: str
    victims: tuple[str, ...]


Step = (
    Thing
    | Lost
    | Bound
    | AtBind
    | Told
    | Pass
    | Delete
    | Gone
    | Again
    | Cordon
    | Fail
    | Steal
    | Ungate
    | Nominate
    | BindNominated
    | Offer
)


@dataclass(frozen=True, slots=True)
class Scenario:
    """One row. `broken`: gangs that lost pods. `lost`: pods in all.

    runs: how many of them run at the end. where: the rack
    or the node of all of them. told: parts of what is said to the users. never: pods that were
    never bound to the node that this one is nominated to. searches: so many were made for room at
    most. quiet: for so many seconds afterwards nothing may happen any more.
    """

    number: str
    name: str
    racks: Mapping[str, int]
    before: tuple[Thing, ...]
    then: tuple[Step, ...]
    broken: int
    lost: int
    runs: Mapping[str, int] = field(default_factory=dict)
    where: Mapping[str, str] = field(default_factory=dict)
    told: tuple[str, ...] = ()
    never: Mapping[str, str] = field(default_factory=dict)
    searches: int | None = None
    within: float = 300.0
    quiet: float = 120.0
    settings: Mapping[str, object] = field(default_factory=dict)
    modes: tuple[str, ...] = ("gateless", "gated")

    @property
    def id(self) -> str:
        return f"{self.number}-{self.name}"


def nodes(rack: str, first: int = 0, last: int = 3) -> tuple[str, ...]:
    return tuple(f"{rack}-{place}" for place in range(first, last + 1))


# -- the rows --------------------------------------------------------------------------------------

ONE, TWO, EIGHTS = {"r1": 4}, {"r1": 4, "r2": 4}, {"r1": 8}
G = Gang("g", 8, "r1")
HP = Pods("hp", priority=1000)
T = Gang("t", 4, priority=1000)
R1, R2 = nodes("r1"), nodes("r2")
SINGLES = Pods("s", R2)
SEVEN = (Gang("a", 4, "r1"), SINGLES)
EIGHT_ROW = (Gang("a", 2, "r1"), Gang("b", 4, "r2"))
AS_LOW_AS_A_GANG = (Gang("g", 8, "r1"), Pods("m", ("r2-0",), priority=500))

SCENARIOS = (
    # -- an ordinary pod preempts --
    Scenario("1", "one_of_eight", EIGHTS, (G,), (HP,), 1, 1, {"g": 7, "hp": 1}, {"hp": "r1"}),
    Scenario(
        "1",
        "all_of_a_gang_that_ends_together",
        EIGHTS,
        (Gang("g", 8, "r1", disruption="all"),),
        (HP,),
        broken=1,
        lost=8,
        runs={"g": 0, "hp": 1},
    ),
    Scenario(
        "2",
        "the_single_pod_though_it_is_older",
        {"r1": 8, "r2": 1},
        (Pods("s", ("r2-0",), started=OLD), G),
        (HP,),
        broken=0,
        lost=1,
        runs={"g": 8, "hp": 1},
        where={"hp": "r2-0"},
    ),
    *(
        Scenario(
            "3",
            setting,
            {"r1": 8, "r2": 1},
            AS_LOW_AS_A_GANG,
            (HP,),
            broken=broken,
            lost=1,
            runs={"g": 8 - broken, "hp": 1},
            settings={"gangs_as_victims": setting},
        )
        for setting, broken in (("by_priority", 1), ("last", 0), ("never", 0))
    ),
    Scenario(
        "4",
        "both_from_one_gang_together",
        TWO,
        (Gang("a", 4, "r1"), Gang("b", 4, "r2")),
        (Pods("hp", pods=2, priority=1000),),
        broken=1,
        lost=2,
        runs={"hp": 2},
    ),
    Scenario(
        "4",
        "both_from_one_gang_one_after_the_other",
        TWO,
        (Gang("a", 4, "r1"), Gang("b", 4, "r2")),
        (HP, Bound("hp", 1), Pass(60), Pods("hp-b", priority=1000)),
        broken=1,
        lost=2,
        runs={"hp": 2},
    ),
    Scenario(
        "5",
        "a_hundred_for_eighty_nodes",
        {f"r{number}": 8 for number in range(10)},
        tuple(Gang(f"g{number}", 8, f"r{number}") for number in range(10)),
        (Pods("hp", pods=100, priority=1000),),
        broken=10,
        lost=80,
        runs={"hp": 80},
        modes=("gateless",),
    ),
    *(
        Scenario(
            "6",
            f"the_next_pod_comes_{after:g}_s_later",
            EIGHTS,
            (Gang("g", 8, "r1", remade=after),),
            (HP,),
            broken=1,
            lost=1,
            runs={"g": 7, "hp": 1},
            quiet=600,
            settings={"owed_seconds": 120.0},
        )
        for after in (0.0, 0.1, 10.0)
    ),
    # -- a gang makes room --
    Scenario("7", "four_singles", TWO, SEVEN, (T,), 0, 4, {"a": 4, "t": 4}, {"t": "r2"}),
    Scenario("8", "the_gang_of_two", TWO, EIGHT_ROW, (T,), 1, 2, {"b": 4, "t": 4}, {"t": "r1"}),
    Scenario(
        "9",
        "the_gang_of_three_for_that_of_eight_is_elsewhere_too",
        {"r1": 4, "r2": 4, "r3": 4, "r4": 3},
        (
            Gang("a", 8, ("r1-0", *nodes("r3"), *nodes("r4", 0, 2)), required=""),
            Gang("b", 3, nodes("r2", 0, 2)),
        ),
        (T,),
        broken=1,
        lost=3,
        runs={"a": 8, "t": 4},
        where={"t": "r2"},
    ),
    Scenario(
        "10",
        "four_of_priority_1_before_one_of_5",
        TWO,
        (Pods("m", ("r1-0",), priority=5), Pods("s", R2, priority=1)),
        (T,),
        broken=0,
        lost=4,
        runs={"m": 1, "t": 4},
        where={"t": "r2"},
    ),
    Scenario(
        "11",
        "two_gangs_for_a_budget_keeps_the_other",
        TWO,
        (
            Gang("a", 4, "r1", is_protected=True),
            Gang("b", 2, "r2"),
            Gang("c", 2, "r2"),
            Budget("keep", 1),
        ),
        (T,),
        broken=2,
        lost=4,
        runs={"a": 4, "t": 4},
        where={"t": "r2"},
    ),
    Scenario(
        "11",
        "nobody_for_a_budget_keeps_them",
        ONE,
        (Gang("a", 4, "r1", is_protected=True), Budget("keep", 1)),
        (T, Told("that disruption budgets keep: default/keep")),
        broken=0,
        lost=0,
        runs={"a": 4, "t": 0},
    ),
    Scenario(
        "12",
        "those_that_end_already",
        TWO,
        (Gang("a", 4, "r1", grace=300), Gang("b", 4, "r2")),
        (
            Delete(tuple(f"a-{number}" for number in range(4))),
            T,
            Pass(30),
            Gone(("a-0",)),
            Pods("late"),
        ),
        broken=0,
        lost=0,
        runs={"b": 4, "t": 4, "late": 0},
        where={"t": "r1"},
        within=400,
    ),
    Scenario(
        "13",
        "what_takes_the_gpus_and_what_takes_the_cpus",
        {"r1": 2},
        (
            Pods("g", ("r1-0", "r1-1")),
            Pods("c", ("r1-0", "r1-1"), amounts={"cpu": 60}),
        ),
        (Gang("t", 1, priority=1000, amounts={GPU: 8, "cpu": 32}),),
        broken=0,
        lost=2,
        runs={"g": 1, "c": 1, "t": 1},
    ),
    Scenario(
        "14",
        "nobody_of_the_same_or_a_higher_priority",
        TWO,
        (Gang("a", 4, "r1", priority=1000), Gang("b", 4, "r2", priority=2000)),
        (T, Pass(120)),
        broken=0,
        lost=0,
        runs={"a": 4, "b": 4, "t": 0},
    ),
    Scenario(
        "14",
        "nobody_for_one_that_never_preempts",
        TWO,
        (Gang("a", 4, "r1"), Gang("b", 4, "r2")),
        (Gang("t", 4, priority=1000, preempts=False), Pass(120)),
        broken=0,
        lost=0,
        runs={"a": 4, "b": 4, "t": 0},
    ),
    Scenario(
        "15",
        "two_of_four_for_a_gang_that_goes_away",
        TWO,
        (Gang("a", 4, "r1"), Pods("s", R2, remade=1.0)),
        (T, Lost(2), Delete(tuple(f"t-{number}" for number in range(4)))),
        broken=0,
        lost=2,
        runs={"a": 4, "s": 4},
        settings={"evict_per_second": 0.2},
    ),
    Scenario(
        "16",
        "one_more_gang_after_a_pod_of_higher_priority_took_a_node",
        TWO,
        (Gang("a", 2, "r1", grace=60), Gang("b", 4, "r2")),
        (T, Lost(2), Pods("urgent", priority=2000), Bound("urgent", 1), Lost(6)),
        broken=2,
        lost=6,
        runs={"urgent": 1, "t": 4},
        where={"urgent": "r1", "t": "r2"},
    ),
    Scenario(
        "17",
        "a_job_once_and_it_comes_back",
        ONE,
        (Gang("a", 4, "r1", job="goes_on"),),
        (T, Bound("t", 4), Pass(600), Delete(tuple(f"t-{number}" for number in range(4)))),
        broken=1,
        lost=4,
        runs={"a": 4},
        quiet=7200,
        settings={"tick_seconds": 1.0},
    ),
    *(
        Scenario(
            "18",
            name,
            EIGHTS,
            (),
            (
                Ungate(2, seconds=60),
                G,
                AtBind(6),
                Pods("hp", priority=1000, within=within),
                Bound("hp", 1),
                Pass(90),
                Delete(("hp-0",)),
            ),
            broken=0,
            lost=0,
            runs={"g": 8},
            modes=("gated",),
        )
        for name, within in (
            ("nobody_for_a_node_that_is_only_held", ()),
            ("nobody_for_a_node_of_those_at_bind", nodes("r1", 2, 7)),
        )
    ),
    Scenario(
        "19",
        "two_gangs_before_a_job_that_would_fail",
        {"r1": 8, "r2": 8},
        (
            Gang("a", 8, "r1", job="ends"),
            Gang("b", 4, "r2"),
            Gang("c", 4, "r2", job="goes_on"),
        ),
        (Gang("t", 8, priority=1000),),
        broken=2,
        lost=8,
        runs={"a": 8, "t": 8},
        where={"t": "r2"},
    ),
    Scenario(
        "19",
        "a_job_that_would_fail_where_there_is_no_other",
        EIGHTS,
        (Gang("a", 8, "r1", job="ends"),),
        (Gang("t", 8, priority=1000),),
        broken=1,
        lost=8,
        runs={"t": 8},
        told=("its owner gives up", "evicts 8 pods of 1 gang: gang default/a"),
    ),
    Scenario(
        "20",
        "a_group_that_is_named_whole_for_one_node",
        ONE,
        (Gang("g", 4, "r1", disruption="all"),),
        (
            Pods("hp", priority=1000, scheduler="another"),
            Offer("hp-0", tuple(f"g-{number}" for number in range(4))),
            BindNominated("hp-0"),
        ),
        broken=1,
        lost=4,
        runs={"g": 0, "hp": 1},
    ),
    Scenario(
        "21",
        "four_pods_before_one_gang",
        TWO,
        (Pods("s", R1, amounts={GPU: 1}), Gang("a", 2, "r2")),
        (T,),
        broken=0,
        lost=4,
        runs={"a": 2, "t": 4},
        where={"t": "r1"},
    ),
    Scenario(
        "22",
        "two_gangs_for_two",
        ONE,
        (Gang("a", 2, "r1"), Gang("b", 2, "r1")),
        (Gang("t1", 2, priority=1000), Gang("t2", 2, priority=1000)),
        broken=2,
        lost=4,
        runs={"t1": 2, "t2": 2},
    ),
    Scenario(
        "23",
        "nobody_for_a_better_rack",
        TWO,
        (Pods("s", ("r1-0", "r1-1", "r2-0", "r2-1")),),
        (Gang("t", 4, priority=1000, required="", preferred=RACK),),
        broken=0,
        lost=0,
        runs={"s": 4, "t": 4},
    ),
    Scenario(
        "24",
        "nobody_for_a_repair",
        ONE,
        (Pods("s", ("r1-3",)), Gang("g", 3, "r1", priority=1000)),
        (Fail("r1-0"), Pass(5), Again("g-0"), Pass(300)),
        broken=0,
        lost=0,
        runs={"g": 2, "s": 1},
    ),
    Scenario(
        "25",
        "one_more_pod_where_the_freed_node_closes",
        ONE,
        (Gang("g", 4, "r1", grace=30),),
        (HP, Lost(1), Cordon("hp-0"), Lost(2)),
        broken=1,
        lost=2,
        runs={"g": 2, "hp": 1},
    ),
    # Without a priority of its own gang a would go next, which is in another rack.
    Scenario(
        "26",
        "nobody_after_two_thefts",
        TWO,
        (Gang("a", 4, "r1", priority=1000), Pods("s", R2)),
        (
            T,
            Lost(4),
            Steal("thief1", R2),
            Lost(8),
            Steal("thief2", R2),
            Told("pod default/thief2-"),
            Pass(500),
        ),
        broken=0,
        lost=8,
        runs={"a": 4, "thief2": 4, "t": 0},
        quiet=60,
    ),
    Scenario(
        "27",
        "nobody_onto_the_node_that_another_scheduler_freed",
        EIGHTS,
        (Gang("g", 8, "r1", remade=0.1),),
        (
            Pods("hp", priority=1000, scheduler="another"),
            Nominate("hp-0", "g-3"),
            Pass(120),
            BindNominated("hp-0"),
        ),
        broken=1,
        lost=1,
        runs={"g": 7, "hp": 1},
        never={"g": "hp-0"},
    ),
    *(
        Scenario(
            "28",
            name,
            {f"r{number}": 8 for number in range(625)},
            tuple(
                Pods(f"s{number}", nodes(f"r{number}", 0, 7), priority=1000)
                for number in range(625 - lower)
            )
            + (Pods("low", nodes("r624", 0, 6)), Pods("top", ("r624-7",), priority=1000))[
                : 2 * lower
            ],
            (*(Gang(f"t{number}", 8, priority=1000) for number in range(300)), Pass(60)),
            broken=0,
            lost=0,
            runs={"s0": 8, "s623": 8, "low": 7 * lower, "t0": 0, "t299": 0},
            searches=searches,
            quiet=0,
            settings={"tick_seconds": 0.5},
            modes=("gated",),
        )
        for name, lower, searches in (
            ("no_search_where_all_have_the_same_priority", 0, 0),
            ("one_search_for_gangs_that_are_alike", 1, 2),
        )
    ),
)
