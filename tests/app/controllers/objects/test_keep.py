"""Objects are made, changed and deleted as the vocabulary finds them to differ, by the leader."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from structlog.testing import capture_logs

from app.controllers.objects.keep import MOST_REFUSED, KeepController
from app.dialects.written import Difference, ObjectWrite
from app.errors import ApiError, Conflict, Forbidden, NotFound, NotLeading, Unreachable
from app.kube.watch.events import Listed
from app.state.objects.kept_objects import KeptObjects
from tests.app.polling import until
from tests.app.running import running

PATH = "/apis/toys.example.org/v1/boxes"
MADE = ObjectWrite("a", {"box": "a"})
CHANGED = ObjectWrite("b", {"box": "b"}, "uid-b", "3")
OTHERS = tuple(ObjectWrite(f"x{at}", {"box": at}, f"uid-{at}", "1") for at in range(9))


class Boxes:
    """Finds these to differ, and notes in which thread it was asked."""

    kind, path = "Box", PATH

    def __init__(self, *writes: ObjectWrite, notes: tuple[str, ...] = (), fails: int = 0) -> None:
        self.found, self.fails = Difference(writes, notes), fails
        self.in_main_thread: list[bool] = []

    def difference(self, nodes: Any, there: Any) -> Difference:
        self.in_main_thread.append(threading.current_thread() is threading.main_thread())
        if len(self.in_main_thread) <= self.fails:
            raise ValueError("a bug of ours")
        return self.found


class Api:
    """Notes what is written; each write fails first with the next of these errors."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.calls: list[tuple[Any, ...]] = []

    async def create(self, path: str, body: Any) -> None:
        self._call("create", path, body)

    async def change(self, path: str, name: str, uid: str, version: str, patch: Any) -> None:
        self._call("change", path, name, uid, version, patch)

    async def delete(self, path: str, name: str, uid: str, version: str) -> None:
        self._call("delete", path, name, uid, version)

    def _call(self, *said: Any) -> None:
        self.calls.append(said)
        if self.errors:
            raise self.errors.pop(0)


class World:
    def __init__(self, boxes: Boxes, *errors: Exception, is_leading: bool = True) -> None:
        self.boxes, self.api = boxes, Api(*errors)
        self.outcomes: list[str] = []
        self.notes: list[int] = []
        self.looks = 0
        self.kept = KeptObjects(boxes)
        self.kept.apply(Listed("Node", ()))
        self.kept.apply(Listed("Box", ()))

        def leads() -> bool:
            self.looks += 1
            return is_leading

        self.keeper = KeepController(
            self.api,
            self.kept,
            self.outcomes.append,
            self.notes.append,
            is_leading=leads,
            seconds=0.001,
        )


async def test_what_differs_is_written_in_its_order_and_the_comparison_is_made_in_a_thread():
    world = World(Boxes(MADE, CHANGED))
    await world.keeper.look()
    assert world.api.calls == [
        ("create", PATH, {"box": "a"}),
        ("change", PATH, "b", "uid-b", "3", {"box": "b"}),
    ]
    assert world.outcomes == ["made", "changed"]
    assert world.boxes.in_main_thread == [False]


async def test_a_look_says_how_long_the_comparison_took():
    assert await World(Boxes()).keeper.look() > 0.0


async def test_what_is_unwanted_is_deleted_with_its_uid_and_version(monkeypatch):
    monkeypatch.setattr("app.state.objects.kept_objects.GRACE_SECONDS", 0.0)
    world = World(Boxes(ObjectWrite("c", None, "uid-c", "5")))
    await world.keeper.look()
    assert world.api.calls == [("delete", PATH, "c", "uid-c", "5")]
    assert world.outcomes == ["deleted"]


async def test_one_that_does_not_lead_compares_and_writes_nothing():
    world = World(Boxes(MADE), is_leading=False)
    async with running(world.keeper):
        await until(lambda: world.looks > 5)
    assert (world.api.calls, world.boxes.in_main_thread) == ([], [])
    assert world.notes[-1] == 0  # the leader's own Corral says them


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        pytest.param(Conflict(409, "Conflict"), "conflict", id="changed_meanwhile"),
        pytest.param(NotFound(404, "NotFound"), "gone", id="gone"),
        pytest.param(Forbidden(403, "Forbidden"), "failed", id="not_allowed"),
        pytest.param(ApiError(422, "Invalid"), "failed", id="invalid"),
    ],
)
async def test_one_that_fails_keeps_no_other_back_and_is_not_written_again_at_once(error, outcome):
    world = World(Boxes(CHANGED, MADE), error)
    await world.keeper.look()
    assert world.outcomes == [outcome, "made"]
    await world.keeper.look()
    assert len(world.api.calls) == 2


@pytest.mark.parametrize(
    ("error", "outcomes"),
    [
        pytest.param(Unreachable("away"), ["failed"], id="away"),
        pytest.param(ApiError(503, "ServiceUnavailable"), ["failed"], id="overloaded"),
        pytest.param(NotLeading(), ["failed"], id="another_leads"),
        pytest.param(NotFound(404, "NotFound"), ["gone"], id="the_kind_is_not_served"),
    ],
)
async def test_where_no_write_would_succeed_the_look_ends(error, outcomes):
    world = World(Boxes(MADE, CHANGED), error)
    await world.keeper.look()
    await world.keeper.look()
    assert (len(world.api.calls), world.outcomes) == (1, outcomes)


async def test_a_look_ends_after_a_few_writes_that_are_refused():
    world = World(Boxes(*OTHERS), *[Forbidden(403, "Forbidden")] * len(OTHERS))
    await world.keeper.look()
    assert world.outcomes == ["failed"] * MOST_REFUSED


async def test_a_bug_in_a_comparison_ends_neither_the_controller_nor_the_looking():
    world = World(Boxes(MADE, fails=1))
    async with running(world.keeper):
        await until(lambda: world.outcomes == ["made"])


async def test_what_is_left_as_it_is_is_counted_and_logged_once():
    world = World(Boxes(notes=("box b is another's",)))
    with capture_logs() as logged:
        for _ in range(2):
            await world.keeper.look()
            world.kept.rest()
    assert world.notes == [1, 1]
    assert [each["problem"] for each in logged] == ["box b is another's"]
