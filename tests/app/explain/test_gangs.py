"""Each gang has one reason at each time, and a sentence that says the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from app.explain.gangs import listed, named, view
from app.kube.core.objects import PodRecord
from app.state.gang.membership import Member
from app.state.gang.reasons import Reason
from tests.app.state.histories.test_narrowed import narrowed_to
from tests.app.state.world import World, four_racks, members
from tests.records import RACK, REQUIRED, group, job_pods, pod

change = msgspec.structs.replace


def gang_of(name: str, pods: int, total: int | None = None, **more: object) -> list[PodRecord]:
    annotations = group(name, pods if total is None else total, RACK)
    return [pod(f"{name}{at}", annotations=annotations, **more) for at in range(pods)]


def reason(world: World, name: str = "g") -> Reason:
    shown = view(world.gang(name), world.now)
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


def test_a_gang_that_was_narrowed_to_one_full_rack_does_not_fit() -> None:
    world = World(four_racks())
    world.put(*[pod(f"on{at}", on=f"n0{at}", phase="Running") for at in range(4)])
    world.put(*[narrowed_to(each, [f"n0{at}" for at in range(4)]) for each in gang_of("g", 2)])
    assert reason(world) is Reason.DOES_NOT_FIT


def test_how_far_its_pods_are_is_counted() -> None:
    world = World(four_racks())
    world.put(*gang_of("g", 3))
    world.tick()
    shown = view(world.gang(), world.now)
    assert shown.pods.model_dump() == {"declared": 3, "there": 3, "planned": 3, "bound": 0}
    assert shown.domains == (f"{RACK}=b0/r0",)
    assert shown.waiting_seconds is None


def test_a_gang_that_waits_says_since_when() -> None:
    world = World(four_racks())
    too_large(world)
    world.tick(7.0)
    assert view(world.gang(), world.now).waiting_seconds == pytest.approx(7.0)


# -- by name ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["g", "g1"], ids=["gang", "pod"])
def test_a_gang_is_found_by_its_name_and_by_a_pods(name: str) -> None:
    world = World(four_racks())
    world.put(*gang_of("g", 2), *gang_of("h", 2))
    assert [each.key.name for each in named(world.engine, "default", name)] == ["g"]


def test_a_gang_is_found_by_its_owners_name() -> None:
    world = World(four_racks())
    world.put(*job_pods("train", 2, **{REQUIRED: RACK}))
    assert named(world.engine, "default", "train")
    assert named(world.engine, "default", "train", source="podgang") == []


def test_a_gang_of_another_namespace_is_not_found() -> None:
    world = World(four_racks())
    world.put(*gang_of("g", 2))
    assert named(world.engine, "other", "g") == []


# -- lists -----------------------------------------------------------------------------------------


def names_in(world: World, **wanted: object) -> list[str]:
    """The names of all pages of two."""
    found, after = list[str](), ""
    for _ in range(20):
        page = listed(world.engine, world.now, after=after, limit=2, **wanted)
        assert len(page.gangs) <= 2
        found += [f"{each.namespace}/{each.name}" for each in page.gangs]
        after = page.next
        if not after:
            return found
    raise AssertionError("the pages have no end")


def several() -> World:
    world = World(four_racks())
    for name in ("e", "b", "d"):
        world.put(*members(name, 2))
    world.put(*[change(each, namespace="other") for each in members("c", 1)])
    world.put(*gang_of("a", 9))
    world.tick()
    return world


def test_pages_have_every_gang_once_and_in_order() -> None:
    assert names_in(several()) == ["default/a", "default/b", "default/d", "default/e", "other/c"]


def test_a_list_may_be_of_one_namespace_phase_or_reason() -> None:
    world = several()
    assert names_in(world, namespace="other") == ["other/c"]
    assert names_in(world, phase=world.gang("a").phase) == ["default/a"]
    assert names_in(world, reason=Reason.DOES_NOT_FIT) == ["default/a"]
    assert names_in(world, reason=Reason.QUOTA) == []


def test_a_gang_that_goes_between_two_pages_breaks_none() -> None:
    world = several()
    first = listed(world.engine, world.now, limit=2)
    world.delete(*[each for each in world.pods.values() if each.name.startswith("b")])
    second = listed(world.engine, world.now, after=first.next, limit=2)
    assert [each.name for each in second.gangs] == ["d", "e"]


# -- among many ------------------------------------------------------------------------------------


class Counted(dict[str, Member]):
    """Members that count how often one of them is looked at."""

    looked_at = 0

    def values(self) -> Any:
        for each in super().values():
            Counted.looked_at += 1
            yield each


def many(world: World, gangs: int, pods: int) -> None:
    """Gangs of so many pods each, counted from now on."""
    for at in range(gangs):
        world.put(*gang_of(f"g{at:03d}-", pods))
    for each in world.engine.gangs.by_key.values():
        each.members = Counted(each.members)
    Counted.looked_at = 0


def test_a_name_that_nothing_has_costs_a_bounded_number_of_looks(monkeypatch) -> None:
    world = World(four_racks())
    many(world, gangs=30, pods=4)
    monkeypatch.setattr("app.explain.gangs.MOST_LOOKED_AT", 50)
    assert named(world.engine, "default", "nothing") == []
    assert Counted.looked_at <= 50 + 30  # and the first pod of each gang


def test_a_pod_is_found_among_more_pods_than_are_looked_at_if_its_name_begins_like_its_gangs(
    monkeypatch,
) -> None:
    world = World(four_racks())
    many(world, gangs=30, pods=4)
    monkeypatch.setattr("app.explain.gangs.MOST_LOOKED_AT", 10)
    (found,) = named(world.engine, "default", "g029-3")
    assert found.key.name == "g029-"


def test_an_owner_is_found_by_the_first_pod_of_its_gang_with_one_look_at_each(monkeypatch) -> None:
    world = World(four_racks())
    many(world, gangs=10, pods=4)
    own = [change(each, name=f"other-{at}") for at, each in enumerate(job_pods("train", 4))]
    world.put(*[change(each, annotations=group("strange", 4)) for each in own])
    monkeypatch.setattr("app.explain.gangs.MOST_LOOKED_AT", 0)
    (found,) = named(world.engine, "default", "train")
    assert found.key.name == "strange"
    assert Counted.looked_at <= 10
