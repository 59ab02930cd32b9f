"""Worlds in which Corral's webhook is on the way of every new pod."""

from __future__ import annotations

import pytest

from tests.sim.born import born_of
from tests.sim.world import World

SEEDS = (13, 21, 33)
MANY = 600


def test_gangs_are_born_in_place_in_one_seed_of_six():
    assert MANY // 8 < sum(born_of(seed) is not None for seed in range(MANY)) < MANY // 4


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_violated_where_gangs_are_born_in_place(seed):
    outcome = World(seed).run()
    assert not outcome.violation, "\n".join((outcome.violation, *outcome.last_lines, outcome.trace))
    assert outcome.hits["W born"] > 0
    assert outcome.hits["W born whole"] > 0
