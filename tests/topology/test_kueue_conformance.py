"""Kueue's own tables and random scenarios: every answer the same, domain by domain."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.topology.kueue_scenarios import FOLDER, Domains, out_of_scope, read, translated
from topology import NoFit, find, invariants

# Scenarios we answer differently on purpose, by name, each with the reason. None so far.
DEVIATIONS: dict[str, str] = {}


def _difference(scenario: dict[str, Any], expected: dict[str, Domains | None]) -> str:
    """What our answer says that Kueue's does not; empty if they agree."""
    tree, capacity, gang, masks = translated(scenario)
    answer = find(tree, capacity, gang, masks)
    if isinstance(answer, NoFit):
        # Kueue still reports the pod sets before the one that does not fit; a gang has none.
        failed = [index for index, want in enumerate(expected.values()) if want is None]
        position = [pod_set.name for pod_set in gang.root.members].index(answer.pod_set)
        return "" if failed and failed[0] == position else f"{answer}, not {expected}"
    invariants.check(tree, capacity, gang=gang, placement=answer)
    found = [
        [((tree.names[-1][slot],), pods) for slot, pods in placed.slots]
        for placed in answer.pod_sets
    ]
    return "" if found == list(expected.values()) else f"{found}, not {expected}"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "size"),
    [
        pytest.param("unit.jsonl.gz", 146, id="kueues_own_tables"),
        pytest.param("random_assign.sample.jsonl.gz", 3000, id="random_scenarios"),
    ],
)
def test_every_case_in_scope_gets_the_assignment_kueue_gives(
    name: str, size: int, capsys: pytest.CaptureFixture[str]
) -> None:
    if not (FOLDER / name).exists():
        pytest.skip(f"{size} cases not run: {name} is not at ../shared/conformance/kueue")
    differences: list[str] = []
    skipped: Counter[str] = Counter()
    ran = 0
    for scenario, expected in read(name):
        reason = out_of_scope(scenario) or DEVIATIONS.get(scenario["name"], "")
        if reason:
            skipped[reason] += 1
            continue
        ran += 1
        difference = _difference(scenario, expected)
        if difference:
            differences.append(f"{scenario['name']}: {difference}")
    with capsys.disabled():
        reasons = ", ".join(f"{reason} {cases}" for reason, cases in skipped.most_common())
        print(f"\nKueue {name}: {ran} cases ran, {skipped.total()} out of scope ({reasons})")
    assert ran + skipped.total() == size
    assert ran > 0
    assert differences == []
