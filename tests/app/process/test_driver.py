"""The engine's inputs: what one of them trips over costs no other one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from structlog.testing import capture_logs

from app.dialects.spec import GangKey
from app.kube.watch.events import Applied, Deleted, Event, Listed
from app.metrics import Metrics
from app.process.driver import Driver, fault_counter
from app.state.effects import Bind, Bound, Delete, Effect, Evict, TryEviction
from app.state.engine import Engine
from app.state.settings import EngineSettings
from tests.app.polling import until
from tests.app.state.lost import replacement, started
from tests.records import RACK, group, node, pod

TICK_SECONDS = 0.001


class Tripping(Engine):
    """An engine with a bug in what some watch events, the clock and the end call."""

    def apply(self, event, now):
        if isinstance(event, Applied) and event.record.name == "bad":
            raise RuntimeError("bug")
        return super().apply(event, now)

    def tick(self, now):
        raise RuntimeError("bug")

    drain = tick


def driven(engine: Engine) -> tuple[Driver, list[Effect], Callable[[str], float | None]]:
    """A driver of this engine, what it has had carried out, and the errors it has counted."""
    metrics, fed = Metrics(), []
    sample = metrics.registry.get_sample_value
    driver = Driver(engine, engine, fed.extend, metrics, tick_seconds=TICK_SECONDS)
    return driver, fed, lambda name: sample("corral_engine_errors_total", {"input": name})


def test_an_object_that_trips_a_bug_is_counted_and_the_next_one_is_learnt():
    engine = Tripping(EngineSettings(levels=(RACK,)))
    driver, fed, errors = driven(engine)
    driver.apply(Applied(node("b1/r1/bad", gpus=8)))
    driver.apply(Applied(node("b1/r1/good", gpus=8)))
    assert errors("apply") == 1
    assert list(engine.books.nodes) == ["good"]
    assert fed == []


async def test_time_goes_on_after_a_tick_that_fails():
    driver, _, errors = driven(Tripping(EngineSettings(levels=(RACK,))))
    ticking = asyncio.create_task(driver.tick())
    await until(lambda: (errors("tick") or 0) >= 3)
    ticking.cancel()
    await asyncio.wait([ticking])


class Busy(Engine):
    """An engine that has more to search than a tick may."""

    def tick(self, now):
        effects = super().tick(now)
        self.budget.spend("default", self.budget.most)
        return effects


async def test_a_tick_that_left_work_for_the_next_one_is_counted_by_the_kind_of_work():
    metrics = Metrics()
    engine = Busy(EngineSettings(levels=(RACK,)))
    driver = Driver(engine, engine, lambda effects: None, metrics, tick_seconds=TICK_SECONDS)

    def counted(work: str) -> float | None:
        return metrics.registry.get_sample_value("corral_ticks_over_budget_total", {"work": work})

    ticking = asyncio.create_task(driver.tick())
    await until(lambda: (counted("searches") or 0) >= 2)
    ticking.cancel()
    await asyncio.wait([ticking])
    assert counted("roll_calls") == 0


async def test_what_is_wrong_with_the_cluster_is_logged_once_and_again_when_it_comes_back():
    warned = [("a",), ("a", "b"), ("b",), ("a",)]

    class Warning(Engine):
        def warnings(self):
            return warned[0] if len(warned) == 1 else warned.pop(0)

    driver, *_ = driven(Warning(EngineSettings(levels=(RACK,))))
    with capture_logs() as lines:
        ticking = asyncio.create_task(driver.tick())
        await until(lambda: len(warned) == 1 and len(lines) >= 3)
        ticking.cancel()
        await asyncio.wait([ticking])
    assert [line["problem"] for line in lines if "problem" in line] == ["a", "b", "a"]


def test_an_engine_that_cannot_be_drained_is_counted():
    driver, _, errors = driven(Tripping(EngineSettings(levels=(RACK,))))
    driver.drain()
    assert errors("drain") == 1


def test_what_the_engine_kept_from_spreading_is_counted():
    metrics = Metrics()
    fault_counter(metrics)("search for gang default/bad", RuntimeError("bug"))
    sample = metrics.registry.get_sample_value
    assert sample("corral_engine_errors_total", {"input": "part"}) == 1


@pytest.mark.parametrize(
    ("effect", "heard"),
    [
        (Evict("team", "a", "u1", "it gives way"), ("eviction_finished", "u1", "failed")),
        (TryEviction("team", "a", "u1"), ("eviction_tried", "u1", "failed")),
    ],
)
def test_what_became_of_an_eviction_reaches_the_engine(effect, heard):
    told = []

    class Hearing(Engine):
        def eviction_tried(self, uid, outcome, now):
            told.append(("eviction_tried", uid, outcome))
            return []

        def eviction_finished(self, uid, outcome, now):
            told.append(("eviction_finished", uid, outcome))
            return []

    driver, *_ = driven(Hearing(EngineSettings(levels=(RACK,))))
    driver.eviction_finished(effect, "failed")
    assert told == [heard]


def test_a_write_that_was_lost_reaches_the_engine():
    engine = Engine(EngineSettings(levels=(RACK,), kinds=("Node", "Pod")))
    driver, fed, _ = driven(engine)
    driver.apply(Listed("Node", (node("b1/r1/n", gpus=8),)))
    driver.apply(Listed("Pod", (pod("g0", annotations=group("g", 0, RACK)),)))
    (event,) = fed
    driver.write_lost(event.gang, event.reason, event.about.uid)
    assert engine.lost_writes == 1


LATE = pod("late")


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(Applied(pod("late", on="n")), id="shown"),
        pytest.param(Deleted(LATE), id="deleted"),
        pytest.param(Listed("Pod", ()), id="not_listed"),
        pytest.param(Listed("Pod", (pod("late", on="n"),)), id="listed_with_its_node"),
    ],
)
async def test_a_binding_is_awaited_until_the_watch_shows_it_or_the_pod_is_gone(event: Event):
    metrics, engine = Metrics(), Engine(EngineSettings(levels=(RACK,), kinds=("Node", "Pod")))
    driver = Driver(engine, engine, lambda effects: None, metrics, tick_seconds=TICK_SECONDS)
    awaited = "corral_watch_awaited_seconds"
    driver.apply(Listed("Node", (node("b1/r1/n", gpus=8),)))
    driver.apply(Listed("Pod", (LATE,)))
    driver.bind_finished(Bind(LATE.namespace, LATE.name, LATE.uid, "n"), Bound())
    ticking = asyncio.create_task(driver.tick())
    await until(lambda: metrics.registry.get_sample_value(awaited))
    driver.apply(event)
    await until(lambda: metrics.registry.get_sample_value(awaited) == 0)
    ticking.cancel()
    await asyncio.wait([ticking])


def test_a_pod_that_a_gang_has_come_to_need_is_not_deleted_any_more():
    """It was one too many when its deletion was queued, or first tried."""
    world = started(delete_excess_pods=True)
    driver, _, _ = driven(world.engine)
    world.put(replacement())
    world.tick()
    (delete,) = world.told(Delete)
    assert driver.is_deletion_wanted(delete)
    world.delete(world.pods["uid-g0"])
    world.tick()
    assert not driver.is_deletion_wanted(delete)


def test_a_pod_of_a_gang_that_is_gone_is_not_deleted():
    driver, _, _ = driven(Engine(EngineSettings(levels=(RACK,))))
    delete = Delete(GangKey("default", "g", "job"), "default", "a", "uid-a", "one too many")
    assert not driver.is_deletion_wanted(delete)
