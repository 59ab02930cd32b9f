"""PodGroups: how they are read, where their pods belong, and what they are as gangs."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import msgspec
import pytest

from app.dialects.registry import DIALECTS
from app.dialects.spec import GangKey, GangSpec, GroupSpec, LeafPods, LeafSpec, Within
from app.dialects.volcano import DIALECT
from app.dialects.volcano.pod_groups import PodGroupRecord, decode_pod_group
from app.errors import DecodeError
from app.kube.core.objects import Owner, PodRecord
from app.state.gang.members import minimum
from tests.app.dialects.volcano.workloads import (
    GROUP_NAME,
    HIGHEST_TIER,
    PARTITION,
    TASK,
    network_topology,
    pod_group,
    sub_group,
)
from tests.records import pod

KEY = GangKey("default", "pg", "volcano")


def decoded(made: dict[str, Any]) -> PodGroupRecord:
    made["metadata"] |= {"uid": "uid-pg", "resourceVersion": "7"}
    return decode_pod_group(msgspec.json.encode(made))


def group_of(least: int, *policies: Any, **more: Any) -> PodGroupRecord:
    return decoded(pod_group("pg", least, sub_groups=policies, **more))


def member(name: str, task: str = "", partition: str = "", **labels: str) -> PodRecord:
    own = {key: value for key, value in ((TASK, task), (PARTITION, partition)) if value}
    return pod(name, labels={**own, **labels}, annotations={GROUP_NAME: "pg"})


def leaf(one: PodRecord, group: PodGroupRecord) -> str:
    claim = DIALECTS.claim(one, [group])
    assert claim is not None
    assert (claim.gang, claim.flaw) == (KEY, "")
    return claim.leaf


def spec(group: PodGroupRecord, **pods: int) -> GangSpec:
    return spec_of(group, pods)


def spec_of(group: PodGroupRecord, pods: dict[str, int]) -> GangSpec:
    there = {leaf: LeafPods(number) for leaf, number in pods.items()}
    found = DIALECTS.spec(KEY, [group], (), (), there)
    assert found is not None
    return found


def leaves(found: GangSpec) -> dict[str, tuple[int, int]]:
    """(pods, needed) of each leaf."""
    return {each.name: (each.pods, each.least) for each in found.leaves()}


# -- reading ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("topology", "within"),
    [
        pytest.param(network_topology(2), Within(2), id="a_tier"),
        pytest.param(network_topology(tier_name="rack"), Within(None, "rack"), id="a_name"),
        pytest.param({"mode": "soft"}, Within(is_soft=True), id="soft"),
        pytest.param({"mode": "soft", "highestTierAllowed": 1}, Within(is_soft=True), id="soft_1"),
        pytest.param({"highestTierAllowed": 1}, Within(1), id="hard_by_default"),
        pytest.param(None, None, id="none"),
    ],
)
def test_a_network_topology_is_a_tier_and_all_below(topology: Any, within: Within | None) -> None:
    group = decoded(pod_group("pg", 1, topology=topology))
    assert (group.within, group.flaw) == (within, "")


POLICY = "PodGroup default/pg: spec.subGroupPolicy"
TOPOLOGY = "PodGroup default/pg: spec.networkTopology"


@pytest.mark.parametrize(
    ("spec", "flaw"),
    [
        pytest.param(
            {"networkTopology": {"mode": "firm"}},
            f'{TOPOLOGY}.mode: Unsupported value: "firm": supported values: "hard", "soft"',
            id="mode",
        ),
        pytest.param(
            {"networkTopology": {"mode": "hard"}},
            f"{TOPOLOGY}: Required value: hard mode needs highestTierAllowed or highestTierName",
            id="no_tier",
        ),
        pytest.param(
            {"networkTopology": {"highestTierAllowed": 1, "highestTierName": "rack"}},
            f"{TOPOLOGY}.highestTierName: Forbidden: may not be set together with"
            " highestTierAllowed",
            id="both",
        ),
        pytest.param(
            {"networkTopology": {"highestTierAllowed": -1}},
            f"{TOPOLOGY}.highestTierAllowed: Invalid value: -1: must be greater than or equal to 0",
            id="below_0",
        ),
        pytest.param(
            {"subGroupPolicy": [{"name": "a"}, {"name": "a"}]},
            f'{POLICY}[1].name: Duplicate value: "a": must be unique',
            id="two_of_a_name",
        ),
        pytest.param(
            {"subGroupPolicy": [{"subGroupSize": 0}]},
            f"{POLICY}[0].subGroupSize: Invalid value: 0: must be greater than or equal to 1",
            id="size",
        ),
        pytest.param(
            {"subGroupPolicy": [{"networkTopology": {"mode": "hard"}}]},
            f"{POLICY}[0].networkTopology: Required value: hard mode needs highestTierAllowed or"
            " highestTierName",
            id="policy_without_tier",
        ),
        pytest.param(
            {
                "subGroupPolicy": [
                    {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}
                ]
            },
            f'{POLICY}[0].labelSelector.matchExpressions[0].operator: Unsupported value: "Near":'
            ' supported values: "In", "NotIn", "Exists", "DoesNotExist"',
            id="selector",
        ),
        pytest.param(
            {"subGroupPolicy": [{"matchLabelKeys": list("abcdefghi")}]},
            f"{POLICY}[0].matchLabelKeys: Too many: 9: must have at most 8 items",
            id="keys",
        ),
        pytest.param(
            {"subGroupPolicy": [{"name": "a" * 254}]},
            f"{POLICY}[0].name: Too long: may not be more than 253 bytes",
            id="name",
        ),
        pytest.param(
            {
                "subGroupPolicy": [
                    {"labelSelector": {"matchLabels": dict.fromkeys("abcdefghi", "x")}}
                ]
            },
            f"{POLICY}[0].labelSelector: Too many: 9: must have at most 8 requirements",
            id="requirements",
        ),
        pytest.param(
            {"subGroupPolicy": [{"name": str(at)} for at in range(33)]},
            f"{POLICY}: Too many: 33: must have at most 32 items",
            id="policies",
        ),
        pytest.param(
            {"minTaskMember": {str(at): 1 for at in range(257)}},
            "PodGroup default/pg: spec.minTaskMember: Too many: 257: must have at most 256 items",
            id="tasks",
        ),
        pytest.param(
            {"minTaskMember": {"a" * 32_768: 1}},
            "PodGroup default/pg: spec.minTaskMember: Too long: may not be more than 32768 bytes",
            id="too_long",
        ),
        pytest.param(
            {"subGroupPolicy": {}},
            f"{POLICY}: Invalid value: Expected `array | null`, got `object`",
            id="no_list",
        ),
    ],
)
def test_what_is_not_valid_is_told_to_each_of_its_pods(spec: Any, flaw: str) -> None:
    group = decoded(pod_group("pg", 1, **spec))
    assert group.flaw == flaw
    claim = DIALECTS.claim(member("p"), [group])
    assert claim is not None
    assert (claim.gang, claim.flaw) == (KEY, flaw)


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"matchLabelKeys": list("abcdefgh")}, id="keys"),
        pytest.param(
            {"labelSelector": {"matchLabels": dict.fromkeys("abcdefgh", "x")}}, id="requirements"
        ),
    ],
)
def test_as_much_as_is_allowed_is_valid(spec: Any) -> None:
    assert decoded(pod_group("pg", 1, subGroupPolicy=[spec])).flaw == ""


def test_a_status_that_cannot_be_read_hides_nothing_of_the_spec() -> None:
    made = pod_group("pg", 3)
    made["status"] = {"phase": 7}
    assert (decoded(made).least, decoded(made).phase) == (3, "")
    made["status"] = {"phase": "Running", "conditions": [{"message": "x" * 8_192}]}
    assert decoded(made).phase == ""
    with pytest.raises(DecodeError, match="PodGroup default/pg"):
        decoded(pod_group("pg", 1, minMember="three"))


# -- claims ----------------------------------------------------------------------------------------


def test_a_pod_is_in_the_first_sub_group_whose_labels_it_has_then_in_its_task() -> None:
    by_zone = sub_group("zoned", 2, labels={"app": "x"}, keys=["zone", "role"])
    group = group_of(4, sub_group("worker", 2), by_zone, tasks={"worker": 2, "master": 1})
    assert leaf(member("a", "worker", "3"), group) == "worker/3"
    assert leaf(member("b", "worker"), group) == "worker"  # no partition: it is in none
    assert leaf(member("c", "master", "3"), group) == "master"
    assert leaf(member("d", app="x", zone="z1", role="r"), group) == "zoned/z1,r"
    assert leaf(member("e", app="x", zone="z1"), group) == ""
    assert leaf(member("f", "ps"), group) == ""  # of a task that the PodGroup does not name


def test_a_task_that_is_named_like_a_sub_group_is_none() -> None:
    group = group_of(2, sub_group("worker", 2), tasks={"worker/3": 1})
    annotated = pod("a", annotations={GROUP_NAME: "pg", TASK: "worker/3"})
    assert leaf(annotated, group) == ""


def test_a_policy_without_keys_has_no_sub_groups() -> None:
    assert leaf(member("a", "worker"), group_of(1, sub_group("worker", 2, keys=[]))) == ""


def test_a_pod_belongs_to_its_pod_group_before_that_is_there() -> None:
    claim = DIALECTS.claim(member("a", "worker", "1"))
    assert claim is not None
    assert (claim.gang, claim.leaf, claim.flaw) == (KEY, "", "")
    assert DIALECTS.spec(KEY, (), (), ()) is None
    assert DIALECTS.of(KEY).awaited(KEY) == "PodGroup pg is there"


def test_a_plain_pod_that_asks_for_a_tier_waits_for_the_pod_group_of_its_owner() -> None:
    asking = {HIGHEST_TIER: "1"}
    owned = pod("a", annotations=asking, owner=Owner("batch/v1", "Job", "plain", "u7"))
    for one, name in ((owned, "podgroup-u7"), (pod("b", annotations=asking), "podgroup-uid-b")):
        claim = DIALECTS.claim(one)
        assert claim is not None
        assert claim.gang == GangKey("default", name, "volcano")
    assert DIALECTS.claim(pod("c", labels={TASK: "worker"})) is None


def test_objects_name_the_labels_that_tell_sub_groups_apart() -> None:
    policy = sub_group("zoned", 2, labels={"app": "x"}, keys=["zone", "role"])
    assert list(DIALECT.keys_named(group_of(1, policy))) == ["zone", "role", "app"]
    assert all(map(DIALECT.keeps, (GROUP_NAME, TASK, PARTITION, HIGHEST_TIER)))


# -- specs -----------------------------------------------------------------------------------------


def test_a_vcjobs_pod_group_needs_of_each_task_and_of_each_partition_what_it_says() -> None:
    worker = sub_group("worker", 2, min_sub_groups=1, topology=network_topology(1))
    group = group_of(4, worker, tasks={"master": 1, "worker": 3}, topology=network_topology(2))
    found = spec_of(group, {"master": 1, "worker/0": 2, "worker/1": 2, "worker/2": 2})
    assert found.topology == "HyperNodes"
    assert found.root.within == Within(2)
    master, workers = found.root.members
    assert master == LeafSpec("master", 1, needed=1)
    assert isinstance(workers, GroupSpec)
    # Three pods of the task are two whole partitions of two.
    assert (workers.name, workers.needed, len(workers.members)) == ("worker", 2, 3)
    first = workers.members[0]
    assert isinstance(first, GroupSpec)
    assert (first.within, first.members) == (
        Within(1),
        (LeafSpec("worker/0", 2, needed=2, turn=1),),
    )


def test_pods_beyond_the_minimum_may_come_later() -> None:
    assert leaves(spec_of(group_of(2), {"": 5})) == {"": (5, 2)}
    assert leaves(spec_of(group_of(2), {})) == {"": (2, 2)}  # those that have not come
    assert leaves(spec_of(group_of(0), {"": 3})) == {"": (3, 0)}


def test_tasks_count_only_while_the_pod_group_needs_as_many() -> None:
    tasks = {"master": 1, "worker": 4}
    pods = {"master": 1, "worker": 4}
    assert leaves(spec_of(group_of(5, tasks=tasks), pods)) == {"master": (1, 1), "worker": (4, 4)}
    # As Volcano's gang plugin: minMember below their sum leaves the tasks out of account.
    assert leaves(spec_of(group_of(2, tasks=tasks), pods)) == {"master": (1, 1), "worker": (4, 1)}


def test_what_tasks_and_sub_groups_leave_of_the_minimum_is_needed_of_the_others_first() -> None:
    group = group_of(6, sub_group("worker", 2), tasks={"ps": 1})
    found = spec_of(group, {"": 2, "ps": 3, "worker/1": 2, "worker/0": 2})
    assert leaves(found) == {"": (2, 2), "ps": (3, 3), "worker/0": (2, 2), "worker/1": (2, 2)}
    workers = found.root.members[-1]
    assert isinstance(workers, GroupSpec)
    assert workers.needed == 1


def test_sub_groups_start_by_their_number() -> None:
    pods = {f"worker/{at}": 1 for at in (10, 9, 2)} | {"worker/b": 1}
    workers = spec_of(group_of(0, sub_group("worker", 1)), pods).root.members[0]
    assert isinstance(workers, GroupSpec)
    assert [each.name for each in workers.members] == [
        "worker/b",
        "worker/2",
        "worker/9",
        "worker/10",
    ]


def test_sub_groups_that_the_minimum_lacks_are_those_of_the_smallest_numbers() -> None:
    pods = {f"{policy}/{at}": 2 for policy in ("a", "b") for at in range(3)}
    for least, needed in ((2, [1]), (4, [1, 1]), (6, [2, 1]), (8, [2, 2])):
        found = spec_of(group_of(least, sub_group("a", 2), sub_group("b", 2)), pods)
        asked = [each for each in found.root.members if isinstance(each, GroupSpec)]
        assert [each.needed for each in asked if each.needed] == needed
    one = sub_group("b", 2, min_sub_groups=1)
    found = spec_of(group_of(4, sub_group("a", 2), one), pods)
    assert [each.needed for each in found.root.members if isinstance(each, GroupSpec)] == [1, 1]


def test_a_pod_group_waits_for_sub_groups_that_do_not_exist() -> None:
    group = group_of(2, sub_group("worker", 2, min_sub_groups=3))
    found = spec_of(group, {"worker/0": 2})
    assert found.pods == 6
    assert not minimum.has_enough(found, {"worker/0": 2})
    assert minimum.has_enough(
        spec_of(group, {f"worker/{at}": 2 for at in range(3)}),
        {f"worker/{at}": 2 for at in range(3)},
    )


def test_without_a_tier_any_topology_will_do() -> None:
    assert spec_of(group_of(2), {"": 2}).topology is None


def test_a_gang_never_starts_with_fewer_pods_than_its_pod_group_says() -> None:
    """By counting, as Volcano's JobReady does: pods of all, of each task, whole sub-groups."""
    assert sum(map(started, range(300))) > 500


def started(seed: int) -> int:
    """How many of some random choices of pods are enough to start; each of them is checked."""
    rng, enough = random.Random(seed), 0
    policies = [
        sub_group(name, rng.randint(1, 3), min_sub_groups=rng.randint(0, 2))
        for name in ("p", "q")[: rng.randint(0, 2)]
    ]
    tasks = {name: rng.randint(0, 3) for name in ("t", "p")[: rng.randint(0, 2)]}
    group = group_of(rng.randint(0, 12), *policies, tasks=tasks)
    names = ["", *tasks, *(f"{each['name']}/{at}" for each in policies for at in range(3))]
    there = Counter({name: rng.randint(0, 4) for name in names})
    found = spec_of(group, dict(+there))
    for _ in range(20):
        placed = Counter({name: rng.randint(0, pods) for name, pods in there.items()})
        if not minimum.has_enough(found, placed):
            continue
        enough += 1
        assert placed.total() >= group.least
        for policy in policies:
            size = policy["subGroupSize"]
            whole = [placed[f"{policy['name']}/{at}"] >= size for at in range(3)]
            assert sum(whole) >= policy["minSubGroups"]
        if sum(tasks.values()) <= group.least:
            for task, least in tasks.items():
                of_task = sum(n for name, n in placed.items() if name.split("/")[0] == task)
                assert of_task >= least
    return enough
