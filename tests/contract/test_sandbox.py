"""Every scenario file comes out as it says, in the sandbox, with gates and without."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.play import play
from tests.contract.scenario import SCENARIOS, gated, load
from tests.contract.worlds import sandbox


@pytest.mark.slow
@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_scenario(path: Path, tmp_path: Path) -> None:
    scenario = load(path)
    with sandbox(tmp_path, scenario.levels) as cluster:
        gateless = play(scenario, cluster)
    with sandbox(tmp_path, scenario.levels) as cluster:
        assert play(gated(scenario), cluster) == gateless
    assert gateless.placements or gateless.bound
