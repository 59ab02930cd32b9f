"""KEP-976, Story 3: a driver declares its workers and creates them when it runs."""

from __future__ import annotations

import json
from itertools import permutations

import pytest
from msgspec.structs import replace

from app.kube.core.objects import Shape, Toleration
from app.state.effects import Delete
from app.state.gang.gang import Phase
from app.state.turns.budget import MOST_OWED
from tests.app.state.stories import go, sentence, turn
from tests.app.state.world import World, four_racks, members, racks
from tests.records import GPU, GROUP, RACK, REQUIRED, node, pod

PREFIX = "kueue.x-k8s.io/"
GATED = ("corral.dev/gang",)
SETS = PREFIX + "pod-group-sets"
ROLE = PREFIX + "pod-group-role"


def shape_of(gpus):
    requests = {"cpu": "1", **({GPU: str(gpus)} if gpus else {})}
    return {"spec": {"containers": [{"name": "w", "resources": {"requests": requests}}]}}


def driver(workers=3, gpus=8, name="driver", form="json", **more):
    """Declares `workers` of that many devices; the driver itself has none."""
    sets = [
        {"name": "driver", "count": 1},
        {"name": "workers", "count": workers, "template": shape_of(gpus)},
    ]
    requests = f"requests: {{cpu: 1, {GPU}: {gpus}}}"
    yaml = f"""
    - {{name: driver, count: 1}}
    - name: workers
      count: {workers}
      template: {{spec: {{containers: [{{name: w, resources: {{{requests}}}}}]}}}}
    """
    said = {"json": json.dumps(sets), "yaml": yaml}[form]
    annotations = {GROUP: "g", REQUIRED: RACK, SETS: said}
    return pod(name, gpus=0, annotations=annotations, uid=f"uid-{name}", **more)


def worker(name, gpus=8, role="workers", **more):
    labels = {GROUP: "g", ROLE: role}
    return pod(name, gpus=gpus, labels=labels, annotations={REQUIRED: RACK}, **more)


def started(workers=3, **settings):
    """The driver and all its workers run."""
    world = World(four_racks(), [driver(workers)], **settings)
    go(world)
    for index in range(workers):
        world.put(worker(f"w{index}"))
        go(world)
    assert all(each.node for each in world.pods.values())
    assert world.held == {}
    return world


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_story_3_places_are_held_for_declared_workers_and_taken_over_one_by_one(form):
    world = World(four_racks(), [driver(form=form, gates=GATED)])
    assert len(world.held) == 4
    placed = go(world)
    (rack,) = racks(placed)
    for left, name in zip((2, 1, 0), ("w0", "w1", "w2"), strict=True):
        world.put(worker(name, gates=GATED))
        placed |= go(world)
        assert len(world.held) == left
    assert racks(placed) == {rack}
    assert world.gang("g").phase is Phase.RUNNING


@pytest.mark.slow
@pytest.mark.timeout(20)
def test_story_3_a_driver_that_declares_far_too_many_workers_keeps_nobody_else_waiting():
    world = World(four_racks(), [driver(workers=50_000)], absent_pods_in="default=100000")
    for _ in range(3):
        world.put(world.pods["uid-driver"])
        world.tick()
    assert world.held == {}
    assert "of 50000 pods fit" in sentence(world, "uid-driver")
    world.put(*(replace(each, namespace="other") for each in members("other", 2)))
    assert len(world.held) == 2
    world.put(*members("h", 2))
    for _ in range(MOST_OWED):  # its own namespace pays for what was done for it
        world.tick()
    assert len(world.held) == 4


def test_story_3_a_template_left_empty_means_pods_like_the_driver():
    sets = json.dumps([{"name": "all", "count": 4}])
    world = World(
        four_racks(), [pod("driver", annotations={GROUP: "g", REQUIRED: RACK, SETS: sets})]
    )
    assert len(set(world.held.values())) == 4  # 8 devices each, one node each
    go(world)
    world.put(worker("w0", role="all"))
    assert set(go(world)) == {"w0"}
    assert len(world.held) == 2


def test_story_3_no_other_gang_gets_the_places_of_workers_that_are_still_to_come():
    world = World([node(f"b0/r0/n{i}") for i in range(4)], [driver(workers=3)])
    go(world)
    world.put(*members("h", 2))
    world.tick()
    assert set(world.held) & {"uid-h0", "uid-h1"} == set()
    assert "cannot be placed" in sentence(world, "uid-h0")


def test_story_3_a_worker_of_another_shape_than_declared_takes_up_a_declared_place():
    world = World(four_racks(), [driver(workers=3)])
    placed = go(world)
    world.put(worker("w0", gpus=4))
    placed |= go(world)
    assert len(racks(placed)) == 1
    assert len(world.held) == 2
    world.put(worker("w1"), worker("w2"))
    placed |= go(world)
    assert len(placed) == 4
    assert world.held == {}


def test_story_3_a_worker_of_a_set_nobody_declared_takes_up_a_declared_place():
    # The KEP's own manifest: the set is called workers, and the pod's label says worker.
    world = World(four_racks(), [driver(workers=1)])
    placed = go(world)
    world.put(worker("job-worker-1", role="worker"))
    placed |= go(world)
    assert len(placed) == 2
    assert len(racks(placed)) == 1
    assert world.held == {}


def test_story_3_worker_pods_beyond_the_count_are_rejected_and_deleted_where_that_is_allowed():
    world = started(workers=2, delete_excess_pods=True)
    world.put(worker("w9"))
    world.tick()
    assert "is one more than the 3 pods" in sentence(world, "uid-w9")
    assert [effect.name for effect in world.told(Delete)] == ["w9"]


def test_story_3_workers_that_are_all_deleted_have_their_places_held_once():
    world = started()
    nodes = sorted(world.pods[f"uid-w{i}"].node for i in range(3))
    for index in range(3):
        world.delete(world.pods[f"uid-w{index}"])
    world.tick()
    assert sorted(world.held.values()) == nodes
    world.put(*[worker(f"v{i}") for i in range(3)])
    placed = go(world)
    assert sorted(placed.values()) == nodes
    assert world.held == {}


def test_story_3_a_worker_that_comes_before_its_driver_is_told_for_whom_it_waits():
    world = World(four_racks(), [worker("w0")])
    world.tick()
    waits = "gang default/g waits until the pod that declares its members is there"
    assert sentence(world, "uid-w0") == waits
    world.put(driver(workers=1))
    assert len(go(world)) == 2


def test_story_3_a_gated_worker_that_comes_before_its_driver_stays_behind_the_gate():
    world = World(four_racks(), [worker("w0", gates=GATED)])
    world.tick()
    assert world.ungated == []
    assert go(world) == {}
    world.put(driver(workers=1, gates=GATED))
    assert len(go(world)) == 2


def test_story_3_a_failed_driver_is_replaced_beside_its_workers():
    world = started(workers=2)
    rack = racks({each.name: each.node for each in world.pods.values()})
    turn(world, "uid-driver", "Failed")
    world.tick()
    assert len(world.held) == 1
    world.put(driver(workers=2, name="driver-2"))
    assert racks(go(world)) == rack
    assert world.held == {}
    assert world.gang("g").phase is Phase.RUNNING


def test_story_3_the_places_of_workers_to_come_outlive_a_failed_driver():
    world = World(four_racks(), [driver(workers=3)])
    go(world)
    world.put(worker("w0"))
    go(world)
    turn(world, "uid-driver", "Failed")
    world.tick()
    assert len(world.held) == 3  # two workers to come, and the driver
    world.put(driver(workers=3, name="driver-2"), worker("w1"), worker("w2"))
    placed = go(world)
    assert len(placed) == 3
    assert racks(placed) == {world.pods["uid-w0"].node[:2]}


def test_story_3_workers_whose_places_were_lost_get_one_each_beside_one_that_came():
    world = World(four_racks(), [driver(workers=3)])
    go(world)
    takers = [pod(f"t-{each}", on=each, phase="Running") for each in world.engine.books.nodes]
    world.put(*takers)
    world.tick()
    assert world.held == {}
    # The API server writes tolerations on pods, and not on their templates.
    by_default = Toleration("node.kubernetes.io/not-ready", "Exists", "", "NoExecute", True)
    first = worker("w0", shape=Shape(tolerations=(by_default,)))
    world.put(first)
    world.tick()
    for each in takers:
        world.delete(each)
    world.tick(61.0)
    world.tick()
    assert len(world.held) == 3
    assert [uid for uid in world.held if uid in world.pods] == [first.uid]


def test_story_3_after_a_restart_a_failed_driver_is_found_among_other_pods_that_failed():
    world = World(four_racks(), [driver(workers=3)])
    go(world)
    world.put(worker("a-worker"), worker("w0"))
    go(world)
    turn(world, "uid-a-worker", "Failed")
    turn(world, "uid-driver", "Failed")
    again = World(four_racks(), world.pods.values())
    again.tick()
    assert len(again.held) == 2  # of the worker that failed, and of the one to come


def test_story_3_a_deleted_driver_is_replaced_beside_its_workers():
    world = started(workers=2)
    node_of_driver = world.pods["uid-driver"].node
    world.delete(world.pods["uid-driver"])
    world.tick()
    assert list(world.held.values()) == [node_of_driver]
    world.put(driver(workers=2, name="driver-2"))
    assert go(world) == {"driver-2": node_of_driver}


LOSSES = ("driver", "node of driver", "w1", "node of w1")


@pytest.mark.parametrize("losses", [*permutations(LOSSES)], ids=", ".join)
def test_story_3_a_driver_and_a_worker_lost_in_any_order_are_replaced(losses):
    world = started(workers=2)
    rack = racks({name: each.node for name, each in world.pods.items()})
    nodes = {name: world.pods[f"uid-{name}"].node for name in ("driver", "w0", "w1")}
    for loss in losses:
        name = loss.removeprefix("node of ")
        if name == loss:
            world.delete(world.pods[f"uid-{name}"])
        elif nodes[name] in world.engine.books.nodes:
            world.delete(world.engine.books.nodes[nodes[name]])
        world.tick()
    world.put(driver(2, name="driver-again"), worker("w1-again"))
    for _ in range(20):
        go(world)
    placed = {name: world.pods[f"uid-{name}"].node for name in ("driver-again", "w1-again")}
    assert racks(placed) == rack
    assert not {nodes["driver"], nodes["w1"]} & {*placed.values()}


def test_story_3_a_driver_that_is_done_leaves_no_place_for_workers_that_never_came():
    world = World(four_racks(), [driver(workers=3)])
    go(world)
    world.put(worker("w0"))
    go(world)
    assert len(world.held) == 2
    turn(world, "uid-driver", "Succeeded")
    world.tick()
    assert world.held == {}


def test_story_3_the_group_has_finished_when_all_its_pods_have():
    world = started()
    for uid in ("uid-w0", "uid-w1", "uid-w2", "uid-driver"):
        turn(world, uid, "Succeeded")
        world.tick()
    assert world.gang("g").phase is Phase.DONE
    assert world.held == {}


TOLERANT = Shape(tolerations=(Toleration("maintenance", "Exists", "", ""),))
# ^ as another webhook may add it to every pod, and no driver declares


def test_a_worker_that_differs_from_those_of_its_role_that_run_is_in_their_rack():
    world = World(four_racks(), [driver(workers=4, gpus=8)])
    placed = go(world)
    world.put(*(worker(f"w{index}", shape=TOLERANT) for index in range(3)))
    placed = go(world)
    (rack,) = racks(placed)
    (kept,) = world.held.values()
    assert kept[:2] == rack
    world.put(pod("thief", on=kept, scheduler="other", phase="Running"), worker("w3"))
    world.tick()
    assert world.held == {}  # there is no other node in the rack
    world.delete(world.pods["uid-thief"])
    world.tick(5.0)
    assert world.held == {"uid-w3": kept}


def test_workers_of_one_role_that_differ_are_in_one_rack():
    two, three = (worker(f"t{index}", shape=TOLERANT) for index in range(2)), ("w0", "w1", "w2")
    world = World(four_racks(), [driver(workers=5, gpus=8), *two, *map(worker, three)])
    world.tick()
    assert world.held == {}
    assert f"in one {RACK}" in sentence(world, "uid-w0")
    world = World(four_racks(), [driver(workers=4, gpus=8), worker("t0", shape=TOLERANT)])
    world.put(*map(worker, three))
    assert len(racks({uid: on for uid, on in world.held.items() if uid != "uid-driver"})) == 1
    assert len(world.held) == 5
