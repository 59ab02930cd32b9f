"""Who is a member, and when a gang is complete."""

from __future__ import annotations

import msgspec

from app.state.filter_result import Passed
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
