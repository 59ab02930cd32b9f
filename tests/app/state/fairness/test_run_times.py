"""When pods are expected to end: by their deadline, else as the last ones like them did."""

from __future__ import annotations

import math

import pytest
from msgspec.structs import replace

from app.kube.core.objects import Owner
from app.state.fairness.run_times import (
    LATE_SECONDS,
    MOST_KINDS,
    MOST_NAMESPACES,
    RunTimes,
)
from app.state.gang.gangs import Gangs
from tests.app.state.world import World, four_racks, members
from tests.records import RACK, job, job_owner, job_pods, pod

JOB = Owner("batch/v1", "Job", "train", "uid-train")


def of(backfill="history", deadlines=None) -> RunTimes:
    return RunTimes(backfill, Gangs(), lambda uid: (deadlines or {}).get(uid, 0))


def ran(times: RunTimes, name: str, seconds: float, *, succeeds: bool = True, **more) -> None:
    """One pod has run so long."""
    one = pod(name, on="n", **more)
    times.begin(one, 0.0)
    times.end(one.uid, seconds, has_succeeded=succeeds)


def test_nothing_is_expected_or_kept_while_it_is_off():
    times = of("off")
    ran(times, "a", 50.0)
    times.begin(replace(pod("b"), deadline_seconds=60), 0.0)
    assert times.end_of("uid-b", 1.0) == math.inf
    assert times.seconds_of(replace(pod("c"), deadline_seconds=60)) == math.inf
    assert not times.remembered()


@pytest.mark.parametrize("backfill", ["deadlines", "history"])
def test_a_pod_ends_by_its_deadline(backfill):
    times, said = of(backfill), replace(pod("a"), deadline_seconds=600)
    ran(times, "like-it", 50.0)
    times.begin(said, 100.0)
    assert times.seconds_of(said) == 600
    assert times.end_of(said.uid, 200.0) == 700
    assert times.end_of(said.uid, 700.0) == 700 + LATE_SECONDS, "it takes a moment to end"


def test_what_a_pod_may_take_to_end_is_part_of_it():
    times, said = of(), replace(pod("a"), deadline_seconds=600, termination_seconds=120)
    times.begin(said, 100.0)
    assert times.seconds_of(said) == 720
    assert times.end_of(said.uid, 200.0) == 820


def test_a_pod_that_outlasts_its_deadline_has_no_end_and_others_of_its_namespace_are_not_believed():
    times, late = of("deadlines"), replace(pod("late"), deadline_seconds=600)
    times.begin(late, 0.0)
    next_one = replace(pod("next"), deadline_seconds=60)
    assert times.end_of(late.uid, 600.0 + LATE_SECONDS - 1.0) == 600.0 + LATE_SECONDS
    assert times.seconds_of(next_one) == 60
    assert times.end_of(late.uid, 600.0 + LATE_SECONDS) == math.inf
    assert times.seconds_of(next_one) == math.inf
    assert times.seconds_of(replace(next_one, namespace="other")) == 60
    times.end(late.uid, 700.0, has_succeeded=False)
    assert times.seconds_of(next_one) == 60


def test_a_pod_that_a_workload_owns_ends_by_the_earlier_deadline_of_both():
    times = of("deadlines", {JOB.uid: 300})
    assert times.seconds_of(pod("a", owner=JOB)) == 300
    assert times.seconds_of(replace(pod("a", owner=JOB), deadline_seconds=60)) == 60
    assert times.seconds_of(pod("a")) == math.inf


def test_a_deadline_that_is_raised_while_the_pod_runs_counts_as_it_was():
    deadlines = {JOB.uid: 300}
    times, one = of("deadlines", deadlines), pod("a", owner=JOB)
    times.begin(one, 0.0)
    deadlines[JOB.uid] = 30_000
    assert times.end_of(one.uid, 10.0) == 300


def test_a_pod_without_a_deadline_runs_as_long_as_the_last_two_like_it():
    times = of()
    for name, seconds in (("a", 1_000.0), ("b", 100.0), ("c", 300.0)):
        ran(times, name, seconds)
    times.begin(pod("d"), 1_000.0)
    assert times.seconds_of(pod("d")) == 200.0
    assert times.end_of("uid-d", 1_100.0) == 1_200.0
    assert times.end_of("uid-d", 1_500.0) == 2_000.0, "as long again as it has run"


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(pod("x", gpus=4), id="request"),
        pytest.param(pod("x", owner=JOB), id="owner"),
        pytest.param(replace(pod("x"), namespace="other"), id="namespace"),
    ],
)
def test_pods_of_another_kind_say_nothing(other):
    times = of()
    ran(times, "a", 100.0)
    assert times.seconds_of(other) == math.inf


def test_what_failed_or_has_no_end_says_nothing():
    times = of()
    ran(times, "a", 100.0, succeeds=False)
    web = Owner("apps/v1", "ReplicaSet", "web", "uid-web")
    ran(times, "b", 100.0, owner=web)
    assert not times.remembered()
    assert times.seconds_of(replace(pod("c", owner=web), deadline_seconds=60)) == math.inf


def test_pods_of_one_owner_are_one_run_and_its_longest_pod_counts():
    times = of()
    for name, seconds in (("a", 100.0), ("b", 300.0), ("c", 200.0)):
        ran(times, name, seconds, owner=JOB)
    assert times.seconds_of(pod("d", owner=JOB)) == 300.0


def test_the_kinds_and_namespaces_that_are_remembered_are_few():
    times = of()
    for number in range(MOST_NAMESPACES + 5):
        one = replace(pod("a", on="n"), namespace=f"ns{number}", uid=f"a{number}")
        times.begin(one, 0.0)
        times.end(one.uid, 1.0, has_succeeded=True)
    assert len(times.remembered()) == MOST_NAMESPACES
    for number in range(MOST_KINDS + 5):
        ran(times, f"b{number}", 1.0, cpu=1 + number)
    assert len(times.remembered()["default"]) == MOST_KINDS


def test_another_one_recalls_what_is_remembered():
    times, other = of(), of()
    ran(times, "a", 100.0)
    other.recall(times.remembered())
    assert other.seconds_of(pod("b")) == 100.0


def test_a_gang_ends_by_the_deadline_of_its_job():
    train = replace(job("train", 2), deadline_seconds=900)
    annotations = {"kueue.x-k8s.io/podset-required-topology": RACK}
    pods = job_pods("train", 2, **annotations)
    assert pods[0].owner == job_owner("train")
    world = World(jobs=[train], pods=pods, backfill="deadlines")
    assert world.engine.run_times.seconds_of_gang(world.gang()) == 900


def test_an_ordinary_pod_ends_by_the_deadline_of_its_job():
    train = replace(job("train", 2), deadline_seconds=900)
    one = pod("train-0", owner=job_owner("train"))
    world = World(jobs=[train], backfill="deadlines")
    assert world.engine.run_times.seconds_of(one) == 900
    world = World(jobs=[replace(train, deadline_seconds=0)], backfill="deadlines")
    assert world.engine.run_times.seconds_of(one) == math.inf


def test_a_gang_runs_as_long_as_the_last_ones_as_large():
    world = World(four_racks(), members("a", 2), backfill="history")
    world.schedule(*(world.pods[f"uid-a{i}"] for i in range(2)))
    world.tick(500.0)
    for index in range(2):
        world.put(replace(world.pods[f"uid-a{index}"], phase="Succeeded"))
    world.put(*members("b", 2), *members("c", 3))
    times = world.engine.run_times
    assert times.seconds_of_gang(world.gang("b")) == pytest.approx(500.0)
    assert times.seconds_of_gang(world.gang("c")) == math.inf
