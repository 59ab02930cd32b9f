"""KEP-2724 "Story 3": each template's pods in one rack, and the whole workload in one block."""

from __future__ import annotations

import msgspec
import pytest

from app.dialects.corral import WORKLOAD_PREFERRED, WORKLOAD_REQUIRED
from tests.app.state.reserve.test_before_pods import driver
from tests.app.state.stories import go, sentence
from tests.app.state.world import World, four_racks
from tests.records import BLOCK, GROUP, RACK, REQUIRED, UNCONSTRAINED, pod
from tests.workload_pods import job_set, mpi_pods, training_pods, workload


def blocks(world):
    return {node[:2] for node in places(world).values()}


def places(world):
    at = {each.name: each for each in world.engine.books.nodes.values()}
    return {
        name: f"{at[each.node].labels[BLOCK]}/{at[each.node].labels[RACK]}"
        for name, each in ((pod.name, pod) for pod in world.pods.values())
        if each.node
    }


def two_templates(**asked):
    """4 × 8 GPUs in one rack and 2 × 8 GPUs in another, of one pod group."""
    total = {"kueue.x-k8s.io/pod-group-total-count": "6", GROUP: "g", REQUIRED: RACK, **asked}
    large = [pod(f"l{at}", gpus=8, cpu=1000, annotations=total) for at in range(4)]
    small = [pod(f"s{at}", gpus=8, cpu=2000, annotations=total) for at in range(2)]
    return [*large, *small]


def busy_second_rack():
    """Rack r1, the other of block b0, has too little room for the second template."""
    return [pod(f"busy{at}", on=f"n1{at}", gpus=8) for at in range(3)]


def busy_first_block():
    """Of block b0 no rack takes four pods, and one fits two best."""
    return [pod(f"busy{at}", on=at, gpus=8) for at in ("n00", "n10", "n11")]


def test_every_template_gets_its_rack_and_all_of_them_one_block():
    asked = {WORKLOAD_REQUIRED: BLOCK}
    world = World(four_racks(), [*busy_second_rack(), *two_templates(**asked)])
    go(world)
    placed = {name: at for name, at in places(world).items() if not name.startswith("busy")}
    assert len(placed) == 6
    assert {at.split("/")[0] for at in placed.values()} == {"b1"}
    assert len({at for name, at in placed.items() if name[0] == "l"}) == 1
    assert len({at for name, at in placed.items() if name[0] == "s"}) == 1


def test_a_workload_that_no_block_takes_waits_as_a_whole():
    nodes = four_racks()
    busy = [pod(f"busy{r}{at}", on=f"n{r}{at}", gpus=8) for r in (1, 3) for at in range(3)]
    world = World(nodes, [*busy, *two_templates(**{WORKLOAD_REQUIRED: BLOCK})])
    go(world)
    assert all(not each.node for each in world.pods.values() if not each.name.startswith("busy"))
    assert world.held == {}


def test_a_preferred_level_of_the_workload_is_given_up_where_it_must_be():
    nodes = four_racks()
    busy = [pod(f"busy{r}{at}", on=f"n{r}{at}", gpus=8) for r in (1, 3) for at in range(3)]
    world = World(nodes, [*busy, *two_templates(**{WORKLOAD_PREFERRED: BLOCK})])
    go(world)
    placed = {name: at for name, at in places(world).items() if not name.startswith("busy")}
    assert len(placed) == 6


def test_a_replacement_stays_in_the_block_of_its_workload():
    world = World(four_racks(), two_templates(**{WORKLOAD_REQUIRED: BLOCK}))
    go(world)
    before = places(world)
    block = before["l0"].split("/")[0]
    for name in ("s0", "s1"):
        world.delete(world.pods[f"uid-{name}"])
    for _ in range(200):
        world.tick(1.0)
    again = {each.name: each for each in two_templates(**{WORKLOAD_REQUIRED: BLOCK})}
    world.put(*(msgspec.structs.replace(again[name], uid=f"uid-{name}b") for name in ("s0", "s1")))
    go(world)
    after = places(world)
    assert {after["s0"].split("/")[0], after["s1"].split("/")[0]} == {block}


def of_kind(kind, asked):
    """A workload with a part of four pods and one of two, and its pods; it asks for all of them."""
    more = {"level": RACK, "annotations": asked}
    if kind == "JobSet":
        parts = {"large": (1, 4), "small": (1, 2)}
        jobs, pods = job_set("w", parts, RACK)
        return [workload("JobSet", "w", {part: 4 for part in parts}, **more), *jobs], pods
    if kind == "MPIJob":
        return [workload(kind, "w", {"Launcher": 1, "Worker": 4}, **more)], mpi_pods("w", 4, RACK)
    parts = {"Master": 1, "Worker": 4}
    return [workload(kind, "w", parts, **more)], training_pods(kind, "w", parts, RACK)


@pytest.mark.parametrize("kind", ["JobSet", "MPIJob", "PyTorchJob", "TFJob"])
@pytest.mark.parametrize(
    ("asked", "found"), [({WORKLOAD_REQUIRED: BLOCK}, {"b1"}), ({}, {"b0", "b1"})]
)
def test_the_owner_may_ask_for_all_of_its_templates(kind, asked, found):
    objects, pods = of_kind(kind, asked)
    world = World(four_racks(), [*busy_first_block(), *pods])
    world.put(*objects)
    go(world)
    placed = {name: at for name, at in places(world).items() if not name.startswith("busy")}
    assert len(placed) == len(pods)
    assert {at.split("/")[0] for at in placed.values()} == found


@pytest.mark.parametrize(
    ("asked", "found"), [({WORKLOAD_REQUIRED: BLOCK}, {"b1"}), ({}, {"b0", "b1"})]
)
def test_a_driver_may_ask_for_itself_and_the_workers_it_declares(asked, found):
    leader = driver(workers=4)
    leader = msgspec.structs.replace(leader, annotations={**leader.annotations, **asked})
    world = World(four_racks(), [*busy_first_block(), leader])
    at = world.engine.books.nodes
    assert len(world.held) == 5
    assert {at[node].labels[BLOCK] for node in world.held.values()} == found


# -- who names it names the same -----------------------------------------------------------------

MUST = "must be consistent with 'metadata.annotations"


def two_of_each(of_a, of_b):
    """Pods a0, a1 and b0, b1 of one pod group, which say this beside its size."""
    size = {"kueue.x-k8s.io/pod-group-total-count": "4", GROUP: "g"}
    return [
        pod(f"{name}{at}", gpus=8, annotations={**size, UNCONSTRAINED: "true", **said})
        for name, said in (("a", of_a), ("b", of_b))
        for at in range(2)
    ]


@pytest.mark.parametrize(
    ("of_a", "of_b", "told"),
    [
        pytest.param(
            {WORKLOAD_REQUIRED: BLOCK}, {WORKLOAD_REQUIRED: RACK},
            f'[{WORKLOAD_REQUIRED}]: Invalid value: "{RACK}": '
            f"{MUST}[{WORKLOAD_REQUIRED}]' of pod default/a0: \"{BLOCK}\"",
            id="another_level",
        ),
        pytest.param(
            {WORKLOAD_PREFERRED: BLOCK}, {WORKLOAD_REQUIRED: RACK},
            f'[{WORKLOAD_REQUIRED}]: Invalid value: "{RACK}": '
            f"{MUST}[{WORKLOAD_PREFERRED}]' of pod default/a0: \"{BLOCK}\"",
            id="required_and_preferred",
        ),
        pytest.param(
            {WORKLOAD_REQUIRED: BLOCK, WORKLOAD_PREFERRED: RACK}, {WORKLOAD_REQUIRED: BLOCK},
            f'[{WORKLOAD_REQUIRED}]: Invalid value: "{BLOCK}": '
            f"{MUST}[{WORKLOAD_PREFERRED}]' of pod default/a0: \"{RACK}\"",
            id="one_and_both",
        ),
    ],
)  # fmt: skip
def test_pods_that_name_other_levels_of_their_workload_wait_and_are_told_which(of_a, of_b, told):
    world = World(four_racks(), two_of_each(of_a, of_b))
    go(world)
    assert not any(each.node for each in world.pods.values())
    assert sentence(world, "uid-a0") == (
        f"gang default/g is invalid: pod default/b0: metadata.annotations{told}"
    )
    assert world.reports == [sentence(world, "uid-a0")]


def test_a_level_that_only_some_pods_name_is_that_of_all():
    world = World(four_racks(), [*busy_first_block(), *two_of_each({}, {WORKLOAD_REQUIRED: RACK})])
    go(world)
    placed = [at for name, at in places(world).items() if not name.startswith("busy")]
    assert (len(placed), len(set(placed))) == (4, 1)


@pytest.mark.parametrize("kind", ["JobSet", "MPIJob", "PyTorchJob", "TFJob"])
def test_pods_that_contradict_their_owner_wait_and_are_told_what_it_says(kind):
    objects, pods = of_kind(kind, {WORKLOAD_PREFERRED: BLOCK})
    *others, last = pods
    last = msgspec.structs.replace(last, annotations={**last.annotations, WORKLOAD_REQUIRED: RACK})
    world = World(four_racks(), [*others, last])
    world.put(*objects)
    go(world)
    assert not any(each.node for each in world.pods.values())
    assert sentence(world, last.uid) == (
        f"gang default/w is invalid: pod default/{last.name}: metadata.annotations"
        f'[{WORKLOAD_REQUIRED}]: Invalid value: "{RACK}": '
        f'{MUST}[{WORKLOAD_PREFERRED}]\' of {kind} default/w: "{BLOCK}"'
    )


def test_a_job_that_contradicts_its_job_set_is_named():
    (whole, job, *jobs), pods = of_kind("JobSet", {WORKLOAD_REQUIRED: BLOCK})
    job = msgspec.structs.replace(job, annotations={WORKLOAD_REQUIRED: RACK})
    world = World(four_racks(), pods)
    world.put(whole, job, *jobs)
    go(world)
    assert f"is invalid: Job default/{job.name}: metadata.annotations" in sentence(
        world, pods[0].uid
    )
    assert f'of JobSet default/w: "{BLOCK}"' in sentence(world, pods[0].uid)


def test_pods_that_name_the_level_of_their_owner_start():
    asked = {WORKLOAD_REQUIRED: BLOCK}
    objects, pods = of_kind("PyTorchJob", asked)
    pods = [
        msgspec.structs.replace(each, annotations={**each.annotations, **asked}) for each in pods
    ]
    world = World(four_racks(), pods)
    world.put(*objects)
    go(world)
    assert all(each.node for each in world.pods.values())


def test_a_gang_that_runs_is_not_stopped_by_a_pod_that_names_another_level():
    first, *others = two_of_each({WORKLOAD_REQUIRED: BLOCK}, {WORKLOAD_REQUIRED: BLOCK})
    world = World(four_racks(), [first, *others])
    go(world)
    world.delete(world.pods[first.uid])
    said = {**first.annotations, WORKLOAD_REQUIRED: RACK}
    world.put(msgspec.structs.replace(first, uid="uid-again", annotations=said))
    go(world)
    assert len(blocks(world)) == 1
    assert all(each.node for each in world.pods.values())
