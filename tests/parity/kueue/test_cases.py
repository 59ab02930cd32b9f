"""Kueue's own tables and random scenarios: every answer of the core the same, domain by domain, and
every number of its failure texts; of the product as many as its users can reach. Where we differ on
purpose is a table with a reason for each entry, and none of the cases is unexplained."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import conformance
from tests.parity.kueue.peer import PEER
from tests.parity.kueue.written import line, on
from tests.parity.tally import recorded, tally

# File -> cases; table of the core's deviations -> the cases it explains there; the least that the
# product answers as Kueue does.
FILES: dict[str, tuple[int, dict[str, list[str]], int]] = {
    "unit.jsonl.gz": (146, {}, 117),
    "random_assign.sample.jsonl.gz": (3000, {}, 1632),
    "random_replace_elastic.sample.jsonl.gz": (
        800,
        {
            "pods without a domain": ["123", "624"],
            "places of pods that are no longer asked for": ["314", "631", "783"],
        },
        227,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("unit.jsonl.gz", id="kueues_own_tables"),
        pytest.param("random_assign.sample.jsonl.gz", id="random_scenarios"),
        pytest.param("random_replace_elastic.sample.jsonl.gz", id="replaced_and_resized"),
    ],
)
def test_every_case_gets_the_answer_kueue_gives_but_for_the_tables(name: str) -> None:
    cases, deviations, product_equal = FILES[name]
    result = tally(PEER, recorded("kueue", name, cases))
    assert result.cases == cases
    assert (result.core.unexplained, result.core.on_purpose) == ([], deviations)
    assert result.core.equal == cases - sum(map(len, deviations.values()))
    assert result.product.unexplained == []
    assert result.product.equal >= product_equal


SLICED = {"podSetSliceRequiredTopology": "l/k", "podSetSliceSize": 3, "preferred": "l/k"}


@pytest.mark.parametrize(
    ("case", "equal", "deviations"),
    [
        pytest.param(line({"required": "l/k"}, 3, on(("n3", 3))), 1, [], id="equal"),
        pytest.param(
            line({"required": "l/k"}, 3, on(("n1", 3))), 0, [], id="another_node_is_unexplained"
        ),
        pytest.param(
            line(SLICED, 2, on(), TASBalancedPlacement=True),
            0,
            ["pods without a domain"],
            id="nothing_placed",
        ),
        pytest.param(
            line(SLICED, 3, {"panic": "divide by zero"}, TASBalancedPlacement=True),
            0,
            ["balanced placement that panics"],
            id="panic",
        ),
        pytest.param(
            line(SLICED, 6, on(("n1", 3)), TASBalancedPlacement=True),
            0,
            ["balanced placement that loses pods"],
            id="lost_pods",
        ),
    ],
)
def test_a_case_is_equal_or_listed_or_unexplained(
    case: str, equal: int, deviations: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "unseen.jsonl"
    path.write_text(case + "\n")
    result = tally(PEER, path)
    for figure in (result.core, result.product):
        assert figure.equal == equal
        assert len(figure.unexplained) == 1 - equal - len(deviations)
        assert len(figure.on_purpose) == len(deviations)
    assert list(result.core.on_purpose) == deviations
    is_unexplained = equal + len(deviations) == 0
    assert conformance.main(["kueue", str(path)]) == is_unexplained
    said = f" core: {equal} equal, {len(deviations)} listed deviations, {is_unexplained:d} unexpl"
    assert said in capsys.readouterr().out
