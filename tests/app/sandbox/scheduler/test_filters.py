"""Which nodes the in-tree filters leave, and what they say of the others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from app.sandbox.apiserver.storage.store import Stored
from app.sandbox.scheduler.cycle.filters import Outcome, filter_nodes, nodes_to_find
from app.sandbox.scheduler.facts.node_match import pinned_names
from app.sandbox.scheduler.facts.node_table import NodeTable
from app.sandbox.scheduler.facts.pod_facts import PodFacts, facts_of, pod_requests
from tests.app.sandbox.objects import narrowed_to, node, pod


def facts(name: str = "a", **spec: Any) -> PodFacts:
    body = pod(name, **spec)
    body["metadata"] |= {"uid": name, "namespace": "default"}
    return facts_of(Stored(body, 1))


def table_of(*nodes: dict[str, Any]) -> NodeTable:
    table = NodeTable()
    table.set_nodes([Stored(each, 1) for each in nodes])
    return table


def judge(table: NodeTable, pod_facts: PodFacts, wanted: int = 1000) -> Outcome:
    return filter_nodes(table, pod_facts, np.arange(len(table)), wanted)


# As numFeasibleNodesToFind of kube-scheduler 1.36 computes it.
@pytest.mark.parametrize(
    ("nodes", "names_sent"),
    [
        (100, 100),
        (500, 230),
        (1_000, 420),
        (2_000, 680),
        (5_000, 500),
        (10_000, 500),
        (15_000, 750),
    ],
)
def test_the_adaptive_sample_is_as_large_as_upstream(nodes: int, names_sent: int) -> None:
    assert nodes_to_find(0, nodes) == names_sent


@pytest.mark.parametrize(
    ("percentage", "nodes", "found"), [(100, 5_000, 5_000), (10, 500, 100), (50, 99, 99)]
)
def test_a_set_percentage_is_kept_above_a_hundred_nodes(
    percentage: int, nodes: int, found: int
) -> None:
    assert nodes_to_find(percentage, nodes) == found


@pytest.mark.parametrize(
    ("one_node", "spec", "reasons", "is_final"),
    [
        pytest.param(node("n", cpu="500m"), {}, ("Insufficient cpu",), True, id="never_fits"),
        pytest.param(node("n", pods="0"), {}, ("Too many pods",), False, id="no_pod_slot"),
        pytest.param(
            node("n"), {"limits": {"gpu/x": "1"}}, ("Insufficient gpu/x",), True, id="no_device"
        ),
        pytest.param(
            node("n", is_closed=True), {}, ("node(s) were unschedulable",), True, id="cordoned"
        ),
        pytest.param(
            node("n", taints=[{"key": "k", "effect": "NoSchedule"}]),
            {},
            ("node(s) had untolerated taint(s)",),
            True,
            id="tainted",
        ),
        pytest.param(
            node("n"),
            {"nodeSelector": {"a": "b"}},
            ("node(s) didn't match Pod's node affinity/selector",),
            True,
            id="not_selected",
        ),
        pytest.param(
            node("n", cpu="1m", is_closed=True),
            {},
            ("node(s) were unschedulable",),
            True,
            id="the_first_filter_speaks",
        ),
    ],
)
def test_a_node_is_out_for(
    one_node: dict[str, Any], spec: dict[str, Any], reasons: tuple[str, ...], is_final: bool
) -> None:
    limits = spec.get("limits") or {}
    body = pod("a", **spec)
    body["spec"]["containers"][0]["resources"]["requests"] |= limits
    body["metadata"] |= {"uid": "a", "namespace": "default"}
    outcome = judge(table_of(one_node), facts_of(Stored(body, 1)))
    verdict = outcome.verdicts()["n"]
    assert (verdict.reasons, verdict.is_final) == (reasons, is_final)
    assert outcome.rejectors() == {verdict.plugin}


def test_what_pods_use_is_curable_and_every_shortage_is_told() -> None:
    table = table_of(node("n", cpu="2", pods="1"))
    table.add_pod(facts("b", cpu="2"), "n")
    verdict = judge(table, facts()).verdicts()["n"]
    assert verdict.reasons == ("Too many pods", "Insufficient cpu")
    assert not verdict.is_final


def test_a_tolerated_taint_and_a_soft_one_keep_nothing_away() -> None:
    taints = [{"key": "k", "effect": "NoSchedule"}, {"key": "s", "effect": "PreferNoSchedule"}]
    tolerations = [{"key": "k", "operator": "Exists"}]
    assert judge(table_of(node("n", taints=taints)), facts(tolerations=tolerations)).feasible.size


@pytest.mark.parametrize(
    ("operator", "values", "fits"),
    [
        pytest.param("In", ["31", "32"], True, id="in"),
        pytest.param("NotIn", ["32"], False, id="not_in"),
        pytest.param("Exists", [], True, id="exists"),
        pytest.param("DoesNotExist", [], False, id="does_not_exist"),
        pytest.param("Gt", ["31"], True, id="above"),
        pytest.param("Gt", ["32"], False, id="not_above_itself"),
        pytest.param("Lt", ["33"], True, id="below"),
        pytest.param("Lt", ["+33"], True, id="a_sign_as_go_reads_it"),
        pytest.param("Lt", [" 33"], False, id="a_blank_is_no_number"),
        pytest.param("Lt", ["3_3"], False, id="an_underscore_is_no_number"),
        pytest.param("Lt", ["٣٣"], False, id="digits_of_another_script"),
        pytest.param("Lt", ["9223372036854775808"], False, id="more_than_an_int64"),
        pytest.param("Gt", [], False, id="nothing_to_compare_with"),
        pytest.param("Near", ["32"], False, id="no_such_operator"),
    ],
)
def test_an_expression_of_node_affinity(operator: str, values: list[str], fits: bool) -> None:
    wanted = {"key": "cores", "operator": operator, "values": values}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [wanted]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    table = table_of(node("n", labels={"cores": "32"}))
    assert bool(judge(table, facts(affinity=affinity)).feasible.size) == fits


@pytest.mark.parametrize(
    ("toleration", "fits"),
    [
        pytest.param({"operator": "Exists"}, True, id="any_taint"),
        pytest.param(
            {"key": "sla", "operator": "Exists", "effect": "NoExecute"}, False, id="effect"
        ),
        pytest.param({"key": "sla", "value": "950"}, True, id="equal_is_the_default"),
        pytest.param({"key": "sla", "operator": "Equal", "value": "951"}, False, id="not_equal"),
        pytest.param({"key": "sla", "operator": "Gt", "value": "900"}, True, id="above"),
        pytest.param({"key": "sla", "operator": "Gt", "value": "950"}, False, id="not_above"),
        pytest.param({"key": "sla", "operator": "Lt", "value": "951"}, True, id="below"),
        pytest.param({"key": "sla", "operator": "Lt", "value": "0951"}, False, id="no_octal"),
        pytest.param({"key": "sla", "operator": "Lt", "value": "much"}, False, id="no_number"),
        pytest.param({"key": "other", "operator": "Gt", "value": "900"}, False, id="another_key"),
        pytest.param({"key": "sla", "operator": "Near", "value": "950"}, False, id="no_such"),
    ],
)
def test_a_toleration_of_a_taint_with_a_value(toleration: dict[str, str], fits: bool) -> None:
    table = table_of(node("n", taints=[{"key": "sla", "value": "950", "effect": "NoSchedule"}]))
    assert bool(judge(table, facts(tolerations=[toleration])).feasible.size) == fits


def test_a_cordoned_node_takes_who_tolerates_the_taint_of_cordons() -> None:
    table = table_of(node("n", is_closed=True))
    tolerated = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}
    assert not judge(table, facts()).feasible.size
    assert judge(table, facts(tolerations=[tolerated])).feasible.size


def test_removing_a_pod_restores_the_sums() -> None:
    table = table_of(node("n"), node("m"))
    before = table.used.copy()
    table.add_pod(facts("b", cpu="3"), "n", is_assumed=True)
    table.add_pod(facts("b", cpu="3"), "m")
    assert not table.is_assumed("b")
    assert table.used[:, table.column_of["n"]].sum() == 0
    assert table.remove_pod("b")
    assert (table.used == before).all()


def test_pods_of_a_node_not_seen_yet_count_when_it_appears() -> None:
    table = table_of(node("n"))
    table.add_pod(facts("b", cpu="3"), "late")
    table.set_node(Stored(node("late", cpu="3"), 2))
    assert judge(table, facts()).verdicts()["late"].reasons == ("Insufficient cpu",)


def test_a_node_that_goes_takes_its_column_along() -> None:
    table = table_of(node("n"), node("m"), node("o"))
    table.add_pod(facts("b", cpu="8"), "o")
    table.remove_node("m")
    outcome = judge(table, facts())
    assert outcome.feasible_names() == ["n"]
    assert set(outcome.verdicts()) == {"o"}


def test_the_search_stops_at_enough_nodes() -> None:
    outcome = judge(
        table_of(*(node(f"n{i}", cpu="0" if i == 1 else "8") for i in range(6))), facts(), 2
    )
    assert outcome.feasible_names() == ["n0", "n2"]
    assert set(outcome.verdicts()) == {"n1"}


def test_names_in_affinity_narrow_and_an_open_term_does_not() -> None:
    opened = narrowed_to("n1")
    terms = opened["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    terms["nodeSelectorTerms"].append({"matchExpressions": [{"key": "a", "operator": "Exists"}]})
    assert pinned_names(facts(on=("n1", "n2"))) == {"n1", "n2"}
    assert pinned_names(facts(affinity=opened)) is None
    assert pinned_names(facts()) is None


@pytest.mark.parametrize(
    ("spec", "cpu"),
    [
        pytest.param({"containers": ["1", "500m"]}, 1500, id="containers_add_up"),
        pytest.param({"containers": ["1"], "init": ["3", "2"]}, 3000, id="the_largest_init_step"),
        pytest.param({"containers": ["1"], "sidecars": ["2"]}, 3000, id="sidecars_run_along"),
        pytest.param({"containers": ["1"], "overhead": "250m"}, 1250, id="overhead_is_added"),
        pytest.param({"containers": ["0.0001"]}, 1, id="less_than_a_millicore_is_one"),
    ],
)
def test_the_effective_request(spec: dict[str, Any], cpu: int) -> None:
    def container(text: str, **more: str) -> dict[str, Any]:
        return {"resources": {"requests": {"cpu": text}}} | more

    body: dict[str, Any] = {"containers": [container(each) for each in spec["containers"]]}
    body["initContainers"] = [container(each) for each in spec.get("init", [])] + [
        container(each, restartPolicy="Always") for each in spec.get("sidecars", [])
    ]
    if "overhead" in spec:
        body["overhead"] = {"cpu": spec["overhead"]}
    assert pod_requests(body)["cpu"] == cpu
