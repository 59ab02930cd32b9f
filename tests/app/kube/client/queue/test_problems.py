"""What the log says of writes that fail: a few lines of each reason, however many there are."""

from __future__ import annotations

from structlog.testing import capture_logs

from app.errors import ApiError, NotLeading, Unreachable
from app.kube.client.queue.problems import MOST_LINES, Problems
from app.kube.log_limit import AGAIN_SECONDS


def test_of_thousands_of_writes_that_fail_alike_a_few_are_logged(clock):
    problems = Problems("wake", clock)
    with capture_logs() as logs:
        for number in range(5000):
            problems.note(Unreachable(f"PATCH /pods/p{number}: refused"), pod=f"team/p{number}")
    assert [(each["event"], each["pod"]) for each in logs] == [
        ("wake", f"team/p{number}") for number in range(MOST_LINES)
    ]
    assert "PATCH /pods/p0: refused" in logs[0]["problem"]


def test_another_reason_is_logged_at_once(clock):
    problems = Problems("wake", clock)
    errors = [Unreachable("x"), NotLeading(), ApiError(503, "Busy"), ApiError(500, "Busy")]
    with capture_logs() as logs:
        for error in errors:
            for _ in range(MOST_LINES + 3):
                problems.note(error)
    assert [each["problem"] for each in logs] == [
        repr(error) for error in errors for _ in range(MOST_LINES)
    ]


def test_after_a_while_it_is_logged_again_with_how_many_there_were(clock):
    problems = Problems("wake", clock)
    with capture_logs() as logs:
        for _ in range(MOST_LINES + 7):
            problems.note(NotLeading())
        clock.now += AGAIN_SECONDS
        problems.note(NotLeading())
    assert [each["times"] for each in logs] == [1] * MOST_LINES + [8]
