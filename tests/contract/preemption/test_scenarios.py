"""Every row of the table comes out as it says, with the gates of the webhook and without."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.preemption import virtual_time
from tests.contract.preemption.play import play
from tests.contract.preemption.table import SCENARIOS, Scenario

CASES = [
    pytest.param(each, mode == "gated", id=f"{each.id}-{mode}")
    for each in SCENARIOS
    for mode in each.modes
]


@pytest.mark.slow
@pytest.mark.parametrize(("scenario", "is_gated"), CASES)
def test_scenario(scenario: Scenario, is_gated: bool, tmp_path: Path) -> None:
    virtual_time.run(play(scenario, tmp_path, is_gated=is_gated))
