"""What HyperNodes, PodGroups and vcjobs may not say: every error of an object, at its own field."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest

from app.dialects.registry import DIALECTS
from app.dialects.volcano.jobs import decode_job
from app.dialects.volcano.members import MOST_CHARACTERS, MOST_PATTERNS, MOST_REQUIREMENTS
from app.dialects.volcano.pod_groups import decode_pod_group
from app.errors import DecodeError
from tests.app.dialects.volcano.objects import by_labels, by_pattern, exact, hyper_node
from tests.app.dialects.volcano.workloads import (
    network_topology,
    partition_policy,
    pod_group,
    sub_group,
    task,
    vcjob,
)
from tests.cluster import Object

KEY = "must be the key of a label, such as topology.kubernetes.io/rack"
VALUE = "must be the value of a label: at most 63 letters, digits, '-', '_' and '.'"
NOT_NEGATIVE = "must be greater than or equal to 0"
POSITIVE = "must be greater than or equal to 1"
NO_TIER = "Required value: hard mode needs highestTierAllowed or highestTierName"
TWO_TIERS = "highestTierName: Forbidden: may not be set together with highestTierAllowed"


def flaws(thing: Object, before: Object | None = None) -> list[str]:
    group = thing["apiVersion"].rpartition("/")[0]
    rules = DIALECTS.object_rules(group, thing["kind"])
    assert rules is not None
    was = None if before is None else msgspec.json.encode(before)
    return [str(each) for each in rules.check(msgspec.json.encode(thing), was).flaws]


# -- HyperNodes ------------------------------------------------------------------------------------

GOOD_MEMBERS = [
    *exact("Node", "n0", "n1"),
    *exact("HyperNode", "s1", "s2"),
    *by_pattern("^rack-[a-c]-[0-9]+$"),
    *by_labels({"key": "example.com/rack", "operator": "NotIn", "values": ["a", ""]}, zone="x"),
]


@pytest.mark.parametrize("tier", [0, 1, 2**31])
def test_a_hyper_node_may_name_its_members_in_every_way(tier: int) -> None:
    assert flaws(hyper_node("s0", tier, GOOD_MEMBERS)) == []


def expression(**said: Any) -> list[Object]:
    return by_labels({"key": "rack", "operator": "In", "values": ["a"]} | said)


@pytest.mark.parametrize(
    ("member", "error"),
    [
        pytest.param(
            by_pattern("node-(a"),
            '.selector.regexMatch.pattern: Invalid value: "node-(a": missing ): node-(a',
            id="no_pattern",
        ),
        pytest.param(
            by_pattern("a(?=b)"),
            '.selector.regexMatch.pattern: Invalid value: "a(?=b)": invalid perl operator: (?=',
            id="no_pattern_of_gos",
        ),
        pytest.param(
            by_pattern("x.{999}.{999}.{999}"),
            '.selector.regexMatch.pattern: Invalid value: "x.{999}.{999}.{999}": pattern too large'
            " - compile failed",
            id="too_large",
        ),
        pytest.param(
            by_pattern("s.*", "HyperNode"),
            ".selector.regexMatch: Forbidden: HyperNodes are named by exactMatch only",
            id="hyper_nodes_by_pattern",
        ),
        pytest.param(
            [{"type": "HyperNode", "selector": by_labels(a="b")[0]["selector"]}],
            ".selector.labelMatch: Forbidden: HyperNodes are named by exactMatch only",
            id="hyper_nodes_by_labels",
        ),
        pytest.param(
            [{"type": "Node"}],
            ".selector: Required value: one of exactMatch, regexMatch and labelMatch must be set",
            id="no_selector",
        ),
        pytest.param(
            [{"type": "Node", "selector": {"exactMatch": {"name": ""}}}],
            ".selector: Required value: one of exactMatch, regexMatch and labelMatch must be set",
            id="no_name",
        ),
        pytest.param(
            [
                {
                    "type": "Node",
                    "selector": {"exactMatch": {"name": "a"}, "regexMatch": {"pattern": "b"}},
                }
            ],
            ".selector.regexMatch: Forbidden: may not be set together with exactMatch",
            id="two_selectors",
        ),
        pytest.param(
            [{"type": "Rack", "selector": {"exactMatch": {"name": "a"}}}],
            '.type: Unsupported value: "Rack": supported values: "Node", "HyperNode"',
            id="type",
        ),
        pytest.param(
            exact("Node", "n0"),
            '.selector.exactMatch.name: Duplicate value: "n0": must be unique',
            id="a_node_twice",
        ),
        pytest.param(
            exact("HyperNode", "s1"),
            '.selector.exactMatch.name: Duplicate value: "s1": must be unique',
            id="a_hyper_node_twice",
        ),
        pytest.param(
            by_pattern("^rack-[a-c]-[0-9]+$"),
            '.selector.regexMatch.pattern: Duplicate value: "^rack-[a-c]-[0-9]+$": must be unique',
            id="a_pattern_twice",
        ),
        pytest.param(
            GOOD_MEMBERS[-1:],
            ".selector.labelMatch: Duplicate value: must be unique",
            id="labels_twice",
        ),
        pytest.param(
            exact("HyperNode", "s0"),
            '.selector.exactMatch.name: Invalid value: "s0": must not be the HyperNode itself',
            id="itself",
        ),
        pytest.param(
            by_labels(),
            ".selector.labelMatch: Required value: it is empty, and selects no node",
            id="no_label",
        ),
        pytest.param(
            by_labels(**{"my rack": "a"}),
            f'.selector.labelMatch.matchLabels: Invalid value: "my rack": {KEY}',
            id="label_key",
        ),
        pytest.param(
            by_labels(rack="a b"),
            f'.selector.labelMatch.matchLabels[rack]: Invalid value: "a b": {VALUE}',
            id="label_value",
        ),
        pytest.param(
            by_labels(**{f"k{at}": "" for at in range(MOST_REQUIREMENTS + 1)}),
            ".selector.labelMatch: Too many: 65: must have at most 64 requirements",
            id="requirements",
        ),
        pytest.param(
            expression(key=""),
            f".selector.labelMatch.matchExpressions[0].key: Required value: {KEY}",
            id="no_key",
        ),
        pytest.param(
            expression(key="-"),
            f'.selector.labelMatch.matchExpressions[0].key: Invalid value: "-": {KEY}',
            id="key",
        ),
        pytest.param(
            expression(operator="Near"),
            '.selector.labelMatch.matchExpressions[0].operator: Unsupported value: "Near":'
            ' supported values: "In", "NotIn", "Exists", "DoesNotExist"',
            id="operator",
        ),
        pytest.param(
            expression(operator="NotIn", values=[]),
            ".selector.labelMatch.matchExpressions[0].values: Required value: must be specified"
            " when operator is NotIn",
            id="no_values",
        ),
        pytest.param(
            expression(operator="Exists"),
            ".selector.labelMatch.matchExpressions[0].values: Forbidden: may not be specified when"
            " operator is Exists",
            id="values",
        ),
        pytest.param(
            expression(values=["a", "b c"]),
            f'.selector.labelMatch.matchExpressions[0].values[1]: Invalid value: "b c": {VALUE}',
            id="value",
        ),
    ],
)
def test_a_member_of_a_hyper_node_has_one_error_at_its_field(
    member: list[Object], error: str
) -> None:
    assert flaws(hyper_node("s0", 3, [*GOOD_MEMBERS, *member])) == [f"spec.members[6]{error}"]


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ({"tier": 1}, "spec.members: Required value: must have at least one member"),
        ({"tier": 1, "members": []}, "spec.members: Required value: must have at least one member"),
        (
            {"members": GOOD_MEMBERS},
            "spec.tier: Required value: how close together the members are",
        ),
        ({"tier": -1, "members": GOOD_MEMBERS}, f"spec.tier: Invalid value: -1: {NOT_NEGATIVE}"),
    ],
)
def test_a_hyper_node_has_a_tier_and_members(spec: Object, error: str) -> None:
    assert flaws(hyper_node("s0", 1, []) | {"spec": spec}) == [error]


def test_every_error_of_a_hyper_node_is_told() -> None:
    members = [*by_pattern("("), *exact("Node", "n0"), *by_labels(), {"type": "Node"}]
    fields = [each.partition(": ")[0] for each in flaws(hyper_node("s0", -1, members))]
    assert fields == [
        "spec.tier",
        "spec.members[0].selector.regexMatch.pattern",
        "spec.members[2].selector.labelMatch",
        "spec.members[3].selector",
    ]


def test_so_many_patterns_of_an_object_are_looked_at_and_no_more() -> None:
    broken = [by_pattern(f"({at}")[0] for at in range(MOST_PATTERNS + 1)]
    assert len(flaws(hyper_node("s0", 1, broken))) == MOST_PATTERNS
    long = [by_pattern(f"({at}" + "a" * (MOST_CHARACTERS // 2 - 2))[0] for at in range(3)]
    assert len(flaws(hyper_node("s0", 1, long))) == 2


def test_patterns_that_were_there_before_are_not_looked_at_again() -> None:
    before = hyper_node("s0", 1, [by_pattern(f"({at}")[0] for at in range(MOST_PATTERNS + 9)])
    after = copy.deepcopy(before)
    del after["spec"]["members"][3]
    assert flaws(after, before) == []
    after["spec"]["members"].append(by_pattern(")")[0])
    (told,) = flaws(after, before)
    assert told.startswith('spec.members[24].selector.regexMatch.pattern: Invalid value: ")": ')


# -- PodGroups -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "thing",
    [
        pytest.param(pod_group("pg", 1), id="plain"),
        pytest.param(pod_group("pg", 3, tasks={"a": 1, "b": 2}), id="tasks"),
        pytest.param(pod_group("pg", 1, topology=network_topology(0)), id="tier"),
        pytest.param(pod_group("pg", 1, topology=network_topology(tier_name="rack")), id="name"),
        pytest.param(pod_group("pg", 1, topology={"mode": "soft"}), id="soft"),
        pytest.param(
            pod_group(
                "pg",
                4,
                topology=network_topology(2),
                sub_groups=[sub_group("a", 2, min_sub_groups=2, topology=network_topology(1))],
            ),
            id="sub_groups",
        ),
        pytest.param(
            pod_group("pg", 4, sub_groups=[sub_group("a", 2, keys=())]), id="policy_without_effect"
        ),
    ],
)
def test_a_pod_group_that_says_what_corral_does_has_no_error(thing: Object) -> None:
    assert flaws(thing) == []
    assert decode_pod_group(msgspec.json.encode(thing)).flaw == ""


POLICY = "spec.subGroupPolicy"


def policy(**said: Any) -> Object:
    return {"subGroupPolicy": [sub_group("a", 2), sub_group("b", 2) | said]}


@pytest.mark.parametrize(
    ("spec", "error", "is_read"),
    [
        pytest.param(
            {"networkTopology": {"highestTierAllowed": 1, "highestTierName": "rack"}},
            f"spec.networkTopology.{TWO_TIERS}",
            False,
            id="two_tiers",
        ),
        pytest.param(
            {
                "networkTopology": {
                    "mode": "soft",
                    "highestTierAllowed": 1,
                    "highestTierName": "rack",
                }
            },
            f"spec.networkTopology.{TWO_TIERS}",
            True,
            id="two_tiers_that_do_not_count",
        ),
        pytest.param(
            {"networkTopology": {}}, f"spec.networkTopology: {NO_TIER}", False, id="no_tier"
        ),
        pytest.param(
            {"networkTopology": {"mode": "firm", "highestTierAllowed": 1}},
            'spec.networkTopology.mode: Unsupported value: "firm": supported values: "hard",'
            ' "soft"',
            False,
            id="mode",
        ),
        pytest.param(
            {"minMember": -1}, f"spec.minMember: Invalid value: -1: {NOT_NEGATIVE}", True, id="min"
        ),
        pytest.param(
            {"minTaskMember": {"ps": 1, "worker": -2}},
            f"spec.minTaskMember[worker]: Invalid value: -2: {NOT_NEGATIVE}",
            True,
            id="task",
        ),
        pytest.param(
            policy(name="a"),
            f'{POLICY}[1].name: Duplicate value: "a": must be unique',
            False,
            id="policies_of_one_name",
        ),
        pytest.param(
            policy(subGroupSize=0),
            f"{POLICY}[1].subGroupSize: Invalid value: 0: {POSITIVE}",
            False,
            id="size",
        ),
        pytest.param(
            policy(minSubGroups=-1),
            f"{POLICY}[1].minSubGroups: Invalid value: -1: {NOT_NEGATIVE}",
            True,
            id="min_sub_groups",
        ),
        pytest.param(
            policy(minSubGroups=1, matchLabelKeys=[]),
            f"{POLICY}[1].matchLabelKeys: Required value: no pod is in a sub-group without them,"
            " and minSubGroups must start",
            True,
            id="no_keys",
        ),
        pytest.param(
            policy(matchLabelKeys=["rack", "my rack"]),
            f'{POLICY}[1].matchLabelKeys[1]: Invalid value: "my rack": {KEY}',
            True,
            id="key",
        ),
        pytest.param(
            policy(labelSelector={"matchLabels": {"-": "a"}}),
            f'{POLICY}[1].labelSelector.matchLabels: Invalid value: "-": {KEY}',
            True,
            id="label",
        ),
        pytest.param(
            policy(labelSelector={"matchExpressions": [{"key": "a", "operator": "In"}]}),
            f"{POLICY}[1].labelSelector.matchExpressions[0].values: Required value: must be"
            " specified when operator is In",
            False,
            id="selector",
        ),
        pytest.param(
            policy(networkTopology={"mode": "hard"}),
            f"{POLICY}[1].networkTopology: {NO_TIER}",
            False,
            id="policy_without_tier",
        ),
        pytest.param(
            policy(networkTopology={"highestTierAllowed": 1, "highestTierName": "rack"}),
            f"{POLICY}[1].networkTopology.{TWO_TIERS}",
            False,
            id="policy_with_two_tiers",
        ),
    ],
)
def test_a_pod_group_has_one_error_at_its_field(spec: Object, error: str, is_read: bool) -> None:
    thing = pod_group("pg", 1, **{"minMember": 1})
    thing["spec"] |= spec
    assert flaws(thing) == [error]
    # What is refused here and was stored before is read as far as it can be.
    told = "" if is_read else f"PodGroup default/pg: {error}"
    assert decode_pod_group(msgspec.json.encode(thing)).flaw == told


def test_every_error_of_a_pod_group_is_told() -> None:
    broken = sub_group("a", 0, topology={"mode": "hard"})
    thing = pod_group("pg", -1, topology={}, sub_groups=[broken, broken])
    fields = [each.partition(": ")[0] for each in flaws(thing)]
    assert fields == [
        "spec.networkTopology",
        "spec.minMember",
        f"{POLICY}[0].subGroupSize",
        f"{POLICY}[0].networkTopology",
        f"{POLICY}[1].name",
        f"{POLICY}[1].subGroupSize",
        f"{POLICY}[1].networkTopology",
    ]


@pytest.mark.parametrize(
    ("owners", "is_checked"),
    [
        pytest.param([], True, id="none"),
        pytest.param([{"kind": "Job", "name": "j", "controller": True}], False, id="controller"),
        pytest.param([None, {"kind": "Job", "name": "j"}], True, id="another_owner"),
    ],
)
def test_a_pod_group_that_a_controller_made_is_the_controllers_business(
    owners: list[Object | None], is_checked: bool
) -> None:
    thing = pod_group("pg", 1, topology={})
    thing["metadata"]["ownerReferences"] = owners
    assert bool(flaws(thing)) is is_checked


# -- vcjobs ----------------------------------------------------------------------------------------


def parted(replicas: int, *, min_available: int | None = None, **policy: Any) -> Object:
    said = {"totalPartitions": 2, "partitionSize": 4, **policy}
    made = task("worker", replicas, partitionPolicy=said)
    if min_available is not None:
        made["minAvailable"] = min_available
    else:
        del made["minAvailable"]
    return made


@pytest.mark.parametrize(
    "thing",
    [
        pytest.param([task("worker", 4)], id="plain"),
        pytest.param([parted(8)], id="partitions"),
        pytest.param([parted(8, minPartitions=1)], id="minimum"),
        pytest.param([parted(8, minPartitions=1, min_available=4)], id="both_minimums"),
        pytest.param([parted(8, min_available=3)], id="minimum_of_pods"),
        pytest.param(
            [task("a", 4, partitionPolicy=partition_policy(2, 2, topology=network_topology(1)))],
            id="topology",
        ),
        pytest.param([task("", 1), task("", 1)], id="no_names"),
    ],
)
def test_a_vcjob_that_adds_up_has_no_error(thing: list[Object]) -> None:
    made = vcjob("train", min_available=1, networkTopology=network_topology(2))
    made["spec"]["tasks"] = thing
    assert flaws(made) == []


WORKER = "spec.tasks[1]"


@pytest.mark.parametrize(
    ("worker", "error"),
    [
        pytest.param(
            parted(9),
            ".replicas: Invalid value: 9: must equal totalPartitions * partitionSize, which is 8",
            id="product",
        ),
        pytest.param(
            parted(8, minPartitions=1, min_available=5),
            ".minAvailable: Invalid value: 5: must equal minPartitions * partitionSize, which is 4",
            id="minimums",
        ),
        pytest.param(
            parted(8, minPartitions=3),
            ".partitionPolicy.minPartitions: Invalid value: 3: must not be greater than"
            " totalPartitions, which is 2",
            id="more_than_there_are",
        ),
        pytest.param(
            parted(8, minPartitions=-1),
            f".partitionPolicy.minPartitions: Invalid value: -1: {NOT_NEGATIVE}",
            id="minimum",
        ),
        pytest.param(
            parted(8, totalPartitions=0),
            f".partitionPolicy.totalPartitions: Invalid value: 0: {POSITIVE}",
            id="partitions",
        ),
        pytest.param(
            parted(8, partitionSize=-4),
            f".partitionPolicy.partitionSize: Invalid value: -4: {POSITIVE}",
            id="size",
        ),
        pytest.param(
            parted(8, networkTopology={"mode": "hard"}),
            f".partitionPolicy.networkTopology: {NO_TIER}",
            id="no_tier",
        ),
        pytest.param(
            parted(8, networkTopology={"highestTierAllowed": 1, "highestTierName": "rack"}),
            f".partitionPolicy.networkTopology.{TWO_TIERS}",
            id="two_tiers",
        ),
        pytest.param(
            task("master", 1), '.name: Duplicate value: "master": must be unique', id="name"
        ),
    ],
)
def test_a_task_of_a_vcjob_has_one_error_at_its_field(worker: Object, error: str) -> None:
    thing = vcjob("train", min_available=1)
    thing["spec"]["tasks"] = [task("master", 1), worker]
    assert flaws(thing) == [f"{WORKER}{error}"]


def test_a_vcjob_has_no_more_tasks_than_its_pod_group_may_name() -> None:
    thing = vcjob("train", min_available=1)
    thing["spec"]["tasks"] = [task(f"t{at}", 1) for at in range(257)]
    assert flaws(thing) == ["spec.tasks: Too many: 257: must have at most 256 items"]
    cut = partition_policy(1, 1)
    thing["spec"]["tasks"] = [task(f"t{at}", 1, partitionPolicy=cut) for at in range(33)]
    assert flaws(thing) == [
        "spec.tasks: Too many: 33: must have at most 32 items with a partitionPolicy"
    ]


def test_every_error_of_a_vcjob_is_told() -> None:
    thing = vcjob("train", min_available=1, networkTopology={"highestTierAllowed": -1})
    thing["spec"]["tasks"] = [parted(9), parted(7, minPartitions=4)]
    fields = [each.partition(": ")[0] for each in flaws(thing)]
    assert fields == [
        "spec.networkTopology.highestTierAllowed",
        "spec.tasks[0].replicas",
        "spec.tasks[1].name",
        "spec.tasks[1].replicas",
        "spec.tasks[1].partitionPolicy.minPartitions",
    ]


# -- what no API server sends ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "thing",
    [
        hyper_node("s0", 1, []) | {"spec": {"members": [7]}},
        pod_group("pg", 1, networkTopology="hard"),
        vcjob("train", tasks="none"),
    ],
)
def test_an_object_that_no_schema_takes_is_not_judged(thing: Object) -> None:
    with pytest.raises(DecodeError, match=thing["metadata"]["name"]):
        flaws(thing)


@pytest.mark.parametrize("content", [{}, {"spec": None}, {"spec": {"tasks": [None]}}])
def test_nulls_everywhere_are_nothing(content: Object) -> None:
    for version, kind in (
        ("scheduling.volcano.sh/v1beta1", "PodGroup"),
        ("batch.volcano.sh/v1alpha1", "Job"),
    ):
        assert flaws({"apiVersion": version, "kind": kind, **content}) == []


@pytest.mark.parametrize(
    ("tasks", "schedulers"),
    [
        pytest.param([{}, None, {"template": {"spec": None}}], ("corral",), id="none_is_named"),
        pytest.param([{"template": {"spec": {"schedulerName": "a"}}}] * 2, ("a",), id="one"),
        pytest.param("none", ("corral",), id="no_tasks"),
        pytest.param([{}] * 25_000, ("corral",), id="more_than_any_real_one_has"),
    ],
)
def test_the_schedulers_of_a_vcjob_are_those_of_its_templates(tasks, schedulers):
    spec = {"schedulerName": "corral", "tasks": tasks}
    made = {"metadata": {"name": "j", "namespace": "default", "uid": "u"}, "spec": spec}
    assert decode_job(msgspec.json.encode(made)).schedulers == schedulers
