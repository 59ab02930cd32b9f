"""What `kubectl corral explain` says of gangs that wait, beside the real kube-scheduler.

The situations of the sandbox, those in which kube-scheduler, the API server or other controllers
have a say: the sentence is in the condition that kube-scheduler writes, and what helps helps.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.cli import main
from tests.cluster import Cluster, Object
from tests.contract.pending.play import play
from tests.contract.pending.situations import SITUATIONS, Situation
from tests.controlplane.plane import ControlPlane
from tests.corral_process import scheduled

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

PLAYED = (
    "wrong_level",
    "unknown_owner",
    "another_scheduler",
    "waiting_for_members",
    "foreign_gate",
    "short_by_one",
    "fits_nowhere_even_empty",
    "lower_priority",
    "taint",
    "missing_label",
    "narrowed_elsewhere",
    "resource_claim",
)


def explain(url: str, name: str) -> Object:
    """As a user asks; {} while nothing of that name is known."""
    ran = CliRunner().invoke(main, ["explain", name, "-o", "json", "--server", url])
    found: Object = json.loads(ran.stdout) if ran.exit_code == 0 else {}
    return found


@pytest.mark.parametrize("situation", [each for each in SITUATIONS if each.name in PLAYED], ids=str)
def test_what_explain_says_is_true_and_what_it_advises_gets_the_gang_bound(
    situation: Situation, plane: ControlPlane, cluster: Cluster, tmp_path: Path
) -> None:
    with scheduled(plane, tmp_path, **situation.settings) as corral:
        play(situation, cluster, corral.url, explain)
