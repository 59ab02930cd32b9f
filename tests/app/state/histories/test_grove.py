"""Gangs of Grove's PodGangs, as PodGangs, topologies and pods come, change and go."""

from __future__ import annotations

import msgspec
import pytest

from app.kube.watch.events import Listed
from app.state.effects import STATUS, BindFailed, Evict, Ungate, WriteStatus
from app.state.filter_result import Passed, Rejected
from app.state.journal.record import Recorder
from app.state.journal.replay import replay
from app.state.lifecycle.roll_call import MOST_AT_ONCE
from tests.app.dialects.grove.objects import (
    CREATED,
    GATE,
    gang,
    member,
    pod_group,
    together,
    topology_record,
    within,
)
from tests.app.dialects.kai import objects as kai
from tests.app.state.stories import finish, sentence
from tests.app.state.world import LISTED, World, four_racks
from tests.records import BLOCK, RACK, node, pod

TOPOLOGIES = ("ClusterTopology", "ClusterTopologyBinding")
KINDS = (*LISTED, *TOPOLOGIES, "PodGang")
NET = topology_record("grove-topology", BLOCK, RACK, "kubernetes.io/hostname")


def world_of(*things, nodes=None, topologies=(NET,), **settings):
    """Four racks of four nodes with room for one pod each, in two blocks; pods come last."""
    chosen = {"kinds": KINDS, "levels": (), **settings}
    world = World(four_racks(gpus=1) if nodes is None else nodes, **chosen)
    for kind in TOPOLOGIES:
        world.apply(Listed(kind, tuple(each for each in topologies if each.kind == kind)))
    world.apply(Listed("PodGang", ()))
    world.put(*things)
    world.tick()
    return world


# The conditions of a PodGang that runs and of which no pod is ready yet.
RUNS = {"Initialized": "True", "Scheduled": "True", "Ready": "False", "Unhealthy": "False"}


def members(count, pod_group, *, first=0, of="g", **more):
    numbers = range(first, first + count)
    return [member(f"{pod_group}-{at}", pod_group, of=of, gpus=1, **more) for at in numbers]


def started(world, *things):
    """The node of each pod once these have come and all was tried."""
    world.put(*things)
    finish(world)
    return on(world)


def on(world, prefix=""):
    return {
        each.name: each.node
        for each in world.pods.values()
        if each.node and each.name.startswith(prefix) and not each.name.startswith("other")
    }


def racks(placed):
    return {node[:2] for node in placed.values()}


def blocks(placed):
    return {int(node[1]) // 2 for node in placed.values()}


def fill(world, *names):
    world.put(*(pod(f"other-{name}", gpus=1, on=name, phase="Running") for name in names))


def ungated(world, *pods):
    """Grove lifts its gate: a merge patch that takes every other one with it."""
    world.put(*(msgspec.structs.replace(each, gates=()) for each in pods))


def pair(least=2, **more):
    """A PodGang of two pod groups."""
    return gang("g", pod_group("router", 1), pod_group("worker", least), **more)


# -- whole or nothing ------------------------------------------------------------------------------


def test_a_gang_of_two_pod_groups_is_refused_at_filter_until_whole_and_then_bound_together():
    world = world_of(pair(on=within(RACK)))
    router, (first, second) = members(1, "router")[0], members(2, "worker")
    assert started(world, router, first) == {}
    told = "gang default/g waits until all 3 of its pods are there and ungated"
    assert {sentence(world, each.uid) for each in (router, first)} == {told}
    placed = started(world, second)
    assert len(placed) == 3
    assert len(racks(placed)) == 1
    assert world.told(Ungate) == []  # nothing to take off, and nothing narrowed


def test_pods_behind_groves_gate_are_not_there_yet():
    world = world_of(pair(on=within(RACK)))
    pods = [*members(1, "router", gates=(GATE,)), *members(2, "worker", gates=(GATE,))]
    world.put(*pods)
    ungated(world, *pods[:2])
    finish(world)
    assert on(world) == {}
    assert world.held == {}
    ungated(world, pods[2])
    finish(world)
    assert len(racks(on(world))) == 1
    assert len(on(world)) == 3


def test_a_gang_starts_with_min_replicas_while_others_are_still_gated():
    world = world_of(pair(2))
    world.put(*members(1, "worker", first=5, gates=(GATE,)))
    assert len(started(world, *members(1, "router"), *members(2, "worker"))) == 3


def test_a_gang_that_does_not_fit_starts_with_no_pod_and_says_why():
    world = world_of(pair(4, on=within(RACK)))
    assert started(world, *members(1, "router"), *members(4, "worker")) == {}
    assert "cannot be placed" in sentence(world, "uid-worker-0")
    assert world.held == {}


def test_pods_may_come_before_their_pod_gang():
    world = world_of()
    assert started(world, *members(1, "router"), *members(2, "worker")) == {}
    assert sentence(world, "uid-router-0") == "gang default/g waits until PodGang g is there"
    assert len(started(world, pair())) == 3


# -- levels ----------------------------------------------------------------------------------------


def three_levels():
    """A block for all, a rack for the prefill pods, and one for its workers inside that."""
    return gang(
        "g",
        pod_group("router", 1),
        pod_group("leader", 1),
        pod_group("worker", 2, within("kubernetes.io/hostname")),
        groups=(together("prefill", "leader", "worker", on=within(RACK)),),
        on=within(BLOCK),
    )


def test_three_levels_are_kept_inside_one_another():
    world = world_of(three_levels(), nodes=four_racks(gpus=2))
    pods = (*members(1, "router"), *members(1, "leader"), *members(2, "worker"))
    placed = started(world, *pods)
    assert len(placed) == 4
    assert len(blocks(placed)) == 1
    assert len(racks(on(world, "leader") | on(world, "worker"))) == 1
    assert len(set(on(world, "worker").values())) == 1


def left(*free):
    """All nodes of the four racks but these."""
    names = (f"n{rack}{at}" for rack in range(4) for at in range(4))
    return [name for name in names if name not in free]


def test_groups_of_one_name_keep_each_its_own_level():
    """Grove's operator itself calls clique `sg-0` and replica 0 of scaling group `sg` alike."""
    made = gang(
        "llm-0",
        pod_group("llm-0-sg-0", 2, within(BLOCK)),
        pod_group("llm-0-sg-0-w", 1),
        pod_group("llm-0-sg-0-l", 1),
        groups=(together("llm-0-sg-0", "llm-0-sg-0-w", "llm-0-sg-0-l", on=within(RACK)),),
        on=within(BLOCK),
    )
    world = world_of(made)
    fill(world, *left("n20", "n21", "n22", "n30"))
    names = {"llm-0-sg-0": 2, "llm-0-sg-0-w": 1, "llm-0-sg-0-l": 1}
    pods = [each for name, count in names.items() for each in members(count, name, of="llm-0")]
    placed = started(world, *pods)
    assert len(placed) == 4
    assert racks({name: placed[f"llm-0-sg-0-{name}-0"] for name in "wl"}) == {"n2"}


def test_two_groups_of_one_name_start_in_a_rack_each():
    groups = [together("x", name, on=within(RACK)) for name in ("a", "b")]
    world = world_of(gang("g", pod_group("a", 3), pod_group("b", 3), groups=groups))
    placed = started(world, *members(3, "a"), *members(3, "b"))
    assert len(placed) == 6
    assert len(racks(on(world, "a"))) == len(racks(on(world, "b"))) == 1


def test_no_group_starts_without_the_others():
    world = world_of(three_levels(), nodes=four_racks(gpus=1))  # no node has room for two workers
    pods = (*members(1, "router"), *members(1, "leader"), *members(2, "worker"))
    assert started(world, *pods) == {}


def test_a_preferred_level_is_widened_up_to_the_required_one():
    wide = pair(5, on=within(BLOCK, RACK))
    placed = started(world_of(wide), *members(1, "router"), *members(5, "worker"))
    assert (len(placed), len(blocks(placed))) == (6, 1)
    too_wide = pair(8, on=within(BLOCK, RACK))
    assert started(world_of(too_wide), *members(1, "router"), *members(8, "worker")) == {}


def test_a_level_that_is_only_preferred_never_keeps_a_gang_waiting():
    world = world_of(pair(11, on=within("", RACK)))
    assert len(started(world, *members(1, "router"), *members(11, "worker"))) == 12
    world = world_of(pair(3, on=within("", RACK)))
    assert len(racks(started(world, *members(1, "router"), *members(3, "worker")))) == 1


@pytest.mark.parametrize("is_first", [True, False], ids=["topology_first", "topology_last"])
def test_a_preferred_level_wider_than_the_required_one_says_nothing(is_first):
    """GREP-244, validation of PodCliqueSets: that is a warning."""
    world = world_of(pair(3, on=within(RACK, BLOCK)), topologies=[NET] if is_first else [])
    pods = (*members(1, "router"), *members(3, "worker"))
    placed = started(world, *pods) if is_first else started(world, *pods, NET)
    assert (len(placed), len(racks(placed))) == (4, 1)


def test_a_binding_declares_a_topology_like_a_cluster_topology():
    binding = topology_record("mine", BLOCK, RACK, kind="ClusterTopologyBinding")
    world = world_of(pair(3, on=within(RACK), topology="mine"), topologies=[binding])
    assert len(racks(started(world, *members(1, "router"), *members(3, "worker")))) == 1


@pytest.mark.parametrize("levels", [(), (BLOCK, RACK)], ids=["a_level_of_its_own", "as_set"])
def test_a_pod_gang_that_names_no_topology_uses_keys_as_they_are(levels):
    world = world_of(pair(3, on=within(RACK), topology=""), topologies=(), levels=levels)
    placed = started(world, *members(1, "router"), *members(3, "worker"))
    assert (len(placed), len(racks(placed))) == (4, 1)


@pytest.mark.parametrize(
    ("made", "why"),
    [
        pytest.param(
            pair(on=within(RACK), topology="other"),
            "Topology grove.io/other does not exist, or its levels are not valid",
            id="topology",
        ),
        pytest.param(
            pair(on=within("room")),
            f"Topology grove.io/grove-topology has no level room; its levels: {BLOCK}, {RACK},"
            " kubernetes.io/hostname",
            id="level",
        ),
    ],
)
def test_a_topology_or_level_that_is_not_there_is_told_by_name(made, why):
    world = world_of(made)
    assert started(world, *members(1, "router"), *members(2, "worker")) == {}
    assert why in sentence(world, "uid-router-0")


def test_keys_without_a_topology_do_not_go_together_and_the_pods_say_so():
    world = world_of(pair(on=within(BLOCK, RACK), topology=""), topologies=())
    assert started(world, *members(1, "router"), *members(2, "worker")) == {}
    assert "no topology has" in sentence(world, "uid-router-0")


def test_a_topology_that_goes_leaves_running_pods_and_keeps_later_ones_waiting():
    world = world_of(pair(on=within(RACK)))
    before = started(world, *members(1, "router"), *members(2, "worker"))
    world.delete(NET)
    assert started(world, *members(1, "worker", first=7)) == before
    assert world.told(Evict) == []


# -- elastic ---------------------------------------------------------------------------------------


def test_pods_beyond_min_replicas_follow_into_the_same_rack():
    world = world_of(pair(1, on=within(RACK)))
    placed = started(world, *members(1, "router"), *members(5, "worker"))
    assert (len(placed), len(racks(placed))) == (4, 1)


def test_a_pod_group_with_min_replicas_0_keeps_no_gang_waiting():
    world = world_of(pair(0, on=within(RACK)))
    assert len(started(world, *members(1, "router"))) == 1
    placed = started(world, *members(2, "worker"))
    assert (len(placed), len(racks(placed))) == (3, 1)


def test_a_gang_in_which_every_pod_group_has_min_replicas_0_starts_pod_by_pod():
    world = world_of(gang("g", pod_group("router", 0), pod_group("worker", 0)))
    assert len(started(world, *members(1, "worker"))) == 1
    assert len(started(world, *members(1, "router"), *members(1, "worker", first=1))) == 3


def test_a_scaled_gang_is_a_gang_of_its_own():
    world = world_of(pair(3, on=within(RACK)))
    before = started(world, *members(1, "router"), *members(3, "worker"))
    scaled = gang("g-pf-0", pod_group("more", 2), on=within(RACK))
    assert started(world, scaled, *members(1, "more", of="g-pf-0")) == before
    placed = started(world, *members(1, "more", first=1, of="g-pf-0"))
    assert len(placed) == 6
    assert len(racks(on(world, "more"))) == 1


# -- as time goes by -------------------------------------------------------------------------------


def test_a_pod_that_is_replaced_comes_back_into_its_rack():
    world = world_of(pair(2, on=within(RACK)))
    before = started(world, *members(1, "router"), *members(2, "worker"))
    world.delete(world.pods["uid-worker-1"])
    placed = started(world, *members(1, "worker", first=7))
    assert racks(placed) == racks(before)
    assert len(placed) == 3


def test_what_had_started_before_a_restart_goes_on_after_it():
    world = world_of(pair(2, on=within(RACK)))
    before = started(world, *members(1, "router"), *members(2, "worker"))
    world.delete(world.pods["uid-worker-1"])
    again = world_of(pair(2, on=within(RACK)), *world.pods.values())
    finish(again)
    assert on(again) == {name: at for name, at in before.items() if name != "worker-1"}
    assert racks(started(again, *members(1, "worker", first=7))) == racks(before)


def test_a_journal_of_it_can_be_played_again():
    lines = []

    class Recorded(World):
        def built(self):
            engine = super().built()
            self.recorder = Recorder(engine, engine.settings, lines.append)
            return engine

    world = Recorded(four_racks(gpus=1), kinds=KINDS, levels=())
    for kind, its in (*((each, ()) for each in TOPOLOGIES[1:]), (NET.kind, (NET,))):
        world.apply(Listed(kind, its))
    unread = msgspec.structs.replace(three_levels(), conditions=None)
    world.apply(Listed("PodGang", (unread,)))
    started(world, *members(1, "router"), *members(1, "leader"), *members(2, "worker"))
    assert list(replay(lines)) == []


def test_a_pod_gang_deleted_under_its_running_pods_moves_nothing():
    world = world_of(pair(2, on=within(RACK)))
    before = started(world, *members(1, "router"), *members(2, "worker"))
    world.delete(pair(2, on=within(RACK)))
    assert started(world) == before
    assert world.told(Evict) == []
    assert started(world, pair(2, on=within(RACK))) == before


def test_a_pod_group_that_leaves_a_running_pod_gang_moves_nothing():
    world = world_of(pair(2, on=within(RACK)))
    before = started(world, *members(1, "router"), *members(2, "worker"))
    assert started(world, gang("g", pod_group("router", 1), on=within(RACK))) == before
    assert world.told(Evict) == []
    placed = started(world, *members(1, "router", first=1))
    assert racks(placed) == racks(before)
    assert len(placed) == 4


def _over_all_racks():
    """A world with one free node in three racks and three in the last, where any pods spread."""
    world = world_of(pair())
    fill(world, *(f"n{rack}{at}" for rack in range(3) for at in (1, 2, 3)), "n33")
    return world


def test_a_plan_is_made_anew_when_the_pod_gang_requires_another_level_by_now():
    world = _over_all_racks()
    world.put(*members(1, "router"), *members(2, "worker"))
    world.tick()
    assert len(racks(world.held)) > 1
    world.put(pair(on=within(RACK)))
    finish(world)
    assert racks(on(world)) == {"n3"}


def test_pods_without_a_node_follow_the_running_ones_by_the_level_required_by_now():
    world = _over_all_racks()
    pods = [*members(1, "router"), *members(2, "worker")]
    world.put(*pods)
    world.tick()
    first, *others = sorted(pods, key=lambda each: racks({"": world.held[each.uid]}) == {"n3"})
    assert racks({"": world.held[first.uid]}) != {"n3"}
    effects = [effect for each in pods for effect in world.bind(each, world.held[each.uid])]
    world.confirm([effect for effect in effects if getattr(effect, "uid", "") == first.uid])
    for each in others:
        outcome = BindFailed("no answer")
        world._take(world.inputs.bind_finished(each.uid, outcome, world.now))
    world.put(pair(on=within(RACK)))
    finish(world)
    assert set(on(world)) == {first.name}  # its rack is full


def test_a_plan_stays_when_the_pod_gang_changes_in_something_else():
    world = _over_all_racks()
    world.put(*members(1, "router"), *members(2, "worker"))
    world.tick()
    before = world.held
    world.put(pair(least=1))
    world.tick()
    assert world.held == before


def _planned_in_racks_of_one_name():
    """Racks are called alike in both blocks, and no level above tells them apart."""
    nodes = [node(f"b{block}/r0/n{block}", gpus=1) for block in range(2)]
    world = world_of(pair(1, on=within(RACK)), nodes=nodes, topologies=[_racks()])
    world.put(*members(1, "router"), *members(1, "worker"))
    world.tick()
    assert set(world.held.values()) == {"n0", "n1"}
    return world


def _racks(*above):
    return topology_record("grove-topology", *above, RACK)


def test_a_plan_is_given_up_when_a_wider_level_splits_its_domain():
    world = _planned_in_racks_of_one_name()
    world.put(_racks(BLOCK))
    assert world.held == {}
    world.tick(2.0)  # until a lost plan may be made anew
    assert world.held == {}
    assert "cannot be placed" in world.gang().reporting.sentence


def test_a_plan_is_given_up_when_its_topology_comes_back_with_a_wider_level():
    world = _planned_in_racks_of_one_name()
    held = world.held
    world.delete(_racks())
    assert world.held == held  # nothing says yet that it is in two racks
    world.put(msgspec.structs.replace(_racks(BLOCK), uid="made-again"))
    assert world.held == {}


def test_a_plan_stays_when_its_topology_comes_back_as_it_was():
    world = _planned_in_racks_of_one_name()
    held = world.held
    world.delete(_racks())
    world.put(msgspec.structs.replace(_racks(), uid="made-again"))
    assert world.held == held


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param(topology_record("grove-topology", RACK, "kubernetes.io/hostname"), id="below"),
        pytest.param(topology_record("another", BLOCK, RACK), id="of_another_topology"),
    ],
)
def test_a_plan_stays_when_no_level_is_added_above_its_own(changed):
    world = _planned_in_racks_of_one_name()
    held = world.held
    world.put(changed)
    assert world.held == held


def test_min_replicas_that_becomes_less_lets_the_gang_start():
    world = world_of(pair(2))
    assert started(world, *members(1, "router"), *members(1, "worker")) == {}
    assert len(started(world, pair(1))) == 2


def test_a_pod_in_no_pod_group_of_its_pod_gang_waits_until_it_is_in_one():
    world = world_of(pair(1))
    assert started(world, *members(1, "late")) == {}
    assert sentence(world, "uid-late-0").endswith(
        'pod late-0: metadata.labels[grove.io/podclique]: Invalid value: "late":'
        " its PodGang has no pod group of this name"
    )
    assert len(started(world, gang("g", pod_group("late", 1)))) == 1


def test_a_pod_in_no_pod_group_keeps_a_gang_waiting_that_has_not_started():
    world = world_of(pair(1))
    late = members(1, "late")
    assert started(world, *late, *members(1, "router"), *members(1, "worker")) == {}
    assert "pod late-0: metadata.labels[grove.io/podclique]" in sentence(world, "uid-router-0")
    world.delete(*late)
    assert len(started(world)) == 2


def test_pods_of_a_pod_gang_that_is_not_valid_wait_until_it_is():
    world = world_of(gang("g", pod_group("router", -1)))
    assert started(world, *members(1, "router")) == {}
    assert sentence(world, "uid-router-0").endswith(
        "PodGang default/g: spec.podgroups[0].minReplicas: Invalid value: -1:"
        " must be greater than or equal to 0"
    )
    assert len(started(world, gang("g", pod_group("router", 1)))) == 1


def test_a_gang_of_more_pods_than_any_may_have_is_told_so():
    world = world_of(gang("g", pod_group("router", 2**31 - 1)))
    assert started(world, *members(1, "router")) == {}
    assert sentence(world, "uid-router-0").endswith(
        "PodGang default/g declares 2147483647 pods, and a gang may have 100000"
    )


# -- status ----------------------------------------------------------------------------------------


def test_the_pod_gang_says_why_its_pods_wait_and_that_they_do_no_more():
    world = world_of(pair(4, on=within(RACK)))
    started(world, *members(1, "router"), *members(3, "worker"))
    assert world.told(WriteStatus) == []  # a pod is missing
    started(world, *members(1, "worker", first=3))
    write, *again = world.told(WriteStatus)  # until it shows
    assert all(each.status == write.status for each in again)
    kept, said = write.status["conditions"]
    assert kept == CREATED
    assert (said["type"], said["status"]) == ("Scheduled", "False")
    assert "cannot be placed" in said["message"]
    shown = msgspec.structs.replace(pair(3, on=within(RACK)), conditions=(kept, said))
    started(world, shown)
    last = world.told(WriteStatus)[-1].status
    assert last["phase"] == "Running"
    assert {each["type"]: each["status"] for each in last["conditions"]} == RUNS


def test_what_groves_operator_writes_over_is_written_again():
    """Initialized becomes True after the gang may have started: its patch has no other condition.

    Source: grove operator/internal/controller/podcliqueset/components/podgang/syncflow.go,
    patchPodGangInitializedStatus.
    """
    world = world_of(pair(2))
    started(world, *members(1, "router"), *members(2, "worker"))
    first = world.told(WriteStatus)[-1]
    assert first.version == "7"  # what Grove writes in between is not lost
    shown = {"phase": "Running", "conditions": tuple(first.status["conditions"]), "version": "8"}
    started(world, msgspec.structs.replace(pair(2), **shown))
    world.effects.clear()
    started(world, msgspec.structs.replace(pair(2), version="9"))
    again = world.told(WriteStatus)[-1]
    assert (again.status, again.version) == (first.status, "9")


def _refused(world, write):
    """A controller has found another version of the PodGang; says how often it is written again."""
    world.effects.clear()
    world._take(world.inputs.write_lost(write.gang, STATUS, write.uid, world.now))
    for _ in range(5):
        world.tick(0.1)
    return world.told(WriteStatus)


def test_a_status_that_groves_operator_came_before_is_not_written_on_every_tick():
    world = world_of(pair(2))
    started(world, *members(1, "router"), *members(2, "worker"))
    first = world.told(WriteStatus)[-1]
    assert _refused(world, first) == []  # the watch has not shown the operator's write yet
    world.put(msgspec.structs.replace(pair(2), version="8"))
    for _ in range(3):
        world.tick(1.0)
    (again,) = world.told(WriteStatus)
    assert (again.status, again.version) == (first.status, "8")


def test_a_status_that_was_lost_on_its_way_is_written_again_within_seconds():
    world = world_of(pair(2))
    started(world, *members(1, "router"), *members(2, "worker"))
    first = world.told(WriteStatus)[-1]
    for _ in range(8):  # however often
        assert _refused(world, first) == []
        for _ in range(3):
            world.tick(1.0)
        assert world.told(WriteStatus) == [first]


def test_pods_beyond_min_replicas_that_wait_do_not_make_it_unscheduled():
    world = world_of(pair(1, on=within(RACK)))
    assert len(started(world, *members(1, "router"), *members(5, "worker"))) == 4
    last = world.told(WriteStatus)[-1].status
    assert last["phase"] == "Running"
    assert {each["type"]: each["status"] for each in last["conditions"]} == RUNS


def test_a_pod_that_is_lost_and_does_not_come_back_makes_it_unscheduled():
    world = world_of(pair(2))
    started(world, *members(1, "router"), *members(2, "worker"))
    world.delete(world.pods["uid-worker-1"])
    finish(world)
    last = world.told(WriteStatus)[-1].status
    assert last["phase"] == "Starting"
    assert last["conditions"][-1]["status"] == "False"


def test_a_pod_that_ends_well_as_it_is_deleted_is_lost_all_the_same():
    world = world_of(pair(2))
    started(world, *members(1, "router"), *members(2, "worker"))
    going = msgspec.structs.replace(world.pods["uid-worker-1"], is_terminating=True)
    for last in (going, msgspec.structs.replace(going, phase="Succeeded")):
        world.put(last)
        finish(world)
        phase, conditions, _ = said_of(world)
        assert (phase, conditions["Scheduled"]) == ("Starting", "False")
        assert conditions.get("Unhealthy") != "True"  # it would have to be Running for that


# -- beside other vocabularies ---------------------------------------------------------------------


def test_the_pod_gang_counts_before_the_annotation_that_volcanos_controller_adds():
    volcanos = {"scheduling.k8s.io/group-name": "podgroup-x"}
    world = world_of(pair())
    pods = (*members(1, "router"), *members(2, "worker"))
    assert len(started(world, *pods[:2])) == 0
    both = [msgspec.structs.replace(each, annotations=volcanos) for each in pods]
    assert len(started(world, *both)) == 3
    assert [key.source for key in world.engine.gangs.by_key] == ["grove"]


def test_the_pod_gang_counts_before_the_pod_group_that_kais_pod_grouper_makes():
    kais = kai.group("pg-g-x", 1)
    kinds = (*KINDS, "Topology.kai.scheduler", "PodGroup.scheduling.run.ai")
    world = world_of(pair(), kinds=kinds, scheduler_name="kai-scheduler")
    world.apply(Listed("Topology.kai.scheduler", ()))
    world.apply(Listed("PodGroup.scheduling.run.ai", (kais,)))
    said = {"annotations": {kai.GROUP_NAME: "pg-g-x"}, "scheduler": "kai-scheduler"}
    assert started(world, *members(1, "router", **said), *members(1, "worker", **said)) == {}
    assert len(started(world, *members(1, "worker", first=1, **said))) == 3
    assert [key.source for key in world.engine.gangs.by_key] == ["grove"]


def test_one_corral_serves_the_pods_of_several_schedulers():
    world = world_of(pair(), scheduler_name="corral,default-scheduler")
    said = {"scheduler": "default-scheduler"}
    assert len(started(world, *members(1, "router", **said), *members(2, "worker", **said))) == 3


def test_pods_of_other_schedulers_are_not_ours_and_their_pod_gang_is_left_alone():
    world = world_of(pair())
    world.put(*members(1, "router", scheduler="default-scheduler"))
    world.tick(30.0)
    assert world.engine.gangs.by_key == {}
    assert world.told(WriteStatus) == []
    assert isinstance(world.filter(pod("ordinary", gpus=1)), Passed)


def test_a_pod_that_names_the_pod_gang_of_another_namespace_is_not_in_it():
    world = world_of(msgspec.structs.replace(pair(), namespace="other"))
    assert started(world, *members(1, "router")) == {}
    assert isinstance(world.filter(world.pods["uid-router-0"]), Rejected)


def test_nodes_without_the_label_of_a_level_serve_no_gang_that_requires_it():
    nodes = [node("a", gpus=1), node("b", gpus=1), node("c", gpus=1)]
    world = world_of(pair(on=within(RACK)), nodes=nodes)
    assert started(world, *members(1, "router"), *members(2, "worker")) == {}


# -- what is written back --------------------------------------------------------------------------


def said_of(world, name="g"):
    """What has been written on a PodGang, in the end: its status, and its conditions by type."""
    status = {}
    for effect in world.told(WriteStatus):
        if effect.path.endswith(f"/{name}/status"):
            status |= effect.status
    found = {each["type"]: each["status"] for each in status.get("conditions", ())}
    return status.get("phase"), found, status.get("placementScore")


def turned(world, made, health):
    """These pods have become ready, or something else; the watch shows the PodGang as written."""
    for each in list(world.pods.values()):
        if each.node:
            world.put(msgspec.structs.replace(each, phase="Running", health=health(each)))
    world.tick()
    _, _, score = said_of(world)
    conditions = next(
        (
            tuple(effect.status["conditions"])
            for effect in reversed(world.told(WriteStatus))
            if "conditions" in effect.status
        ),
        (),
    )
    shown = msgspec.structs.replace(
        made, phase=said_of(world)[0], conditions=conditions, score=score
    )
    world.put(shown)
    world.tick()


def test_readiness_and_health_of_the_pods_are_written_as_they_change():
    made = pair(2, on=within(BLOCK, RACK))
    world = world_of(made)
    started(world, *members(1, "router"), *members(2, "worker"))
    turned(world, made, lambda _: "")
    assert said_of(world)[1] == RUNS
    turned(world, made, lambda each: "" if each.name == "worker-1" else "ready")
    assert said_of(world)[1]["Ready"] == "False"
    turned(world, made, lambda _: "ready")
    assert said_of(world)[1] == {**RUNS, "Ready": "True", "Unhealthy": "False"}
    writes = len(world.told(WriteStatus))
    turned(world, made, lambda _: "ready")
    assert len(world.told(WriteStatus)) == writes
    turned(world, made, lambda each: "failing" if each.name == "router-0" else "ready")
    assert said_of(world)[1] == {**RUNS, "Ready": "False", "Unhealthy": "True"}
    turned(world, made, lambda _: "ready")
    assert said_of(world)[1] == {**RUNS, "Ready": "True", "Unhealthy": "False"}


def test_a_gang_is_ready_with_min_replicas_whatever_the_others_are():
    made = pair(1)
    world = world_of(made)
    started(world, *members(1, "router"), *members(2, "worker"))
    turned(world, made, lambda each: "failing" if each.name == "worker-1" else "ready")
    assert said_of(world)[1] == {**RUNS, "Ready": "True", "Unhealthy": "False"}


@pytest.mark.parametrize(
    ("filled", "score"),
    [
        pytest.param((), 1.0, id="one_rack"),
        # One node is left in each of the racks of block 0, and two in each of block 1.
        pytest.param(
            ("n00", "n01", "n02", "n10", "n11", "n12", "n20", "n21", "n30", "n31"),
            2 / 3,
            id="two_racks_of_a_block",
        ),
    ],
)
def test_the_placement_score_says_how_near_the_pods_are_to_what_is_preferred(filled, score):
    made = pair(2, on=within(BLOCK, RACK))
    world = world_of(made)
    fill(world, *filled)
    assert len(started(world, *members(1, "router"), *members(2, "worker"))) == 3
    assert said_of(world)[2] == pytest.approx(score, abs=0.001)


def test_a_pod_gang_without_levels_has_no_placement_score():
    world = world_of(pair(2))
    assert len(started(world, *members(1, "router"), *members(2, "worker"))) == 3
    assert said_of(world)[2] is None


# -- the PodGangs of one replica of a PodCliqueSet -------------------------------------------------

BLOCK_1 = tuple(f"n{rack}{at}" for rack in (2, 3) for at in range(4))
FULLER = ("n00", "n01", "n02")  # rack 0 with these is where a pod fits most tightly


def of_replica(records, replica="0", *, base="", name="llm"):
    """Pods of a replica of a PodCliqueSet; `base`: of scaled gangs, the PodGang they come after."""
    said = {"app.kubernetes.io/part-of": name, "grove.io/podcliqueset-replica-index": replica}
    if base:
        said["grove.io/base-podgang"] = base
    return [msgspec.structs.replace(each, labels={**each.labels, **said}) for each in records]


def scaled(pods=1):
    return gang("g-pf-0", pod_group("more", pods), on=within(RACK))


def more(count=1, *, first=0, replica="0", base="g", name="llm", **also):
    pods = members(count, "more", of="g-pf-0", first=first, **also)
    return of_replica(pods, replica, base=base, name=name)


def base_in_block_1(world, least=1, **more):
    """A base gang that requires a block, in the one of racks 2 and 3."""
    fill(world, *(f"n{rack}{at}" for rack in (0, 1) for at in range(4)))
    pods = of_replica([*members(1, "router"), *members(least, "worker")])
    placed = started(world, pair(least, on=within(BLOCK)), *pods)
    assert blocks(placed) == {1}
    world.delete(*(each for each in world.pods.values() if each.name.startswith("other")))
    return placed


def test_a_scaled_gang_goes_where_its_base_gang_is_though_another_block_is_fuller():
    world = world_of()
    base_in_block_1(world)
    fill(world, *FULLER)
    started(world, scaled(), *more())
    assert blocks(on(world, "more")) == {1}


def test_another_place_serves_a_scaled_gang_once_its_base_gang_has_no_pods():
    """So room that was made for it in a domain is not kept for it in another (`room_plans.py`)."""
    world = world_of()
    base_in_block_1(world)
    taken = on(world)
    fill(world, *(name for name in world.engine.books.nodes if name not in taken.values()))
    started(world, scaled(), *more())
    (its,) = (each for key, each in world.engine.gangs.by_key.items() if key.name == "g-pf-0")
    before = world.engine.planner.sought(its)
    world.delete(*(world.pods[f"uid-{name}"] for name in taken))
    fill(world, *taken.values())
    world.tick()
    assert its.plan.nodes == {}
    assert world.engine.planner.sought(its) != before


def test_a_scaled_gang_waits_while_the_block_of_its_base_gang_is_full_and_says_so():
    world = world_of()
    base_in_block_1(world)
    taken = on(world).values()
    fill(world, *(name for name in BLOCK_1 if name not in taken))
    started(world, scaled(), *more())
    assert on(world, "more") == {}
    said = sentence(world, "uid-more-0")
    assert "outside the domain of replica 0 of PodCliqueSet llm 8" in said
    world.delete(*(world.pods[uid] for uid in list(world.pods) if "other" in uid))
    finish(world)
    assert blocks(on(world, "more")) == {1}


def test_a_scaled_gang_without_a_level_of_its_own_is_in_that_block_too():
    world = world_of()
    base_in_block_1(world)
    fill(world, *FULLER)
    elastic = gang("g-pf-0", pod_group("more", 1))
    started(world, elastic, *more(4))
    assert blocks(on(world, "more")) == {1}
    assert len(on(world, "more")) == 4


@pytest.mark.parametrize("named", ["grove-topology", ""], ids=["named", "unnamed"])
def test_a_scaled_gang_that_comes_first_is_in_one_block_and_its_base_gang_follows(named):
    world = world_of(pair(1, on=within(BLOCK)))
    started(world, *of_replica(members(1, "router")))
    fill(world, *FULLER, "n03", "n10")
    started(world, gang("g-pf-0", pod_group("more", 4), topology=named), *more(4))
    assert blocks(on(world, "more")) == {1}
    started(world, *of_replica(members(1, "worker")))
    assert (len(on(world)), blocks(on(world))) == (6, {1})


@pytest.mark.parametrize(("scaled_pods", "block"), [(2, 1), (7, 0)], ids=["room", "no_room"])
def test_a_base_gang_takes_a_block_with_room_for_its_scaled_gangs_if_there_is_one(
    scaled_pods, block
):
    """Their pods are there behind Grove's gate until those of the base gang have nodes."""
    world = world_of(pair(1, on=within(BLOCK)), scaled(scaled_pods))
    fill(world, "n00", "n01", "n02", "n03", "n10")  # three nodes are left of block 0
    world.put(*more(scaled_pods, gates=(GATE,)))
    started(world, *of_replica([*members(1, "router"), *members(1, "worker")]))
    assert blocks(on(world)) == {block}


@pytest.mark.parametrize("asked", [("example.com/fpga", 1), ("nvidia.com/gpu", 2**61)])
def test_a_base_gang_is_placed_before_there_is_a_node_for_its_scaled_gangs(asked):
    """A device that no node offers yet, as an autoscaler's nodes will, or more than can be."""
    world = world_of(pair(1, on=within(BLOCK)), scaled(8))
    fill(world, "n00", "n10")
    world.put(
        *(
            msgspec.structs.replace(each, request=(("cpu", 1000), asked, ("pods", 1)))
            for each in more(8, gates=(GATE,))
        )
    )
    placed = started(world, *of_replica([*members(1, "router"), *members(1, "worker")]))
    assert len(placed) == 2


def test_a_scaled_gang_waits_in_the_block_of_its_base_gang_though_another_would_have_had_a_rack():
    """Room is judged by what is requested in all. What holds is that no pod is in another block.

    Source: grove issue #648, "all pods of this replica must land in the same block".
    """
    nodes = four_racks(gpus=2)
    world = world_of(pair(1, on=within(BLOCK)), scaled(4), nodes=nodes)
    # Three places are left in each rack of block 0: six for six pods, and four in no rack.
    taken = [f"n{rack}{at}" for rack in (0, 1) for at in (0, 1)]
    world.put(
        *(pod(f"other-{name}", gpus=2, on=name, phase="Running") for name in taken),
        *(pod(f"other-{name}2", gpus=1, on=name, phase="Running") for name in ("n02", "n12")),
    )
    world.put(*more(4, gates=(GATE,)))
    placed = started(world, *of_replica([*members(1, "router"), *members(1, "worker")]))
    assert blocks(placed) == {0}
    ungated(world, *more(4))
    finish(world)
    assert on(world, "more") == {}
    assert "outside the domain of replica 0 of PodCliqueSet llm 8" in sentence(world, "uid-more-0")


def test_a_base_gang_that_has_lost_its_pods_comes_back_where_its_scaled_gang_runs():
    world = world_of()
    before = base_in_block_1(world)
    started(world, scaled(), *more())
    world.delete(*(world.pods[f"uid-{name}"] for name in before))
    world.tick(1000.0)
    fill(world, *FULLER)
    again = [*members(1, "router", first=7), *members(1, "worker", first=7)]
    started(world, *of_replica(again))
    assert blocks(on(world)) == {1}
    assert len(on(world)) == 3


def test_a_pod_of_a_scaled_gang_without_levels_comes_back_into_that_block():
    world = world_of()
    base_in_block_1(world)
    started(world, gang("g-pf-0", pod_group("more", 2)), *more(2))
    world.delete(world.pods["uid-more-1"])
    world.tick(1000.0)
    fill(world, *FULLER)
    started(world, *more(1, first=7))
    assert blocks(on(world, "more")) == {1}
    assert len(on(world, "more")) == 2


@pytest.mark.parametrize(
    "apart",
    [{"replica": "1"}, {"name": "other-set"}],
    ids=["another_replica", "another_set"],
)
def test_other_replicas_and_sets_are_where_there_is_room(apart):
    world = world_of()
    base_in_block_1(world)
    fill(world, *FULLER)
    started(world, scaled(), *more(base="other", **apart))
    assert racks(on(world, "more")) == {"n0"}


def test_a_pod_of_a_scaled_gang_that_runs_elsewhere_comes_back_beside_the_others():
    """As Corral has placed it before it knew of replicas."""
    world = world_of()
    base_in_block_1(world)
    pods = zip(more(2), ("n00", "n01"), strict=True)
    running = [msgspec.structs.replace(each, node=at, phase="Running") for each, at in pods]
    started(world, scaled(2), *running)
    world.delete(running[1])
    world.tick(1000.0)
    started(world, *more(1, first=7))
    assert (len(on(world, "more")), racks(on(world, "more"))) == (2, {"n0"})


def test_a_base_gang_without_a_required_level_binds_no_other():
    world = world_of()
    pods = of_replica([*members(1, "router"), *members(1, "worker")])
    started(world, pair(1, on=within("", BLOCK)), *pods)
    elsewhere = next(iter(blocks(on(world)))) ^ 1
    fill(world, *(f"n{2 * elsewhere}{at}" for at in range(3)))
    started(world, scaled(), *more())
    assert blocks(on(world, "more")) == {elsewhere}


def test_the_block_of_a_replica_is_known_again_after_a_restart():
    world = world_of()
    base_in_block_1(world)
    again = world_of(pair(1, on=within(BLOCK)), *world.pods.values())
    fill(again, *FULLER)
    started(again, scaled(), *more())
    assert blocks(on(again, "more")) == {1}


def test_newer_operators_say_on_the_pod_gang_which_of_a_replica_comes_first():
    """alpha.12: the label of the role; pods of no PodGang name a base one."""
    world = world_of()
    fill(world, *(f"n{rack}{at}" for rack in (0, 1) for at in range(4)))
    pods = of_replica([*members(1, "router"), *members(1, "worker")])
    anchor = msgspec.structs.replace(pair(1, on=within(BLOCK)), role="Anchor")
    started(world, anchor, *pods)
    world.delete(*(each for each in world.pods.values() if each.name.startswith("other")))
    fill(world, *FULLER)
    tail = msgspec.structs.replace(scaled(), role="Tail")
    started(world, tail, *more(base=""))
    assert blocks(on(world, "more")) == {1}


def test_a_pod_gang_whose_pods_are_all_gone_runs_no_more():
    made = pair()
    world = world_of(made)
    started(world, *members(1, "router"), *members(2, "worker"))
    turned(world, made, lambda _: "ready")
    world.effects.clear()
    world.delete(*world.pods.values())
    assert said_of(world)[:2] == ("Pending", RUNS | {"Scheduled": "False"})
    world.tick()
    assert len(world.told(WriteStatus)) == 1


def test_of_a_pod_gang_without_pods_nothing_is_said():
    world = world_of(pair())
    assert world.told(WriteStatus) == []


def test_events_of_a_large_pod_gang_cost_one_roll_call_together():
    pods = MOST_AT_ONCE + 1
    world = world_of(pair(pods), *members(pods, "worker", gates=(GATE,)))
    (gang_,) = world.engine.gangs.by_key.values()
    before = gang_.roll_calls
    for version in range(30):
        world.put(msgspec.structs.replace(pair(pods - version % 2), version=f"{version}"))
    assert gang_.roll_calls == before
    world.tick(1.0)
    assert gang_.roll_calls == before + 1
