"""benchmarks/waiting.py measures what its table says, here in small."""

from __future__ import annotations

from benchmarks.waiting import measure


def test_gangs_that_fit_nowhere_wait_while_the_answers_are_timed() -> None:
    took, delays = measure(50, 5, "own selector", 1.5)
    assert len(took) > 1
    assert delays
