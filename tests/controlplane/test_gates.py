"""Gated gangs through the real kube-scheduler: pods as the webhook leaves them, and what Corral
makes of their gates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from benchmarks.costs import writes
from tests.cluster import HOSTNAME, RACK, Cluster, Object, Objects, grid, pod
from tests.controlplane.history import Moment, bindings, changes_after, since
from tests.controlplane.plane import ControlPlane
from tests.controlplane.seen import START_SECONDS, racks_of
from tests.corral_process import CorralProcess, scheduled
from tests.workloads import asking, behind_gate, gates_of, members

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

IN_RACK = asking(required=RACK)
ANYWHERE = asking(unconstrained=True)
FOREIGN = "example.org/quota"
UNGATED = 'corral_pods_ungated_total{outcome="ungated"}'


@pytest.fixture
def slow_corral(plane: ControlPlane, cluster: Cluster, tmp_path: Path) -> Iterator[CorralProcess]:
    """The same with one patch at a time, so that a kill can come between two of them."""
    with scheduled(plane, tmp_path, ungate_concurrency=1) as corral:
        yield corral


def gated(name: str, pods: int, **fields: object) -> Objects:
    """A gang of which every pod came through the webhook."""
    return [behind_gate(one) for one in members(name, pods, **fields)]


@pytest.mark.alone
def test_512_gated_pods_start_whole_with_two_writes_each(
    plane: ControlPlane, cluster: Cluster, corral: CorralProcess
) -> None:
    plane.nodes(grid(blocks=4, racks=8, nodes=16, gpus=8))
    before = writes(plane)
    cluster.create_all(gated("big", 512, annotations=ANYWHERE))

    cluster.wait(lambda: len(cluster.bound()) == 512, 60, "512 bindings")
    written = writes(plane) - before
    of_pods = {what: times for what, times in written.items() if " pods" in what}
    assert of_pods == {"POST pods": 512, "PATCH pods": 512, "POST pods/binding": 512}
    assert len(set(cluster.bound().values())) == 512
    assert corral.metric(UNGATED) == 512
    assert corral.metric("corral_gate_to_bound_seconds_count") == 512
    assert corral.metric('corral_filter_answers_total{answer="rejected"}') == 0


def test_gated_pods_of_an_incomplete_gang_cost_no_write_and_no_question(
    plane: ControlPlane, cluster: Cluster, corral: CorralProcess
) -> None:
    plane.nodes(grid(racks=1, nodes=4, gpus=8))
    waiting, last = gated("late", 4, annotations=IN_RACK)[:3], gated("late", 4)[3:]
    last[0]["metadata"]["annotations"] |= IN_RACK
    before = writes(plane)
    cluster.create_all(waiting)
    cluster.create(pod("plain", requests={"cpu": "1"}))
    cluster.wait(lambda: "plain" in cluster.bound(), START_SECONDS, "the ordinary pod's binding")
    assert [gates_of(one) for one in cluster.list("Pod", "default") if is_of("late", one)] == [
        ["corral.dev/gang"]
    ] * 3
    assert (writes(plane) - before)["PATCH pods"] == 0
    assert corral.metric('corral_filter_answers_total{answer="rejected"}') == 0

    cluster.create_all(last)
    cluster.wait(lambda: len(cluster.bound()) == 5, START_SECONDS, "the gang's start")


def test_a_foreign_gate_stays_and_the_gang_waits_for_whoever_owns_it(
    plane: ControlPlane, cluster: Cluster, corral: CorralProcess
) -> None:
    plane.nodes(grid(racks=2, nodes=4, gpus=8))
    held_back, *others = members("gang", 4, annotations=IN_RACK)
    cluster.create(behind_gate(held_back, FOREIGN))
    cluster.create_all(behind_gate(one) for one in others)
    cluster.create_all(gated("other", 4, annotations=IN_RACK))
    cluster.wait(lambda: len(cluster.bound()) == 4, START_SECONDS, "the other gang's start")
    assert all(name.startswith("other-") for name in cluster.bound())
    assert FOREIGN in gates_of(the(cluster, "gang-0"))

    gates = {"spec": {"schedulingGates": [{"name": FOREIGN, "$patch": "delete"}]}}
    strategic = "application/strategic-merge-patch+json"
    cluster.patch("Pod", "gang-0", gates, content_type=strategic)
    cluster.wait(lambda: len(cluster.bound()) == 8, START_SECONDS, "the gang's start")
    assert len(racks_of(cluster)) == 2


def test_narrowed_pods_may_go_to_their_rack_and_nowhere_else(
    plane: ControlPlane, cluster: Cluster, corral: CorralProcess
) -> None:
    plane.nodes(grid(racks=2, nodes=4, gpus=8))
    cluster.create_all(gated("gang", 3, annotations=IN_RACK))
    cluster.wait(lambda: len(cluster.bound()) == 3, START_SECONDS, "the gang's start")
    (rack,) = racks_of(cluster)
    for number in range(3):
        nodes = nodes_of_terms(the(cluster, f"gang-{number}"))
        assert set(nodes) == {f"{rack}-n{place}" for place in range(4)}
        assert nodes[3] not in cluster.bound().values()  # planned ones first


ANY_OF_TWO_RACKS = [
    {"matchExpressions": [{"key": RACK, "operator": "In", "values": ["b0-r0", "b0-r1"]}]},
    {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": ["b0-r2-n0"]}]},
]


def affinity_of(terms: Objects) -> Object:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"nodeAffinity": required}


def test_a_pod_with_terms_of_its_own_is_narrowed_by_its_racks_labels(
    plane: ControlPlane, cluster: Cluster, corral: CorralProcess
) -> None:
    plane.nodes(grid(racks=3, nodes=4, gpus=8))
    own = affinity_of(ANY_OF_TWO_RACKS)
    cluster.create_all(gated("gang", 4, annotations=IN_RACK, affinity=own))
    cluster.wait(lambda: len(cluster.bound()) == 4, START_SECONDS, "the gang's start")
    (rack,) = racks_of(cluster)
    for number in range(4):
        spec = the(cluster, f"gang-{number}")["spec"]
        assert spec["affinity"] == own
        assert spec["nodeSelector"][RACK] == rack


def test_a_pod_with_terms_and_no_domain_is_only_pinned(
    plane: ControlPlane, cluster: Cluster, corral: CorralProcess
) -> None:
    plane.nodes(grid(racks=3, nodes=4, gpus=8))
    own = affinity_of(ANY_OF_TWO_RACKS)
    cluster.create_all(gated("gang", 4, annotations=ANYWHERE, affinity=own))
    cluster.wait(lambda: len(cluster.bound()) == 4, START_SECONDS, "the gang's start")
    for number in range(4):
        spec = the(cluster, f"gang-{number}")["spec"]
        assert spec["affinity"] == own
        assert "nodeSelector" not in spec


@pytest.mark.timeout(240)
def test_a_gang_survives_kill_9_at_any_moment_of_its_ungating(
    plane: ControlPlane, cluster: Cluster, slow_corral: CorralProcess
) -> None:
    plane.nodes(grid(racks=2, nodes=16, gpus=8))
    for ungated in (1, 5, 10, 15):
        before = Moment.now(cluster)
        created = cluster.create_all(gated("gang", 16, annotations=IN_RACK))
        wait_until_ungated(cluster, before, ungated)
        slow_corral.kill()
        left = sum(bool(gates_of(one)) for one in cluster.list("Pod", "default"))
        slow_corral.start()
        cluster.wait(lambda: len(cluster.bound()) == 16, 2 * START_SECONDS, "the gang's start")

        changes = since(before, cluster)
        uids = Counter(uid for uid, _ in bindings(changes))
        assert uids == Counter(one["metadata"]["uid"] for one in created)
        assert len(racks_of(cluster)) == 1
        # Those that were free already are left alone. The one patch that was under way when the
        # kill came may have reached the API server, and freed its pod after `left` was counted.
        assert left - 1 <= slow_corral.metric(UNGATED) <= left
        cluster.delete_all("Pod")
        cluster.wait(lambda: not cluster.list("Pod", "default"), 10, "no pod left")


def wait_until_ungated(cluster: Cluster, before: Moment, wanted: int) -> None:
    """Returns when that many pods have been seen without a gate."""
    ungated: set[str] = set()
    with closing(changes_after(before, cluster, START_SECONDS)) as changes:
        for change in changes:
            if not gates_of(change["object"]):
                ungated.add(change["object"]["metadata"]["uid"])
            if len(ungated) >= wanted:
                return
    raise TimeoutError(f"{wanted} pods were not ungated in {START_SECONDS:g} s")


def the(cluster: Cluster, name: str) -> Object:
    found = cluster.get("Pod", name)
    assert found is not None
    return found


def is_of(gang: str, thing: Object) -> bool:
    return bool(thing["metadata"]["name"].startswith(f"{gang}-"))


def nodes_of_terms(thing: Object) -> list[str]:
    required = thing["spec"]["affinity"]["nodeAffinity"]
    terms = required["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    return [name for term in terms for name in term["matchFields"][0]["values"]]
