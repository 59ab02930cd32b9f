"""Every scenario file comes out the same in the sandbox and on the real control plane.

Gated, the real API server asks the webhook as it is shipped about manifests without a gate. The
sandbox knows no webhooks: there the manifests carry what ours would have added.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster import Cluster
from tests.contract.play import Outcome, play, workload_of
from tests.contract.scenario import (
    SCENARIOS,
    Create,
    Scenario,
    behind_webhook,
    gated,
    load,
    without,
)
from tests.contract.worlds import sandbox
from tests.controlplane.plane import ControlPlane
from tests.controlplane.webhook import GATED, Webhook, installed
from tests.corral_process import scheduled
from tests.workloads import GATE, MANAGED, gates_of, is_gang

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

# Some of its gangs are mistakes that the webhook refuses to store. What the engine tells of those
# is told where it was not asked: before it was installed, or when it did not answer in time.
WRONG_INPUT = next(path for path in SCENARIOS if path.stem == "wrong_input")
REFUSED = {"zero", "text", "two-modes"}  # the other mistakes take two objects, or the levels


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_scenario_is_the_same_in_both_worlds(
    path: Path, plane: ControlPlane, cluster: Cluster, tmp_path: Path
) -> None:
    scenario = load(path)
    with scheduled(plane, tmp_path, levels=scenario.levels) as corral:
        real = play(scenario, cluster)
        assert corral.bugs() == {}
    assert real == in_sandbox(scenario, tmp_path)


@pytest.mark.parametrize(
    "path", [each for each in SCENARIOS if each != WRONG_INPUT], ids=lambda path: path.stem
)
def test_scenario_gated_by_the_webhook_is_the_same_in_both_worlds(
    path: Path, plane: ControlPlane, cluster: Cluster, tmp_path: Path
) -> None:
    scenario = load(path)
    with installed(plane, tmp_path, levels=scenario.levels) as webhook:
        real = gated_by(webhook, scenario, plane)
        assert webhook.corral.metric(GATED) == scenario.pods_in_gangs
    assert real == in_sandbox(gated(scenario), tmp_path)


def test_mistakes_that_were_stored_behind_the_gate_are_told_the_same_in_both_worlds(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path
) -> None:
    scenario = gated(load(WRONG_INPUT))
    with scheduled(plane, tmp_path, levels=scenario.levels) as corral:
        real = play(scenario, cluster)
        assert corral.bugs() == {}
    assert real == in_sandbox(scenario, tmp_path)


def test_mistakes_of_a_single_object_are_refused_and_all_others_are_told(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path
) -> None:
    scenario = load(WRONG_INPUT)
    rest = without(scenario, REFUSED)
    with installed(plane, tmp_path, levels=scenario.levels) as webhook:
        for step in scenario.steps:
            if isinstance(step, Create):
                is_wrong = {step.gang in REFUSED}
                assert {webhook.is_refused(thing) for thing in step.objects} == is_wrong, step.gang
        real = gated_by(webhook, rest, plane)
        assert webhook.corral.metric(GATED) == rest.pods_in_gangs
    assert real == in_sandbox(gated(rest), tmp_path)


def gated_by(webhook: Webhook, scenario: Scenario, plane: ControlPlane) -> Outcome:
    """What becomes of the manifests as they are, of which every gang's pod was gated."""
    creations = [step for step in scenario.steps if isinstance(step, Create)]
    manifests = [thing for step in creations for thing in step.objects]
    gangs = {step.gang for step in creations if is_gang(step.objects[0])}
    assert not any(GATE in gates_of(thing) for thing in manifests if thing["kind"] == "Pod")
    plane.start_scheduler(extender=webhook.corral.url)
    outcome = play(behind_webhook(scenario), webhook.cluster)
    taken_in = {
        workload_of(one)
        for one in webhook.cluster.list("Pod", "default")
        if one["metadata"].get("labels", {}).get(MANAGED) == "true"
    }
    assert taken_in == gangs
    return outcome


def in_sandbox(scenario: Scenario, folder: Path) -> Outcome:
    """What becomes of the scenario in the sandbox."""
    with sandbox(folder, scenario.levels) as imitation:
        return play(scenario, imitation)
