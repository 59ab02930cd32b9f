"""Who is a member, and when a gang is complete."""

from __future__ import annotations

import msgspec
import pytest

from app.dialects.spec import FailureLimit, GangKey, GangSpec, GroupSpec, Lifecycle, Said
from app.state.filter_result import Passed
from app.state.gang.gang import Gang
from app.state.gang.members.member import Member
from app.state.gang.members.membership import MembershipStatus
from tests.app.state.world import World, four_racks, members
from tests.records import (
    RACK,
    SLICE_LEVEL,
    SLICE_SIZE,
    UNCONSTRAINED,
    group,
    job,
    job_pods,
    pod,
)


def test_a_jobs_pods_are_a_gang_of_its_parallelism():
    world = World(four_racks(), jobs=[job("j", 3, completions=9)])
    gang = job_pods("j", 3, **{"kueue.x-k8s.io/podset-required-topology": RACK})
    world.put(*gang[:2])
    assert world.held == {}
    world.put(gang[2])
    assert len(world.held) == 3


def test_a_jobs_gang_is_capped_by_the_completions_left():
    world = World(four_racks(), jobs=[job("j", 4, completions=9, succeeded=7)])
    gang = job_pods("j", 2, **{UNCONSTRAINED: "true"})
    world.put(*gang)
    assert len(world.held) == 2


def test_a_jobs_pods_wait_until_the_job_is_known():
    world = World(four_racks())
    gang = job_pods("j", 2, **{UNCONSTRAINED: "true"})
    world.put(*gang)
    assert world.held == {}
    world.put(job("j", 2))
    assert len(world.held) == 2


def test_a_jobs_pods_without_topology_annotation_are_ordinary():
    world = World(four_racks(), jobs=[job("j", 2)])
    assert world.filter(job_pods("j", 2)[0]) == Passed()


def test_gated_members_are_waited_for():
    world = World(four_racks())
    gang = members("g", 2)
    gated = msgspec.structs.replace(gang[1], gates=("other.dev/gate",))
    world.put(gang[0], gated)
    world.tick()
    assert world.held == {}
    world.put(gang[1])
    world.tick()
    assert len(world.held) == 2


def test_pods_of_a_group_that_succeeded_count_towards_its_total():
    done = pod("g0", on="n00", phase="Succeeded", annotations=group("g", 3, RACK))
    rest = [pod(f"g{i}", annotations=group("g", 3, RACK)) for i in (1, 2)]
    world = World(four_racks(), [done, *rest])
    assert set(world.held) == {"uid-g1", "uid-g2"}
    one_more = pod("g9", annotations=group("g", 3, RACK), created="2026-01-02T00:00:00Z")
    world.put(one_more)
    world.tick()
    assert "one more than" in world.filter(one_more).sentence


def test_a_terminating_pod_is_no_member_and_still_takes_its_capacity():
    world = World(four_racks(), [pod("f", on="n00", is_terminating=True)])
    leaving = pod("g0", annotations=group("g", 2, RACK), is_terminating=True)
    world.put(leaving, pod("g1", annotations=group("g", 2, RACK)))
    world.tick()
    assert world.held == {}
    whole_rack = members("h", 4)
    world.put(*whole_rack)
    assert "n00" not in world.held.values()


def test_a_gang_has_parts_if_its_members_are_in_slices():
    plain, sliced = group("g", 2, RACK), group("g", 2, **{SLICE_LEVEL: RACK, SLICE_SIZE: "1"})
    for said, has_parts in ((plain, False), (sliced, True)):
        world = World(four_racks(), [pod(f"g{i}", annotations=said) for i in range(2)])
        assert world.gang("g").has_parts is has_parts


@pytest.mark.parametrize(
    ("running", "lost", "left", "counted", "ends"),
    [
        pytest.param(3, 0, None, 0, False, id="any_number_may_fail"),
        pytest.param(3, 0, 3, 0, False, id="as_many_as_may_fail"),
        pytest.param(3, 0, 2, 0, True, id="more_than_may_fail"),
        pytest.param(3, 0, 2, 2, True, id="those_counted_are_gone_already"),
        pytest.param(3, 1, 3, 0, True, id="a_lost_pod_is_one_more"),
        pytest.param(3, 1, 3, 1, False, id="a_lost_pod_that_is_counted_already"),
        pytest.param(3, 2, 3, 1, True, id="two_lost_pods_of_which_one_is_counted"),
    ],
)
def test_an_owner_gives_up_if_more_pods_are_evicted_than_may_fail(
    running, lost, left, counted, ends
):
    key = GangKey("default", "g", "group")
    limit = None if left is None else FailureLimit(left, counted)
    lifecycle = Lifecycle(failures=limit)
    spec = GangSpec(key, GroupSpec("g", ()), "", lifecycle=lifecycle)
    phases = ["Running"] * running + ["Failed"] * lost
    every = [member(at, phase) for at, phase in enumerate(phases)]
    bound = tuple(each for each in every if each.is_live)
    gang = Gang(
        key,
        members={each.pod.uid: each for each in every},
        running={each.pod.uid for each in bound},
        membership=MembershipStatus(bound=bound, spec=spec),
    )
    assert gang.ends_if_lost(len(bound)) is ends


def member(number, phase):
    return Member(pod(f"g{number}", on=f"n0{number}", phase=phase), Said())


def test_the_name_of_a_pod_set_is_the_same_for_every_corral():
    """It is written on pods, and the Corral after this one reads it there."""
    assert member(0, "Running").pod_set == "f6e1d000"
    assert member(1, "Pending").pod_set == member(0, "Running").pod_set
