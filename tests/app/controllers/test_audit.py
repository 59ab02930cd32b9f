"""The books are looked at, differences counted and healed, and nothing ends the looking."""

from __future__ import annotations

import asyncio
import time

from structlog.testing import capture_logs

from app.controllers.audit import MOST_LOGGED, AuditController
from tests.app.polling import until


async def audited(found):
    """One audit of books that differ so; what was counted, how often it healed, what was logged."""
    counted, healed = [], []
    audits = AuditController(
        lambda: [[each] for each in found],
        lambda: healed.append(True),
        lambda *seen: counted.append(seen),
        seconds=60,
    )
    began = time.monotonic()
    with capture_logs() as logged:
        await audits.audit()
    ((differences, seconds),) = counted
    assert 0 <= seconds <= time.monotonic() - began
    return differences, len(healed), logged


async def test_books_that_are_right_are_left_alone():
    assert await audited([]) == (0, 0, [])


async def test_every_difference_is_counted_logged_and_healed_at_once():
    differences, healed, logged = await audited(["used differs in slot n1", "gang g has no plan"])
    assert (differences, healed) == (2, 1)
    assert [line["problem"] for line in logged] == ["used differs in slot n1", "gang g has no plan"]


async def test_a_thousand_differences_are_counted_but_not_all_logged():
    differences, healed, logged = await audited([f"pod {number}" for number in range(1000)])
    assert (differences, healed) == (1000, 1)
    assert len(logged) == MOST_LOGGED + 1
    assert logged[-1]["more"] == 1000 - MOST_LOGGED


async def test_as_many_differences_as_are_logged_need_no_word_on_the_rest():
    _, _, as_many = await audited(["x"] * MOST_LOGGED)
    _, _, one_more = await audited(["x"] * (MOST_LOGGED + 1))
    assert [line.get("more") for line in as_many] == [None] * MOST_LOGGED
    assert [line.get("more") for line in one_more][-2:] == [None, 1]


async def test_others_have_the_loop_after_each_piece():
    turns = []

    def pieces():
        for _ in range(3):
            asyncio.get_running_loop().call_soon(turns.append, True)
            yield []
            assert turns.pop()

    counted = []
    await AuditController(
        pieces, lambda: None, lambda found, _: counted.append(found), seconds=60
    ).audit()
    assert counted == [0]


async def test_audits_go_on_when_one_fails():
    looks = []

    def look():
        looks.append(True)
        raise RuntimeError("bug in the audit")

    audits = AuditController(look, lambda: None, lambda *_: None, seconds=0.001)
    task = asyncio.create_task(audits.run())
    await until(lambda: len(looks) >= 3)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert len(looks) >= 3
