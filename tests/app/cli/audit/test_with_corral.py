"""What Corral has placed is where it should be; and a node that moves later is told."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from app.cli import main
from app.cli.demo import Stage, _place, _stage
from app.cli.showcase import BLOCK, RACK, SHOWPIECES

pytestmark = pytest.mark.slow

SPREAD = "train-d"  # each of its pods fills a node


async def audit(stage: Stage, *options: str) -> Result:
    arguments = ["audit", "-A", "--kubeconfig", str(stage.kubeconfig)]
    levels = ["--levels", f"{BLOCK},{RACK}"]
    return await asyncio.to_thread(CliRunner().invoke, main, [*arguments, *levels, *options])


def verdicts(ran: Result) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(ran.stdout)["verdicts"]
    return found


async def test_all_gangs_of_the_demo_match_until_a_node_is_moved(tmp_path):
    async with _stage(tmp_path, None, 0.2, 0) as stage:
        await _place(stage, SHOWPIECES)
        ran = await audit(stage, "-o", "json", "--strict")
        assert ran.exit_code == 0, ran.output
        found = verdicts(ran)
        assert {each["verdict"] for each in found} == {"MATCH"}
        assert {each["name"] for each in found} == {each.name for each in SHOWPIECES} - {"too-big"}
        one = f"/api/v1/namespaces/default/pods/{SPREAD}-0"
        async with stage.api.get(one) as answer:
            node = (await answer.json())["spec"]["nodeName"]
        change = {"metadata": {"labels": {RACK: "another"}}}
        kind = {"Content-Type": "application/merge-patch+json"}
        async with stage.api.patch(f"/api/v1/nodes/{node}", json=change, headers=kind) as answer:
            assert answer.status == 200
        after = await audit(stage, "-o", "json")
    assert after.exit_code == 1
    wrong = [each for each in verdicts(after) if each["verdict"] == "VIOLATION"]
    assert wrong
    assert SPREAD in {each["name"] for each in wrong}
    assert all("another" in each["values"][0] + each["values"][1] for each in wrong)
