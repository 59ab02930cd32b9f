"""Volcano's own scenarios of network topology: as many pods bound, in the domains expected."""

from __future__ import annotations

import copy
import gzip
import json
from pathlib import Path

import pytest

from benchmarks import conformance
from tests.parity.tally import recorded, tally
from tests.parity.volcano.cases import Case, amount, difference, read
from tests.parity.volcano.peer import PEER, REASONS


def path_of(name: str, cases: int) -> Path:
    return recorded("volcano", name, cases)


def test_every_unit_scenario_binds_what_volcano_binds() -> None:
    result = tally(PEER, path_of("scenarios.json.gz", 64))
    assert (result.core.unexplained, result.core.on_purpose) == ([], {})
    assert (result.cases, result.core.equal, result.product.equal) == (64, 64, 62)
    assert (result.product.unexplained, result.product.out_of_reach) == ([], {})
    assert {
        reason: len(cases) for reason, cases in result.product.on_purpose.items()
    } == dict.fromkeys(REASONS, 1)


def test_every_end_to_end_case_that_proves_something_is_met() -> None:
    result = tally(PEER, path_of("e2e_cases.json.gz", 28))
    assert result.core.unexplained == []
    left_out = sorted(
        name.split()[1].rstrip(":") for names in result.core.on_purpose.values() for name in names
    )
    assert left_out == ["1.3", "2.1", "2.2", "7.2"]
    assert (result.cases, result.core.equal, result.product.equal) == (28, 24, 24)
    assert result.product.unexplained == []


def test_pods_in_another_domain_are_a_difference() -> None:
    cases = {case.name.split()[1]: case for case in read(path_of("e2e_cases.json.gz", 28))}
    case = cases["1.1:"]
    assert difference(case) == ""
    changed = copy.deepcopy(case.scenario)
    changed["expect"]["nodes"] = [["kwok-node-0", "kwok-node-1"]]
    assert "not ['kwok-node-0', 'kwok-node-1']" in difference(Case("1.1", changed, case.tree))


def test_an_unexplained_scenario_is_exit_status_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = next(read(path_of("scenarios.json.gz", 64)))
    changed = copy.deepcopy(case.scenario)
    changed["expect"]["bindsNum"] += 1
    path = tmp_path / "unseen.json.gz"
    path.write_bytes(gzip.compress(json.dumps({"scenarios": [changed]}).encode()))
    assert conformance.main(["volcano", str(path)]) == 1
    assert " core: 0 equal, 0 listed deviations, 1 unexplained" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("resource", "text", "expected"),
    [
        ("cpu", "2", 2000),
        ("cpu", "100m", 100),
        ("memory", "4Gi", 2**32),
        ("memory", "4G", 4 * 10**9),
    ],
)
def test_a_quantity_is_millicores_or_base_units(resource: str, text: str, expected: int) -> None:
    assert amount(resource, text) == expected
