"""What the log says of watches that fail again and again."""

from __future__ import annotations

from collections import Counter

import pytest
import structlog

from app.errors import Unreachable
from app.kube.log_limit import AGAIN_SECONDS
from app.process.watches.problems import WatchProblems

DOWN = Unreachable("watch of /api/v1/pods: connection refused")


class Counted:
    def __init__(self, totals: Counter[str], kind: str) -> None:
        self._totals, self._kind = totals, kind

    def inc(self) -> None:
        self._totals[self._kind] += 1


class Watching:
    """The problems of watches, by a clock that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0
        self.totals: Counter[str] = Counter()
        counters = {kind: Counted(self.totals, kind) for kind in ("Pod", "Node")}
        self.problems = WatchProblems(counters, lambda: self.now)


@pytest.fixture
def watching():
    return Watching()


def test_a_problem_that_comes_up_again_is_counted_and_not_logged_again(watching):
    with structlog.testing.capture_logs() as lines:
        for _ in range(50):
            watching.problems.note("Pod", DOWN)
    assert watching.totals == {"Pod": 50}
    assert [(each["kind"], each["problem"], each["times"]) for each in lines] == [
        ("Pod", str(DOWN), 1)
    ]


def test_a_minute_later_it_is_logged_with_how_often_it_came_up(watching):
    watching.problems.note("Pod", DOWN)
    watching.now += AGAIN_SECONDS - 1
    with structlog.testing.capture_logs() as lines:
        watching.problems.note("Pod", DOWN)
        watching.problems.note("Pod", DOWN)
        assert lines == []
        watching.now += 1
        watching.problems.note("Pod", DOWN)
        watching.problems.note("Pod", DOWN)
    assert [each["times"] for each in lines] == [3]


def test_what_another_kind_or_another_problem_is_is_logged_at_once(watching):
    other = Unreachable("watch of /api/v1/pods: 500 from the API server")
    with structlog.testing.capture_logs() as lines:
        for kind, error in (("Pod", DOWN), ("Node", DOWN), ("Pod", other), ("Pod", DOWN)):
            watching.problems.note(kind, error)
    assert [(each["kind"], each["problem"]) for each in lines] == [
        ("Pod", str(DOWN)),
        ("Node", str(DOWN)),
        ("Pod", str(other)),
    ]
