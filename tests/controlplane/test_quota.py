"""What a namespace has held for pods that do not exist, where a ResourceQuota says how much it may
have at all.

The API server refuses pods beyond the quota, so places for them would be kept from others in vain.
Corral's own bounds on such places are switched off here.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attacks import ROLE, driver
from tests.cluster import GPU, Cluster, Object, Objects, Refused, grid, pod
from tests.controlplane.plane import ControlPlane
from tests.controlplane.seen import START_SECONDS
from tests.controlplane.test_attacks import start_of
from tests.controlplane.test_tenants import tenants
from tests.corral_process import CorralProcess
from tests.tenants import LOUD, QUIET
from tests.workloads import GROUP, TOTAL, members

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

__all__ = ["tenants"]  # a fixture

WORKERS = 24  # of 32 GPUs in the cluster, one each
TOO_FEW = 8  # GPUs
ABSENT = "corral_absent_pods"


@pytest.fixture
def unbounded(plane: ControlPlane, tenants: Cluster, tmp_path: Path) -> Iterator[CorralProcess]:
    """A rack of four nodes, where any namespace may hold places for any number of pods."""
    plane.nodes(grid(racks=1, nodes=4, gpus=8))
    kubeconfig = plane.kubeconfig("corral")
    with (
        plane.controller("resourcequota-controller"),  # writes the status of quotas
        CorralProcess(kubeconfig, tmp_path, absent_share_per_namespace=1.0) as corral,
    ):
        plane.start_scheduler(extender=corral.url)
        yield corral
        assert corral.bugs() == {}


def test_a_driver_has_no_places_held_for_workers_beyond_the_quota_of_its_namespace(
    tenants: Cluster, unbounded: CorralProcess
) -> None:
    allow(tenants, TOO_FEW)
    (first,) = tenants.create_all(driver(WORKERS))
    wait_refused(tenants, first, TOO_FEW)
    assert unbounded.metric(ABSENT) == 0
    start_of(tenants, "with-all-gpus")  # of the other namespace


def test_a_driver_starts_with_places_for_its_workers_once_the_quota_allows_them(
    tenants: Cluster, unbounded: CorralProcess
) -> None:
    allow(tenants, TOO_FEW)
    (first,) = tenants.create_all(driver(WORKERS))
    wait_refused(tenants, first, TOO_FEW)

    allow(tenants, WORKERS)
    name = first["metadata"]["name"]
    tenants.wait(lambda: name in tenants.bound(LOUD), START_SECONDS, "the driver's start")
    tenants.wait(lambda: unbounded.metric(ABSENT) == WORKERS, START_SECONDS, "the places")

    (second,) = tenants.create_all(driver(1))
    wait_refused(tenants, second, WORKERS)
    assert unbounded.metric(ABSENT) == WORKERS
    rest = members("rest", 32 - WORKERS, requests={GPU: 1})
    for each in rest:
        each["metadata"]["namespace"] = QUIET
    tenants.create_all(rest)
    tenants.wait(lambda: len(tenants.bound(QUIET)) == len(rest), START_SECONDS, "the other's gang")

    tenants.create_all(workers_of(name, WORKERS))
    all_of_it = WORKERS + 1
    tenants.wait(lambda: len(tenants.bound(LOUD)) == all_of_it, START_SECONDS, "the workers' start")
    assert unbounded.metric(ABSENT) == 0
    (third,) = tenants.create_all(driver(2))
    wait_refused(tenants, third, WORKERS)  # for what is used of it
    with pytest.raises(Refused, match="exceeded quota"):
        tenants.create(pod("one-more", namespace=LOUD, requests={GPU: 1}))


def allow(cluster: Cluster, gpus: int) -> None:
    """Let the loud tenant have so many GPUs, and return when the quota says so."""
    hard = {f"requests.{GPU}": str(gpus)}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "spec": {"hard": hard}}
    cluster.apply({**quota, "metadata": {"name": "gpus", "namespace": LOUD}})

    def is_told() -> bool:
        found = cluster.get("ResourceQuota", "gpus", LOUD)
        return found is not None and found.get("status", {}).get("hard") == hard

    cluster.wait(is_told, START_SECONDS, "the status of the quota")


def wait_refused(cluster: Cluster, first: Object, gpus: int) -> None:
    """Returns when a gang's only pod has an event that names the quota."""
    why = f"ResourceQuota {LOUD}/gpus allows {gpus} {GPU} in all"

    def is_told() -> bool:
        return any(why in event["message"] for event in cluster.events(first))

    cluster.wait(is_told, START_SECONDS, "an event that names the quota")


def workers_of(group: str, workers: int) -> Objects:
    """The pods that a driver of `tests.attacks` has declared."""
    said = {GROUP: group, TOTAL: str(workers + 1), ROLE: "w"}
    return [
        pod(f"{group}-w{number}", namespace=LOUD, requests={GPU: 1}, annotations=said)
        for number in range(workers)
    ]
