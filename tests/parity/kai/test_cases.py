"""KAI-Scheduler's own topology scenarios: every job placed as KAI places it, but for ties."""

from __future__ import annotations

import copy
import gzip
import json
from pathlib import Path

import pytest

from benchmarks import conformance
from tests.parity.kai.cases import LEFT_OUT, Case, difference, read
from tests.parity.kai.peer import PEER
from tests.parity.tally import recorded, tally


def path() -> Path:
    return recorded("kai", "scenarios.json.gz", 31)


def scenarios() -> list[Case]:
    return list(read(path()))


def test_every_scenario_but_the_one_left_out_gets_kais_answer() -> None:
    assert len(scenarios()) == 31
    result = tally(PEER, path())
    assert result.core.unexplained == []
    assert result.core.on_purpose == {reason: [name] for name, reason in LEFT_OUT.items()}
    assert result.core.equal == 31 - len(LEFT_OUT)
    assert (result.product.unexplained, result.product.out_of_reach) == ([], {})
    assert result.product.on_purpose == result.core.on_purpose
    assert result.product.equal == result.core.equal


def test_a_place_that_is_no_tie_is_a_difference() -> None:
    [case] = [one for one in scenarios() if one.name.startswith("Bin Packing - Pack Top-Most")]
    assert difference(case) == ""
    changed = copy.deepcopy(case.scenario)
    changed["TaskExpectedResults"]["pending_job0-0"]["NodeName"] = "node4"
    assert difference(Case("a tie", changed)) == ""
    changed["TaskExpectedResults"]["pending_job0-0"]["NodeName"] = "node0"
    assert "not" in difference(Case("another rack", changed))


def test_an_unexplained_scenario_is_exit_status_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    [case] = [one for one in scenarios() if one.name.startswith("Required topology level - sch")]
    changed = copy.deepcopy(case.scenario)
    changed["Nodes"]["node2"]["GPUs"] = 0
    path = tmp_path / "unseen.json.gz"
    path.write_bytes(gzip.compress(json.dumps({"tables": {"t": [changed]}}).encode()))
    assert conformance.main(["kai", str(path)]) == 1
    assert " core: 0 equal, 0 listed deviations, 1 unexplained" in capsys.readouterr().out
