"""The books are looked at, differences counted and healed, and nothing ends the looking."""

from __future__ import annotations

import asyncio
import time

from structlog.testing import capture_logs

from app.controllers.audit import MOST_LOGGED, AuditController
from tests.app.polling import until


def audited(found):
    """One audit of books that differ so; what was counted, how often it healed, what was logged."""
    counted, healed = [], []
    audits = AuditController(
        lambda: found, lambda: healed.append(True), lambda *seen: counted.append(seen), seconds=60
    )
    began = time.monotonic()
    with capture_logs() as logged:
        audits.audit()
    ((differences, seconds),) = counted
    assert 0 <= seconds <= time.monotonic() - began
    return differences, len(healed), logged


def test_books_that_are_right_are_left_alone():
    assert audited([]) == (0, 0, [])


def test_every_difference_is_counted_logged_and_healed_at_once():
    differences, healed, logged = audited(["used differs in slot n1", "gang g has no plan"])
    assert (differences, healed) == (2, 1)
    assert [line["problem"] for line in logged] == ["used differs in slot n1", "gang g has no plan"]


def test_a_thousand_differences_are_counted_but_not_all_logged():
    differences, healed, logged = audited([f"pod {number}" for number in range(1000)])
    assert (differences, healed) == (1000, 1)
    assert len(logged) == MOST_LOGGED + 1
    assert logged[-1]["more"] == 1000 - MOST_LOGGED


def test_as_many_differences_as_are_logged_need_no_word_on_the_rest():
    assert [line.get("more") for line in audited(["x"] * MOST_LOGGED)[2]] == [None] * MOST_LOGGED
    assert [line.get("more") for line in audited(["x"] * (MOST_LOGGED + 1))[2]][-2:] == [None, 1]


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
