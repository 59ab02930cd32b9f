"""A gang for which there is room gets it, and never more than there is."""

from __future__ import annotations

import pytest

from benchmarks.quality.feasible import BLOCK, RACK, instance
from topology import NoFit, Options, find, invariants
from topology.fit.view import Visits

SEEDS = 120
KINDS = [
    pytest.param(False, False, id="alike_each_in_a_rack"),
    pytest.param(True, False, id="mixed_each_in_a_rack"),
    pytest.param(False, True, id="alike_nested"),
    pytest.param(True, True, id="mixed_nested"),
]
TRIES = 32  # as the planner has them
MOST_VISITS = 600_000  # of nodes, in one search


@pytest.mark.parametrize(("is_mixed", "is_nested"), KINDS)
def test_no_gang_is_refused_that_fits(is_mixed: bool, is_nested: bool) -> None:
    for seed in range(SEEDS):
        made = instance(seed, is_mixed=is_mixed, is_nested=is_nested)
        visits = Visits()
        options = Options(tries=TRIES, visits=visits)
        found = find(made.capacity.tree, made.capacity, made.gang, {}, options)
        assert not isinstance(found, NoFit), (seed, str(found))
        tree = made.capacity.tree
        invariants.check(tree, made.capacity, gang=made.gang, placement=found)
        assert visits.total <= MOST_VISITS, seed


def test_the_hidden_packing_is_where_the_gang_requires() -> None:
    made = instance(3, is_mixed=True, is_nested=True)
    assert {made.gang.root.constraint.required} == {BLOCK}
    assert {member.constraint.required for member in made.gang.root.members} == {RACK}
