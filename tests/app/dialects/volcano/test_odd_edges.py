"""What Volcano's users do at the edges of its objects, and the gangs that follow.

A test with the mark `REPORTED` says what is right and is not so yet; it goes when that is mended.
"""

from __future__ import annotations

from functools import partial

import msgspec
import pytest

from tests.app.state.histories.test_pod_groups import group, placed, pods, world_of

REPORTED = partial(pytest.mark.xfail, strict=True)


@REPORTED(reason="pods of other schedulers that have a node count for no PodGroup")
def test_a_pod_of_another_scheduler_that_runs_is_one_of_those_that_a_pod_group_takes() -> None:
    """As the launcher of a vcjob whose own template names the default scheduler.

    Source: volcano v1.14 pkg/scheduler/cache/event_handlers.go, getOrCreateJob: whose annotation
    names a PodGroup is a task of it.
    """
    world = world_of(group(3, tier=2), scheduler_name="corral")
    *ours, other = pods(3)
    world.put(msgspec.structs.replace(other, scheduler="default-scheduler", node="n3"))
    assert len(placed(world, *ours)) == 2
