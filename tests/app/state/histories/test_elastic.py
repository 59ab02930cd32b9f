"""Gangs that may start without some of their pods, or without whole parts of themselves."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import msgspec
import pytest

from app.dialects.spec import GroupSpec, LeafSpec
from app.state.effects import Evict
from app.state.filter_result import Pinned, Rejected
from app.state.gang.gang import Phase
from tests.app.state.crews import CrewWorld, hands, placed
from tests.app.state.stories import GATED, finish, go, sentence, turn
from tests.app.state.world import racks
from tests.records import RACK, node, pod
from topology.model.request import Constraint

IN_A_RACK = Constraint(required=RACK)


def crew(pods, needed, constraint=IN_A_RACK):
    """One leaf: so many pods, of which so many are needed."""
    return GroupSpec("c", (LeafSpec("w", pods, constraint, needed=needed),))


def teams(count, needed, pods=2, pods_needed=None):
    """Groups of one leaf each, every one of them in a rack."""
    members = tuple(
        GroupSpec(f"t{at}", (LeafSpec(f"t{at}", pods, needed=pods_needed),), IN_A_RACK)
        for at in range(count)
    )
    return GroupSpec("c", members, needed=needed)


def rack(number, nodes, gpus=8):
    return [node(f"b0/r{number}/n{number}{at}", gpus=gpus) for at in range(nodes)]


# -- pods of a leaf that are not needed ----------------------------------------------------------


def test_it_starts_with_what_it_needs_and_what_else_fits():
    world = CrewWorld({"c": crew(5, 2)}, rack(0, 3), hands("c", "w", 5))
    assert len(go(world)) == 3


def test_it_does_not_start_with_less():
    world = CrewWorld({"c": crew(5, 4)}, rack(0, 3), hands("c", "w", 5))
    assert go(world) == {}
    assert world.held == {}
    assert "3 of 4 pods fit" in sentence(world, "uid-c-w-0")


def test_it_starts_before_the_pods_exist_that_it_does_not_need():
    world = CrewWorld({"c": crew(5, 2)}, rack(0, 5), hands("c", "w", 2))
    assert len(go(world)) == 2
    late = hands("c", "w", 3, first=2)
    world.put(*late)
    assert len(go(world)) == 3
    assert racks(placed(world)) == {"n0"}


def test_one_pod_fewer_than_it_needs_waits_and_says_for_how_many():
    world = CrewWorld({"c": crew(5, 3)}, rack(0, 5), hands("c", "w", 2))
    assert go(world) == {}
    assert sentence(world, "uid-c-w-0") == (
        "gang default/c waits until the 3 pods that it needs are there and ungated"
    )


def test_the_rest_follows_into_the_same_rack_when_there_is_room():
    strangers = [pod(f"s{at}", on=f"n0{at}") for at in range(2)]
    world = CrewWorld(
        {"c": crew(4, 2)}, [*rack(0, 4), *rack(1, 2, gpus=4)], [*strangers, *hands("c", "w", 4)]
    )
    go(world)
    assert len(placed(world, "w")) == 2
    assert sentence(world, "uid-c-w-3").startswith("gang default/c runs without 2 of its pods")
    world.delete(world.pods["uid-s0"])
    finish(world)
    assert len(placed(world, "w")) == 3  # as many as fit, not all or none
    world.delete(world.pods["uid-s1"])
    finish(world)
    assert placed(world, "w").keys() == {f"c-w-{at}" for at in range(4)}
    assert racks(placed(world, "w")) == {"n0"}


def test_a_pod_that_is_not_needed_and_has_no_place_hears_that_the_gang_starts_without_it():
    world = CrewWorld({"c": crew(4, 3)}, rack(0, 3), hands("c", "w", 4))
    assert len(world.held) == 3
    assert world.gang("c").phase is Phase.PLACED
    assert sentence(world, "uid-c-w-3") == (
        "gang default/c starts without this pod, which cannot be placed now"
    )


def test_it_takes_no_more_pods_than_it_has():
    world = CrewWorld({"c": crew(3, 1)}, rack(0, 5), hands("c", "w", 5))
    go(world)
    assert len(placed(world)) == 3


def test_pods_of_several_kinds_are_needed_by_seniority():
    small = hands("c", "w", 2, gpus=1, created="2026-01-01T00:00:00Z")
    large = hands("c", "w", 2, first=2, gpus=8, created="2026-01-01T00:00:01Z")
    world = CrewWorld({"c": crew(4, 2)}, rack(0, 1, gpus=2), [*small, *large])
    assert go(world).keys() == {"c-w-0", "c-w-1"}


def test_a_member_that_is_needed_and_goes_before_the_start_is_replaced_by_one_that_is_there():
    world = CrewWorld({"c": crew(4, 3)}, rack(0, 3), hands("c", "w", 4))
    assert "uid-c-w-3" not in world.held
    world.delete(world.pods["uid-c-w-0"])
    finish(world)
    assert placed(world).keys() == {"c-w-1", "c-w-2", "c-w-3"}


def test_a_member_that_is_not_needed_and_goes_does_not_cost_the_plan():
    world = CrewWorld({"c": crew(4, 2)}, rack(0, 4), hands("c", "w", 4))
    assert len(world.held) == 4
    before = dict(world.held)
    world.delete(world.pods["uid-c-w-3"])
    world.tick()
    del before["uid-c-w-3"]
    assert world.held == before


def test_members_at_bind_start_once_the_one_that_they_wait_for_is_gone_and_not_needed():
    world = CrewWorld({"c": crew(3, 2)}, rack(0, 3), hands("c", "w", 3))
    nodes = dict(world.held)
    for uid in ("uid-c-w-0", "uid-c-w-1"):
        world.bind(world.pods[uid], nodes[uid])
    world.delete(world.pods["uid-c-w-2"])
    world.confirm(world.tick())
    assert placed(world) == {f"c-w-{at}": nodes[f"uid-c-w-{at}"] for at in range(2)}


def test_a_gated_gang_has_only_those_ungated_that_have_a_place():
    world = CrewWorld({"c": crew(5, 2)}, rack(0, 3), hands("c", "w", 5, gates=GATED))
    finish(world)
    assert len(placed(world)) == 3
    assert sum(GATED[0] in each.gates for each in world.pods.values()) == 2


def test_fail_fast_does_not_evict_a_gang_for_pods_that_it_does_not_need():
    world = CrewWorld({"c": crew(4, 2)}, rack(0, 3), hands("c", "w", 4), fail_fast=True)
    finish(world)
    assert len(placed(world)) == 3
    assert world.told(Evict) == []


def test_fail_fast_evicts_a_gang_that_lost_what_it_needs():
    world = CrewWorld({"c": crew(3, 3)}, rack(0, 3), hands("c", "w", 3), fail_fast=True)
    elastic = CrewWorld({"c": crew(4, 3)}, rack(0, 3), hands("c", "w", 3), fail_fast=True)
    for each in (world, elastic):
        finish(each)
        assert len(placed(each)) == 3
        lost = next(iter(each.pods.values()))
        turn(each, lost.uid, "Failed")
        each.delete(node(f"b0/r0/{lost.node}"))
        each.put(*hands("c", "w", 1, first=7))
        finish(each)
        assert {effect.name for effect in each.told(Evict)} == {"c-w-1", "c-w-2"}


def test_fail_fast_does_not_evict_a_gang_that_needs_more_than_when_its_node_failed():
    roots = {"c": crew(4, 2)}
    world = CrewWorld(roots, rack(0, 3), hands("c", "w", 4), fail_fast=True)
    finish(world)
    lost = next(each for each in world.pods.values() if each.node)
    world.delete(node(f"b0/r0/{lost.node}"))
    world.delete(lost)
    roots["c"] = crew(4, 3)
    for each in world.pods.values():  # so that the gang is looked at again
        world.put(msgspec.structs.replace(each, labels={**each.labels, "x": "y"}, version="9"))
    for _ in range(10):
        world.tick(1.0)
    assert any("runs without" in sentence for sentence in world.reports)
    assert world.told(Evict) == []


def test_a_leaf_of_which_nothing_is_needed_never_blocks_the_others():
    root = GroupSpec("c", (LeafSpec("w", 2, IN_A_RACK), LeafSpec("x", 2, IN_A_RACK, needed=0)))
    pods = [*hands("c", "w", 2), *hands("c", "x", 2, gpus=4)]
    world = CrewWorld({"c": root}, rack(0, 2), pods)
    go(world)
    assert placed(world).keys() == {"c-w-0", "c-w-1"}


def test_a_gang_that_needs_nothing_starts_with_whatever_fits_and_not_with_nothing():
    world = CrewWorld({"c": crew(3, 0)}, [*rack(0, 2), *rack(1, 1)], hands("c", "w", 3))
    go(world)
    assert len(placed(world)) == 2
    full = CrewWorld({"c": crew(3, 0)}, rack(0, 1, gpus=4), hands("c", "w", 3))
    assert go(full) == {}
    assert full.gang("c").phase is Phase.WAITING
    assert "0 of 1 pods fit" in sentence(full, "uid-c-w-0")


def test_of_a_gang_that_needs_nothing_no_pod_waits_at_bind_for_another():
    world = CrewWorld({"c": crew(3, 0)}, rack(0, 4), hands("c", "w", 3))
    first = world.pods["uid-c-w-0"]
    effects = world.bind(first, world.held[first.uid])
    assert [each.name for each in effects] == ["c-w-0"]
    world.confirm(effects)
    world.tick()
    assert go(world).keys() == {"c-w-1", "c-w-2"}


def test_of_a_gang_that_needs_no_group_each_starts_whole_without_the_others():
    pods = [each for at in range(2) for each in hands("c", f"t{at}", 2)]
    world = CrewWorld({"c": teams(2, 0)}, [*rack(0, 2), *rack(1, 2)], pods)
    held = dict(world.held)
    assert world.bind(world.pods["uid-c-t0-0"], held["uid-c-t0-0"]) == []
    assert world.bind(world.pods["uid-c-t1-0"], held["uid-c-t1-0"]) == []
    effects = world.bind(world.pods["uid-c-t0-1"], held["uid-c-t0-1"])
    assert sorted(each.name for each in effects) == ["c-t0-0", "c-t0-1"]
    world.confirm(effects)
    world.tick()
    assert len(go(world)) == 2


def test_of_a_gang_that_runs_each_lost_member_is_replaced_where_one_of_two_fits():
    world = CrewWorld({"c": crew(4, 3)}, rack(0, 3), hands("c", "w", 3), owed_seconds=0.0)
    finish(world)
    lost = [world.pods["uid-c-w-0"], world.pods["uid-c-w-1"]]
    world.put(*hands("c", "w", 2, first=7), pod("s", on=lost[0].node, gpus=8))
    world.delete(*lost)
    finish(world)
    assert placed(world, "w").keys() == {"c-w-2", "c-w-7"}


def test_numbers_with_gaps_are_ranks_all_the_same():
    """Rank by rank over the nodes, though the second pod does not exist."""
    three = [each for each in hands("c", "w", 4, is_numbered=True, gpus=4) if each.name != "c-w-1"]
    world = CrewWorld({"c": crew(4, 2)}, rack(0, 2), reversed(three))
    finish(world)
    on = placed(world)
    assert on["c-w-0"] == on["c-w-2"] != on["c-w-3"]
    assert not [each for each in world.reports if "not placed by rank" in each]


def refused(world, uid):
    """/filter without the node planned for this pod, as kube-scheduler's own filters leave it."""
    offered = [name for name in world.engine.books.nodes if name != world.held[uid]]
    return world.filter(world.pods[uid], offered)


def test_a_pod_that_is_not_needed_and_whose_node_is_refused_costs_the_others_nothing():
    world = CrewWorld({"c": crew(4, 2)}, rack(0, 3), hands("c", "w", 4))
    before = {uid: node for uid, node in world.held.items() if uid != "uid-c-w-2"}
    for uid in before:
        assert isinstance(world.filter(world.pods[uid]), Pinned)
    assert refused(world, "uid-c-w-2").sentence == (
        "gang default/c starts without this pod, which cannot be placed now"
    )
    assert world.held == before
    assert world.gang("c").phase is Phase.PLACED
    for uid, on in before.items():
        world.confirm(world.bind(world.pods[uid], on))
    assert len(placed(world)) == 2


def test_a_new_plan_may_leave_out_the_pod_that_was_asked_about():
    world = CrewWorld({"c": crew(4, 2)}, rack(0, 3), hands("c", "w", 4))
    before = {uid: node for uid, node in world.held.items() if uid != "uid-c-w-2"}
    assert isinstance(world.filter(world.pods["uid-c-w-0"]), Pinned)
    answer = refused(world, "uid-c-w-2")  # the third node takes no pod like it
    assert isinstance(answer, Rejected)
    assert world.held == before


def test_a_needed_pod_whose_node_is_refused_costs_the_plan():
    world = CrewWorld({"c": crew(4, 3)}, rack(0, 3), hands("c", "w", 4))
    for uid in ("uid-c-w-0", "uid-c-w-1"):
        assert isinstance(world.filter(world.pods[uid]), Pinned)
    assert isinstance(refused(world, "uid-c-w-2"), Rejected)
    assert world.held == {}


def brought(world, but, seconds, asked=False):
    """kube-scheduler takes all pods but these to /bind for so long; asked: these to /filter."""
    for _ in range(seconds):
        for uid, each in list(world.pods.items()):
            if uid in but and not asked:
                continue
            answer = None if each.node else world.filter(each)
            if isinstance(answer, Pinned) and uid not in but:
                world.confirm(world.bind(each, answer.node))
        world.tick(1.0)
    return placed(world)


@pytest.mark.parametrize("asked", [False, True], ids=["", "though_it_asked_about_it"])
def test_a_pod_that_is_not_needed_and_that_kube_scheduler_never_brings_keeps_none_waiting(asked):
    world = CrewWorld({"c": crew(4, 2)}, rack(0, 4), hands("c", "w", 4), hold_seconds=20.0)
    late = "uid-c-w-1"
    assert brought(world, {late}, 19, asked) == {}
    assert len(brought(world, {late}, 4, asked)) == 3
    assert len(brought(world, {}, 400)) == 4


def test_a_gang_waits_for_no_pod_of_those_it_has_enough_of_without():
    first, *others = hands("c", "w", 3)
    world = CrewWorld({"c": crew(3, 1)}, rack(0, 4), [first], hold_seconds=20.0)
    assert world.held.keys() == {first.uid}
    assert brought(world, {first.uid}, 25) == {}
    assert world.gang("c").binding.awaited == {first.uid}
    world.put(*others)
    assert brought(world, {first.uid}, 35).keys() == {each.name for each in others}


def test_pods_of_which_one_is_needed_and_that_kube_scheduler_never_brings_cost_the_plan():
    world = CrewWorld({"c": crew(4, 3)}, rack(0, 4), hands("c", "w", 4), hold_seconds=20.0)
    assert brought(world, {"uid-c-w-1", "uid-c-w-2"}, 100) == {}
    assert world.held == {}


def test_a_group_that_is_not_needed_and_that_kube_scheduler_brings_in_part_has_no_place():
    pods = [each for at in range(2) for each in hands("c", f"t{at}", 2)]
    nodes = [*rack(0, 2), *rack(1, 2)]
    world = CrewWorld({"c": teams(2, 1)}, nodes, pods, hold_seconds=20.0)
    assert len(world.held) == 4
    assert brought(world, {"uid-c-t0-1"}, 30).keys() == {"c-t1-0", "c-t1-1"}
    assert brought(world, {}, 400).keys() == {each.name for each in pods}


# -- groups that are not needed ------------------------------------------------------------------


def test_it_starts_with_as_many_groups_as_it_needs_each_of_them_whole():
    pods = [each for at in range(3) for each in hands("c", f"t{at}", 2)]
    world = CrewWorld({"c": teams(3, 1)}, [*rack(0, 2), *rack(1, 3)], pods)
    go(world)
    by_team = {at: placed(world, f"t{at}") for at in range(3)}
    assert sorted(map(len, by_team.values())) == [0, 2, 2]
    assert all(len(racks(each)) <= 1 for each in by_team.values())


def test_a_group_that_is_not_needed_waits_until_it_is_whole():
    pods = [*hands("c", "t0", 2), *hands("c", "t1", 1)]
    world = CrewWorld({"c": teams(2, 1)}, [*rack(0, 4)], pods)
    go(world)
    assert placed(world).keys() == {"c-t0-0", "c-t0-1"}
    assert sentence(world, "uid-c-t1-0") == (
        "gang default/c waits with t1 until all that belong to it are there"
    )
    world.put(*hands("c", "t1", 1, first=1))
    finish(world)
    assert len(placed(world, "t1")) == 2


def two_teams():
    """Of two teams of two pods each one is enough; a third pod of the first fits nowhere."""
    root = GroupSpec(
        "c",
        (GroupSpec("t0", (LeafSpec("t0", 3, needed=2),)), GroupSpec("t1", (LeafSpec("t1", 2),))),
        needed=1,
    )
    giant = hands("c", "t0", 1, first=2, gpus=99)
    return CrewWorld({"c": root}, rack(0, 4), [*hands("c", "t0", 2), *giant, *hands("c", "t1", 2)])


def test_a_group_that_lost_a_pod_before_the_start_is_left_out_though_more_pods_of_it_are_there():
    world = two_teams()
    assert len(world.held) == 4
    world.delete(world.pods["uid-c-t0-0"])
    assert world.held.keys() == {"uid-c-t1-0", "uid-c-t1-1"}
    finish(world)
    assert placed(world).keys() == {"c-t1-0", "c-t1-1"}
    world.delete(world.pods["uid-c-t0-2"])
    world.put(*hands("c", "t0", 1, first=3))
    finish(world)
    assert placed(world, "t0").keys() == {"c-t0-1", "c-t0-3"}


def test_a_group_of_which_a_pod_is_offered_no_place_is_left_out_and_another_one_starts():
    root = GroupSpec("c", tuple(GroupSpec(name, (LeafSpec(name, 2),)) for name in ("t0", "t1")))
    large = node("b0/r1/n10", gpus=16)
    pods = [*hands("c", "t0", 1), *hands("c", "t0", 1, first=1, gpus=16), *hands("c", "t1", 2)]
    world = CrewWorld({"c": replace(root, needed=1)}, [*rack(0, 3), large], pods)
    assert world.held["uid-c-t0-1"] == "n10"
    assert isinstance(world.filter(world.pods["uid-c-t0-0"]), Pinned)
    assert isinstance(refused(world, "uid-c-t0-1"), Rejected)
    assert world.held.keys() == {"uid-c-t1-0", "uid-c-t1-1"}


def test_a_group_that_has_not_started_starts_whole_or_not_at_all_beside_those_that_run():
    pods = [each for at in range(2) for each in hands("c", f"t{at}", 2)]
    stranger = pod("s", on="n10")
    world = CrewWorld({"c": teams(2, 1)}, [*rack(0, 2), *rack(1, 2)], [stranger, *pods])
    finish(world)
    assert len(placed(world, "t0")) + len(placed(world, "t1")) == 2
    world.delete(stranger)
    finish(world)
    assert len(placed(world, "t0")) == len(placed(world, "t1")) == 2


def test_a_group_that_starts_beside_those_that_run_is_held_at_bind_until_it_is_whole():
    world = CrewWorld({"c": teams(2, 1)}, [*rack(0, 2), *rack(1, 2)], hands("c", "t0", 2))
    go(world)
    late = hands("c", "t1", 2)
    world.put(*late)
    world.tick()
    first, second = ((each, world.held[each.uid]) for each in late)
    assert world.bind(*first) == []
    world.tick(50.0)
    assert world.refused == []
    effects = world.bind(*second)
    assert sorted(each.name for each in effects) == ["c-t1-0", "c-t1-1"]
    world.confirm(effects)
    assert len(placed(world, "t1")) == 2


def test_a_lost_member_of_a_group_that_runs_is_replaced_alone():
    pods = [each for at in range(2) for each in hands("c", f"t{at}", 2)]
    world = CrewWorld({"c": teams(2, 1)}, [*rack(0, 2), *rack(1, 2)], pods)
    finish(world)
    assert len(placed(world)) == 4
    world.delete(world.pods["uid-c-t1-0"])
    world.put(*hands("c", "t1", 1, first=5))
    finish(world)
    assert len(placed(world, "t1")) == 2
    assert len(racks(placed(world, "t1"))) == 1


def test_a_group_with_enough_of_its_pods_is_whole():
    pods = [*hands("c", "t0", 2), *hands("c", "t1", 1)]
    world = CrewWorld({"c": teams(2, 2, pods_needed=1)}, [*rack(0, 2), *rack(1, 1)], pods)
    finish(world)
    assert len(placed(world)) == 3


def test_groups_that_have_their_nodes_count_when_the_others_are_planned_again():
    """Two of three teams are needed; one keeps its nodes, and there is room for one more."""
    pods = [each for at in range(3) for each in hands("c", f"t{at}", 2)]
    nodes = [*rack(0, 2), *rack(1, 2), *rack(2, 2)]
    stranger = pod("s", on="n20")
    world = CrewWorld({"c": teams(3, 2)}, nodes, [stranger, *pods])
    first, second = (
        sorted(uid for uid, node in world.held.items() if node.startswith(rack_name))
        for rack_name in ("n0", "n1")
    )
    for uid in first:
        assert isinstance(world.filter(world.pods[uid]), Pinned)
    world.delete(stranger)
    offered = [each.name for each in nodes if not each.name.startswith("n1")]
    answer = world.filter(world.pods[second[0]], offered)
    assert isinstance(answer, Pinned)
    assert answer.node.startswith("n2")
    assert all(world.held[uid].startswith("n0") for uid in first)


def test_a_lost_group_that_was_needed_does_not_keep_another_one_from_its_replacement():
    pods = [each for at in range(3) for each in hands("c", f"t{at}", 2)]
    nodes = [*rack(0, 2), *rack(1, 2), *rack(2, 2)]
    world = CrewWorld({"c": teams(4, 3)}, nodes, pods, owed_seconds=0.0)
    finish(world)
    gone = [world.pods[f"uid-c-t2-{at}"] for at in range(2)]
    lost = world.pods["uid-c-t1-0"]
    world.put(pod("s", on=gone[0].node))
    world.delete(*gone, lost)
    world.put(*hands("c", "t2", 2, first=5), *hands("c", "t1", 1, first=5))
    finish(world)
    assert len(placed(world, "t1")) == 2
    assert len(placed(world, "t2")) == 0


def test_a_gang_that_needs_less_is_searched_though_one_like_it_found_no_place():
    pods = [each for name in "ab" for at in range(2) for each in hands(name, f"t{at}", 2)]
    world = CrewWorld({"a": teams(3, 2), "b": teams(3, 1)}, rack(0, 2), pods)
    go(world)
    assert {name[0] for name in placed(world)} == {"b"}


def test_a_leader_with_workers_in_such_a_gang_is_refused_by_name():
    members = hands("c", "w", 2)
    world = CrewWorld({"c": crew(2, 1)}, rack(0, 2))
    dialect = world.engine.dialects.each[0]
    claim = dialect.claim(members[0])
    dialect.claim = lambda each, objects: replace(
        claim, said=replace(claim.said, pod_set_group="led")
    )
    world.put(*members)
    go(world)
    assert placed(world) == {}
    assert sentence(world, "uid-c-w-0").endswith(
        "pod set group led: a leader and its workers are not placed in a gang that may start"
        " without some of its pods"
    )


def test_groups_deeper_than_the_search_goes_are_refused_by_number():
    deep = crew(2, 1)
    for at in range(20):
        deep = GroupSpec(f"g{at}", (deep,))
    world = CrewWorld({"c": deep}, rack(0, 2), hands("c", "w", 2))
    assert go(world) == {}
    assert sentence(world, "uid-c-w-0") == (
        "gang default/c is invalid: the crew c declares groups in groups 21 deep, and 16 are read"
    )


# -- in any order, against what must hold --------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_random_gangs_never_start_short_and_start_when_they_fit(seed):
    """Pods come and go in any order; what is bound is checked after every step.

    At the end all pods are there and the cluster is empty but for the gang: all of it runs, but
    for teams that came into a rack with another one when both were small.
    """
    rng = Random(seed)
    pods_needed = rng.choice([None, 1, 2])
    root = teams(3, rng.randint(0, 3), pods=3, pods_needed=pods_needed)
    least = sorted(each.members[0].least for each in root.members)[: root.least]
    world = CrewWorld({"c": root}, [one for at in range(3) for one in rack(at, 3)])
    everyone = [each for at in range(3) for each in hands("c", f"t{at}", 3)]
    strangers = [pod(f"s{r}{at}", on=f"n{r}{at}") for r in range(3) for at in range(3)]
    left = rng.sample(strangers, rng.randint(0, 7))
    world.put(*left)
    arriving = rng.sample(everyone, len(everyone))
    has_started = False
    while arriving or left:
        step = rng.random()
        if arriving and step < 0.5:
            world.put(arriving.pop())
        elif left and step < 0.7:
            world.delete(left.pop())
        elif step < 0.75 and (there := [each for each in everyone if each.uid in world.pods]):
            gone = rng.choice(there)
            world.delete(world.pods[gone.uid])
            arriving.append(gone)
        else:
            world.tick(rng.choice([0.1, 5.0, 40.0]))
            go(world)
        teams_bound = [len(placed(world, f"t{at}")) for at in range(3)]
        if any(teams_bound) and not has_started:
            has_started = True
            assert (
                sum(
                    count >= each.members[0].least
                    for count, each in zip(teams_bound, root.members, strict=True)
                )
                >= root.least
            )
            assert sum(teams_bound) >= max(sum(least), 1)
        for at in range(3):
            assert len(racks(placed(world, f"t{at}"))) <= 1
    finish(world)
    finish(world)
    free = Counter(each.name[:2] for each in world.engine.books.nodes.values())
    free.subtract(Counter(on[:2] for on in placed(world).values()))
    for team in root.members:
        (leaf,) = team.members
        there = placed(world, leaf.name)
        if not there:
            assert max(free.values()) < leaf.least, f"{leaf.name} fits and has not started"
        elif len(there) < leaf.pods:
            assert not free[next(iter(racks(there)))], f"{leaf.name} has room for more"
    assert sum(map(bool, (placed(world, f"t{at}") for at in range(3)))) >= max(root.least, 1)


def test_the_same_pods_give_the_same_gang_after_a_restart():
    world = CrewWorld(
        {"c": teams(3, 1)},
        [*rack(0, 2), *rack(1, 3)],
        [each for at in range(3) for each in hands("c", f"t{at}", 2)],
    )
    finish(world)
    before = placed(world)
    again = CrewWorld(
        {"c": teams(3, 1)},
        [*rack(0, 2), *rack(1, 3)],
        [msgspec.structs.replace(each) for each in world.pods.values()],
    )
    assert again.gang("c").phase is world.gang("c").phase is Phase.REPAIRING
    assert again.held == world.held == {}
    again.put(*rack(2, 2))
    finish(again)
    assert before.items() <= placed(again).items()
    assert len(placed(again)) == 6
