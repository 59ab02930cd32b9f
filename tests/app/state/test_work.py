"""A tick does so much and no more, and one tenant's work does not keep another one waiting."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from app.kube.core.node_requirements import MOST_OF_POD
from app.kube.core.objects import Requirement, Shape, Term
from app.state.cache.eligibility.node_table import REQUIREMENT
from app.state.reserve.replacements import Replacements
from app.state.turns.budget import GANG, MOST_OWED, POD
from tests.app.state.world import World, members
from tests.records import GPU, group, node, pod

LEAST = 10_000  # visits per tick that the setting allows
HOSTNAME = "kubernetes.io/hostname"


def cluster(nodes: int = 64):
    return [node(f"b{at // 32}/r{at // 8}/n{at}") for at in range(nodes)]


def shape_of(number: int) -> Shape:
    """All nodes but one: no two gangs request the same."""
    return Shape(terms=(Term((Requirement(HOSTNAME, "NotIn", (f"none-{number}",)),)),))


def too_large(name: str, number: int, namespace: str = "loud"):
    pods = members(name, 9, shape=shape_of(number))  # a rack has eight nodes
    return [replace(each, namespace=namespace) for each in pods]


def ticks_until(world: World, holds, most: int = 100) -> int:
    for ticks in range(most):
        if holds():
            return ticks
        world.tick()
    raise AssertionError(f"not within {most} ticks")


def spent_on_one() -> int:
    world = World(cluster(), visits_per_tick=LEAST)
    world.put(*too_large("g", 0))
    return world.engine.budget.spent


@pytest.mark.slow
def test_no_tick_searches_more_than_its_budget_and_the_last_search():
    world = World(cluster(), visits_per_tick=LEAST)
    for number in range(100):
        world.put(*too_large(f"g{number}", number))
    spent = []
    for tick in range(100):
        world.put(node("b0/r0/n0", gpus=8 + tick % 2))  # all of them are searched again
        world.tick()
        spent.append(world.engine.budget.spent)
    assert LEAST <= max(spent) < LEAST + spent_on_one() + GANG


@pytest.mark.slow
@pytest.mark.parametrize("gangs", [50, 150])
def test_a_gang_that_fits_is_planned_at_once_beside_any_number_that_do_not(gangs):
    world = World(cluster(), visits_per_tick=LEAST)
    for number in range(gangs):
        world.put(*too_large(f"g{number}", number))
    world.put(node("b0/r0/n0", gpus=9))  # all of them are searched again
    world.tick()
    assert world.engine.queue.is_busy()
    quiet = [replace(each, namespace="quiet") for each in members("q", 8)]
    world.put(*quiet)
    assert ticks_until(world, lambda: len(world.gang("q").plan.nodes) == 8) <= 2


def dear(name: str, namespace: str):
    """A gang that fits nowhere, and costs several ticks' work to look for."""
    lines = (Requirement(HOSTNAME, "NotIn", (f"none-{name}",)),) * MOST_OF_POD
    shapes = [Shape(terms=(Term(lines[: MOST_OF_POD - at]),)) for at in range(2)]
    return [
        replace(each, namespace=namespace, shape=shapes[at % 2])
        for at, each in enumerate(members(name, 9))
    ]


def test_a_namespace_whose_gang_took_many_ticks_of_work_waits_so_long_and_others_do_not():
    world = World(cluster(), visits_per_tick=LEAST)
    world.put(*dear("a", "loud"))  # on arrival, for nothing is before it
    owed = min(world.engine.budget.spent // LEAST - 1, MOST_OWED)
    assert owed >= 3
    world.put(*dear("b", "loud"), *(replace(each, namespace="quiet") for each in members("q", 8)))
    ticks = ticks_until(world, lambda: world.gang("b").last_search is not None)
    assert owed <= ticks <= owed + 1
    world = World(cluster(), visits_per_tick=LEAST)
    world.put(*dear("a", "loud"))
    world.put(*dear("b", "loud"), *(replace(each, namespace="quiet") for each in members("q", 8)))
    assert ticks_until(world, lambda: len(world.gang("q").plan.nodes) == 8) <= 1


def test_what_a_shape_of_many_terms_costs_is_counted_where_a_search_is_spared_too():
    terms = Shape(terms=tuple(shape_of(number).terms[0] for number in range(200)))
    world = World(cluster(), visits_per_tick=LEAST)
    many = [replace(each, shape=terms) for each in too_large("g", 0)]
    world.put(*many)
    world.tick()
    for at in range(32):  # labels change, and more nodes gain room than are looked at one by one
        world.put(node(f"b0/r{at // 8}/n{at}", gpus=9, labels={"changed": "yes"}))
    ticks_until(world, lambda: world.engine.budget.spent > 200 * REQUIREMENT, most=4)


@pytest.mark.slow
def test_every_gang_has_its_turn_while_room_grows_all_the_time():
    world = World(cluster(), visits_per_tick=LEAST)
    for number in range(30):
        world.put(*too_large(f"g{number}", number))
    for tick in range(200):
        world.put(node("b0/r0/n0", gpus=8 + tick % 2))
        world.tick()
    assert all(gang.reporting.sentence_at for gang in world.engine.gangs.by_key.values())


def test_roll_calls_beyond_the_budget_are_taken_in_turns_between_namespaces():
    world = World(cluster(), visits_per_tick=LEAST)
    for number in range(100):
        pods = members(f"g{number}", 3)[:2]
        world.put(*(replace(each, namespace="loud") for each in pods))
    world.put(*(replace(each, namespace="quiet") for each in members("q", 3)[:2]))
    world.tick()
    reviewed = [gang.key.name for gang in world.engine.gangs.by_key.values() if gang.roll_calls]
    assert "q" in reviewed
    assert len(reviewed) < 10
    ticks_until(world, lambda: not world.engine.gangs.unreviewed)


def test_a_gang_whose_roll_call_came_late_is_still_reported_as_incomplete():
    world = World(cluster(), visits_per_tick=LEAST)
    for number in range(60):
        pods = members(f"g{number}", 3)[:2]
        world.put(*(replace(each, namespace="loud") for each in pods))
    world.tick(world.settings.gather_seconds)
    ticks_until(world, lambda: not world.engine.gangs.unreviewed)
    world.tick(world.settings.gather_seconds)
    assert len([sentence for sentence in world.reports if "of the 3 pods" in sentence]) == 60


def test_a_gang_whose_back_off_ends_while_it_gathers_is_planned_once_it_is_complete():
    nodes = [node(f"b0/r0/n{at}") for at in range(2)]
    world = World(nodes, members("g", 2), earmarks_per_namespace=0)
    for _ in range(3):  # each loss doubles the back-off
        ticks_until(world, lambda: len(world.held) == 2)
        world.put(replace(nodes[0], is_unschedulable=True), nodes[0])
    gone = world.pods["uid-g1"]
    world.delete(gone)
    world.put(*members("h", 1))
    world.tick()
    lost = world.engine.books.nodes[world.held["uid-h0"]]
    world.put(replace(lost, is_unschedulable=True), lost)
    for _ in range(15):  # until the back-off of h is over, not that of g
        world.tick()
    world.delete(world.pods["uid-h0"])
    world.put(gone)
    ticks_until(world, lambda: len(world.held) == 2)


def test_a_fault_in_one_gang_keeps_no_other_s_place_beyond_its_time(monkeypatch):
    world = World(cluster(8), owed_seconds=5.0)
    for name in ("bad", "good"):
        pods = members(name, 2)
        world.put(*pods)
        world.tick()
        world.schedule(*pods)
        world.tick()
        world.delete(world.pods[f"uid-{name}1"])
    world.tick()
    assert len(world.held) == 2
    review = Replacements.review

    def faulty(self, gang, now):
        if gang.key.name == "bad":
            raise ValueError("a bug")
        return review(self, gang, now)

    monkeypatch.setattr(Replacements, "review", faulty)
    told = []
    world.engine.planner.on_fault = lambda part, error: told.append(part)
    world.tick(6.0)
    assert [uid for uid in world.held if "good" in uid] == []
    assert told


def test_roll_calls_and_refusals_of_gangs_with_pods_to_come_count_those():
    said = {**group("g", 800), "kueue.x-k8s.io/pod-group-fast-admission": "true"}
    large = [node(f"b0/r0/n{at}", cpu=10**6) for at in range(80)]
    world = World(large, absent_share_per_namespace=0.1)
    world.put(pod("g-0", gpus=1, annotations=said))
    world.tick()
    assert len(world.gang("g").placeholders) == 799
    assert world.held == {}  # more GPUs than a tenth
    world.put(replace(large[0], allocatable=(("cpu", 1), (GPU, 9), ("pods", 110))))
    world.tick()
    assert world.engine.budget.spent >= 799 * POD


def test_members_of_a_running_gang_that_are_deleted_together_cost_one_roll_call():
    world = World(cluster(), members("g", 64, required=None))
    gang = world.gang("g")
    first = world.pods["uid-g0"]
    world.put(replace(first, node=gang.plan.nodes[first.uid], phase="Running", version="2"))
    world.tick()
    assert len(world.held) == 63
    before = gang.roll_calls
    for number in range(1, 64):
        world.delete(world.pods[f"uid-g{number}"])
    assert world.held == {}
    world.tick()
    assert gang.roll_calls - before <= 2
