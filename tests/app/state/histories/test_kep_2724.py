"""KEP-2724 "Validation", where no webhook refuses what is invalid: the gang waits and is told."""

from __future__ import annotations

import msgspec
import pytest

from tests.app.state.stories import go, sentence
from tests.app.state.world import World, four_racks
from tests.records import RACK
from tests.workload_pods import job_set, training_pods, workload

PARTS = {"Master": 1, "Worker": 4}


def saying_nothing(record, silent, scheduler):
    """The workload, of whose templates this one says nothing; its pods are that scheduler's."""
    templates = tuple(
        msgspec.structs.replace(each, annotations={}, scheduler=scheduler)
        if each.name == silent
        else msgspec.structs.replace(each, scheduler="corral")
        for each in record.templates
    )
    return msgspec.structs.replace(record, templates=templates)


def silent_job_set(scheduler):
    """A JobSet with a driver that says nothing and four workers: objects, and all pods."""
    jobs, pods = job_set("js", {"driver": (1, 1), "workers": (1, 4)}, RACK)
    whole = workload("JobSet", "js", {"driver": 1, "workers": 4}, level=RACK)
    driver, workers = jobs
    objects = [
        saying_nothing(whole, "driver", scheduler),
        saying_nothing(driver, "", scheduler),
        saying_nothing(workers, "no other", scheduler),
    ]
    return objects, pods


def silent_training_job(scheduler):
    """A PyTorchJob with a master that says nothing and four workers: objects, and all pods."""
    record = workload("PyTorchJob", "t", PARTS, level=RACK)
    return [saying_nothing(record, "Master", scheduler)], training_pods(
        "PyTorchJob", "t", PARTS, RACK
    )


@pytest.mark.parametrize("made", [silent_job_set, silent_training_job])
def test_workers_do_not_start_without_a_driver_that_says_nothing(made):
    objects, (driver, *workers) = made("corral")
    world = World(four_racks(), [msgspec.structs.replace(driver, annotations={}), *workers])
    world.put(*objects)
    go(world)
    assert not any(world.pods[each.uid].node for each in workers)
    told = sentence(world, workers[0].uid)
    assert "metadata.annotations: Required value: must contain one of" in told
    assert told in world.reports


@pytest.mark.parametrize("made", [silent_job_set, silent_training_job])
def test_workers_start_without_a_driver_that_another_scheduler_starts(made):
    objects, (driver, *workers) = made("default-scheduler")
    its = {"annotations": {}, "scheduler": "default-scheduler"}
    world = World(four_racks(), [msgspec.structs.replace(driver, **its), *workers])
    world.put(*objects)
    go(world)
    assert all(world.pods[each.uid].node for each in workers)
