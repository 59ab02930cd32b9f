"""Gangs of KAI's PodGroups, as PodGroups, Topologies and pods come, change and go."""

from __future__ import annotations

import msgspec
import pytest

from app.kube.watch.events import Listed
from app.state.effects import Requeue, WriteStatus
from app.state.filter_result import Passed, Rejected
from tests.app.dialects.kai.objects import group, member, sub_group, topology_record, within
from tests.app.state.stories import finish, sentence
from tests.app.state.world import LISTED, World, four_racks
from tests.records import BLOCK, PREFERRED, RACK, REQUIRED, TOTAL, node, pod, topology
from tests.records import GROUP as KUEUE_GROUP

KINDS = (*LISTED, "Topology.kai.scheduler", "PodGroup.scheduling.run.ai")
NET = topology_record("net", BLOCK, RACK)
TOPOLOGY, PODS = "Topology.kai.scheduler", "PodGroup.scheduling.run.ai"


def world_of(*things, nodes=None, topologies=(NET,), **settings):
    """Four racks of four nodes with room for one pod each, in two blocks; pods come last."""
    chosen = {"kinds": KINDS, "levels": (), **settings}
    world = World(four_racks(gpus=1) if nodes is None else nodes, **chosen)
    world.apply(Listed(TOPOLOGY, tuple(topologies)))
    world.apply(Listed(PODS, ()))
    world.put(*things)
    world.tick()
    return world


def members(count, part="", *, first=0, of="pg", **more):
    numbers = range(first, first + count)
    return [member(f"{part or of}-{at}", part, of=of, gpus=1, **more) for at in numbers]


def started(world, *things):
    """The node of each of these pods once they have come and all was tried; names by prefix."""
    world.put(*things)
    finish(world)
    return on(world)


def on(world, prefix=""):
    return {
        each.name: each.node
        for each in world.pods.values()
        if each.node and each.name.startswith(prefix) and not each.name.startswith("other-")
    }


def racks(nodes):
    return {name[:2] for name in nodes.values()}


def blocks(nodes):
    return {int(name[1]) // 2 for name in nodes.values()}


def fill(world, *names):
    world.put(*(pod(f"other-{name}", gpus=1, on=name, phase="Running") for name in names))


# -- one group -------------------------------------------------------------------------------------


def test_a_gang_is_in_one_domain_of_the_level_it_requires():
    assert racks(started(world_of(group("pg", 4, on=within(RACK))), *members(4))) == {"n0"}


def test_a_gang_that_does_not_fit_starts_with_no_pod_and_says_why():
    world = world_of(group("pg", 5, on=within(RACK)))
    assert started(world, *members(5)) == {}
    assert "4 of 5 pods fit" in sentence(world, "uid-pg-0")
    assert world.held == {}


def test_a_preferred_level_is_widened_up_to_the_required_one():
    pg = group("pg", 6, on=within(BLOCK, RACK))
    placed = started(world_of(pg), *members(6))
    assert (len(placed), len(blocks(placed))) == (6, 1)
    assert started(world_of(group("pg", 9, on=within(BLOCK, RACK))), *members(9)) == {}


def test_a_level_that_is_only_preferred_never_keeps_a_gang_waiting():
    assert len(started(world_of(group("pg", 12, on=within("", RACK))), *members(12))) == 12


def test_pods_beyond_the_minimum_follow_one_by_one_into_the_same_rack():
    world = world_of(group("pg", 2, on=within(RACK)))
    fill(world, "n00", "n10", "n11", "n20", "n30", "n31")
    placed = started(world, *members(6))
    assert set(placed.values()) == {"n12", "n13"}  # the fullest rack that takes what is needed
    world.delete(world.pods["uid-other-n10"])
    finish(world)
    assert sorted(on(world).values()) == ["n10", "n12", "n13"]


def test_pods_wait_for_their_pod_group_and_say_so():
    world = world_of()
    assert started(world, *members(2)) == {}
    assert sentence(world, "uid-pg-0") == "gang default/pg waits until PodGroup pg is there"
    assert len(started(world, group("pg", 2))) == 2


def test_pods_that_the_pod_grouper_has_not_grouped_yet_wait_and_then_start_together():
    world = world_of(group("pg", 2, on=within(RACK)), scheduler_name="kai-scheduler")
    bare = [pod(f"pg-{at}", gpus=1, scheduler="kai-scheduler") for at in range(2)]
    assert started(world, *bare) == {}
    assert sentence(world, "uid-pg-0") == (
        "gang default/pg-0 waits until KAI's pod-grouper names its PodGroup in annotation"
        " pod-group-name"
    )
    first, second = members(2, scheduler="kai-scheduler")
    assert started(world, first) == {}
    assert len(racks(started(world, second))) == 1


# -- sub-groups ------------------------------------------------------------------------------------

REPLICAS = (
    sub_group("a", topologyConstraint=within(BLOCK)),
    sub_group("a-leader", 1, "a"),
    sub_group("a-workers", 4, "a", topologyConstraint=within(RACK)),
    sub_group("b", topologyConstraint=within(BLOCK)),
    sub_group("b-leader", 1, "b"),
    sub_group("b-workers", 4, "b", topologyConstraint=within(RACK)),
)


def replica(name):
    return [*members(1, f"{name}-leader"), *members(4, f"{name}-workers")]


def test_a_sub_group_is_in_its_domain_inside_the_domain_of_its_parent():
    placed = started(world_of(group("pg", None, *REPLICAS)), *replica("a"), *replica("b"))
    assert len(placed) == 10
    for name in "ab":
        its = {pod: node for pod, node in placed.items() if pod.startswith(name)}
        workers = {pod: node for pod, node in its.items() if "workers" in pod}
        assert (len(blocks(its)), len(racks(workers))) == (1, 1)


def test_no_sub_group_starts_without_the_others():
    world = world_of(group("pg", None, *REPLICAS))
    fill(world, "n00", "n10", "n20")  # a rack of four is left in one block only
    assert started(world, *replica("a"), *replica("b")) == {}


def test_min_sub_group_lets_as_many_start_and_the_others_follow_whole():
    world = world_of(group("pg", None, *REPLICAS, minSubGroup=1))
    fill(world, "n00", "n10", "n20")
    placed = started(world, *replica("a"), *replica("b"))
    assert len({name[0] for name in placed}) == 1
    assert len(placed) == 5
    world.delete(world.pods["uid-other-n00"])
    finish(world)
    assert len(on(world, "a")) == len(on(world, "b")) == 5


def test_it_starts_before_the_pods_of_a_sub_group_exist_that_is_not_needed():
    world = world_of(group("pg", None, *REPLICAS, minSubGroup=1))
    assert len(started(world, *replica("b"))) == 5
    (late, *rest) = replica("a")
    assert started(world, late) == on(world, "b")  # it is not whole yet
    assert len(started(world, *rest)) == 10


@pytest.mark.parametrize("least", [None, 1])
def test_sub_groups_may_be_fourteen_deep(least):
    chain = [
        sub_group(f"s{at}", parent=f"s{at - 1}" if at else "", minSubGroup=least)
        for at in range(13)
    ]
    in_a_rack = {"topologyConstraint": within(RACK)}
    leaves = [sub_group("a", 2, "s12", **in_a_rack), sub_group("b", 2, "s12", **in_a_rack)]
    world = world_of(group("pg", None, *chain, *leaves, on=within(BLOCK)))
    assert len(started(world, *members(2, "a"), *members(2, "b"))) == 4


def test_the_pods_of_a_leaf_may_differ_and_are_in_one_domain_all_the_same():
    pg = group("pg", None, sub_group("w", 4, topologyConstraint=within(RACK)))
    world = world_of(pg)
    mixed = [member(f"w-{at}", "w", gpus=1, cpu=1000 * (1 + at % 2)) for at in range(4)]
    assert len(racks(started(world, *mixed))) == 1
    assert len(on(world, "w")) == 4


def test_segments_are_cut_where_the_pod_grouper_wrote_no_sub_groups():
    said = {
        "kai.scheduler/segment-size": "4",
        "kai.scheduler/segment-topology-required-placement": RACK,
    }
    world = world_of(group("pg", 8, on=within(BLOCK)))
    index = "batch.kubernetes.io/job-completion-index"
    pods = [member(f"p{at}", gpus=1, labels={index: str(at)}, annotations=said) for at in range(8)]
    placed = started(world, *reversed(pods))
    for segment in (0, 4):
        assert len(racks({f"p{at}": placed[f"p{at}"] for at in range(segment, segment + 4)})) == 1


# -- what is wrong ---------------------------------------------------------------------------------


def test_pods_of_a_pod_group_that_is_not_valid_wait_until_it_is():
    bad = group("pg", None, sub_group("a", 1, parent="b"))
    world = world_of(bad)
    assert started(world, *members(1, "a")) == {}
    assert sentence(world, "uid-a-0").endswith(
        "PodGroup default/pg: spec.subGroups[0].parent: Invalid value:"
        ' "b": no sub-group has this name'
    )
    assert len(started(world, group("pg", None, sub_group("a", 1)))) == 1


@pytest.mark.parametrize(
    ("said", "why"),
    [
        pytest.param(
            within(RACK, topology="other"),
            "Topology kai.scheduler/other does not exist, or its levels are not valid",
            id="topology",
        ),
        pytest.param(
            within("room"),
            f"Topology kai.scheduler/net has no level room; its levels: {BLOCK}, {RACK},"
            " kubernetes.io/hostname",
            id="level",
        ),
    ],
)
def test_a_topology_or_level_that_is_not_there_is_told_by_name(said, why):
    world = world_of(group("pg", 2, on=said))
    assert started(world, *members(2)) == {}
    assert why in sentence(world, "uid-pg-0")


def test_a_gang_of_more_pods_than_any_may_have_is_told_so():
    world = world_of(group("pg", 2**31 - 1))
    assert started(world, *members(2)) == {}
    assert sentence(world, "uid-pg-0").endswith(
        "PodGroup default/pg declares 2147483647 pods, and a gang may have 100000"
    )


def test_a_pod_that_says_what_only_the_pod_grouper_reads_waits_and_says_so():
    world = world_of()
    one = pod("p", gpus=1, annotations={"kai.scheduler/topology": "net"})
    assert started(world, one) == {}
    assert "only KAI's pod-grouper reads it" in sentence(world, "uid-p")


# -- topologies ------------------------------------------------------------------------------------


def test_a_level_may_be_named_by_its_alias_which_may_come_later():
    world = world_of(group("pg", 4, on=within("rack")))
    assert started(world, *members(4)) == {}
    placed = started(world, topology_record("net", BLOCK, RACK, aliases=("", "rack")))
    assert (len(placed), len(racks(placed))) == (4, 1)


def test_a_topology_of_kueues_with_the_same_name_is_another():
    mine = topology_record("net", "example.com/row")
    rows = [node(f"b0/r{at}/n{at}0", gpus=1, labels={"example.com/row": "x"}) for at in range(2)]
    world = world_of(
        group("pg", 2, on=within("example.com/row")),
        topology("net", BLOCK, RACK),
        nodes=rows,
        topologies=[mine],
    )
    assert len(started(world, *members(2))) == 2
    world = world_of(group("pg", 2, on=within(RACK)), topology("net", RACK), topologies=[mine])
    assert started(world, *members(2)) == {}


def test_the_levels_that_are_set_are_used_beside_kais_topologies():
    world = world_of(topologies=[topology_record("net", "example.com/row")], levels=(BLOCK, RACK))
    annotations = {KUEUE_GROUP: "g", TOTAL: "4", REQUIRED: RACK}
    pods = [pod(f"g{at}", gpus=1, annotations=annotations) for at in range(4)]
    assert len(racks(started(world, *pods))) == 1


# -- as time goes by -------------------------------------------------------------------------------


def test_a_pod_that_is_replaced_comes_back_into_its_domain():
    world = world_of(group("pg", None, *REPLICAS))
    started(world, *replica("a"), *replica("b"))
    rack = racks(on(world, "a-workers"))
    world.delete(world.pods["uid-a-workers-2"])
    (again,) = members(1, "a-workers", first=7)
    placed = started(world, again)
    assert racks({"it": placed["a-workers-7"]}) == rack


def test_a_leaf_that_lacks_pods_gets_all_of_them_back_or_none():
    world = world_of(group("pg", None, *REPLICAS))
    started(world, *replica("a"), *replica("b"))
    (rack,) = racks(on(world, "a-workers"))
    for at in range(2):
        world.delete(world.pods[f"uid-a-workers-{at}"])
    world.tick(300.0)  # their nodes are held no longer
    free = sorted({f"{rack}{at}" for at in range(4)} - set(on(world).values()))
    fill(world, free[0])
    assert not {"a-workers-7", "a-workers-8"} & set(
        started(world, *members(2, "a-workers", first=7))
    )
    world.delete(world.pods[f"uid-other-{free[0]}"])
    finish(world)
    assert {on(world)[f"a-workers-{at}"] for at in (7, 8)} == set(free)


def test_what_had_started_before_a_restart_goes_on_after_it():
    world = world_of(group("pg", None, *REPLICAS))
    started(world, *replica("a"), *replica("b"))
    before = on(world)
    world.delete(world.pods["uid-b-workers-0"])
    again = world_of(group("pg", None, *REPLICAS), *world.pods.values())
    finish(again)
    assert on(again) == {name: at for name, at in before.items() if name != "b-workers-0"}
    placed = started(again, *members(1, "b-workers", first=9))
    assert racks({"it": placed["b-workers-9"]}) == racks(
        {name: at for name, at in before.items() if name.startswith("b-workers")}
    )


def test_a_label_that_changes_moves_a_waiting_pod_to_another_leaf():
    world = world_of(group("pg", None, sub_group("a", 1), sub_group("b", 1)))
    started(world, member("p", "a", gpus=1), member("q", "a", gpus=1))
    assert on(world) == {}
    assert len(started(world, member("q", "b", gpus=1))) == 2


def test_a_pod_group_made_anew_with_other_sub_groups_sorts_its_pods_anew():
    world = world_of(group("pg", None, sub_group("a", 3)))
    started(world, *members(2, "a"))
    assert on(world) == {}
    old = group("pg", None, sub_group("a", 3))
    world.delete(old)
    world.put(msgspec.structs.replace(group("pg", None, sub_group("a", 2)), uid="uid-anew"))
    finish(world)
    assert len(on(world)) == 2


def test_the_pod_group_says_why_its_pods_wait_and_that_they_do_no_more():
    world = world_of(group("pg", 5, on=within(RACK)))
    started(world, *members(4))
    assert world.told(WriteStatus) == []  # a pod is missing
    started(world, *members(1, first=4))
    write, *again = world.told(WriteStatus)  # until it shows
    assert all(each.status == write.status for each in again)
    (condition,) = write.status["schedulingConditions"]
    assert (condition["type"], condition["status"]) == ("UnschedulableOnNodePool", "True")
    assert "4 of 5 pods fit" in condition["message"]
    shown = msgspec.structs.replace(group("pg", 4, on=within(RACK)), conditions=(condition,))
    started(world, shown)
    last = world.told(WriteStatus)[-1].status["schedulingConditions"]
    assert [each["status"] for each in last] == ["False"]


# -- beside other vocabularies ---------------------------------------------------------------------


def test_a_pod_that_says_kueues_annotations_as_well_is_in_kueues_gang():
    world = world_of(group("pg", 5), topology("default", BLOCK, RACK))
    pods = members(2, annotations={KUEUE_GROUP: "g", TOTAL: "2", PREFERRED: RACK})
    assert len(started(world, *pods)) == 2
    assert [key.source for key in world.engine.gangs.by_key] == ["group"]


def test_a_pod_group_that_asks_for_a_level_beside_kueues_annotations_is_refused():
    world = world_of(group("pg", 2, on=within(RACK)), topology("default", BLOCK, RACK))
    pods = members(2, annotations={KUEUE_GROUP: "g", TOTAL: "2"})
    assert started(world, *pods) == {}
    told = "metadata.annotations[pod-group-name]: Forbidden: may not be set together with"
    assert told in sentence(world, "uid-pg-0")
    world.put(group("pg", 2))
    assert len(started(world, *pods)) == 2


def test_a_pod_that_says_volcanos_annotation_as_well_is_in_volcanos_gang():
    world = world_of(group("pg", 2))
    pods = members(2, annotations={"scheduling.k8s.io/group-name": "vc"})
    assert started(world, *pods) == {}
    assert sentence(world, "uid-pg-0") == "gang default/vc waits until PodGroup vc is there"


def test_pods_of_other_schedulers_are_not_ours_and_their_pod_group_is_left_alone():
    world = world_of(group("pg", 2))
    world.put(*members(2, scheduler="kai-scheduler"))
    world.tick(30.0)
    assert world.engine.gangs.by_key == {}
    assert world.told(WriteStatus) == []
    assert isinstance(world.filter(pod("ordinary", gpus=1)), Passed)


def test_a_pod_that_names_the_pod_group_of_another_namespace_is_not_in_it():
    world = world_of(msgspec.structs.replace(group("pg", 1), namespace="other"))
    assert started(world, *members(1)) == {}
    assert isinstance(world.filter(world.pods["uid-pg-0"]), Rejected)


def test_a_pod_rejected_before_it_named_its_pod_group_is_requeued_once_it_has_a_node():
    """kube-scheduler may see the annotation while it is still trying the pod without it."""
    world = world_of(scheduler_name="kai-scheduler")
    bare = pod("late", gpus=1, scheduler="kai-scheduler")
    world.put(bare)
    assert isinstance(world.filter(bare), Rejected)
    world.effects.clear()
    named = msgspec.structs.replace(bare, annotations={"pod-group-name": "pg"})
    world.put(group("pg", 1), named)
    world.tick()
    assert [each.uid for each in world.told(Requeue)] == ["uid-late"]
