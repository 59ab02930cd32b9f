"""Gated gangs: complete while gated, ungated together, narrowed to where they were placed."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from app.dialects import corral
from app.kube.core.objects import Requirement, Shape, Term
from app.kube.watch.events import Listed
from app.state.effects import Ungate, UngateFailed
from app.state.filter_result import Pinned, Rejected
from app.state.gang.gang import Phase
from tests.app.dialects.volcano.objects import exact, record
from tests.app.state.world import LISTED, Names, World, four_racks, members, racks, ungated
from tests.records import (
    BLOCK,
    PREFERRED,
    RACK,
    REQUIRED,
    SLICE_LEVEL,
    SLICE_SIZE,
    UNCONSTRAINED,
    group,
    node,
    pod,
)

GATE = "corral.dev/gang"
OURS = (GATE,)


def ungates_of(world, pods):
    """The patches that take the gates off; as many as there are pods."""
    found = world.told(Ungate)
    assert len(found) == pods
    return found


def nodes_of(world, name):
    return {effect.name: effect.nodes for effect in world.told(Ungate)}[name]


def test_a_gated_gang_is_planned_when_its_last_member_exists_and_ungated_at_once():
    world = World(four_racks())
    pods = members("g", 4, gates=OURS)
    world.put(*pods[:3])
    world.tick()
    assert world.ungated == []
    world.put(pods[3])
    assert sorted(world.ungated) == ["g0", "g1", "g2", "g3"]
    assert world.woken == []


def test_a_gated_gang_ends_bound_in_one_rack():
    world = World(four_racks(), members("g", 4, gates=OURS))
    world.patch(world.effects)
    placed = world.schedule(*(world.pods[f"uid-g{i}"] for i in range(4)))
    assert len(placed) == 4
    assert len(racks(placed)) == 1


def test_pods_are_narrowed_to_the_nodes_of_their_domain_with_the_planned_ones_first():
    world = World(four_racks(), members("g", 2, gates=OURS))
    planned = set(world.held.values())
    for name in ("g0", "g1"):
        nodes = nodes_of(world, name)
        assert set(nodes[:2]) == planned
        assert set(nodes) == {f"n{next(iter(planned))[1]}{i}" for i in range(4)}


def test_every_pod_keeps_its_own_node_when_the_domain_is_larger_than_the_limit():
    world = World(four_racks(), members("g", 4, gates=OURS), narrow_nodes=2)
    for effect in ungates_of(world, pods=4):
        assert len(effect.nodes) == 2
        assert world.held[effect.uid] in effect.nodes


def test_a_gang_without_levels_is_narrowed_to_the_nodes_planned_for_it():
    annotations = group("g", 2, **{UNCONSTRAINED: "true"})
    pods = [pod(f"g{i}", annotations=annotations, gates=OURS) for i in range(2)]
    world = World(four_racks(), pods)
    assert set(nodes_of(world, "g0")) == set(world.held.values())


def test_with_no_limit_set_pods_are_ungated_without_narrowing():
    world = World(four_racks(), members("g", 2, gates=OURS), narrow_nodes=0)
    assert [effect.nodes for effect in world.told(Ungate)] == [(), ()]


def test_a_pod_with_affinity_of_its_own_is_narrowed_by_the_labels_of_its_domain():
    only = Shape(terms=(Term((Requirement("kubernetes.io/hostname", "Exists", ()),)),))
    world = World(four_racks(), members("g", 2, gates=OURS, shape=only))
    (rack,) = {on[1] for on in world.held.values()}
    for effect in ungates_of(world, pods=2):
        assert effect.nodes == ()
        assert dict(effect.selector) == {BLOCK: f"b{int(rack) // 2}", RACK: f"r{rack}"}


def test_a_pod_with_affinity_of_its_own_is_narrowed_by_no_label_that_nodes_do_not_have():
    """Tiers of HyperNodes are in no label: kube-scheduler would find no node for it, ever."""
    tier = "topology.volcano.sh/tier-1"
    nodes = [node(f"n{at}") for at in range(4)]
    world = World(nodes, kinds=(*LISTED, "HyperNode"), levels=())
    its = (record("s0", 1, exact("Node", "n0", "n1")), record("s1", 1, exact("Node", "n2", "n3")))
    world.apply(Listed("HyperNode", its))
    only = Shape(terms=(Term((Requirement("kubernetes.io/hostname", "Exists", ()),)),))
    pods = members("g", 2, tier, gates=OURS, shape=only)
    world.put(*pods)
    world.tick()
    for effect in ungates_of(world, pods=2):
        assert (effect.nodes, effect.selector, effect.annotations) == ((), (), ())
    world.patch(world.effects)
    assert set(world.schedule(*pods).values()) in ({"n0", "n1"}, {"n2", "n3"})


def test_a_foreign_gate_keeps_the_whole_gang_waiting():
    late = World(four_racks())
    first, second = members("g", 2, gates=OURS)
    blocked = members("g", 2, gates=("example.com/quota", *OURS))[1]
    late.put(first, blocked)
    late.tick()
    assert late.ungated == []
    late.put(second)
    late.tick()
    assert sorted(late.ungated) == ["g0", "g1"]


def test_nobody_is_patched_twice_before_the_watch_shows_the_first_patch():
    world = World(four_racks(), members("g", 2, gates=OURS))
    for _ in range(50):
        world.tick()
    assert sorted(world.ungated) == ["g0", "g1"]


@pytest.mark.parametrize(
    ("asked", "domain"),
    [
        pytest.param({REQUIRED: RACK}, "n0", id="required_rack"),
        pytest.param({PREFERRED: RACK}, "n0", id="preferred_rack"),
        pytest.param({REQUIRED: BLOCK}, "n", id="required_block"),
    ],
)
def test_a_replacement_is_narrowed_to_the_domain_of_the_pod_it_replaces(asked, domain):
    nodes = [each for each in four_racks() if each.name < "n2"]  # one block of two racks
    annotations = group("g", 2, **asked)
    first, lost = pods = [pod(f"g{i}", annotations=annotations) for i in range(2)]
    world = World(nodes, pods)
    on = world.schedule(first, lost)["g1"]
    world.delete(world.pods[lost.uid])
    world.put(pod("new", gates=OURS, annotations=annotations))
    world.tick()
    narrowed = nodes_of(world, "new")
    assert narrowed[0] == on
    assert set(narrowed) == {each.name for each in nodes if each.name.startswith(domain)}


def test_a_failed_patch_is_sent_again():
    world = World(four_racks(), members("g", 2, gates=OURS))
    world._take(world.engine.ungate_finished("uid-g0", UngateFailed("timeout"), world.now))
    for _ in range(20):
        world.tick()
    assert sorted(world.ungated) == ["g0", "g0", "g1"]


@pytest.mark.parametrize("is_told", [True, False], ids=["failed", "no_answer"])
def test_a_failed_patch_is_sent_again_though_another_member_has_no_place(is_told):
    world = World(four_racks(), members("g", 4, gates=OURS))
    world.patch(world.effects)
    placed = world.schedule(*list(world.pods.values()))
    for name in ("g0", "g1"):
        world.delete(world.pods[f"uid-{name}"])
    closed = world.engine.books.nodes[placed["g1"]]
    world.put(msgspec.structs.replace(closed, is_unschedulable=True))
    new = members("g", 4, gates=OURS)[:2]
    world.put(*(msgspec.structs.replace(each, uid=f"{each.uid}-new") for each in new))
    world.tick()
    assert world.gang().phase is Phase.REPAIRING
    (sent,) = [each for each in world.told(Ungate) if each.uid.endswith("-new")]
    if is_told:
        world._take(world.engine.ungate_finished(sent.uid, UngateFailed("timeout"), world.now))
    for _ in range(3 if is_told else 12):
        world.tick(1.0)
    assert world.ungated.count(sent.name) == 3  # once in its first life


def test_a_patch_that_the_api_server_refuses_is_sent_without_narrowing():
    world = World(four_racks(), members("g", 2, gates=OURS))
    refused = UngateFailed("422", is_forbidden=True)
    world._take(world.engine.ungate_finished("uid-g0", refused, world.now))
    again = [effect for effect in world.told(Ungate) if effect.name == "g0"]
    assert [effect.nodes == () for effect in again] == [False, True]


def test_nothing_is_remembered_of_the_patches_of_a_pod_that_is_gone():
    world = World(four_racks(), members("g", 2, gates=OURS))
    refused = UngateFailed("422", is_forbidden=True)
    world._take(world.engine.ungate_finished("uid-g0", refused, world.now))
    ungating = world.gang().ungating
    assert "uid-g0" in ungating.sent.keys() & ungating.unnarrowed
    world.delete(world.pods["uid-g0"])
    assert ungating.sent.keys() | ungating.unnarrowed == {"uid-g1"}


def test_the_pod_of_a_failed_patch_that_is_gone_ends_the_plan():
    world = World(four_racks(), members("g", 2, gates=OURS))
    gone = UngateFailed("404", is_gone=True)
    world._take(world.engine.ungate_finished("uid-g0", gone, world.now))
    world.delete(world.pods["uid-g0"])
    assert world.held == {}


def test_a_plan_lost_after_ungating_is_made_again_inside_the_nodes_left_to_the_pods():
    world = World(four_racks(), members("g", 2, gates=OURS))
    world.patch(world.effects)
    lost = next(iter(world.held.values()))
    world.put(node(f"b{int(lost[1]) // 2}/r{lost[1]}/{lost}", is_ready=False))
    for _ in range(20):
        world.tick()
    assert len(world.held) == 2
    assert lost not in world.held.values()
    assert {on[:2] for on in world.held.values()} == {lost[:2]}


def test_the_nodes_left_to_a_pod_are_known_while_the_watch_still_shows_it_gated():
    world = World(four_racks(), members("g", 2, gates=OURS), narrow_nodes=1)
    ungates_of(world, pods=2)
    for each in list(world.pods.values()):
        said = {**each.annotations, "example.com/said": "before the patch"}
        world.put(msgspec.structs.replace(each, annotations=said))
    lost = next(iter(world.held.values()))
    world.put(node(f"b{int(lost[1]) // 2}/r{lost[1]}/{lost}", is_ready=False))
    world.tick()
    world.tick(2.0)
    assert world.held == {}  # one of the two may have that node only


def test_members_left_with_other_nodes_than_planned_lose_the_plan():
    world = World(four_racks(), members("g", 2, gates=OURS))
    planned = set(world.held.values())
    elsewhere = next(n for n in world.engine.books.nodes if n[1] != next(iter(planned))[1])
    for effect in ungates_of(world, pods=2):
        patch = Ungate(
            "default", effect.name, effect.uid, GATE, (elsewhere,), (), effect.annotations
        )
        world.put(ungated(world.pods[effect.uid], patch))
    for _ in range(30):
        world.tick()
    # Two pods of 8 GPUs that the API server left with one node of 8: nothing can be planned.
    assert world.held == {}


def test_a_replacement_that_comes_gated_is_ungated_into_the_domain_of_the_others():
    world = World(four_racks(), members("g", 3, gates=OURS))
    world.patch(world.effects)
    placed = world.schedule(*(world.pods[f"uid-g{i}"] for i in range(3)))
    world.delete(world.pods["uid-g1"])
    newcomer = pod("g1b", annotations=group("g", 3, RACK), gates=OURS, uid="uid-g1b")
    world.put(newcomer)
    world.tick()
    world.patch(world.effects[-5:])
    placed = world.schedule(world.pods["uid-g1b"])
    assert {on[:2] for on in placed.values()} == {world.pods["uid-g0"].node[:2]}


def test_whoever_asks_about_a_gated_member_though_kube_scheduler_never_does_is_told_to_wait():
    world = World(four_racks())
    first, _ = members("g", 2, gates=OURS)
    world.put(first)
    answer, effects = world.engine.filter(first, Names(world.engine.books.nodes), world.now)
    assert isinstance(answer, Rejected)
    assert effects == []


def test_the_scheduler_of_these_tests_tries_no_pod_with_a_gate():
    world = World(four_racks(), members("g", 2, gates=("example.com/quota",)))
    gated = list(world.pods.values())
    assert world.schedule(*gated) == {}
    with pytest.raises(AssertionError, match="does not ask about g0"):
        world.filter(gated[0])


def test_after_a_restart_ungated_members_keep_their_nodes_and_gated_ones_follow():
    world = World(four_racks(), members("g", 4, gates=OURS))
    effects = world.told(Ungate)
    world.patch(effects[:2])
    again = World(four_racks(), world.pods.values())
    again.patch(again.effects)
    placed = again.schedule(*(again.pods[f"uid-g{i}"] for i in range(4)))
    assert len(placed) == 4
    assert racks(placed) == racks(world.held)


@pytest.mark.parametrize("asked", ["g0", "g1"])
def test_a_planned_member_is_pinned_once_it_is_ungated(asked):
    world = World(four_racks(), members("g", 2, gates=OURS))
    world.patch(world.effects)
    answer = world.filter(world.pods[f"uid-{asked}"])
    assert answer == Pinned(world.held[f"uid-{asked}"])


def test_a_sliced_gang_whose_plan_is_lost_when_some_are_ungated_is_placed_again_whole():
    annotations = group("g", 4, BLOCK, **{SLICE_LEVEL: RACK, SLICE_SIZE: "2"})
    pods = [pod(f"g{i}", annotations=annotations, gates=OURS) for i in range(4)]
    world = World(four_racks(), pods)
    world.patch(world.told(Ungate)[:1])  # one of four is ungated and narrowed
    lost = next(iter(world.held.values()))
    world.put(node(f"b{int(lost[1]) // 2}/r{lost[1]}/{lost}", is_ready=False))
    for _ in range(30):
        world.tick()
    assert len(world.held) == 4
    assert lost not in world.held.values()
    assert "is invalid" not in " ".join(world.reports)


def test_a_pod_that_selects_a_label_itself_is_narrowed_by_the_others():
    shape = Shape(
        selector=((RACK, "r1"),), terms=(Term((Requirement("gpu", "DoesNotExist", ()),)),)
    )
    world = World(four_racks(), members("g", 2, gates=OURS, shape=shape))
    for effect in ungates_of(world, pods=2):
        assert dict(effect.selector) == {BLOCK: "b0"}


def test_what_a_pod_was_narrowed_to_counts_at_filter_before_the_watch_shows_it():
    """Another Corral took its gate off, and this one has not been shown that."""
    pods = members("g", 2, gates=OURS)
    world = World(four_racks(), pods)
    gang, sent = world.gang(), ungates_of(world, pods=2)[0]
    elsewhere = ungated(pods[0], replace(sent, nodes=("n30", "n31")))
    assert gang.members["uid-g0"].allowed != {"n30", "n31"}
    assert isinstance(world.filter(elsewhere, ("n30", "n31")), Rejected)
    assert gang.members["uid-g0"].allowed == {"n30", "n31"}


@pytest.mark.parametrize("is_marked", [False, True], ids=["asked_about", "marked"])
def test_where_ordinary_pods_are_not_asked_members_may_go_to_domains_beside_theirs(is_marked):
    marks = {"marker_resource": True, "needs_nodes": "off"} if is_marked else {}
    world = World(four_racks(), **marks)
    world.put(*members("g", 4, gates=OURS))
    own = set(world.held.values())
    for patch in ungates_of(world, 4):
        assert set(patch.nodes) >= own
        assert len(patch.nodes) == (16 if is_marked else 4)


def test_a_narrowed_gang_that_loses_a_node_to_another_pod_starts_beside_its_rack():
    world = World(four_racks(), marker_resource=True, needs_nodes="off")
    pods = members("g", 4, gates=OURS)
    world.put(*pods)
    world.patch(world.told(Ungate))
    taken = next(iter(world.held.values()))
    world.put(pod("thief", gpus=8, on=taken))
    for _ in range(50):
        world.tick()
    placed = world.schedule(*pods)
    assert len(placed) == 4
    assert len(racks(placed)) == 1
    assert taken[:2] not in racks(placed)


OWN_TERMS = Shape(terms=(Term((Requirement("kubernetes.io/hostname", "Exists", ()),)),))


def left_behind(rack: str, patched: int, own: Shape) -> World:
    """Two gangs of a rack each and room for both; a Corral before has patched some of the second.

    Pods with node affinity of their own are narrowed by the labels of the rack.
    """
    if own.terms:
        labels, nodes = ((BLOCK, "b0"), (RACK, rack)), ()
        how = ",".join(key for key, _ in labels)
    else:
        labels, nodes, how = (), tuple(f"n{rack[1]}{number}" for number in range(4)), "nodes"
    said = ((corral.NARROWED, how),)
    first = members("first", 4, gates=OURS, shape=own)
    second = [
        ungated(each, Ungate("default", each.name, each.uid, GATE, nodes, labels, said))
        if number < patched
        else each
        for number, each in enumerate(members("second", 4, gates=OURS, shape=own))
    ]
    return World(four_racks()[:8], [*first, *second])


def places(world: World, name: str) -> list[str]:
    return sorted(on for uid, on in world.held.items() if uid.startswith(f"uid-{name}"))


@pytest.mark.parametrize("own", [Shape(), OWN_TERMS], ids=["nodes", "labels"])
@pytest.mark.parametrize("patched", [1, 4])
@pytest.mark.parametrize("rack", ["r0", "r1"])
def test_after_a_restart_a_gang_keeps_the_rack_that_it_was_narrowed_to(rack, patched, own):
    world = left_behind(rack, patched, own)
    assert {each[:2] for each in places(world, "second")} == {f"n{rack[1]}"}
    assert len(places(world, "first")) == 4


def test_a_gang_that_was_narrowed_by_labels_has_the_nodes_that_join_its_rack():
    world = left_behind("r1", 4, OWN_TERMS)
    for number in range(4):
        world.delete(node(f"b0/r1/n1{number}"))
    assert places(world, "second") == []
    world.put(*(node(f"b0/r1/n1{number}") for number in range(4, 8)))
    for _ in range(30):
        world.tick()
    assert places(world, "second") == ["n14", "n15", "n16", "n17"]


def test_a_gang_before_which_a_narrowed_one_waits_for_its_pods_is_not_kept_waiting():
    pods = left_behind("r0", 4, Shape()).pods
    world = World(four_racks()[:8], [each for uid, each in pods.items() if uid != "uid-second3"])
    assert places(world, "second") == []
    assert len(places(world, "first")) == 4
