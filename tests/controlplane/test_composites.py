"""CompositePodGroups of the API server of 1.37, started by Corral; and a tenant who makes many.

The control plane of the other tests is one version older: this one has an API server of its own.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.app.dialects.native.composites import composite_object
from tests.app.dialects.native.objects import BETA, pod_group
from tests.cluster import BLOCK, GPU, MERGE, RACK, Cluster, Object, Objects, Refused, grid, pod
from tests.controlplane.built import skip_unless_built
from tests.controlplane.plane import ControlPlane, operator
from tests.controlplane.seen import START_SECONDS
from tests.controlplane.test_attacks import MOST_HELD, SETTLE_SECONDS, TRIES, Felt
from tests.corral_process import CorralProcess, scheduled
from tests.tenants import LOUD, QUIET
from tests.workloads import behind_gate

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.schedulers,
    pytest.mark.slow,
    pytest.mark.timeout(600),
]

APISERVER = "kube-apiserver-1.37"
ASKED_AT_ONCE = 16
GATES = "GenericWorkload=true,TopologyAwareWorkloadScheduling=true,CompositePodGroup=true"
SERVED = (
    f"--feature-gates={GATES}",
    f"--runtime-config=scheduling.k8s.io/v1alpha3=true,scheduling.k8s.io/{BETA}=true",
)
GROUPS = f"/apis/scheduling.k8s.io/{BETA}/namespaces/{{}}/podgroups".format
COMPOSITES = "/apis/scheduling.k8s.io/v1alpha3/namespaces/{}/compositepodgroups".format
BROKEN = 'corral_watch_problems_total{kind="CompositePodGroup"}'


@pytest.fixture(scope="module")
def newer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane whose API server has CompositePodGroups; four racks in two blocks."""
    skip_unless_built(APISERVER)
    folder = tmp_path_factory.mktemp("newer")
    program = operator(APISERVER)
    with ControlPlane(folder, is_audited=True, apiserver=program, apiserver_flags=SERVED) as plane:
        plane.nodes(grid(racks=4, nodes=8, gpus=8))
        for name in (LOUD, QUIET):
            namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            plane.cluster().apply(namespace)
        yield plane


@pytest.fixture
def corral(newer: ControlPlane, tmp_path: Path) -> Iterator[CorralProcess]:
    """Corral with the rights that are shipped, and a kube-scheduler that asks it."""
    with (
        newer.granted("corral-native-pod-groups"),
        scheduled(newer, tmp_path, native_pod_groups="on") as found,
    ):
        yield found
        assert found.metrics()[BROKEN] == 0
        assert found.bugs() == {}
        assert newer.denials() == []
    newer.stop_scheduler()
    for name in (LOUD, QUIET):
        clear(newer.cluster(), name)


def clear(cluster: Cluster, namespace: str) -> None:
    cluster.delete_all("Pod", namespace)
    cluster.wait(lambda: not cluster.list("Pod", namespace), 60, "no pod left")
    for path in (GROUPS(namespace), COMPOSITES(namespace)):
        cluster.request("DELETE", path)
        # A controller that does not run here would let them go once they have no pods.
        left = [each["metadata"]["name"] for each in cluster.request("GET", path).json()["items"]]
        with ThreadPoolExecutor(ASKED_AT_ONCE) as pool:
            for _ in pool.map(partial(let_go, cluster, path), left):
                pass


def let_go(cluster: Cluster, path: str, name: str) -> None:
    with suppress(Refused):  # it has gone
        body = {"metadata": {"finalizers": None}}
        cluster.request("PATCH", f"{path}/{name}", body=body, content_type=MERGE)


def create(cluster: Cluster, namespace: str, *things: Object) -> None:
    """Store PodGroups and CompositePodGroups in this namespace."""
    for each in things:
        path = GROUPS if each["kind"] == "PodGroup" else COMPOSITES
        each["metadata"]["namespace"] = namespace
        cluster.request("POST", path(namespace), body=each)


def group(name: str, least: int | None, inside: str, **more: Any) -> Object:
    reference = {"workloadName": "w", "templateName": name}
    return pod_group(
        name, least, api=BETA, parentCompositePodGroupName=inside, workloadRef=reference, **more
    )


def pods(namespace: str, of: str, many: int, gpus: int = 8) -> Objects:
    """As the webhook leaves them: others kube-scheduler looks at one by one, whoever made them."""
    named = {"podGroupName": of}
    made = [
        pod(f"{of}-{at}", namespace=namespace, requests={GPU: gpus}, schedulingGroup=named)
        for at in range(many)
    ]
    return [behind_gate(each) for each in made]


def racks_of(cluster: Cluster, namespace: str, of: str) -> list[str]:
    """The rack of each pod of a PodGroup that has a node."""
    bound = cluster.bound(namespace).items()
    return sorted(node.rpartition("-")[0] for name, node in bound if name.startswith(f"{of}-"))


def trainer(name: str) -> Objects:
    """A gang of two PodGroups, each in a rack, both in one block."""
    return [
        composite_object(name, 2, key=BLOCK),
        group(f"{name}-a", 2, name, key=RACK),
        group(f"{name}-b", 2, name, key=RACK),
    ]


def test_pod_groups_in_one_composite_start_together_each_in_a_rack(
    newer: ControlPlane, corral: CorralProcess
) -> None:
    cluster = newer.cluster()
    create(cluster, QUIET, *trainer("t"))
    cluster.create_all([*pods(QUIET, "t-a", 2), *pods(QUIET, "t-b", 1)])
    time.sleep(SETTLE_SECONDS)
    assert cluster.bound(QUIET) == {}
    cluster.create(pods(QUIET, "t-b", 2)[1])
    cluster.wait(lambda: len(cluster.bound(QUIET)) == 4, START_SECONDS, "the gang")
    first, second = (racks_of(cluster, QUIET, each) for each in ("t-a", "t-b"))
    assert (len(set(first)), len(set(second))) == (1, 1)
    assert first[0].split("-")[0] == second[0].split("-")[0]


# -- attacks ---------------------------------------------------------------------------------------


def too_many_groups(cluster: Cluster) -> None:
    """One gang of more groups than are read, with a pod each."""
    create(cluster, LOUD, composite_object("wide", 1, key=BLOCK))
    create(cluster, LOUD, *(group(f"wide-{at}", 1, "wide", key=RACK) for at in range(300)))
    cluster.create_all([each for at in range(300) for each in pods(LOUD, f"wide-{at}", 1, 9)])


def a_chain(cluster: Cluster) -> None:
    """300 groups inside one another, and pods in the innermost one."""
    create(cluster, LOUD, composite_object("chain-0"))
    for at in range(1, 300):
        create(cluster, LOUD, composite_object(f"chain-{at}", inside=f"chain-{at - 1}"))
    create(cluster, LOUD, group("chain", 2, "chain-299"))
    cluster.create_all(pods(LOUD, "chain", 20, 9))


def a_circle(cluster: Cluster) -> None:
    """Groups that are inside themselves."""
    for at in range(50):
        create(cluster, LOUD, composite_object(f"circle-{at}", 1, inside=f"circle-{(at + 1) % 50}"))
        create(cluster, LOUD, group(f"round-{at}", 1, f"circle-{at}"))
    cluster.create_all([each for at in range(50) for each in pods(LOUD, f"round-{at}", 1)])


def halves(cluster: Cluster) -> None:
    """100 gangs of which one of two groups never gets its pods."""
    for at in range(100):
        create(cluster, LOUD, *trainer(f"half-{at}"))
    cluster.create_all([each for at in range(100) for each in pods(LOUD, f"half-{at}-a", 2)])


def of_no_composite(cluster: Cluster) -> None:
    """PodGroups inside composites that are not there, all of one name or each of its own."""
    create(cluster, LOUD, *(group(f"lost-{at}", 1, "nothing") for at in range(50)))
    create(cluster, LOUD, *(group(f"lone-{at}", 1, f"nothing-{at}") for at in range(50)))
    names = [f"{word}-{at}" for word in ("lost", "lone") for at in range(50)]
    cluster.create_all([each for name in names for each in pods(LOUD, name, 1)])


ATTACKS: dict[str, Callable[[Cluster], None]] = {
    "a gang of 300 groups": too_many_groups,
    "300 groups inside one another": a_chain,
    "a circle of 50": a_circle,
    "100 halves": halves,
    "100 groups of no composite": of_no_composite,
}


def start_of(cluster: Cluster, name: str) -> float:
    """Seconds from the creation of a composite's pods until all run; it is gone afterwards."""
    create(cluster, QUIET, *trainer(name))
    began = time.monotonic()
    cluster.create_all([*pods(QUIET, f"{name}-a", 2), *pods(QUIET, f"{name}-b", 2)])
    cluster.wait(lambda: len(cluster.bound(QUIET)) == 4, 60, "the quiet tenant's gang")
    took = time.monotonic() - began
    clear(cluster, QUIET)
    return took


def felt(cluster: Cluster, corral: CorralProcess, name: str) -> Felt:
    alone = statistics.median(start_of(cluster, f"alone-{each}") for each in range(TRIES))
    memory = corral.resident()
    ATTACKS[name](cluster)
    time.sleep(SETTLE_SECONDS)
    beside = max(start_of(cluster, f"beside-{each}") for each in range(TRIES))
    held = int(corral.metric("corral_absent_pods"))
    clear(cluster, LOUD)
    start_of(cluster, "after")
    return Felt(name, alone, beside, held, corral.resident() - memory)


def test_no_composite_delays_anothers_gang_holds_too_much_or_leaves_memory_behind(
    newer: ControlPlane, corral: CorralProcess
) -> None:
    cluster = newer.cluster()
    start_of(cluster, "warm")
    found = [felt(cluster, corral, name) for name in ATTACKS]
    print(*found, sep="\n")
    assert [each for each in found if not each.is_within_bounds] == []
    assert all(each.held <= MOST_HELD for each in found)
