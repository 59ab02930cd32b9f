"""GET /v1/decisions tells what became of gangs, newest first, of namespaces that are his to see."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from app.dialects.spec import GangKey
from app.state.report.decisions import Decision, Decisions
from tests.app.api.access.test_callers import Asked
from tests.app.api.test_routes import client, world_of_three
from tests.app.state.world import World
from tests.records import RACK, group, node, pod


async def told(world: World, query: str = "") -> list[dict[str, Any]]:
    async with client(world) as asking:
        answer = await asking.get(f"/decisions{query}")
        assert answer.status_code == 200, answer.text
        found: list[dict[str, Any]] = answer.json()["decisions"]
        return found


def of(decisions: list[dict[str, Any]], name: str) -> list[str]:
    """What became of a gang, first things first."""
    return [each["what"] for each in reversed(decisions) if each["name"] == name]


async def test_each_step_of_a_gang_is_told() -> None:
    decisions = await told(world_of_three())
    assert of(decisions, "runs") == ["complete", "placed", "binding", "running"]
    assert of(decisions, "placed") == ["complete", "placed"]
    assert of(decisions, "large") == ["complete", "no-place"]
    numbers = [each["number"] for each in decisions]
    assert numbers == sorted(numbers, reverse=True)


async def test_a_place_is_told_with_its_domain_and_a_verdict_with_its_sentence() -> None:
    world = world_of_three()
    decisions = await told(world)
    (placed,) = [each for each in decisions if (each["name"], each["what"]) == ("placed", "placed")]
    (domain,) = set(world.engine.gangs.by_key[key_of(world, "placed")].plan.domains.values())
    assert domain in placed["message"]
    (verdict,) = [each for each in decisions if each["what"] == "no-place"]
    assert (
        verdict["message"] == world.engine.gangs.by_key[key_of(world, "large")].reporting.sentence
    )


def key_of(world: World, name: str) -> Any:
    return next(key for key in world.engine.gangs.by_key if key.name == name)


async def test_a_plan_that_is_lost_is_told_with_the_reason() -> None:
    world = World([node("b0/r0/a0"), node("b0/r1/b0")])
    world.put(pod("g0", annotations=group("g", 1, RACK)))
    world.tick()
    (planned,) = world.engine.gangs.by_key[key_of(world, "g")].plan.nodes.values()
    rack = "r0" if planned == "a0" else "r1"
    world.put(node(f"b0/{rack}/{planned}", is_ready=False))
    world.tick()
    decisions = await told(world)
    whats = of(decisions, "g")
    assert whats[:3] == ["complete", "placed", "plan-lost"]
    lost = next(each for each in decisions if each["what"] == "plan-lost")
    assert planned in lost["message"]


async def test_the_newest_are_told_and_a_client_that_has_them_gets_nothing() -> None:
    world = world_of_three()
    every = await told(world)
    assert await told(world, "?limit=2") == every[:2]
    assert await told(world, "?namespace=other") == []
    assert await told(world, "?namespace=default") == every
    async with client(world) as asking:
        first = await asking.get("/decisions")
        again = await asking.get("/decisions", headers={"If-None-Match": first.headers["ETag"]})
        assert (again.status_code, again.content) == (304, b"")


class Counted(Decisions):
    """Decisions that count how often they are read."""

    read = 0

    def last(self, namespace: str, most: int) -> Iterator[Decision]:
        Counted.read += 1
        return super().last(namespace, most)


def counted(world: World) -> World:
    """Its decisions, as they are, from now on counted."""
    reports, Counted.read = world.engine.reports, 0
    its = reports.decisions
    reports.decisions = Counted(its.made, its._of)
    return world


async def test_pages_that_have_the_answer_ask_again_and_no_decision_is_read() -> None:
    world = counted(world_of_three())
    async with client(world) as asking:
        first = await asking.get("/decisions")
        known = {"If-None-Match": first.headers["ETag"]}
        for _ in range(50):
            assert (await asking.get("/decisions", headers=known)).status_code == 304
        assert Counted.read == 1
        world.engine.reports.decisions.note(GangKey("default", "new", "job"), "running", 1.0)
        for _ in range(50):
            again = await asking.get("/decisions", headers=known)
            assert again.json()["decisions"][0]["name"] == "new"
        assert Counted.read == 2


async def test_what_is_decided_elsewhere_changes_nothing_for_a_page_of_one_namespace() -> None:
    world = counted(world_of_three())
    async with client(world) as asking:
        first = await asking.get("/decisions?namespace=default")
        world.engine.reports.decisions.note(GangKey("other", "new", "job"), "running", 1.0)
        known = {"If-None-Match": first.headers["ETag"]}
        again = await asking.get("/decisions?namespace=default", headers=known)
        assert (again.status_code, Counted.read) == (304, 1)


async def test_answers_to_different_questions_and_of_another_start_have_different_tags() -> None:
    world, tags = world_of_three(), list[str]()
    for _ in range(2):  # Corrals
        async with client(world) as asking:
            for query in ("", "?namespace=default", "?namespace=other", "?limit=2"):
                tags.append((await asking.get(f"/decisions{query}")).headers["ETag"])
    assert len(set(tags)) == len(tags)


async def test_a_namespace_that_is_none_is_an_empty_answer() -> None:
    async with client(world_of_three()) as asking:
        answer = await asking.get("/decisions", params={"namespace": 'ü"\r\nX: y'})
        assert (answer.status_code, answer.json()) == (200, {"decisions": []})


@pytest.mark.parametrize(
    ("user", "query", "status"),
    [
        ("admin", "", 200),
        ("auditor", "", 200),
        ("tenant", "", 403),
        ("tenant", "?namespace=default", 200),
        ("tenant", "?namespace=other", 403),
        ("machinist", "", 403),
    ],
)
async def test_a_user_is_told_of_gangs_that_he_sees(user: str, query: str, status: int) -> None:
    assert (await Asked().get(f"/decisions{query}", user)).status_code == status
