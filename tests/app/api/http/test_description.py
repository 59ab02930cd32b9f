"""/v1 describes itself: every route, and an answer of each that its model takes."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from app.admission.scope import Scope
from app.api.following.stream import Stream
from app.api.http.examples import (
    DECISIONS,
    EXPLANATION,
    GANG,
    GANGS,
    MAP,
    NODE,
    SIMULATION,
    TOPOLOGY,
)
from app.api.routes import people
from app.api.standing import Standing
from app.explain.changes import Changes
from app.explain.view import View
from app.simulate.simulating import Rules
from tests.app.api.access.test_callers import Asked
from tests.app.api.test_routes import LOCAL, world_of_three

PATHS = {
    "/v1/gangs",
    "/v1/gangs/{namespace}/{name}",
    "/v1/gangs/{namespace}/{name}/explanation",
    "/v1/topology",
    "/v1/dump",
    "/v1/events",
    "/v1/simulate",
    "/v1/map",
    "/v1/nodes/{name}",
    "/v1/decisions",
}


async def described() -> dict[str, Any]:
    world, app = world_of_three(), FastAPI()
    stream, rules = Stream(Changes(world.engine), seconds=1.0), Rules(Scope("corral"))
    app.include_router(people(world.engine, Standing(lambda: "", stream=stream, rules=rules)))
    transport = httpx.ASGITransport(app=app, client=LOCAL)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1/v1") as client:
        answer = await client.get("/openapi.json")
    assert answer.status_code == 200
    return dict(answer.json())


async def test_every_route_is_described_with_an_example_and_what_it_takes() -> None:
    found = await described()
    assert found["paths"].keys() >= PATHS
    for path, methods in found["paths"].items():
        for method, of_method in methods.items():
            assert of_method["description"], (path, method)
            content = of_method["responses"]["200"]["content"]
            assert all("example" in each for each in content.values()), (path, method, content)
    gangs = found["paths"]["/v1/gangs"]["get"]["parameters"]
    assert {"namespace", "phase", "reason", "after", "limit"} == {each["name"] for each in gangs}


async def test_fields_are_described_in_the_words_of_the_code() -> None:
    fields = (await described())["components"]["schemas"]["Explanation"]["properties"]
    assert fields["advice"]["description"].startswith("What its owner or an administrator can do")


@pytest.mark.parametrize(
    "example", [GANG, GANGS, EXPLANATION, SIMULATION, TOPOLOGY, MAP, NODE, DECISIONS]
)
async def test_each_example_is_one_that_its_model_takes(example: View) -> None:
    assert type(example).model_validate_json(example.model_dump_json()) == example
    shown = [
        each["content"]["application/json"]["example"]
        for methods in (await described())["paths"].values()
        for of_method in methods.values()
        if "application/json" in (each := of_method["responses"]["200"])["content"]
    ]
    assert example.model_dump(mode="json", exclude_none=True) in shown


async def test_who_is_not_known_is_not_answered() -> None:
    asked = Asked()
    assert (await asked.get("/openapi.json", "")).status_code == 401
    assert (await asked.get("/openapi.json", "stranger")).status_code == 200
