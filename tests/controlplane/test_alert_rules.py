"""The alert rules of deploy/monitoring, tried by Prometheus' own tool."""

from __future__ import annotations

import subprocess

import pytest

from tests.controlplane.built import skip_unless_built
from tests.controlplane.plane import ROOT, operator

# promtool takes minutes to build, so CI leaves these out; the names of series are held by
# tests/deploy/test_monitoring.py.
pytestmark = [pytest.mark.e2e, pytest.mark.operators, pytest.mark.slow]

MONITORING = ROOT / "deploy" / "monitoring"


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(["check", "rules", "--lint-fatal", "alerts.yaml"], id="are_valid"),
        pytest.param(["test", "rules", "alerts-test.yaml"], id="fire_where_they_should"),
    ],
)
def test_the_alert_rules(command: list[str]) -> None:
    skip_unless_built("promtool")
    ran = subprocess.run(
        [operator("promtool"), *command],
        cwd=MONITORING,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "SUCCESS" in ran.stdout
