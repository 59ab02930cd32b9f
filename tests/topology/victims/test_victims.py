"""Who has to go, in the scenarios of which people know the answer.

Nodes of 8 GPUs, pods of 8 unless it says otherwise; the gang that waits needs one rack.
"""

from __future__ import annotations

import random

import pytest

from tests.text import BLOCK, RACK
from topology import (
    NODE_LEVEL,
    Capacity,
    Constraint,
    Gang,
    Group,
    Options,
    Pairs,
    PodSet,
    ResourceAxis,
    Tree,
    build,
)
from topology.nested import walk
from topology.victims.choose import NUMBERS, SHARE, VISITS, victims
from topology.victims.table import Table
from topology.victims.trial import SEARCH
from topology.victims.victim import Loss, NoVictims, Victim, Victims

GPUS, CPUS = 8, 64
WHOLE = (1, 8, 1)


class Cluster:
    """Racks of some nodes, and who runs there."""

    def __init__(self, *racks: int) -> None:
        nodes = {
            f"n{rack}{at}": ("b", f"r{rack}", f"n{rack}{at}")
            for rack, size in enumerate(racks)
            for at in range(size)
        }
        self.tree: Tree = build((BLOCK, RACK, NODE_LEVEL), nodes, 1)
        self.capacity = Capacity(ResourceAxis(), self.tree)
        for slot in range(len(nodes)):
            self.capacity.set_node(slot, (110, GPUS, CPUS), is_open=True)
        self.candidates: list[Victim] = []
        self.allowed: dict[str, int] = {}
        self.lasts: dict[str, int] = {}

    def runs(
        self,
        key: str,
        *nodes: str,
        request: tuple[int, ...] = WHOLE,
        rank: int = 0,
        ends_for_good: bool = False,
        lost_work: int = 0,
        protected: str = "",
        owner: str = "",
    ) -> None:
        """A pod, or a gang with a pod on each of these nodes."""
        slots = [self.tree.slot_of[node] for node in nodes]
        for slot in slots:
            self.capacity.use(slot, request)
        self.candidates.append(
            Victim(
                key,
                tuple((slot, request) for slot in slots),
                rank,
                is_gang=len(nodes) > 1,
                ends_for_good=ends_for_good,
                lost_work=lost_work,
                protected=((protected, len(nodes)),) if protected else (),
                counted=((owner, len(nodes)),) if owner else (),
            )
        )

    def stays(self, node: str, request: tuple[int, ...] = WHOLE) -> None:
        self.capacity.use(self.tree.slot_of[node], request)

    def asked(
        self,
        pods: int,
        request: tuple[int, ...] = WHOLE,
        constraint: Constraint | None = None,
        visits: int = 10_000,
    ) -> Victims | NoVictims:
        needs = Constraint(required=RACK) if constraint is None else constraint
        gang = Gang("t", Group("t", (PodSet("w", pods, request, constraint=needs),)))
        table = Table(self.capacity, self.candidates, self.lasts)
        return victims(
            self.tree, self.capacity, gang, {}, table, self.allowed, Options(), visits=visits
        )


def who(answer: Victims | NoVictims) -> set[str]:
    assert isinstance(answer, Victims), answer
    return set(answer.keys)


def test_pods_alone_go_before_a_gang() -> None:
    cluster = Cluster(4, 4)
    cluster.runs("gang", "n00", "n01", "n02", "n03")
    for at in range(4):
        cluster.runs(f"single{at}", f"n1{at}")
    answer = cluster.asked(4)
    assert who(answer) == {f"single{at}" for at in range(4)}
    assert isinstance(answer, Victims)
    assert (answer.loss, answer.priority, answer.is_proven) == (Loss(0, 0, 4, 0), 0, True)


def test_a_small_gang_beside_free_nodes_goes_before_a_large_one() -> None:
    cluster = Cluster(4, 4)
    cluster.runs("small", "n00", "n01")
    cluster.runs("large", "n10", "n11", "n12", "n13")
    assert who(cluster.asked(4)) == {"small"}


def test_a_gang_across_racks_counts_with_all_its_pods() -> None:
    cluster = Cluster(4, 4, 4, 3)
    across = ["n00", *(f"n2{at}" for at in range(4)), *(f"n3{at}" for at in range(3))]
    cluster.runs("across", *across)
    cluster.runs("three", "n10", "n11", "n12")
    assert who(cluster.asked(4)) == {"three"}


def test_priority_comes_before_numbers() -> None:
    cluster = Cluster(4, 4)
    cluster.runs("higher", "n00", rank=5)
    for at in range(4):
        cluster.runs(f"lower{at}", f"n1{at}", rank=1)
    answer = cluster.asked(4)
    assert who(answer) == {f"lower{at}" for at in range(4)}
    assert isinstance(answer, Victims)
    assert answer.priority == 1


def test_gangs_come_before_pods() -> None:
    cluster = Cluster(4, 4)
    for at in range(4):
        cluster.runs(f"single{at}", f"n0{at}", request=(1, 1, 1))
    cluster.runs("pair", "n10", "n11")
    assert who(cluster.asked(4)) == {f"single{at}" for at in range(4)}


def test_what_would_end_for_good_goes_last() -> None:
    cluster = Cluster(8, 8)
    cluster.runs("job", *(f"n0{at}" for at in range(8)), ends_for_good=True)
    cluster.runs("one", *(f"n1{at}" for at in range(4)))
    cluster.runs("other", *(f"n1{at}" for at in range(4, 8)))
    assert who(cluster.asked(8)) == {"one", "other"}
    cluster.stays("n10", (1, 0, CPUS))
    answer = cluster.asked(8)
    assert who(answer) == {"job"}
    assert isinstance(answer, Victims)
    assert answer.loss.ended_for_good == 1


def test_of_two_alike_the_one_that_loses_less_work_goes() -> None:
    cluster = Cluster(2, 2)
    cluster.runs("long", "n00", "n01", lost_work=9)
    cluster.runs("new", "n10", "n11", lost_work=2)
    assert who(cluster.asked(2)) == {"new"}


def test_both_what_takes_the_gpus_and_what_takes_the_cpus_go() -> None:
    cluster = Cluster(1)
    cluster.runs("gpus", "n00", request=(1, 8, 0))
    cluster.runs("cpus", "n00", request=(1, 0, 60))
    assert who(cluster.asked(1, (1, 8, 32))) == {"gpus", "cpus"}


def test_a_budget_is_a_wall_and_is_named() -> None:
    cluster = Cluster(4, 4)
    cluster.runs("web", *(f"n0{at}" for at in range(4)), protected="web-pdb")
    cluster.runs("one", "n10", "n11")
    cluster.runs("other", "n12", "n13")
    cluster.allowed = {"web-pdb": 1}
    assert who(cluster.asked(4)) == {"one", "other"}
    cluster.candidates = cluster.candidates[:1]
    answer = cluster.asked(4)
    assert isinstance(answer, NoVictims)
    assert answer.budgets == ("web-pdb",)
    cluster.allowed = {"web-pdb": 4}
    assert who(cluster.asked(4)) == {"web"}


def test_a_budget_lets_some_go_and_not_all() -> None:
    cluster = Cluster(2, 2)
    for at in range(2):
        cluster.runs(f"web{at}", f"n0{at}", protected="web-pdb")
        cluster.runs(f"higher{at}", f"n1{at}", rank=7)
    cluster.allowed = {"web-pdb": 1}
    assert who(cluster.asked(2)) == {"higher0", "higher1"}


def test_budgets_that_let_each_go_and_not_enough_of_them_are_named() -> None:
    cluster = Cluster(2)
    for at in range(2):
        cluster.runs(f"web{at}", f"n0{at}", protected="web-pdb")
    cluster.allowed = {"web-pdb": 1}
    answer = cluster.asked(2)
    assert isinstance(answer, NoVictims)
    assert answer.budgets == ("web-pdb",)
    assert not answer.is_cut_short


def test_nobody_goes_where_that_would_not_be_enough() -> None:
    cluster = Cluster(4)
    cluster.runs("gang", "n00", "n01")
    cluster.stays("n02")
    answer = cluster.asked(4)
    assert isinstance(answer, NoVictims)
    assert (answer.why.needed, answer.why.available, answer.budgets) == (4, 3, ())


def test_nobody_goes_for_a_gang_that_fits() -> None:
    cluster = Cluster(2, 2)
    cluster.runs("gang", "n00", "n01")
    answer = cluster.asked(2)
    assert who(answer) == set()


def test_nobody_goes_for_a_better_rack() -> None:
    cluster = Cluster(2, 2)
    cluster.runs("one", "n00")
    cluster.runs("other", "n10")
    assert who(cluster.asked(2, constraint=Constraint(preferred=RACK))) == set()


def test_a_gang_that_may_be_anywhere_takes_the_cheapest_nodes() -> None:
    cluster = Cluster(3, 3)
    for at, parts in enumerate((2, 1, 4)):
        for part in range(parts):
            cluster.runs(f"p0{at}{part}", f"n0{at}", request=(1, 8 // parts, 1))
    cluster.runs("gang", "n10", "n11", "n12")
    assert who(cluster.asked(2, constraint=Constraint())) == {"p010", "p000", "p001"}


def test_more_than_are_tried_against_each_other_still_make_room() -> None:
    cluster = Cluster(100)
    for at in range(100):
        cluster.runs(f"p{at}", f"n0{at}")
    answer = cluster.asked(90, constraint=Constraint())
    assert len(who(answer)) == 90
    assert isinstance(answer, Victims)
    assert answer.is_proven


def test_a_thousand_pods_are_tried_against_each_other() -> None:
    """They are decided about one after the other, and Python calls no thousand functions deep."""
    cluster = Cluster(600)
    for at in range(600):
        for half in range(2):
            cluster.runs(f"p{at}-{half}", f"n0{at}", request=(1, GPUS // 2, 1))
    assert len(who(cluster.asked(400, (1, 3, 1), constraint=Constraint(), visits=VISITS))) == 400


def test_nobody_is_looked_for_where_the_gang_has_too_many_kinds_of_pods(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = Cluster(2)
    for at in range(2):
        cluster.runs(f"p{at}", f"n0{at}")
    monkeypatch.setattr(walk, "MOST_KEPT", 2 * NUMBERS)
    assert len(who(cluster.asked(2))) == 2
    monkeypatch.setattr(walk, "MOST_KEPT", 2 * NUMBERS - 1)
    answer = cluster.asked(2)
    assert isinstance(answer, NoVictims)
    assert answer.is_cut_short


def test_where_the_visits_end_the_answer_is_enough_and_says_that_it_is_not_proven() -> None:
    cluster = Cluster(*[6] * 6)
    for rack in range(6):
        for at in range(6):
            cluster.runs(f"a{rack}{at}", f"n{rack}{at}", request=(1, 5, 1))
            cluster.runs(f"b{rack}{at}", f"n{rack}{at}", request=(1, 3, 1), lost_work=at)
    answer = cluster.asked(5, (1, 5, 1), visits=700)
    assert len(who(answer)) == 5
    assert isinstance(answer, Victims)
    assert answer.visits < 2_000


def one_gang_of_two_racks(chance: random.Random, nodes: int) -> Cluster:
    """A gang on all nodes of the second rack and on one of the first, else full of small pods."""
    cluster = Cluster(nodes, nodes)
    cluster.runs("across", "n00", *(f"n1{at}" for at in range(nodes)))
    for at in range(1, nodes):
        gpus = GPUS
        while gpus:
            its = min(gpus, chance.choice((1, 2, 3)))
            gpus -= its
            cluster.runs(f"p{at}-{gpus}", f"n0{at}", request=(1, its, 1))
    return cluster


@pytest.mark.parametrize("nodes", [8, 24])
def test_the_rack_that_one_gang_frees_alone_is_found_beside_one_with_far_more_to_try(
    nodes: int,
) -> None:
    for seed in range(5):
        cluster = one_gang_of_two_racks(random.Random(seed), nodes)
        answer = cluster.asked(nodes, (1, 5, 1), visits=VISITS)
        assert who(answer) == {"across"}
        assert isinstance(answer, Victims)
        assert answer.is_proven


def test_each_rack_has_a_part_of_the_visits_before_one_has_the_rest() -> None:
    """In the first two racks two pods go for each place, which is more than can be seen at once."""
    cluster = Cluster(12, 12, 12)
    for at in range(12):
        for rack in range(2):
            cluster.runs(f"gpus{rack}{at}", f"n{rack}{at}", request=(1, 8, 0))
            cluster.runs(f"cpus{rack}{at}", f"n{rack}{at}", request=(1, 0, 60))
        cluster.runs(f"both{at}", f"n2{at}", request=(1, 8, 60))
    answer = cluster.asked(8, (1, 8, 32), visits=VISITS)
    assert {key[:4] for key in who(answer)} == {"both"}
    assert isinstance(answer, Victims)
    assert answer.is_proven


def test_the_rest_of_the_visits_is_for_those_that_were_not_searched_to_the_end() -> None:
    """In neither rack is there less to lose than the other says, and both can be searched."""
    cluster = Cluster(6, 6)
    for rack in range(2):
        for at in range(6):
            cluster.runs(f"gpus{rack}{at}", f"n{rack}{at}", request=(1, 8, 0))
            cluster.runs(f"cpus{rack}{at}", f"n{rack}{at}", request=(1, 0, 60))
    few, all_ = (cluster.asked(3, (1, 8, 32), visits=visits) for visits in (1_000, 9_000))
    assert [len(who(answer)) for answer in (few, all_)] == [6, 6]
    assert isinstance(few, Victims)
    assert isinstance(all_, Victims)
    assert (few.is_proven, all_.is_proven) == (False, True)
    assert all_.visits > 3 * 9_000 // SHARE, "each rack was searched with a share before"


@pytest.mark.parametrize(("visits", "racks"), [(100_000, "7"), (3_000, "123456")])
def test_less_work_alone_is_looked_for_with_a_third_of_the_visits(visits: int, racks: str) -> None:
    cluster = Cluster(*[60] * 8)
    for rack in range(8):
        for at in range(60):
            cluster.runs(f"p{rack}-{at}", f"n{rack}{at}", lost_work=8 - rack)
    answer = cluster.asked(50, visits=visits)
    assert len(who(answer)) == 50
    assert isinstance(answer, Victims)
    (rack,) = {key[1] for key in answer.keys}
    assert rack in racks, "each rack is better than the one before"
    assert answer.is_proven, "in all that counts before work"
    assert visits == 100_000 or answer.visits < visits / 2


def test_pods_that_are_more_than_are_tried_at_first_go_before_a_gang() -> None:
    cluster = Cluster(100)
    for at in range(88):
        cluster.runs(f"p{at}", f"n0{at}")
    for at in range(88, 100, 4):
        cluster.runs(f"gang{at}", *(f"n0{at + each}" for each in range(4)))
    assert {key[0] for key in who(cluster.asked(88))} == {"p"}


def test_the_same_table_answers_other_gangs() -> None:
    cluster = Cluster(2, 2)
    cluster.runs("small", "n00")
    cluster.runs("large", "n10", "n11")
    assert who(cluster.asked(2)) == {"small"}
    assert who(cluster.asked(4, constraint=Constraint(required=BLOCK))) == {"small", "large"}


def test_a_pod_that_arrives_counts_as_being_there() -> None:
    cluster = Cluster(2)
    cluster.runs("a", "n00")
    gang = Gang("t", Group("t", (PodSet("w", 1, WHOLE),)))
    table = Table(cluster.capacity, cluster.candidates)
    found = [
        victims(cluster.tree, cluster.capacity, gang, {}, table, {}, Options(arriving=arriving))
        for arriving in ((), ((WHOLE, Pairs.of([(1, 1)])),))
    ]
    assert [answer.keys for answer in found if isinstance(answer, Victims)] == [(), ("a",)]


def test_one_that_ends_for_good_goes_where_a_budget_is_in_the_way_of_the_others() -> None:
    cluster = Cluster(3)
    for at in range(2):
        cluster.runs(f"web{at}", f"n0{at}", protected="web-pdb")
    cluster.runs("job", "n02", ends_for_good=True)
    cluster.allowed = {"web-pdb": 1}
    answer = cluster.asked(2)
    assert isinstance(answer, Victims)
    assert "job" in answer.keys
    assert answer.loss == Loss(1, 0, 2, 0)


@pytest.mark.parametrize(
    ("ranks", "pods", "searches"),
    [
        # As it is, with all gone, and at last with those that go; and for priorities in between.
        pytest.param((3,), 1, 3, id="one_priority"),
        pytest.param((1, 2), 1, 4, id="the_lower_of_two"),
        pytest.param((1, 2), 2, 4, id="both"),
        pytest.param((1, 2, 4), 1, 4, id="the_lowest_of_three"),
        pytest.param((1, 2, 4), 2, 5, id="two_of_three"),
    ],
)
def test_no_more_is_searched_than_has_to_be(
    ranks: tuple[int, ...], pods: int, searches: int
) -> None:
    cluster = Cluster(len(ranks))
    for at, rank in enumerate(ranks):
        cluster.runs(f"p{at}", f"n0{at}", rank=rank)
    answer = cluster.asked(pods)
    assert who(answer) == {f"p{at}" for at in range(pods)}
    assert isinstance(answer, Victims)
    assert answer.visits // SEARCH == searches


def test_losses_are_added_number_by_number() -> None:
    assert Loss(1, 20, 300, 4000).plus(Loss(2, 30, 400, 5000)) == Loss(3, 50, 700, 9000)


def test_work_is_added_up_along_the_way() -> None:
    """Two small ones that lose little work go, rather than those that come before them."""
    cluster = Cluster(1, 1)
    for rack, works in enumerate(((7, 1, 8, 2), (4, 4, 4, 4))):
        for at, work in enumerate(works):
            cluster.runs(f"p{rack}{at}", f"n{rack}0", request=(1, 2, 1), lost_work=work)
    answer = cluster.asked(2, (1, 2, 1))
    assert who(answer) == {"p01", "p03"}
    assert isinstance(answer, Victims)
    assert answer.loss == Loss(0, 0, 2, 3)


# -- owners that give up ---------------------------------------------------------------------------


def test_of_two_pods_whose_owner_may_lose_one_no_more_than_one_goes() -> None:
    """In the first rack are two pods of one Job, in the second one of it and a gang."""
    cluster = Cluster(2, 3)
    cluster.runs("a0", "n00", owner="job")
    cluster.runs("a1", "n01", owner="job")
    cluster.runs("a2", "n10", owner="job")
    cluster.runs("gang", "n11", "n12")
    cluster.lasts["job"] = 1
    answer = cluster.asked(2)
    assert who(answer) == {"gang"}
    assert isinstance(answer, Victims)
    assert answer.loss == Loss(0, 1, 2, 0)
    cluster.lasts["job"] = 2
    assert who(cluster.asked(2)) == {"a0", "a1"}


def test_where_none_else_may_go_it_is_counted_how_many_owners_give_up() -> None:
    cluster = Cluster(3, 3)
    for at in range(3):
        cluster.runs(f"a{at}", f"n0{at}", owner="job")
        cluster.runs(f"b{at}", f"n1{at}", owner=f"job-{at}")
        cluster.lasts[f"job-{at}"] = 0
    cluster.lasts["job"] = 2
    answer = cluster.asked(3)
    assert who(answer) == {"a0", "a1", "a2"}
    assert isinstance(answer, Victims)
    assert (answer.loss, answer.is_proven) == (Loss(1, 0, 3, 0), True)


def test_a_gang_of_pods_of_several_owners_ends_none_that_lasts() -> None:
    """As a group of pods of two Jobs, of which the one has another pod there."""
    cluster = Cluster(3, 3)
    cluster.runs("group", "n00", "n01", owner="job")
    cluster.runs("other", "n02", owner="job")
    cluster.runs("gang", "n10", "n11", "n12")
    cluster.lasts["job"] = 2
    assert who(cluster.asked(3)) == {"gang"}
    assert who(cluster.asked(2)) == {"group"}


def test_an_owner_of_which_no_number_is_known_lasts() -> None:
    cluster = Cluster(2)
    cluster.runs("a0", "n00", owner="job")
    cluster.runs("a1", "n01", owner="job")
    answer = cluster.asked(2)
    assert isinstance(answer, Victims)
    assert answer.loss == Loss(0, 0, 2, 0)
