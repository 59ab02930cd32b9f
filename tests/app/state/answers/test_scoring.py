"""Where ordinary pods are led, by the domains around each node."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from app.dialects.spec import TierPacking
from app.kube.core.objects import PodRecord
from app.kube.watch.events import Listed
from app.state.journal.replay import replay
from tests.app.dialects.volcano.objects import by_labels, exact, record
from tests.app.state.journal.test_journal import RecordedWorld
from tests.app.state.world import LISTED, Names, World, members
from tests.records import BLOCK, GPU, RACK, node, pod, topology

KINDS = (*LISTED, "HyperNode")
TIER = "topology.volcano.sh/tier-{}".format
RACKS = (
    record("r0", 1, exact("Node", "n0", "n1")),
    record("r1", 1, exact("Node", "n2", "n3")),
    record("b0", 2, exact("HyperNode", "r0", "r1")),
    record("r2", 1, exact("Node", "n4", "n5")),
    record("b1", 2, exact("HyperNode", "r2")),
)


def world_of(*pods: PodRecord, hyper_nodes=RACKS, **settings) -> World:
    """Two racks of two nodes in block 0, one in block 1."""
    nodes = [node(f"n{at}") for at in range(6)]
    world = World(nodes, pods, **{"kinds": KINDS, "levels": (), **settings})
    world.apply(Listed("HyperNode", tuple(hyper_nodes)))
    return world


def scores(world: World, *names: str, **asked: int) -> dict[str, int]:
    """What an ordinary pod's candidates score; all nodes, unless some are named."""
    found = names or tuple(world.engine.books.nodes)
    given = world.inputs.prioritize(pod("asks", **asked), Names(found), world.now)
    return dict(zip(found, given, strict=True))


def running(name: str, on: str, **asked: int) -> PodRecord:
    return pod(name, on=on, phase="Running", **asked)


def test_the_fuller_hyper_nodes_score_higher_the_narrow_ones_most():
    world = world_of(running("a", "n0", gpus=2), running("b", "n2", gpus=1))
    found = scores(world, gpus=1)
    assert found["n0"] == found["n1"] == 10
    assert found["n0"] > found["n2"] == found["n3"] > found["n4"] == found["n5"] == 0


def test_a_tier_that_weighs_nothing_decides_nothing():
    packing = TierPacking(fading=0)
    world = world_of(running("a", "n0", gpus=2), packing=packing)
    assert scores(world, "n2", "n4", gpus=1) == {"n2": 0, "n4": 0}
    by_default = world_of(running("a", "n0", gpus=2))
    assert scores(by_default, "n2", "n4", gpus=1) == {"n2": 10, "n4": 0}


@pytest.mark.parametrize(
    ("resources", "fuller"),
    [
        pytest.param(None, "n4", id="all_alike"),
        pytest.param((("cpu", 1), ("memory", 1)), "n0", id="gpus_only_if_they_are_listed"),
        pytest.param((("cpu", 8), ("nvidia.com/gpu", 1)), "n0", id="cpu_weighs_more"),
        pytest.param((("cpu", 1), ("nvidia.com/gpu", 1)), "n4", id="both_alike"),
    ],
)
def test_resources_count_by_their_weights(resources, fuller):
    """n0 has more of its cores in use, n4 more of its GPUs."""
    world = world_of(
        running("a", "n0", gpus=1, cpu=32_000),
        running("b", "n4", gpus=8, cpu=1_000),
        packing=TierPacking(resources=resources, fading=0),
    )
    found = scores(world, "n1", "n5", gpus=1)
    assert max(found, key=lambda name: found[name]) == {"n0": "n1", "n4": "n5"}[fuller]


def test_nodes_outside_every_hyper_node_are_filled_first():
    world = world_of(running("a", "n0", gpus=8))
    world.put(node("free"))
    assert scores(world, gpus=1)["free"] == 10


def test_scores_can_be_left_to_kube_scheduler():
    packing = TierPacking(for_ordinary_pods=False)
    world = world_of(running("a", "n0", gpus=2), packing=packing)
    assert set(scores(world, gpus=1).values()) == {0}


def test_nodes_without_room_and_unknown_ones_score_nothing():
    """The full node is in the fullest rack, and sets no measure for the others."""
    world = world_of(running("a", "n0", gpus=8), running("b", "n2", gpus=1))
    world.put(node("n3", is_cordoned=True))
    assert scores(world, "n0", "nowhere", "n3", "n2", "n4", gpus=1) == {
        "n0": 0,
        "nowhere": 0,
        "n3": 0,
        "n2": 10,
        "n4": 0,
    }


def test_a_node_where_others_are_evicted_for_another_pod_is_the_last_choice():
    waits = replace(pod("waits", priority=5), nominated_node="n0")
    world = world_of(running("a", "n0", gpus=4), waits)
    found = scores(world, "n0", "n1", "n4", gpus=1)
    assert found == {"n0": 0, "n1": 10, "n4": 1}


def test_what_is_held_for_a_gang_counts_as_used():
    world = world_of()
    world.put(*members("g", 2, TIER(1), gpus=8))
    world.tick()
    (taken,) = {name for name in ("r0", "r1", "r2") if in_rack(name) == set(world.held.values())}
    beside = {"r0": "n2", "r1": "n0", "r2": "n0"}[taken]
    world.put(node("n6"), record(taken, 1, exact("Node", *in_rack(taken), "n6")))
    assert scores(world, "n6", beside, gpus=1) == {"n6": 10, beside: 0}


def in_rack(name: str) -> set[str]:
    at = 2 * int(name[1:])
    return {f"n{at}", f"n{at + 1}"}


def test_hyper_nodes_and_nodes_that_change_are_followed():
    hyper_nodes = (record("r0", 1, by_labels(leaf="a")), record("r1", 1, exact("Node", "n2")))
    world = world_of(running("a", "n0", gpus=4), hyper_nodes=hyper_nodes)
    for at in (0, 1):
        world.put(node(f"n{at}", labels={"leaf": "a"}))
    assert scores(world, "n1", "n2", gpus=1) == {"n1": 10, "n2": 0}
    world.put(node("n1"))  # alone: counts as full
    assert scores(world, "n0", "n1", "n2", gpus=1) == {"n0": 3, "n1": 10, "n2": 0}
    world.put(record("r1", 1, exact("Node", "n1", "n2")))
    assert scores(world, "n0", "n1", "n2", gpus=1) == {"n0": 10, "n1": 0, "n2": 0}


def test_without_hyper_nodes_whole_racks_stay_free_as_before():
    nodes = [node("b0/r0/n0"), node("b0/r0/n1"), node("b0/r1/n2"), node("b1/r2/n3")]
    world = World(nodes, [running("a", "n0", gpus=4)], kinds=KINDS)
    world.apply(Listed("HyperNode", ()))
    expected = {"n0": 5, "n1": 2, "n2": 1, "n3": 0}
    assert scores(world, gpus=1) == expected
    world.apply(Listed("HyperNode", (record("h", 1, exact("Node", "n3")),)))
    assert scores(world, gpus=1) != expected
    world.delete(record("h", 1, exact("Node", "n3")))
    assert scores(world, gpus=1) == expected


def test_hyper_nodes_come_before_topologies_by_label():
    world = World(
        [node("b0/r0/n0"), node("b0/r0/n1"), node("b0/r1/n2")],
        [running("a", "n0", gpus=4)],
        topologies=[topology("A", BLOCK, RACK)],
        kinds=KINDS,
    )
    hyper_nodes = (record("h0", 1, exact("Node", "n0", "n2")), record("h1", 1, exact("Node", "n1")))
    world.apply(Listed("HyperNode", hyper_nodes))
    assert scores(world, "n1", "n2", gpus=1) == {"n1": 0, "n2": 10}


LABELLED = ("b0/r0/n0", "b0/r0/n1", "b0/r1/n2", "b1/r2/n3")


def labelled(*pods: PodRecord, **settings) -> World:
    """A rack of two nodes and two racks of one; 64 cores and 8 GPUs each."""
    return World([node(path) for path in LABELLED], pods, **{"fewest_fragments": True, **settings})


def test_a_small_pod_goes_where_a_usual_large_one_does_not_fit_any_more():
    """n0 takes another pod of 4 GPUs, n2 does not; n0 is in the fuller rack."""
    pods = [running("a", "n0", gpus=4), running("b", "n2", gpus=5), running("c", "n1", gpus=8)]
    for setting, better, worse in ((False, "n0", "n2"), (True, "n2", "n0")):
        world = labelled(*pods, fewest_fragments=setting)
        world.put(*(node(f"b0/r1/n{at}") for at in (4, 5, 6)))  # n2's rack is hardly used
        found = scores(world, gpus=1)
        assert found[better] > found[worse]


def test_a_pod_without_gpus_leaves_the_cores_that_usual_pods_need():
    pods = [running(f"p{on}", on, gpus=4, cpu=30_000) for on in ("n0", "n1")]
    other = running("q", "n2", gpus=8, cpu=20_000)
    found = scores(labelled(*pods, other), gpus=0, cpu=10_000)
    assert found["n2"] > max(found["n0"], found["n1"], found["n3"])


def test_a_pod_that_costs_usual_pods_nothing_is_led_by_domains_as_ever():
    pods = [running("p", "n0", gpus=1, cpu=1_000)]
    assert scores(labelled(*pods), gpus=0) == scores(
        labelled(*pods, fewest_fragments=False), gpus=0
    )


def test_without_devices_in_the_cluster_domains_alone_decide():
    pods = [running("p", "n0", gpus=0, cpu=9_000)]
    for asked in ({"gpus": 0}, {"gpus": 0, "cpu": 40_000}):
        found = scores(labelled(*pods), **asked)
        assert found == scores(labelled(*pods, fewest_fragments=False), **asked)


def test_before_any_pod_with_gpus_runs_the_tightest_node_is_taken_and_free_racks_last():
    """n0 has fewer cores left than n1; n2 and n3 are free racks, n3 has fewer GPUs."""
    world = labelled(running("p", "n0", gpus=0, cpu=9_000))
    world.put(node("b1/r2/n3", gpus=2))
    assert scores(world, gpus=1) == {"n0": 10, "n1": 9, "n3": 8, "n2": 8}
    assert scores(world, "n2", "n3", gpus=1) == {"n3": 10, "n2": 9}


def test_usual_requests_are_known_again_after_a_restart():
    pods = [running("a", "n0", gpus=4), running("b", "n2", gpus=5), running("c", "n1", gpus=4)]
    world = labelled()
    for each in pods:
        world.put(each)
    assert scores(world, gpus=1) == scores(labelled(*pods), gpus=1)


def test_a_pod_that_only_changes_is_counted_once():
    world = labelled(running("a", "n0", gpus=4))
    for _ in range(3):
        world.put(replace(running("a", "n0", gpus=4), labels={"seen": "again"}))
    assert [pods for _, pods in world.engine.usual_requests.usual] == [1]


def test_nothing_is_counted_where_nothing_is_ranked_by_it():
    world = labelled(running("a", "n0", gpus=4), fewest_fragments=False)
    assert len(world.engine.usual_requests) == 0


def test_simulators_are_answered_as_kube_scheduler_is_and_leave_no_trace():
    pods = [running("a", "n0", gpus=4), running("b", "n2", gpus=5), running("c", "n1", gpus=4)]
    world = labelled(*pods)
    names = tuple(world.engine.books.nodes)
    asks = pod("asks", gpus=1)
    supposed = world.engine.scoring.unchanged(asks, names)
    assert supposed == world.inputs.prioritize(asks, Names(names), world.now)


@pytest.mark.parametrize("asked", [{"gpus": 1}, {"gpus": 8}, {"gpus": 0}, {"gpus": 9}])
def test_every_candidate_has_a_whole_score_of_0_to_10(asked):
    world = labelled(running("a", "n0", gpus=4), running("b", "n2", gpus=8, cpu=64_000))
    names = ("n0", "nowhere", "n2", "n3", "n1", "n3")
    given = world.inputs.prioritize(pod("asks", **asked), Names(names), world.now)
    assert len(given) == len(names)
    assert all(type(score) is int and 0 <= score <= 10 for score in given)
    assert given[names.index("nowhere")] == 0
    assert given[names.index("n2")] == (0 if asked["gpus"] else given[names.index("n2")])


def test_a_journal_plays_the_same_scores_again():
    world = RecordedWorld([node(path) for path in LABELLED], fewest_fragments=True)
    for number, on in enumerate(("n0", "n2", "n1", "n0", "n3")):
        world.put(running(f"p{number}", on, gpus=1 + number))
        scores(world, gpus=1)
        world.engine.scoring.unchanged(pod("supposed", gpus=2), tuple(world.engine.books.nodes))
        world.tick()
    world.delete(world.pods["uid-p0"])
    assert any(scores(world, gpus=3).values())
    assert list(replay(world.lines)) == []


@pytest.mark.parametrize(
    "made_up",
    [
        pytest.param(lambda at: ((GPU, 2**40 + at), ("pods", 1)), id="amounts"),
        pytest.param(lambda at: (("cpu", 2**40 + at), (GPU, 8), ("pods", 1)), id="cores"),
    ],
)
def test_pods_that_no_node_has_room_for_do_not_decide_where_others_go(made_up):
    """They run as far as their kubelet says, which may count less than its node is said to have."""
    pods = [running("a", "n0", gpus=4), running("b", "n2", gpus=5)]
    world = labelled(*pods, running("c", "n1", gpus=8), running("d", "n3", gpus=8))
    world.put(*(node(f"b0/r1/n{at}") for at in (4, 5, 6)))
    before = scores(world, gpus=1)
    bound = running("made-up", "n3")
    made = [
        replace(bound, uid=f"made-up-{at}", namespace="hostile", request=made_up(at))
        for at in range(200)
    ]
    world.put(*made)
    world.delete(*made)
    assert scores(world, gpus=1) == before


@pytest.mark.parametrize("on", ["", "n3", "nowhere"])
def test_pods_that_never_run_do_not_decide_where_others_go(on):
    """A tenant may name the node in thousands of his pods: its kubelet fails what has no room."""
    pods = [running("a", "n0", gpus=4), running("b", "n2", gpus=5), running("c", "n1", gpus=8)]
    world = labelled(*pods, running("d", "n3", gpus=8))
    world.put(*(node(f"b0/r1/n{at}") for at in (4, 5, 6)))
    before = scores(world, gpus=1)
    waits = replace(pod("waits", gpus=3, on=on), namespace="hostile")
    made = [replace(waits, name=f"waits-{at}", uid=f"waits-{at}") for at in range(200)]
    world.put(*made)
    world.put(*(replace(each, labels={"seen": "again"}) for each in made))
    world.put(*(replace(each, phase="Failed") for each in made))
    assert scores(world, gpus=1) == before


def test_a_pod_counts_when_it_runs_and_once_whatever_it_is_resized_to():
    world = labelled()
    usual = world.engine.usual_requests
    started = running("a", "n0", gpus=4)
    for shown, counted in (
        (replace(started, phase="Pending"), []),
        (started, [1]),
        (replace(started, request=((GPU, 4), ("cpu", 9), ("pods", 1))), [1]),
    ):
        world.put(shown)
        assert [pods for _, pods in usual.usual] == counted


def test_a_member_of_a_gang_counts_when_it_runs():
    world = labelled()
    first, second = (replace(each, node="n0") for each in members("g", 2, gpus=4))
    world.put(first, second)
    usual = world.engine.usual_requests
    assert (len(world.engine.gangs.key_of), len(usual)) == (2, 0)
    for _ in range(2):
        world.put(replace(first, phase="Running"))
        assert [pods for _, pods in usual.usual] == [1]


def test_usual_requests_are_known_once_the_nodes_are_that_were_listed_after_the_pods():
    pods = [running("a", "n0", gpus=4), running("b", "n2", gpus=5), running("c", "n1", gpus=4)]
    world = World(fewest_fragments=True)
    world.apply(Listed("Pod", tuple(pods)))
    world.apply(Listed("Node", tuple(node(path) for path in LABELLED)))
    world.tick()
    assert scores(world, gpus=1) == scores(labelled(*pods), gpus=1)
