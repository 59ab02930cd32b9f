"""The PodCliqueSets that GREP-244 shows, from the webhook to bound pods; and their PodGangs.

Grove's operator makes the PodGangs; `app/dialects/making` makes the same where a PodCliqueSet is
simulated. What GREP-244 says of them is checked here of that, by its section.
Source: GREP-244 "Topology Constraints Only Guaranteed for Initial Deployment", "Topology
Constraints in PodCliqueSet", "PodGang: Scheduler API Enhancements".
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from app.dialects.making import MAKERS
from tests.app.dialects.grove.stage import stage_of
from tests.cluster import Object
from tests.controlplane.grove import clique, pod_clique_set, scaling_group
from tests.controlplane.grove_cases import (
    EACH_CLIQUE,
    EACH_GROUP,
    EACH_REPLICA,
    KEYS,
    Together,
    nodes,
)

DISAGGREGATED = pod_clique_set(
    "disaggregated-inference",
    clique("router", 1, gpus=1, pack="block"),
    clique("p-leader", 1, gpus=4, pack="rack"),
    clique("p-worker", 4, pack="rack"),
    clique("d-leader", 1, gpus=4, pack="rack"),
    clique("d-worker", 2, pack="rack"),
    groups=(
        scaling_group("prefill", "p-worker", "p-leader", replicas=2, pack="block"),
        scaling_group("decode", "d-worker", "d-leader", replicas=2, pack="rack"),
    ),
    pack="zone",
)
HIERARCHICAL = pod_clique_set(
    "hierarchical-inference",
    clique("p-leader", 2, gpus=4, pack="host"),
    clique("p-worker", 4, gpus=4),
    groups=(scaling_group("prefill", "p-worker", "p-leader", replicas=3, pack="block"),),
    replicas=2,
    pack="zone",
)
PREFILL, DECODE = ("p-worker", "p-leader"), ("d-worker", "d-leader")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("made", "pods", "together"),
    [
        pytest.param(
            DISAGGREGATED,
            17,
            (
                Together("zone", EACH_REPLICA),
                *(Together("rack", EACH_CLIQUE, (each,)) for each in (*PREFILL, *DECODE)),
                Together("block", EACH_GROUP, PREFILL),
                Together("rack", EACH_GROUP, DECODE),
            ),
            id="topology_constraints_in_pod_clique_set",
        ),
        pytest.param(
            HIERARCHICAL,
            36,
            (
                # Of all PodGangs of a replica, which GREP-244 does not promise.
                Together("zone", EACH_REPLICA),
                Together("block", EACH_GROUP, PREFILL),
                Together("host", EACH_CLIQUE, ("p-leader",)),
            ),
            id="scale_out_of_a_scaling_group",
        ),
    ],
)
async def test_story_2_an_example_is_packed_level_by_level(
    tmp_path: Path, made: Object, pods: int, together: tuple[Together, ...]
) -> None:
    async with stage_of(tmp_path, nodes(), KEYS) as on:
        await on.bind("grove-topology", *KEYS)
        await on.deploy(made)
        placed = await on.all_bound(pods)
        assert [found for each in together if (found := each.apart(placed, on.nodes))] == []


# -- PodGang: Scheduler API Enhancements -----------------------------------------------------------


def pod_gangs(made: Object) -> dict[str, Any]:
    """The specs of its PodGangs, by name."""
    parts = (each.content for each in MAKERS["grove.io", "PodCliqueSet"](made))
    return {each["metadata"]["name"]: each["spec"] for each in parts if each["kind"] == "PodGang"}


def required(said: Any) -> str:
    """The level that something requires; "": none."""
    return str(said.get("topologyConstraint", {}).get("packConstraint", {}).get("required", ""))


def test_pod_gang_the_base_one_has_the_least_that_works_and_there_is_one_of_each_replica_above():
    found = pod_gangs(DISAGGREGATED)
    name = "disaggregated-inference-0"
    assert sorted(found) == [name, f"{name}-decode-0", f"{name}-prefill-0"]
    assert {each["name"]: each["minReplicas"] for each in found[name]["podgroups"]} == {
        f"{name}-router": 1,
        f"{name}-prefill-0-p-worker": 4,
        f"{name}-prefill-0-p-leader": 1,
        f"{name}-decode-0-d-worker": 2,
        f"{name}-decode-0-d-leader": 1,
    }
    scaled = found[f"{name}-prefill-0"]["podgroups"]
    assert {each["name"] for each in scaled} == {
        f"{name}-prefill-1-p-worker",
        f"{name}-prefill-1-p-leader",
    }


def test_pod_gang_the_base_one_has_the_constraint_of_the_whole_and_a_scaled_one_of_its_group():
    found = pod_gangs(DISAGGREGATED)
    name = "disaggregated-inference-0"
    assert {each: required(said) for each, said in found.items()} == {
        name: "zone",
        f"{name}-prefill-0": "block",
        f"{name}-decode-0": "rack",
    }


def test_pod_gang_a_scaled_one_inherits_where_its_group_has_no_constraint():
    group = scaling_group("prefill", "p-worker", replicas=2)
    made = pod_clique_set("a", clique("p-worker", 1), groups=(group,), pack="zone")
    assert {name: required(said) for name, said in pod_gangs(made).items()} == {
        "a-0": "zone",
        "a-0-prefill-0": "zone",
    }
    made = pod_clique_set("a", clique("p-worker", 1), groups=(group,))
    assert all("topologyConstraint" not in said for said in pod_gangs(made).values())


def test_pod_gang_every_one_has_the_priority_class_of_the_whole():
    made = pod_clique_set("a", clique("w", 1), replicas=2)
    assert all("priorityClassName" not in said for said in pod_gangs(made).values())
    made["spec"]["template"]["priorityClassName"] = "high"
    assert [said["priorityClassName"] for said in pod_gangs(made).values()] == ["high", "high"]


def test_pod_gang_groups_of_pod_groups_are_in_the_base_one_alone():
    found = pod_gangs(HIERARCHICAL)
    name = "hierarchical-inference-0"
    assert found[name]["topologyConstraintGroupConfigs"] == [
        {
            "name": f"{name}-prefill-0",
            "podGroupNames": [f"{name}-prefill-0-p-leader", f"{name}-prefill-0-p-worker"],
            "topologyConstraint": {"packConstraint": {"required": "block"}},
        }
    ]
    scaled = [said for each, said in found.items() if "-prefill-" in each]
    assert len(scaled) == 4
    assert all("topologyConstraintGroupConfigs" not in said for said in scaled)


def test_pod_gang_the_constraint_of_a_clique_is_that_of_its_pod_group():
    for said in pod_gangs(HIERARCHICAL).values():
        levels = {each["name"].rpartition("-p-")[2]: required(each) for each in said["podgroups"]}
        assert levels == {"leader": "host", "worker": ""}
