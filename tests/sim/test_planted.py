"""The simulator finds bugs: a few that it finds at once are planted here, all by a command."""

from __future__ import annotations

import pytest

from tests.sim.planted import PLANTED, catch, lines_like

QUICK = tuple(each for each in PLANTED if each.is_quick)
LEAST = 15


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.breaks)
def test_the_line_a_bug_replaces_is_there_once(planted):
    assert lines_like(planted) == 1


def test_there_are_enough_of_them_in_every_part():
    files = [planted.file for planted in PLANTED]
    assert len(PLANTED) >= LEAST
    assert {"engine.py", "planner.py", "reservations.py"} <= set(files)


@pytest.mark.slow
@pytest.mark.parametrize("planted", QUICK, ids=lambda planted: planted.breaks)
def test_a_planted_bug_is_found(planted):
    assert catch(planted, seeds=20, jobs=1) is not None
