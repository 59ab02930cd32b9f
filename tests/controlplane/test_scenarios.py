"""Every scenario file comes out the same in the sandbox and on the real control plane."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster import Cluster
from tests.contract.play import play
from tests.contract.scenario import SCENARIOS, gated, load
from tests.contract.worlds import sandbox
from tests.controlplane.plane import ControlPlane
from tests.corral_process import CorralProcess

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


@pytest.mark.parametrize("has_gates", [False, True], ids=["gateless", "gated"])
@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_scenario_is_the_same_in_both_worlds(
    path: Path, has_gates: bool, plane: ControlPlane, cluster: Cluster, tmp_path: Path
) -> None:
    scenario = gated(load(path)) if has_gates else load(path)
    with CorralProcess(plane.kubeconfig("corral"), tmp_path, levels=scenario.levels) as corral:
        plane.start_scheduler(extender=corral.url)
        real = play(scenario, cluster)
    with sandbox(tmp_path, scenario.levels) as imitation:
        assert play(scenario, imitation) == real
