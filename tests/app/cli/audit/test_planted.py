"""`corral audit` finds each planted violation, and nothing in the gang where it is not planted."""

from __future__ import annotations

import json

import pytest

from app.sandbox import Sandbox
from tests.app.cli.audit.on_sandbox import audit, put, serve_all_kinds, verdicts
from tests.app.cli.audit.planted import NODES, TOPOLOGIES, Planted, cases

CASES = [pytest.param(each, id=each.name) for each in cases()]


@pytest.mark.parametrize("case", CASES)
async def test_a_gang_where_its_constraints_say_matches(tmp_path, case: Planted):
    async with Sandbox() as cluster:
        serve_all_kinds(cluster)
        put(cluster, [*NODES, *TOPOLOGIES, *case.objects, *case.placed(case.right)])
        found = await verdicts(cluster, tmp_path)
    assert {each["verdict"] for each in found} == {"MATCH"}, found
    assert case.constraint in {each["constraint"] for each in found}


@pytest.mark.parametrize("case", CASES)
async def test_a_planted_violation_is_found_with_pod_node_level_and_both_values(
    tmp_path, case: Planted
):
    async with Sandbox() as cluster:
        serve_all_kinds(cluster)
        put(cluster, [*NODES, *TOPOLOGIES, *case.objects, *case.placed(case.wrong)])
        found = await verdicts(cluster, tmp_path)
    (wrong,) = [each for each in found if each["verdict"] != "MATCH"]
    assert wrong["verdict"] == "VIOLATION"
    assert wrong["constraint"] == case.constraint
    assert wrong["pod"] == case.pod
    assert case.pod in wrong["text"]
    if case.values is not None:
        assert (wrong["node"], wrong["level"]) == (case.node, case.level)
        assert tuple(wrong["values"]) == case.values
        assert all(each in wrong["text"] for each in (case.node, case.level, *case.values))


async def test_all_of_them_in_one_cluster_are_found_and_no_other(tmp_path):
    planted = cases()
    async with Sandbox() as cluster:
        serve_all_kinds(cluster)
        put(cluster, [*NODES, *TOPOLOGIES])
        for case in planted:
            put(cluster, [*case.objects, *case.placed(case.wrong)])
        found = await verdicts(cluster, tmp_path)
        of_namespace = await audit(cluster, tmp_path, "-n", "default", "-o", "json")
    assert json.loads(of_namespace.stdout)["verdicts"] == found  # also of kinds without namespaces
    wrong = [(each["pod"], each["constraint"]) for each in found if each["verdict"] != "MATCH"]
    assert sorted(wrong) == sorted((each.pod, each.constraint) for each in planted)
    assert len(wrong) >= 12
