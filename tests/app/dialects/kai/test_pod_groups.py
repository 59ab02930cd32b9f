"""KAI's PodGroups: how they are read, where their pods belong, and what they are as gangs."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from app.dialects.kai import DIALECT
from app.dialects.kai.pod_groups import PodGroupRecord, decode_pod_group
from app.dialects.registry import DIALECTS
from app.dialects.spec import ANYWHERE, GangKey, GangSpec, GroupSpec, LeafPods, LeafSpec
from app.errors import DecodeError
from app.kube.core.objects import PodRecord
from app.settings import EngineOptions
from tests.app.dialects.kai.objects import (
    SUB_GROUP,
    group,
    member,
    pod_group,
    sub_group,
    within,
)
from tests.records import RACK, pod
from topology.model.request import Constraint, DomainOrder

KEY = GangKey("default", "pg", "kai")
BLOCK = "example.com/block"


def spec_of(record: PodGroupRecord, **pods: int) -> GangSpec:
    there = {leaf: LeafPods(count) for leaf, count in pods.items()}
    found = DIALECTS.spec(KEY, [record], (), (), there)
    assert found is not None
    return found


def claimed(one: PodRecord, record: PodGroupRecord | None) -> str:
    """The leaf of a pod, or what is wrong with it."""
    claim = DIALECTS.claim(one, [record] if record else ())
    assert claim is not None
    assert claim.gang == KEY
    return claim.flaw or claim.leaf


# -- without sub-groups ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("least", "there", "leaf"),
    [
        pytest.param(3, 2, LeafSpec("", 3, needed=3), id="two_of_three"),
        pytest.param(3, 5, LeafSpec("", 5, needed=3), id="more_than_it_takes"),
        pytest.param(None, 2, LeafSpec("", 2, needed=1), id="it_takes_one_if_it_does_not_say"),
        pytest.param(0, 2, LeafSpec("", 2, needed=0), id="none_at_all"),
    ],
)
def test_a_pod_group_takes_min_member_of_the_pods_there_are(
    least: int | None, there: int, leaf: LeafSpec
) -> None:
    spec = spec_of(group("pg", least), **{"": there})
    assert spec.root == GroupSpec("pg", (leaf,))
    assert (spec.topology, spec.where) == (None, "PodGroup default/pg")


def test_its_constraint_is_of_all_pods_on_the_topology_that_it_names() -> None:
    spec = spec_of(group("pg", 2, on=within(BLOCK, RACK)), **{"": 2})
    assert spec.root.constraint == Constraint(BLOCK, RACK)
    assert spec.topology == "kai.scheduler/net"  # no Topology of Kueue's has such a name


def test_domains_are_tried_in_kais_order_and_what_is_not_needed_comes_last() -> None:
    policy = spec_of(group("pg", 2)).policy
    assert (policy.order, policy.floor_first) == (DomainOrder.TOPMOST, True)


def test_what_the_pod_grouper_writes_beside_is_left_alone() -> None:
    record = group("pg", 2, priorityClassName="train", preemptibility="preemptible", queue="q")
    assert record.flaw == ""


# -- a tree of sub-groups --------------------------------------------------------------------------

TREE = (
    sub_group("prefill", parent="", minSubGroup=1, topologyConstraint=within(BLOCK)),
    sub_group("prefill-0", 2, "prefill", topologyConstraint=within(RACK)),
    sub_group("prefill-1", 2, "prefill", topologyConstraint=within(RACK)),
    sub_group("router", 1),
)


def test_sub_groups_are_groups_in_groups_and_leaves_have_the_pods() -> None:
    spec = spec_of(group("pg", 5, *TREE), **{"prefill-0": 3, "router": 1})
    in_a_rack = Constraint(RACK)
    assert spec.root == GroupSpec(
        "pg",
        (
            GroupSpec(
                "prefill",
                (
                    GroupSpec("prefill-0", (LeafSpec("prefill-0", 3, needed=2),), in_a_rack),
                    GroupSpec("prefill-1", (LeafSpec("prefill-1", 2, needed=2),), in_a_rack),
                ),
                Constraint(BLOCK),
                needed=1,
            ),
            LeafSpec("router", 1, needed=1),
        ),
    )


def test_min_sub_group_of_the_pod_group_counts_the_sub_groups_that_are_in_no_other() -> None:
    spec = spec_of(group("pg", None, *TREE, minSubGroup=1))
    assert (spec.root.needed, len(spec.root.members)) == (1, 2)


def test_a_parent_is_found_in_lower_case_as_kai_does() -> None:
    record = group("pg", None, sub_group("a"), sub_group("b", 1, parent="A"))
    assert [each.parent for each in record.sub_groups] == ["", "a"]


def test_a_leaf_that_takes_none_is_whatever_fits() -> None:
    (leaf,) = spec_of(group("pg", None, sub_group("a", 0)), a=2).leaves()
    assert (leaf.pods, leaf.least) == (2, 0)


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        pytest.param("router", "router", id="its_leaf"),
        pytest.param(
            "",
            "pod p: metadata.labels[kai.scheduler/subgroup-name]: Required value: its PodGroup has"
            " sub-groups, and the pod is in none",
            id="none",
        ),
        pytest.param(
            "nobody",
            'pod p: metadata.labels[kai.scheduler/subgroup-name]: Invalid value: "nobody": its'
            " PodGroup has no sub-group of this name",
            id="one_that_is_not_there",
        ),
        pytest.param(
            "prefill",
            'pod p: metadata.labels[kai.scheduler/subgroup-name]: Invalid value: "prefill": pods'
            " are in the sub-groups of this sub-group",
            id="one_with_sub_groups",
        ),
    ],
)
def test_a_pod_is_in_the_leaf_that_its_label_names(named: str, expected: str) -> None:
    assert claimed(member("p", named), group("pg", 5, *TREE)) == expected


def test_the_label_is_nothing_where_there_are_no_sub_groups() -> None:
    assert claimed(member("p", "anything"), group("pg", 2)) == ""


def test_pods_move_when_the_leaves_are_others_and_only_then() -> None:
    record = group("pg", 5, *TREE)
    again = msgspec.structs.replace(record, version="8", least=4)
    assert DIALECT.sorts(record) == DIALECT.sorts(again)
    assert DIALECT.sorts(record) != DIALECT.sorts(group("pg", 5, *TREE[:3]))


# -- pods without a PodGroup -----------------------------------------------------------------------


def test_a_pod_whose_pod_group_is_not_there_yet_belongs_to_it_all_the_same() -> None:
    assert claimed(member("p"), None) == ""
    assert DIALECTS.spec(KEY, (), (), ()) is None
    assert DIALECT.awaited(KEY) == "PodGroup pg is there"


def test_a_pod_that_the_pod_grouper_will_take_waits_for_its_pod_group() -> None:
    ours = DIALECT.configured(EngineOptions())
    claim = ours.claim(pod("p", scheduler="kai-scheduler"))
    assert claim is not None
    assert (claim.flaw, claim.gang.name) == ("", "p")
    assert claim.gang != GangKey("default", "p", "kai")  # a PodGroup may have the pod's name
    record = group("p", 1)
    assert ours.spec(claim.gang, [record], (), ()) is None
    assert ours.awaited(claim.gang) == (
        "KAI's pod-grouper names its PodGroup in annotation pod-group-name"
    )


@pytest.mark.parametrize(
    ("scheduler", "annotations", "options"),
    [
        pytest.param("corral", {}, {}, id="another_scheduler"),
        pytest.param(
            "kai-scheduler", {"kai.scheduler/skip-podgrouper": "true"}, {}, id="it_is_skipped"
        ),
        pytest.param(
            "kai-scheduler", {}, {"kai_grouped_schedulers": ()}, id="there_is_no_pod_grouper"
        ),
    ],
)
def test_other_pods_without_a_pod_group_are_ordinary(
    scheduler: str, annotations: dict[str, str], options: dict[str, Any]
) -> None:
    ours = DIALECT.configured(EngineOptions(**options))
    assert ours.claim(pod("p", scheduler=scheduler, annotations=annotations)) is None


@pytest.mark.parametrize(
    "key",
    [
        "topology",
        "topology-required-placement",
        "topology-preferred-placement",
        "batch-min-member",
        "segment-topology-required-placement",
    ],
)
def test_what_only_the_pod_grouper_reads_is_a_flaw_where_that_does_not_take_the_pod(
    key: str,
) -> None:
    one = pod("p", annotations={f"kai.scheduler/{key}": "net"})
    claim = DIALECT.claim(one)
    text = (
        f"metadata.annotations[kai.scheduler/{key}]: Forbidden: only KAI's pod-grouper reads it,"
        " and the pod names no PodGroup in pod-group-name"
    )
    assert claim is not None
    assert claim.flaw == f"pod p: {text}"
    assert [str(flaw) for flaw in DIALECT.rules(one, None)] == [text]
    grouped = DIALECT.configured(EngineOptions(kai_grouped_schedulers=("corral",)))
    assert list(grouped.rules(one, None)) == []


# -- input that means ill --------------------------------------------------------------------------


def test_a_pod_group_that_cannot_be_read_is_named_with_the_field() -> None:
    made = pod_group("pg", 2)
    made["spec"]["minMember"] = "two"
    with pytest.raises(DecodeError, match=r"PodGroup default/pg: .*minMember"):
        decode_pod_group(msgspec.json.encode(made))


def test_so_many_sub_groups_are_read_and_no_more() -> None:
    most = [sub_group(f"s{at}", 1) for at in range(256)]
    assert len(group("pg", None, *most).sub_groups) == 256
    record = group("pg", None, *most, sub_group("more", 1))
    assert record.flaw == (
        "PodGroup default/pg: spec.subGroups: Too many: 257: must have at most 256 items"
    )
    assert record.sub_groups == ()


@pytest.mark.parametrize(
    "sub_groups",
    [
        pytest.param([sub_group(f"s{at}", 1) for at in range(10_000)], id="ten_thousand"),
        pytest.param([sub_group("s" * 1_000_000, 1)], id="a_name_of_1_mb"),
        pytest.param(
            [sub_group("s", 1, topologyConstraint=within("l" * 1_000_000))], id="a_level_of_1_mb"
        ),
    ],
)
def test_what_is_too_long_to_be_read_is_not_kept(sub_groups: list[dict[str, Any]]) -> None:
    record = group("pg", None, *sub_groups)
    assert record.flaw == (
        "PodGroup default/pg: spec.subGroups: Too long: may not be more than 65536 bytes"
    )
    assert len(msgspec.json.encode(record)) < 1_000


def test_long_texts_outside_the_sub_groups_are_not_kept_either() -> None:
    record = group("pg", 1, on=within("l" * 1_000_000, topology="t" * 1_000_000))
    assert "Too long" in record.flaw
    assert len(msgspec.json.encode(record)) < 1_000
    claim = DIALECT.claim(member("p", of="g" * 250_000))
    assert claim is not None
    assert len(claim.gang.name) == 253


def test_a_status_that_is_no_status_does_not_hide_the_spec() -> None:
    for status in ("no", {"schedulingConditions": "no"}, {"schedulingConditions": [{}] * 10_000}):
        record = decode_pod_group(msgspec.json.encode({**pod_group("pg", 2), "status": status}))
        assert (record.least, record.conditions) == (2, ())


def test_nulls_everywhere_are_nothing() -> None:
    nulls = {
        "minMember": None,
        "minSubGroup": None,
        "topologyConstraint": None,
        "subGroups": [None],
    }
    made = {**pod_group("pg"), "spec": nulls, "status": None}
    assert "subGroups[0].name" in decode_pod_group(msgspec.json.encode(made)).flaw
    made["spec"] = None
    record = decode_pod_group(msgspec.json.encode(made))
    assert (record.flaw, record.least, record.constraint) == ("", 1, ANYWHERE)


def test_the_key_of_a_label_that_tells_leaves_apart_is_kept() -> None:
    assert DIALECT.keeps(SUB_GROUP)
    assert not DIALECT.keeps("kai.scheduler/queue")
