"""How long is waited until the same is tried again."""

from __future__ import annotations

import pytest

from app.state.pauses import doubled


@pytest.mark.parametrize(
    ("times", "seconds"),
    [(0, 3.0), (1, 3.0), (2, 6.0), (3, 12.0), (4, 20.0), (10_000, 20.0)],
)
def test_a_pause_doubles_each_time_up_to_the_longest(times: int, seconds: float) -> None:
    assert doubled(3.0, times, 20.0) == seconds
