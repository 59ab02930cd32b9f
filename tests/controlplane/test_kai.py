"""KAI's PodGroups and Topologies on the real control plane, as newer versions write them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.app.dialects.kai.crds import POD_GROUP, TOPOLOGY
from tests.app.dialects.kai.objects import (
    GROUP_NAME,
    SUB_GROUP,
    pod_group,
    sub_group,
    topology,
    within,
)
from tests.cluster import BLOCK, GPU, RACK, Cluster, Object, Refused, grid, pod
from tests.controlplane.kinds import defined
from tests.controlplane.plane import ControlPlane
from tests.controlplane.seen import START_SECONDS
from tests.controlplane.webhook import installed
from tests.corral_process import scheduled

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.usefixtures("kai")]

KIND = "PodGroup.scheduling.run.ai"
SOON = 15.0


@pytest.fixture
def kai(cluster: Cluster) -> Iterator[None]:
    """The API server knows KAI's kinds; afterwards neither them nor objects of theirs."""
    with defined(cluster, (POD_GROUP, TOPOLOGY)):
        yield


def written(made: Object) -> Object:
    """As a user writes it: the API server makes uids and versions."""
    known = made["metadata"]
    return {**made, "metadata": {key: known[key] for key in ("name", "namespace") if key in known}}


def members(group: str, part: str, pods: int) -> list[Object]:
    return [
        pod(
            f"{group}-{part}-{at}",
            requests={GPU: 8},
            annotations={GROUP_NAME: group},
            labels={SUB_GROUP: part},
        )
        for at in range(pods)
    ]


def condition_of(cluster: Cluster, name: str) -> dict[str, Any]:
    status = (cluster.get(KIND, name) or {}).get("status", {})
    return dict((status.get("schedulingConditions") or [{}])[-1])


def bound(cluster: Cluster, prefix: str) -> dict[str, str]:
    return {name: on for name, on in cluster.bound().items() if name.startswith(prefix)}


TREE = (
    sub_group("replica-0", minSubGroup=2, topologyConstraint=within("block")),
    sub_group("leader-0", 1, "replica-0"),
    sub_group("workers-0", 2, "replica-0", topologyConstraint=within("rack")),
    sub_group("replica-1", minSubGroup=2, topologyConstraint=within("block")),
    sub_group("leader-1", 1, "replica-1"),
    sub_group("workers-1", 2, "replica-1", topologyConstraint=within("rack")),
)


@pytest.mark.parametrize("visits", [20_000, 1_000], ids=["on_the_loop", "in_a_thread"])
def test_nested_sub_groups_start_in_their_domains_or_say_why_they_wait(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path, visits: int
) -> None:
    plane.nodes(grid(blocks=2, racks=2, nodes=2, gpus=8))
    cluster.create(written(topology("net", BLOCK, RACK, aliases=("block", "rack"))))
    with scheduled(plane, tmp_path, levels=(), visits_per_search=visits) as corral:
        cluster.create(written(pod_group("big", None, *TREE, minSubGroup=2)))
        pods = [each for at in range(2) for each in members("big", f"leader-{at}", 1)]
        pods += [each for at in range(2) for each in members("big", f"workers-{at}", 2)]
        cluster.create_all(pods)
        cluster.wait(lambda: len(bound(cluster, "big-")) == 6, START_SECONDS, "the gang starts")
        for at in range(2):
            workers = bound(cluster, f"big-workers-{at}")
            assert len({on.rsplit("-", 1)[0] for on in workers.values()}) == 1
            replica = {*workers.values(), *bound(cluster, f"big-leader-{at}").values()}
            assert len({on.partition("-")[0] for on in replica}) == 1
        answers = corral.metric('corral_place_answers_total{outcome="place"}')
        assert (answers > 0) is (visits == 1_000)

        cluster.create(written(pod_group("late", 3, on=within("rack"))))
        cluster.create_all(members("late", "any", 3))
        cluster.wait(lambda: condition_of(cluster, "late"), SOON, "the PodGroup says why")
        told = condition_of(cluster, "late")
        assert (told["type"], told["status"]) == ("UnschedulableOnNodePool", "True")
        assert (told["nodePool"], told["reason"]) == ("default", "Unschedulable")
        assert "of 3 pods fit" in told["message"]
        assert bound(cluster, "late-") == {}
        assert corral.bugs() == {}


def test_the_webhook_refuses_what_is_no_tree_and_a_topology_that_is_none(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path
) -> None:
    with installed(plane, tmp_path):
        bad = written(pod_group("bad", None, sub_group("a", 1, parent="nobody")))
        with pytest.raises(Refused, match=r"spec\.subGroups\[0\]\.parent: Invalid value"):
            cluster.create(bad)
        with pytest.raises(Refused, match=r"spec\.levels\[1\]\.nodeLabel: Duplicate value"):
            cluster.create(written(topology("twice", RACK, RACK)))
        # What owns a PodGroup made it by a controller, which would only try again.
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}
        bad["metadata"]["ownerReferences"] = [owner]
        cluster.create(bad)
