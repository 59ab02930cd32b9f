"""What is wrong with KAI's objects, as the webhook says it and as the reader waits for it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from app.dialects.kai.pod_groups import check_pod_group, decode_pod_group
from app.dialects.kai.topology import check_topology, decode_topology
from tests.app.dialects.kai.objects import (
    group,
    pod_group,
    sub_group,
    topology,
    topology_record,
    within,
)
from tests.records import RACK

BLOCK, HOST = "example.com/block", "kubernetes.io/hostname"
Json = dict[str, Any]


def errors(made: Json) -> list[str]:
    checked = check_pod_group(msgspec.json.encode(made))
    assert checked.pods is None
    return [str(flaw) for flaw in checked.flaws]


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(pod_group("pg"), id="nothing"),
        pytest.param(pod_group("pg", 3, on=within(RACK)), id="required"),
        pytest.param(pod_group("pg", 3, on=within(preferred=RACK)), id="preferred"),
        pytest.param(pod_group("pg", 3, on=within(BLOCK, RACK)), id="both"),
        pytest.param(pod_group("pg", 2, sub_group("a", 1), sub_group("b", 1)), id="two_leaves"),
        pytest.param(
            pod_group("pg", None, sub_group("a", minSubGroup=1), sub_group("b", 0, "a")), id="tree"
        ),
    ],
)
def test_a_pod_group_that_kai_takes_has_no_error(made: Json) -> None:
    assert errors(made) == []


@pytest.mark.parametrize(
    ("made", "error"),
    [
        pytest.param(
            pod_group("pg", 2, sub_group("a", 1), minSubGroup=1),
            "spec.minSubGroup: Forbidden: may not be set together with minMember",
            id="both_minima",
        ),
        pytest.param(
            pod_group("pg", None, minSubGroup=1),
            "spec.minSubGroup: Forbidden: it has no sub-groups, minMember counts its pods",
            id="min_sub_group_without_sub_groups",
        ),
        pytest.param(
            pod_group("pg", None, sub_group("a", 1), minSubGroup=2),
            "spec.minSubGroup: Invalid value: 2: must not be greater than the number of its"
            " sub-groups, which is 1",
            id="more_sub_groups_than_there_are",
        ),
        pytest.param(
            pod_group("pg", None, sub_group("a", 1), minSubGroup=0),
            "spec.minSubGroup: Invalid value: 0: must be greater than or equal to 1",
            id="no_sub_group",
        ),
        pytest.param(
            pod_group("pg", -1),
            "spec.minMember: Invalid value: -1: must be greater than or equal to 0",
            id="less_than_no_pod",
        ),
        pytest.param(
            pod_group("pg", None, sub_group("a", 1), sub_group("a", 2)),
            'spec.subGroups[1].name: Duplicate value: "a": must be unique',
            id="a_name_twice",
        ),
        pytest.param(
            pod_group("pg", None, sub_group("A_b", 1)),
            'spec.subGroups[0].name: Invalid value: "A_b": must be a lowercase DNS label of 63'
            " characters",
            id="no_dns_label",
        ),
        pytest.param(
            pod_group("pg", None, sub_group("a", 1, parent="b")),
            'spec.subGroups[0].parent: Invalid value: "b": no sub-group has this name',
            id="a_parent_that_is_not_there",
        ),
        pytest.param(
            pod_group("pg", None, sub_group("a", parent="a")),
            'spec.subGroups[0].parent: Invalid value: "a": it is inside itself: a',
            id="its_own_parent",
        ),
        pytest.param(
            pod_group(
                "pg",
                None,
                sub_group("x", 1),
                sub_group("a", parent="b"),
                sub_group("b", parent="a"),
            ),
            'spec.subGroups[1].parent: Invalid value: "b": it is inside itself: a in b',
            id="a_cycle",
        ),
        pytest.param(
            pod_group("pg", None, sub_group("a", minSubGroup=1)),
            "spec.subGroups[0].minSubGroup: Forbidden: it has no sub-groups, minMember counts its"
            " pods",
            id="a_leaf_with_min_sub_group",
        ),
        pytest.param(
            pod_group("pg", None, sub_group("a", 1), sub_group("b", 1, parent="a")),
            "spec.subGroups[0].minMember: Forbidden: it has sub-groups, which its pods are in:"
            " minSubGroup counts those",
            id="min_member_above_a_leaf",
        ),
        pytest.param(
            pod_group("pg", None, sub_group("a", 1, minSubGroup=1), sub_group("b", 1, parent="a")),
            "spec.subGroups[0].minSubGroup: Forbidden: may not be set together with minMember",
            id="both_minima_of_a_sub_group",
        ),
        pytest.param(
            pod_group("pg", 1, on=within(RACK, topology="")),
            "spec.topologyConstraint.topology: Required value: a level is a level of a Topology",
            id="a_level_of_no_topology",
        ),
        pytest.param(
            pod_group("pg", None, sub_group("a", 1, topologyConstraint=within())),
            "spec.subGroups[0].topologyConstraint.requiredTopologyLevel: Required value: a Topology"
            " is named, and neither this nor preferredTopologyLevel is",
            id="a_topology_without_a_level",
        ),
        pytest.param(
            pod_group(
                "pg",
                None,
                sub_group("a", 1, topologyConstraint=within(RACK, topology="other")),
                on=within("", BLOCK),
            ),
            'spec.subGroups[0].topologyConstraint.topology: Invalid value: "other": sub-group a is'
            " on this Topology, inside the PodGroup itself on net, where no level is required: a"
            " Topology is inside a required domain of another, and those beside each other are"
            " inside one at most",
            id="two_topologies",
        ),
        pytest.param(
            pod_group(
                "pg",
                None,
                sub_group("whole", topologyConstraint=within(RACK, topology="racks")),
                sub_group("prefill", 1, "whole", topologyConstraint=within("p", topology="a")),
                sub_group("router", 1, "whole"),
                sub_group("decode", 1, "whole", topologyConstraint=within("d", topology="b")),
                sub_group("encode", 1, "whole", topologyConstraint=within("p", topology="a")),
                on=within(BLOCK),
            ),
            'spec.subGroups[3].topologyConstraint.topology: Invalid value: "b": sub-group decode is'
            " on this Topology and sub-group prefill on a, and neither is inside the other: a"
            " Topology is inside a required domain of another, and those beside each other are"
            " inside one at most",
            id="two_topologies_of_sub_groups",
        ),
        pytest.param(
            pod_group(
                "pg",
                None,
                sub_group("prefill", 1, topologyConstraint=within(RACK, topology="racks")),
                sub_group("decode", 1, topologyConstraint=within(RACK, topology="nvlink")),
                minSubGroup=1,
            ),
            "spec.minSubGroup: Invalid value: 1: its 2 sub-groups are on different Topologies, of"
            " which neither is inside the other: these start all together",
            id="some_of_the_sub_groups_on_two_topologies",
        ),
    ],
)
def test_a_pod_group_has_one_error_at_its_field_and_its_pods_wait_for_it(
    made: Json, error: str
) -> None:
    assert errors(made) == [error]
    assert decode_pod_group(msgspec.json.encode(made)).flaw == f"PodGroup default/pg: {error}"


def test_a_leaf_without_min_member_is_refused_and_read_as_one_pod() -> None:
    made = pod_group("pg", None, sub_group("a"))
    assert errors(made) == [
        "spec.subGroups[0].minMember: Required value: how many of its pods start together"
    ]
    record = group("pg", None, sub_group("a"))
    assert (record.flaw, record.sub_groups[0].least) == ("", 1)


@pytest.mark.parametrize(
    ("tree", "needed"),
    [
        pytest.param(pod_group("pg", None, *(sub_group(f"s{at}", 1) for at in range(65))), 65),
        pytest.param(pod_group("pg", None, *(sub_group(f"s{at}", 1) for at in range(64))), 0),
        pytest.param(pod_group("pg", None, *(sub_group(f"s{at}", at % 2) for at in range(128))), 0),
        pytest.param(
            pod_group("pg", None, *(sub_group(f"s{at}", 1) for at in range(65)), minSubGroup=64), 0
        ),
        pytest.param(
            pod_group(
                "pg",
                None,
                sub_group("half", minSubGroup=33),
                sub_group("all"),
                *(sub_group(f"h{at}", 1, "half") for at in range(40)),
                *(sub_group(f"a{at}", 1, "all") for at in range(33)),
            ),
            66,
        ),
    ],
    ids=["one_too_many", "as_many_as_may_be", "half_of_none", "not_all_needed", "in_groups"],
)
def test_more_leaves_than_have_room_in_one_gang_are_told_and_read_all_the_same(
    tree: Json, needed: int
) -> None:
    text = "must have at most 64 sub-groups that have to have pods"
    assert errors(tree) == ([f"spec.subGroups: Too many: {needed}: {text}"] if needed else [])
    record = decode_pod_group(msgspec.json.encode(tree))
    assert (record.flaw, len(record.sub_groups)) == ("", len(tree["spec"]["subGroups"]))


def test_a_circle_of_many_is_told_once_in_few_words() -> None:
    circle = [sub_group(f"s{at}", parent=f"s{(at + 1) % 200}") for at in range(200)]
    inside = sub_group("in", 1, parent="s7")
    (error,) = [each for each in errors(pod_group("pg", None, *circle, inside)) if "itself" in each]
    assert error.endswith("it is inside itself: s0 in s1 in s2 in s3 in …")


@pytest.mark.parametrize("depth", [15, 256])
def test_sub_groups_deeper_than_is_searched_are_told_at_the_first_that_is(depth: int) -> None:
    chain = [sub_group(f"s{at}", parent=f"s{at - 1}" if at else "") for at in range(depth - 1)]
    chain.append(sub_group("leaf", 1, parent=f"s{depth - 2}"))
    made = pod_group("pg", None, *chain)
    assert errors(made) == [
        'spec.subGroups[14].parent: Invalid value: "s13": sub-groups are inside one another 15'
        " deep, and 14 are read"
    ]
    assert decode_pod_group(msgspec.json.encode(made)).flaw


def test_every_error_of_a_pod_group_is_told() -> None:
    made = pod_group(
        "pg", 1, sub_group("a", 1, parent="b"), sub_group("a", -1), on=within(RACK, topology="")
    )
    assert [each.partition(": ")[0] for each in errors(made)] == [
        "spec.topologyConstraint.topology",
        "spec.subGroups[0].parent",
        "spec.subGroups[1].name",
        "spec.subGroups[1].minMember",
    ]


@pytest.mark.parametrize("is_controller", [True, False])
def test_a_pod_group_that_has_an_owner_is_its_makers_business(is_controller: bool) -> None:
    # The pod-grouper's references name no controller.
    made = pod_group("pg", None, minSubGroup=1)
    owner = {"kind": "PyTorchJob", "name": "pt", "uid": "u", "controller": is_controller}
    made["metadata"]["ownerReferences"] = [owner]
    assert errors(made) == []
    assert decode_pod_group(msgspec.json.encode(made)).flaw


# -- Topologies ------------------------------------------------------------------------------------


def topology_errors(made: Json, before: Json | None = None) -> list[str]:
    was = None if before is None else msgspec.json.encode(before)
    return [str(flaw) for flaw in check_topology(msgspec.json.encode(made), was).flaws]


def test_a_topology_that_kai_takes_has_no_error() -> None:
    made = topology("net", BLOCK, RACK, HOST, aliases=("block", "rack"))
    assert topology_errors(made) == []
    assert topology_errors(made, topology("net", BLOCK, RACK, HOST)) == []


@pytest.mark.parametrize(
    ("made", "error"),
    [
        pytest.param(
            topology("net"),
            "spec.levels: Required value: must have at least one level",
            id="no_level",
        ),
        pytest.param(
            topology("net", *(f"l{at}" for at in range(17))),
            "spec.levels: Too many: 17: must have at most 16 items",
            id="seventeen_levels",
        ),
        pytest.param(
            topology("net", "a key"),
            'spec.levels[0].nodeLabel: Invalid value: "a key": must be the key of a label',
            id="no_key",
        ),
        pytest.param(
            topology("net", RACK, RACK),
            f'spec.levels[1].nodeLabel: Duplicate value: "{RACK}": must be unique',
            id="a_level_twice",
        ),
        pytest.param(
            topology("net", HOST, RACK),
            f'spec.levels[0].nodeLabel: Invalid value: "{HOST}": only the last level may be the'
            " node",
            id="the_node_above",
        ),
        pytest.param(
            topology("net", BLOCK, RACK, aliases=("x", "x")),
            'spec.levels[1].alias: Duplicate value: "x": must be unique',
            id="an_alias_twice",
        ),
        pytest.param(
            topology("net", BLOCK, RACK, aliases=(RACK,)),
            f'spec.levels[0].alias: Duplicate value: "{RACK}": must be unique',
            id="an_alias_that_is_a_level",
        ),
    ],
)
def test_a_topology_has_one_error_at_its_field(made: Json, error: str) -> None:
    assert topology_errors(made) == [error]


def test_the_levels_of_a_topology_do_not_change() -> None:
    (error,) = topology_errors(topology("net", RACK), topology("net", BLOCK, RACK))
    assert error == (
        f'spec.levels: Invalid value: "{RACK}": the node labels of levels are immutable'
    )


def test_a_topology_is_read_as_it_is_and_an_alias_never_hides_a_level() -> None:
    record = topology_record("net", BLOCK, RACK, aliases=(RACK, "rack"))
    assert (record.levels, record.aliases) == ((BLOCK, RACK), (("rack", RACK),))
    assert len(topology_record("net", *(f"l{at}" for at in range(100))).levels) == 17
    assert topology_record("net", BLOCK, aliases=("a" * 1_000,)).aliases == ()


def test_levels_that_are_too_long_are_none() -> None:
    for made in (
        topology("net", *(f"l{at}" for at in range(10_000))),
        topology("net", BLOCK, aliases=("a" * 1_000_000,)),
    ):
        assert topology_errors(made) == ["spec.levels: Too long: may not be more than 32768 bytes"]
        record = decode_topology(msgspec.json.encode(made))
        assert (record.levels, record.aliases) == ((), ())
