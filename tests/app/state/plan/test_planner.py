"""Whom to place next, and where."""

from __future__ import annotations

import msgspec
import pytest

from app.dialects.spec import GangKey, GangSpec, GroupSpec, LeafSpec
from app.kube.core.objects import Shape, Taint
from app.state.cache.eligibility.node_refusals import Refusals
from app.state.filter_result import Pinned, Rejected
from app.state.gang.gang import Gang
from app.state.gang.members.member import Member
from app.state.gang.members.membership import membership_status
from app.state.plan.verdict import NoPlan
from tests.app.state.crews import CrewWorld, hands
from tests.app.state.world import World, four_racks, members, racks
from tests.records import (
    BLOCK,
    PREFERRED,
    RACK,
    SLICE_LEVEL,
    SLICE_SIZE,
    group,
    node,
    pod,
    topology,
)
from topology.model.request import Constraint


def test_a_complete_gang_lands_whole_in_the_tightest_rack_that_fits():
    world = World(four_racks())
    filler = [pod(f"f{i}", on=on) for i, on in enumerate(["n00", "n10", "n11", "n20"])]
    world.put(*filler)
    gang = members("g", 2)
    world.put(*gang)
    assert racks(world.schedule(*gang)) == {"n1"}


def test_two_gangs_that_need_the_same_rack_never_mix():
    world = World(four_racks())
    world.put(*(pod(f"f{r}{i}", on=f"n{r}{i}") for r in range(3) for i in range(4)))
    one, other = members("one", 4), members("other", 4)
    for pair in zip(one, other, strict=True):
        world.put(*pair)
    placed = world.schedule(*(p for pair in zip(one, other, strict=True) for p in pair))
    assert sorted(placed) == ["one0", "one1", "one2", "one3"]


def test_preferred_falls_back_to_the_block_and_then_to_the_cluster():
    world = World(four_racks())
    in_block = [pod(f"p{i}", annotations=group("p", 6, **{PREFERRED: RACK})) for i in range(6)]
    world.put(*in_block)
    placed = world.schedule(*in_block)
    assert len(racks(placed)) == 2
    assert racks(placed) in ({"n0", "n1"}, {"n2", "n3"})
    anywhere = [pod(f"q{i}", annotations=group("q", 10, **{PREFERRED: RACK})) for i in range(10)]
    world.put(*anywhere)
    assert len(world.schedule(*anywhere)) == 10


def test_an_unconstrained_gang_may_use_nodes_without_level_labels():
    world = World([node("n1"), node("n2")])
    gang = members("g", 2, required=None)
    world.put(*gang)
    assert sorted(world.schedule(*gang).values()) == ["n1", "n2"]


def test_nodes_that_kube_scheduler_refuses_are_left_out_of_the_next_plan():
    world = World(four_racks())
    gang = members("g", 4)
    world.put(*gang)
    offered = [name for name in world.engine.books.nodes if not name.startswith("n0")]
    answer = world.filter(gang[0], offered)
    assert isinstance(answer, Pinned)
    assert {on[:2] for on in world.held.values()} == {"n1"}


def test_a_late_member_joins_the_domain_of_those_that_run():
    bound = [
        pod(f"g{i}", on=f"n2{i}", annotations=group("g", 3, RACK), phase="Running")
        for i in range(2)
    ]
    late = pod("g2", annotations=group("g", 3, RACK))
    world = World(four_racks(), [*bound, late])
    assert racks(world.schedule(late)) == {"n2"}


def test_a_late_member_joins_the_rack_of_its_leaf_in_the_block_of_its_group():
    leaves = (LeafSpec("w", 2, Constraint(required=RACK)), LeafSpec("x", 1))
    crew = GroupSpec("c", leaves, Constraint(required=BLOCK))
    bound = [*hands("c", "w", 1, on="n20"), *hands("c", "x", 1, on="n30")]
    late = hands("c", "w", 1, first=1)
    world = CrewWorld({"c": crew}, four_racks(), [*bound, *late])
    assert racks(world.schedule(*late)) == {"n2"}


def test_a_late_member_waits_when_the_domain_of_its_gang_is_full():
    bound = [
        pod(f"g{i}", on=f"n2{i}", annotations=group("g", 3, RACK), phase="Running")
        for i in range(2)
    ]
    blockers = [pod(f"x{i}", on=f"n2{i}") for i in (2, 3)]
    late = pod("g2", annotations=group("g", 3, RACK))
    world = World(four_racks(), [*bound, *blockers, late])
    assert isinstance(world.filter(late), Rejected)
    assert world.held == {}


def test_levels_come_from_a_kueue_topology_where_there_is_one():
    labels = {"example.com/row": "a"}
    world = World(
        [node("n1", labels=labels), node("n2", labels=labels)],
        topologies=[topology("rows", "example.com/row")],
        levels=(),
    )
    gang = members("g", 2, required="example.com/row")
    world.put(*gang)
    assert len(world.held) == 2


def test_a_plan_respects_taints_and_node_selectors():
    tainted = [
        msgspec.structs.replace(n, taints=(Taint("maintenance", "", "NoSchedule"),))
        for n in four_racks()[:4]
    ]
    world = World([*tainted, *four_racks(labels={"pool": "a"})[4:]])
    gang = members("g", 4, shape=Shape(selector=(("pool", "a"),)))
    world.put(*gang)
    assert {on[:2] for on in world.held.values()} <= {"n1", "n2", "n3"}


def test_the_higher_priority_is_placed_first_when_capacity_is_freed():
    world = World([node("b0/r0/n00")], [filler := pod("f", on="n00")])
    low, high = members("low", 1), members("high", 1, priority=10)
    world.put(*low, *high)
    world.delete(filler)
    world.tick()
    assert list(world.held) == ["uid-high0"]


def test_a_smaller_gang_passes_one_that_does_not_fit():
    world = World(four_racks())
    world.put(*members("big", 5), *members("small", 2))
    assert {uid[:9] for uid in world.held} == {"uid-small"}


def test_a_refused_node_is_planned_again_after_a_second_and_twice_as_long_each_time_after():
    world = World([node("b0/r0/n00"), node("b0/r1/n10")], refusal_seconds=8.0)
    (member,) = members("g", 1)
    world.put(pod("f", on="n10"), member)
    left_out = []
    for _ in range(6):
        refused_at = world.now
        assert world.held == {"uid-g0": "n00"}
        world.filter(member, ["n10", "n11"])  # kube-scheduler has n00 full, say
        for _ in range(200):
            world.gang().back_off.not_before = 0.0
            world.tick()
            if world.held:
                break
        left_out.append(round(world.now - refused_at))
    assert left_out == [1, 2, 4, 8, 8, 8]


def test_a_refusal_of_long_ago_is_not_counted_on():
    refusals = Refusals()
    refusals.add("default", "shape", "n0", 100.0, 8.0)
    refusals.expire(101.0)
    refusals.add("default", "shape", "n0", 101.0 + 8.0, 8.0)
    refusals.expire(110.0)
    assert "n0" not in refusals.of("default", "shape")


def test_what_kube_scheduler_refuses_a_tenant_keeps_nobody_elses_gang_waiting():
    """As his pods would that may only stand beside each other, which their shape does not say."""
    evil = [msgspec.structs.replace(each, namespace="evil") for each in members("evil", 16, None)]
    world = World(four_racks(), evil)
    world.filter(next(each for each in evil if world.held[each.uid] != "n00"), ["n00"])
    world.delete(*evil)
    again = [msgspec.structs.replace(each, namespace="evil") for each in members("again", 2)]
    world.put(*again)
    world.tick()
    assert world.gang("again").plan.nodes == {}
    mine = members("mine", 2)
    world.put(*mine)
    world.tick()
    assert world.held.keys() == {each.uid for each in mine}


def test_gangs_that_ask_the_same_in_vain_share_one_search():
    world = World(four_racks())
    world.put(*members("a", 5), *members("b", 5))
    planner, gangs = world.engine.planner, world.engine.gangs.by_key
    verdicts = [planner.plan(gang) for gang in gangs.values()]
    assert verdicts[0] is verdicts[1]


@pytest.mark.parametrize("level", [BLOCK, RACK])
def test_a_gang_that_requests_a_resource_no_node_has_stands_in_the_way_of_none(level):
    world = World(four_racks())
    unknown = tuple(
        msgspec.structs.replace(each, request=(("example.com/fpga", 1), *each.request))
        for each in members("odd", 2, level)
    )
    world.put(*unknown)
    assert world.schedule(*unknown) == {}
    assert "insufficient example.com/fpga 16" in world.reports[-1]
    ordinary = members("g", 4, level)
    world.put(*ordinary)
    assert len(world.schedule(*ordinary)) == 4


def test_a_request_no_cluster_could_mean_is_a_mistake_and_no_crash():
    world = World(four_racks())
    wider = Constraint(required=RACK, preferred=BLOCK)
    member = Member(pod("g0"), constraint=wider)
    key = GangKey("default", "g", "group")
    spec = GangSpec(key, GroupSpec("g", (LeafSpec("", 1),)), "here")
    status = membership_status([member], lambda *_: spec)
    gang = Gang(key, {"uid-g0": member}, status)
    verdict = world.engine.planner.plan(gang)
    assert isinstance(verdict, NoPlan)
    assert verdict.is_mistake
    assert BLOCK in str(verdict)


SLICED = {SLICE_LEVEL: RACK, SLICE_SIZE: "2"}


def sliced(name, total, **more):
    return [
        pod(f"{name}{i}", annotations=group(name, total, **SLICED), **more) for i in range(total)
    ]


def test_each_slice_lies_in_one_rack_and_holds_neighbouring_ranks():
    world = World(four_racks(), [pod(f"f{rack}", on=f"n{rack}0") for rack in range(4)])
    gang = sliced("g", 8)
    world.put(*gang)
    placed = world.schedule(*gang)
    assert len(placed) == 8
    pairs = [{placed[f"g{i}"][:2], placed[f"g{i + 1}"][:2]} for i in range(0, 8, 2)]
    assert all(len(racks_of_slice) == 1 for racks_of_slice in pairs)


def test_a_slice_does_not_glue_what_is_left_of_two_racks():
    full = [pod(f"f{rack}{i}", on=f"n{rack}{i}") for rack in range(4) for i in range(3)]
    world = World(four_racks(), full)
    world.put(*sliced("g", 4))
    assert world.held == {}


def test_a_late_member_of_a_slice_goes_where_the_rest_of_its_slice_is():
    gang = sliced("g", 4, phase="Running")
    nodes = ["n00", "n01", "n20"]
    bound = [msgspec.structs.replace(p, node=on) for p, on in zip(gang, nodes, strict=False)]
    late = pod("g3", annotations=group("g", 4, **SLICED))
    world = World(four_racks(), [*bound, late])
    assert world.schedule(late)["g3"].startswith("n2")


def test_two_roles_that_only_fit_when_packed_together_are_placed():
    """One after the other, both threes would go to the second node and leave a two without room."""
    world = World([node("b0/r0/n1", gpus=3), node("b0/r0/n2", gpus=7)])
    gang = [
        pod(f"g{i}", gpus=gpus, annotations=group("g", 4)) for i, gpus in enumerate((3, 3, 2, 2))
    ]
    world.put(*gang)
    placed = world.schedule(*gang)
    assert sorted(placed.values()) == ["n1", "n2", "n2", "n2"]
