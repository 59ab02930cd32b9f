"""Gangs are found by name and in pages, a bounded number of looks at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec
import pytest

from app.explain import finding
from app.explain.gangs import view
from app.explain.view import GangPage
from app.state.gang.gang import Gang
from app.state.gang.members.member import Member
from app.state.gang.reasons import Reason
from tests.app.state.world import World, four_racks, members
from tests.records import RACK, REQUIRED, group, job_pods, pod
from tests.workload_pods import job_set

change = msgspec.structs.replace
_R = TypeVar("_R")


def last(steps: Iterator[_R | None]) -> _R:
    *_, found = steps
    assert found is not None
    return found


def named(*asked: Any, **more: Any) -> list[Gang]:
    return last(finding.named(*asked, **more))


def listed(*asked: Any, **more: Any) -> GangPage:
    return last(finding.listed(*asked, **more))


def gang_of(name: str, pods: int, **more: object) -> list[Any]:
    annotations = group(name, pods, RACK)
    return [pod(f"{name}{at}", annotations=annotations, **more) for at in range(pods)]


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


def test_pages_go_on_after_a_gang_with_a_slash_in_its_key() -> None:
    """As the gang of a JobSet has, for its attempt, and one whose user wrote any text as a name."""
    world = World(four_racks())
    for name in ("a", "b", "c"):
        jobs, pods = job_set(name, {"workers": (1, 1)}, RACK)
        world.put(*jobs, *pods)
    world.put(pod("p", annotations=group("a/%2F/b", 1)))
    world.tick()
    found = names_in(world)
    assert found == ["default/a", "default/a/%2F/b", "default/b", "default/c"]


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
    monkeypatch.setattr("app.explain.finding.MOST_LOOKED_AT", 50)
    assert named(world.engine, "default", "nothing") == []
    assert Counted.looked_at <= 50 + 30  # and the first pod of each gang


def test_a_pod_is_found_among_more_pods_than_are_looked_at_if_its_name_begins_like_its_gangs(
    monkeypatch,
) -> None:
    world = World(four_racks())
    many(world, gangs=30, pods=4)
    monkeypatch.setattr("app.explain.finding.MOST_LOOKED_AT", 10)
    (found,) = named(world.engine, "default", "g029-3")
    assert found.key.name == "g029-"


def test_an_owner_is_found_by_the_first_pod_of_its_gang_with_one_look_at_each(monkeypatch) -> None:
    world = World(four_racks())
    many(world, gangs=10, pods=4)
    own = [change(each, name=f"other-{at}") for at, each in enumerate(job_pods("train", 4))]
    world.put(*[change(each, annotations=group("strange", 4)) for each in own])
    monkeypatch.setattr("app.explain.finding.MOST_LOOKED_AT", 0)
    (found,) = named(world.engine, "default", "train")
    assert found.key.name == "strange"
    assert Counted.looked_at <= 10


def test_no_step_looks_at_more_gangs_than_a_step_may(monkeypatch) -> None:
    world = World(four_racks())
    many(world, gangs=30, pods=1)
    monkeypatch.setattr(finding, "GANGS_A_STEP", 4)
    monkeypatch.setattr(finding, "VIEWS_A_STEP", 4)
    steps, most = finding.named(world.engine, "default", "nothing"), 0
    for _ in steps:
        most, Counted.looked_at = max(most, Counted.looked_at), 0
    assert 0 < most <= 4
    asked: list[str] = []
    monkeypatch.setattr(finding, "reason_of", lambda gang, _: asked.append(gang) or Reason.QUEUED)
    monkeypatch.setattr(
        finding, "view", lambda gang, *more: asked.append(gang) or view(gang, *more)
    )
    pages, of_each_step = [], []
    for page in finding.listed(world.engine, world.now, reason=Reason.QUEUED, limit=10):
        pages.append(page)
        of_each_step.append(len(asked))
        asked.clear()
    assert len(pages[-1].gangs) == 10
    assert sum(of_each_step) == 30 + 10
    assert max(of_each_step) <= 4


def test_gangs_that_come_and_go_between_two_steps_break_no_list_and_no_name(monkeypatch) -> None:
    monkeypatch.setattr(finding, "GANGS_A_STEP", 1)
    monkeypatch.setattr(finding, "VIEWS_A_STEP", 1)
    for steps_before in range(12):
        world = several()
        list_, name = (
            finding.listed(world.engine, world.now, limit=9),
            finding.named(world.engine, "default", "d1"),
        )
        for _ in range(steps_before):
            next(list_, None)
            next(name, None)
        world.delete(*[each for each in world.pods.values() if each.name.startswith("d")])
        world.put(*members("f", 2))
        world.tick()
        rest, found = [*list_], [*name]
        if rest:
            assert {"a", "b", "e", "c"} <= {each.name for each in rest[-1].gangs}
        if found:
            assert found[-1] == []
