"""M4: which marked members its judge takes for those of a gang that gathers."""

from __future__ import annotations

import msgspec
import pytest

from tests.records import group, pod
from tests.sim.api import ApiServer
from tests.sim.asking import check_marks
from tests.sim.clock import Clock, History
from tests.sim.violation import Violation


def judge(*, runs: bool) -> None:
    """Two of four members are there; one is marked, and the other one may run."""
    clock = Clock()
    api = ApiServer(clock, History(clock))
    waits = pod("g-0", annotations=group("g", 4))
    api.create("Pod", msgspec.structs.replace(waits, is_marked=True))
    on = "n0" if runs else ""
    phase = "Running" if runs else "Pending"
    api.create("Pod", pod("g-1", annotations=group("g", 4), on=on, phase=phase))
    check_marks(api, lambda _: False)


def test_a_marked_member_of_a_gang_that_gathers_is_a_violation():
    with pytest.raises(Violation, match=r"M4: \['g-0'\] are marked, and 2 of 4 pods"):
        judge(runs=False)


def test_a_gang_that_runs_may_ask_for_those_of_its_pods_that_wait():
    judge(runs=True)
