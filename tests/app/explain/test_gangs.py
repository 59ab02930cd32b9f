"""Each gang has one reason at each time, and a sentence that says the same."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from app.explain.gangs import view
from app.kube.core.objects import PodRecord
from app.state.gang.reasons import Reason
from tests.app.state.born.nursery import nursery, rack, train
from tests.app.state.histories.test_narrowed import narrowed_to
from tests.app.state.world import World, four_racks
from tests.records import BLOCK, PREFERRED, RACK, REQUIRED, group, node, pod

change = msgspec.structs.replace


def gang_of(name: str, pods: int, total: int | None = None, **more: object) -> list[PodRecord]:
    annotations = group(name, pods if total is None else total, RACK)
    return [pod(f"{name}{at}", annotations=annotations, **more) for at in range(pods)]


def reason(world: World, name: str = "g") -> Reason:
    shown = view(world.gang(name), world.now, world.engine.books)
    assert f"default/{name}" in shown.message
    return shown.reason


def in_part(world: World) -> None:
    world.put(*gang_of("g", 2, total=3))


def gated(world: World) -> None:
    world.put(*gang_of("g", 3, gates=("example.com/quota",)))


def contradictory(world: World) -> None:
    first, second = gang_of("g", 2)
    world.put(first, change(second, annotations=group("g", 2, "no/such-level", **{REQUIRED: "b"})))


def of_no_level(world: World) -> None:
    world.put(*[change(each, annotations=group("g", 2, "no/level")) for each in gang_of("g", 2)])


def too_large(world: World) -> None:
    world.put(*gang_of("g", 5))


def placed(world: World) -> None:
    world.put(*gang_of("g", 3))


def running(world: World) -> None:
    pods = gang_of("g", 3)
    world.put(*pods)
    assert len(world.schedule(*pods)) == 3


def ended(world: World) -> None:
    running(world)
    world.put(*[change(each, phase="Succeeded") for each in world.pods.values()])


def narrowed_apart(world: World) -> None:
    ranges = [[f"n{rack}{at}" for at in range(4)] for rack in range(2)]
    for at, each in enumerate(gang_of("g", 4)):
        world.put(narrowed_to(each, ranges[at // 2]))


SITUATIONS: dict[Reason, Callable[[World], None]] = {
    Reason.INCOMPLETE: in_part,
    Reason.GATED: gated,
    Reason.INVALID: contradictory,
    Reason.UNKNOWN_TOPOLOGY: of_no_level,
    Reason.DOES_NOT_FIT: too_large,
    Reason.NARROWED_APART: narrowed_apart,
    Reason.AWAITING_SCHEDULER: placed,
    Reason.RUNNING: running,
    Reason.ENDED: ended,
}


@pytest.mark.parametrize("expected", SITUATIONS)
def test_each_situation_has_its_reason(expected: Reason) -> None:
    world = World(four_racks())
    SITUATIONS[expected](world)
    world.tick()
    assert reason(world) is expected


def test_a_plan_that_was_lost_is_not_searched_again_at_once() -> None:
    world = World(four_racks())
    world.put(*gang_of("g", 3))
    node = world.gang().plan.nodes["uid-g0"]
    world.put(pod("thief", on=node, phase="Running"))
    assert reason(world) is Reason.BACKING_OFF


def test_a_gang_that_kube_scheduler_refused_and_that_does_not_fit_by_now_says_so() -> None:
    world = World(four_racks(), gang_of("g", 3), hold_seconds=20.0)
    world.tick(21.0)
    assert reason(world) is Reason.REFUSED_BY_SCHEDULER
    world.put(*[pod(f"on-{name}", on=name) for name in world.engine.books.nodes])
    for _ in range(20):
        world.tick(20.0)
    assert reason(world) is Reason.DOES_NOT_FIT


def test_a_gang_that_was_narrowed_to_one_full_rack_does_not_fit() -> None:
    world = World(four_racks())
    world.put(*[pod(f"on{at}", on=f"n0{at}", phase="Running") for at in range(4)])
    world.put(*[narrowed_to(each, [f"n0{at}" for at in range(4)]) for each in gang_of("g", 2)])
    assert reason(world) is Reason.DOES_NOT_FIT


def test_how_far_its_pods_are_is_counted() -> None:
    world = World(four_racks())
    world.put(*gang_of("g", 3))
    world.tick()
    shown = view(world.gang(), world.now, world.engine.books)
    assert shown.pods.model_dump() == {"declared": 3, "there": 3, "planned": 3, "bound": 0}
    assert shown.domains == (f"{RACK}=b0/r0",)
    assert shown.waiting_seconds is None


def on(world: World, name: str, constraint: dict[str, str], *nodes: str) -> tuple[str, ...]:
    """The domains of a gang that runs on these nodes."""
    said = group(name, len(nodes), **constraint)
    world.put(*[pod(f"{name}{at}", annotations=said, on=node, phase="Running")
                for at, node in enumerate(nodes)])  # fmt: skip
    world.tick()
    shown = view(world.gang(name), world.now, world.engine.books)
    assert (shown.phase, shown.pods.bound) == ("running", len(nodes))
    return shown.domains


def test_where_a_gang_runs_is_named_as_where_it_was_planned() -> None:
    world = World(four_racks())
    pods = gang_of("g", 3)
    world.put(*pods)
    world.tick()
    planned = view(world.gang(), world.now, world.engine.books).domains
    assert len(world.schedule(*pods)) == 3
    world.tick()
    shown = view(world.gang(), world.now, world.engine.books)
    assert (shown.phase, shown.domains) == ("running", planned)


def test_of_a_preferred_level_all_domains_that_it_runs_in_are_named() -> None:
    world = World(four_racks())
    racks = on(world, "g", {PREFERRED: RACK}, "n00", "n01", "n20")
    assert racks == (f"{RACK}=b0/r0", f"{RACK}=b1/r2")
    assert on(world, "h", {REQUIRED: BLOCK}, "n10", "n02") == (f"{BLOCK}=b0",)


def test_where_a_gang_runs_is_not_told_of_what_it_does_not_name_or_nodes_without_a_label() -> None:
    world = World([*four_racks(), node("loose")])
    assert on(world, "free", {}, "n00") == ()
    assert on(world, "lost", {REQUIRED: RACK}, "loose", "gone") == ()
    assert on(world, "odd", {REQUIRED: "no/level"}, "n00") == ()


def test_of_many_domains_eight_are_named() -> None:
    world = World([node(f"b0/r{at:02}/n{at}") for at in range(12)])
    nodes = [f"n{at}" for at in range(12)]
    assert on(world, "g", {PREFERRED: RACK}, *nodes) == tuple(
        f"{RACK}=b0/r{at:02}" for at in range(8)
    )


def test_a_gang_that_waits_says_since_when() -> None:
    world = World(four_racks())
    too_large(world)
    world.tick(7.0)
    assert view(world.gang(), world.now, world.engine.books).waiting_seconds == pytest.approx(7.0)


def test_of_a_gang_that_is_planned_before_its_first_pod_none_is_said_to_be_there():
    jobs, pods = train()
    world = nursery(rack(0), jobs)
    first = world.created(pods[0])
    for there in (0, 1):
        shown = view(world.gang(), world.now, world.engine.books)
        assert (shown.phase, shown.pods.declared, shown.pods.there) == ("placed", 4, there)
        world.put(first)
        world.tick()
