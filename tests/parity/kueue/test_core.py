"""Kueue's own tables and random scenarios: every answer the same, domain by domain, and every
number of its failure texts. Where we differ on purpose is a table with the cases it explains."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import conformance
from tests.parity.kueue.cases import Json, read
from tests.parity.kueue.deviations import DEVIATIONS
from tests.parity.kueue.questions import Question, groups_of, has_remainder, workers_of
from topology import InvalidRequest, NoFit, PodSet

FOLDER = Path(__file__).parents[3] / ".." / "shared" / "conformance" / "kueue"

# File -> name in the table of deviations -> the cases it explains there.
EXPLAINED: dict[str, dict[str, list[str]]] = {
    "unit.jsonl.gz": {},
    "random_assign.sample.jsonl.gz": {},
    "random_replace_elastic.sample.jsonl.gz": {
        "pods without a domain": ["123", "624"],
        "places of pods that are no longer asked for": ["314", "631", "783"],
    },
}


CASES = {
    "unit.jsonl.gz": 146,
    "random_assign.sample.jsonl.gz": 3000,
    "random_replace_elastic.sample.jsonl.gz": 800,
}


def path_of(name: str) -> Path:
    if not (FOLDER / name).exists():
        where = "../shared/conformance/kueue"
        pytest.skip(f"{CASES[name]} cases not run: {name} is not at {where}")
    return FOLDER / name


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("unit.jsonl.gz", id="kueues_own_tables"),
        pytest.param("random_assign.sample.jsonl.gz", id="random_scenarios"),
        pytest.param("random_replace_elastic.sample.jsonl.gz", id="replaced_and_resized"),
    ],
)
def test_every_case_gets_the_answer_kueue_gives_but_for_the_table(name: str) -> None:
    result = conformance.tally(path_of(name))
    assert result.unexplained == []
    assert result.deviations == EXPLAINED[name]
    assert result.cases == CASES[name]
    assert result.equal == CASES[name] - sum(map(len, EXPLAINED[name].values()))


def test_every_deviation_has_its_own_name_and_a_reason() -> None:
    assert len({one.name for one in DEVIATIONS}) == len(DEVIATIONS)
    assert all(len(one.reason) > 40 for one in DEVIATIONS)
    named = {name for explained in EXPLAINED.values() for name in explained}
    assert named <= {one.name for one in DEVIATIONS}


@pytest.mark.slow
def test_what_kueue_would_cut_short_is_refused_when_asked_in_full() -> None:
    asked = 0
    for case in read(path_of("random_assign.sample.jsonl.gz")):
        if not has_remainder(case.scenario):
            continue
        question = Question(case.scenario)
        for group in groups_of(case.scenario):
            for member in question.gang([group]).pod_sets():
                count = workers_of(group)["count"]
                if member.slices and count % member.slices[0].pods:
                    asked += 1
                    with pytest.raises(InvalidRequest, match="do not divide into slices"):
                        PodSet("w", count, member.request, slices=member.slices)
    assert asked > 100


@pytest.mark.slow
def test_where_kueue_refuses_since_a_second_node_is_gone_both_are_replaced() -> None:
    replaced = refused = 0
    for case in read(path_of("random_replace_elastic.sample.jsonl.gz")):
        for name, answer in case.expected.items():
            if not isinstance(answer, str) or not answer.startswith("Cannot replace"):
                continue
            [pod_set] = [one for one in case.scenario["podSets"] if one["name"] == name]
            question = Question(case.scenario)
            domains = question.assigned(pod_set)
            assert domains is not None
            kept = {name: question.on_slots(question.stays(domains))}
            found = question.complete([pod_set | {"count": sum(n for _, n in domains)}], kept)
            if isinstance(found, NoFit):
                refused += 1
                continue
            replaced += 1
            [placed] = found.pod_sets
            here = dict(placed.slots)
            assert all(here[slot] >= pods for slot, pods in kept[name])
            assert all(question.cluster.capacity.is_open[slot] for slot in here)
            assert placed.pods == sum(pods for _, pods in domains)
    assert (replaced > 0, replaced + refused) == (True, 30)


NODES = [
    {
        "name": name,
        "labels": {"l/k": rack, "kubernetes.io/hostname": name},
        "allocatable": {"cpu": "4", "pods": "110"},
        "ready": True,
    }
    for name, rack in (("n1", "k0"), ("n2", "k0"), ("n3", "k1"))
]


def line(request: Json, count: int, kueue: object, **gates: bool) -> str:
    """One recorded case of one pod set on three nodes."""
    scenario = {
        "test": "t",
        "name": "n",
        "featureGates": {
            "TASProfileMixed": True,
            "TASBalancedPlacement": False,
            "TASRespectNodeAffinityPreferred": False,
            "SkipReassignmentForPodOwnedWorkloads": True,
            **gates,
        },
        "levels": ["l/k", "kubernetes.io/hostname"],
        "nodes": NODES,
        "aggregatedDomainUsage": {},
        "podSets": [
            {"name": "p", "topologyRequest": request, "requests": {"cpu": 1000}, "count": count}
        ],
    }
    return json.dumps({"scenario": scenario, "kueue": kueue})


def on(*domains: tuple[str, int]) -> Json:
    found = [{"Values": [name], "Count": pods} for name, pods in domains]
    return {"p": {"ta": {"Levels": ["kubernetes.io/hostname"], "Domains": found}, "reason": ""}}


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
    result = conformance.tally(path)
    assert (result.cases, result.equal, list(result.deviations)) == (1, equal, deviations)
    assert len(result.unexplained) == 1 - equal - len(deviations)
    assert conformance.main(["kueue", str(path)]) == len(result.unexplained)
    assert f"1 cases, {equal} equal, {len(deviations)} listed" in capsys.readouterr().out
