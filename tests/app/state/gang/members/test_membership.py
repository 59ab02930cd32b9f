"""Who belongs to a gang: newcomers, excess pods, members that ended, other sizes declared."""

from __future__ import annotations

import msgspec
import pytest

from app.kube.core.objects import Owner
from app.kube.watch.events import Listed
from app.state.effects import Delete, EmitEvent
from app.state.gang.gang import Phase
from tests.app.dialects.kai import objects as kai
from tests.app.state.lost import PREFIX, failed, replacement, started
from tests.app.state.world import LISTED, World, four_racks, members, racks
from tests.records import RACK, REQUIRED, group, job, job_owner, job_pods, pod


def test_kep_976_an_excess_pod_is_told_so_and_left_alone():
    world = started()
    world.put(replacement())
    world.tick()
    assert "is one more than the 4 pods" in world.filter(world.pods["uid-g9"]).sentence
    assert world.told(Delete) == []


def test_kep_976_an_excess_pod_is_deleted_where_the_settings_say_so():
    world = started(delete_excess_pods=True)
    world.put(replacement())
    for _ in range(5):
        world.tick()
    assert [effect.name for effect in world.told(Delete)] == ["g9"]


def test_pods_beyond_what_a_workload_declares_are_its_controllers_to_delete():
    """It may have grown, or it removes them itself; a pod that we delete has failed to it."""
    world = World(four_racks(), jobs=[job("j", 2)], delete_excess_pods=True)
    world.put(*job_pods("j", 3, **{REQUIRED: RACK}))
    for _ in range(5):
        world.tick()
    assert "is one more than the 2 pods" in world.filter(world.pods["uid-j-2"]).sentence
    assert world.told(Delete) == []


@pytest.mark.parametrize(
    ("owner", "is_deleted"),
    [
        pytest.param(None, True, id="nobody"),
        pytest.param(Owner("v1", "Pod", "driver", "uid-driver"), True, id="driver"),
        pytest.param(Owner("example.com/v1", "Flow", "f", "uid-f"), True, id="unknown"),
        pytest.param(job_owner("j"), False, id="job"),
        pytest.param(Owner("apps/v1", "ReplicaSet", "r", "uid-r"), False, id="replica_set"),
        pytest.param(Owner("ray.io/v1", "RayCluster", "r", "uid-r"), False, id="ray_cluster"),
    ],
)
def test_a_pod_of_a_group_is_not_deleted_that_its_controller_would_make_again(owner, is_deleted):
    world = started(delete_excess_pods=True)
    world.put(replacement(owner=owner))
    for _ in range(5):
        world.tick()
    assert "is one more than the 4 pods" in world.filter(world.pods["uid-g9"]).sentence
    assert bool(world.told(Delete)) is is_deleted


def test_kep_976_excess_pods_before_admission_the_youngest_are_left_out():
    pods = [
        pod(f"g{i}", annotations=group("g", 2, RACK), created=f"2026-01-01T00:00:0{i}Z")
        for i in (2, 0, 1)
    ]
    world = World(four_racks(), pods, delete_excess_pods=True)
    assert [effect.name for effect in world.told(Delete)] == ["g2"]
    assert sorted(world.held) == ["uid-g0", "uid-g1"]


def test_a_newcomer_that_declares_another_size_than_what_runs_is_told_so():
    world = started()
    world.delete(world.pods["uid-g2"])
    world.put(replacement(total=5))
    world.tick()
    assert "says 5 in" in world.filter(world.pods["uid-g9"]).sentence
    assert world.gang("g").phase in (Phase.RUNNING, Phase.REPAIRING)


def test_a_total_count_raised_on_the_running_pods_lets_another_join():
    world = started(total=3)
    for uid in list(world.pods):
        grown = {**world.pods[uid].annotations, PREFIX + "pod-group-total-count": "4"}
        world.put(msgspec.structs.replace(world.pods[uid], annotations=grown))
    world.put(replacement(total=4))
    world.tick()
    placed = world.schedule(world.pods["uid-g9"])
    assert racks(placed) == {world.pods["uid-g0"].node[:2]}


def test_kep_976_a_group_of_which_an_unretriable_pod_ended_takes_nobody_in():
    world = started(total=2)
    for uid in ("uid-g0", "uid-g1"):
        marked = {**world.pods[uid].annotations, PREFIX + "retriable-in-group": "false"}
        world.put(msgspec.structs.replace(world.pods[uid], annotations=marked, phase="Failed"))
    world.put(replacement(total=2))
    world.tick()
    assert "after the end of gang" in world.filter(world.pods["uid-g9"]).sentence


def test_kep_976_a_group_whose_pods_all_failed_starts_again_with_replacements():
    world = started(total=2)
    for uid in ("uid-g0", "uid-g1"):
        world.put(failed(world, uid))
    new = [replacement(f"n{i}", total=2) for i in range(2)]
    world.put(*new)
    world.tick()
    world.tick(1.1)
    assert len(racks(world.schedule(*new))) == 1


def test_a_pod_of_a_serving_group_that_succeeds_is_replaced():
    serving = {PREFIX + "pod-group-serving": "true"}
    world = started(total=2, annotations=serving)
    world.put(msgspec.structs.replace(world.pods["uid-g1"], phase="Succeeded"))
    again = pod("g9", annotations={**group("g", 2, RACK), **serving}, uid="uid-g9")
    world.put(again)
    world.tick()
    assert racks(world.schedule(again)) == {world.pods["uid-g0"].node[:2]}


def test_kep_976_fewer_pods_than_expected_are_reported_once_and_waited_for():
    world = World(four_racks(), members("g", 4)[:3], gather_seconds=10.0)
    world.tick(5.0)
    assert world.told(EmitEvent) == []
    for _ in range(20):
        world.tick(5.0)
    (report,) = world.told(EmitEvent)
    assert report.reason == "GangIncomplete"
    assert "3 of the 4 pods" in report.sentence


def test_succeeded_pods_give_their_capacity_back_at_once():
    world = started()
    on = {each.node for each in world.pods.values()}
    others = world.engine.books.nodes.keys() - on
    world.put(*[pod(f"on-{each}", on=each, gpus=8, phase="Running") for each in others])
    world.put(*members("h", 1))
    world.tick()
    assert world.held == {}
    world.put(msgspec.structs.replace(world.pods["uid-g2"], phase="Succeeded"))
    world.tick()
    assert world.held == {"uid-h0": world.pods["uid-g2"].node}


def test_a_gang_of_more_pods_than_there_may_be_is_refused_by_what_declares_them():
    world = World(four_racks(), jobs=[job("j", 2_000_000_000)])
    world.put(*job_pods("j", 1, **{REQUIRED: RACK}))
    world.tick()
    (report,) = world.reports
    assert "parallelism of Job j declares 2000000000 pods, and a gang may have 100000" in report


def varied(kinds):
    """Pods of one Job, each of another request."""
    owner = job_owner("j")
    return [
        pod(f"j{at}", cpu=1_000 + at, gpus=0, annotations={REQUIRED: RACK}, owner=owner)
        for at in range(kinds)
    ]


@pytest.mark.parametrize(("kinds", "is_placed"), [(64, True), (65, False)])
def test_a_gang_of_too_many_kinds_of_pods_is_refused_by_name(kinds, is_placed):
    world = World(four_racks(), varied(kinds), jobs=[job("j", kinds)])
    assert bool(world.held) is is_placed
    if not is_placed:
        sentence = world.filter(world.pods["uid-j0"]).sentence
        assert "its pods are of 65 kinds, and a gang may have 64" in sentence


def test_pods_that_are_alike_are_of_as_many_kinds_as_there_are_parts_and_the_verdict_says_so():
    world = World(four_racks(), kinds=(*LISTED, "PodGroup.scheduling.run.ai"))
    world.apply(Listed("PodGroup.scheduling.run.ai", ()))
    world.put(kai.group("pg", None, *(kai.sub_group(f"s{at}", 1) for at in range(65))))
    world.put(*(kai.member(f"p{at}", f"s{at}", gpus=1) for at in range(65)))
    world.tick()
    sentence = world.filter(world.pods["uid-p0"]).sentence
    assert "its pods are of 65 kinds, and a gang may have 64" in sentence
    assert "pods of two of the 65 spec.subGroups of PodGroup default/pg are of two" in sentence


def test_a_gang_that_some_parts_are_enough_for_is_told_as_well_that_too_many_have_pods():
    world = World(four_racks(), kinds=(*LISTED, "PodGroup.scheduling.run.ai"))
    world.apply(Listed("PodGroup.scheduling.run.ai", ()))
    leaves = (kai.sub_group(f"s{at}", 1) for at in range(66))
    world.put(kai.group("pg", None, *leaves, minSubGroup=1))
    world.put(*(kai.member(f"p{at}", f"s{at}", gpus=0) for at in range(65)))
    world.tick()
    sentence = world.filter(world.pods["uid-p0"]).sentence
    assert "pods of two of the 65 spec.subGroups of PodGroup default/pg are of two" in sentence
    world.delete(world.pods["uid-p64"])
    world.tick(60.0)
    world.tick(1.0)  # so many kinds are searched elsewhere
    assert len(world.held) == 64


def test_a_gang_that_runs_takes_no_pods_of_too_many_kinds_either():
    first, *others = varied(66)
    runs = msgspec.structs.replace(first, node="n00", phase="Running")
    world = World(four_racks(), [runs, *others], jobs=[job("j", 66)])
    assert world.held == {}
