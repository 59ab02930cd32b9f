"""Objects that a vocabulary needs are made where they are absent, and nothing else is touched."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from app.controllers.objects.prerequisites import PrerequisiteController
from app.dialects.registry import DIALECTS
from app.dialects.written import Prerequisite
from app.errors import Conflict, Forbidden, NotFound, Unreachable
from app.settings import EngineOptions
from tests.app.polling import until

PATH = "/apis/toys.example.org/v1/boxes"
BOXES = tuple(Prerequisite(PATH, name, {"metadata": {"name": name}}) for name in ("large", "small"))


class Api:
    """Objects by path and name; making one fails first with these errors."""

    def __init__(self, *errors, there=()):
        self.there = {f"{PATH}/{name}" for name in there}
        self.errors = list(errors)
        self.looks = 0

    async def exists(self, path, name):
        self.looks += 1
        return f"{path}/{name}" in self.there

    async def create(self, path, body):
        if self.errors:
            raise self.errors.pop(0)
        self.there.add(f"{path}/{body['metadata']['name']}")


async def looked(api, rounds=1, *, is_leading=True, wanted=BOXES):
    """Let it look so many times."""
    turns = 0

    def leads():
        nonlocal turns
        turns += 1
        return is_leading

    controller = PrerequisiteController(api, wanted, is_leading=leads, seconds=0.001)
    running = asyncio.create_task(controller.run())
    try:
        await until(lambda: turns > rounds, seconds=10.0)
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


async def test_what_is_absent_is_made_and_made_again_when_it_is_deleted():
    api = Api(there=["small"])
    await looked(api)
    assert api.there == {f"{PATH}/large", f"{PATH}/small"}
    api.there.clear()
    await looked(api)
    assert api.there == {f"{PATH}/large", f"{PATH}/small"}


@pytest.mark.parametrize(
    "error",
    [
        NotFound(404, "NotFound", "the server could not find the requested resource"),
        Conflict(409, "AlreadyExists", "boxes large already exists"),
        Forbidden(403, "Forbidden", "no rights"),
        Unreachable("away"),
        RuntimeError("a bug"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_one_that_cannot_be_made_is_tried_again_and_keeps_no_other_back(error):
    api = Api(error)
    await looked(api, rounds=2)
    assert api.there == {f"{PATH}/large", f"{PATH}/small"}


async def test_who_does_not_lead_makes_nothing():
    api = Api()
    await looked(api, rounds=2, is_leading=False)
    assert (api.looks, api.there) == (0, set())


def test_the_queues_that_the_operator_names_are_wanted_of_volcano():
    chosen = EngineOptions(volcano_queues=("root", "default"))
    wanted = DIALECTS.configured(chosen).prerequisites
    assert [(each.name, each.body["metadata"]) for each in wanted] == [
        (name, {"name": name}) for name in ("root", "default")
    ]
    assert {each.path for each in wanted} == {"/apis/scheduling.volcano.sh/v1beta1/queues"}
    assert DIALECTS.configured(EngineOptions()).prerequisites == ()
