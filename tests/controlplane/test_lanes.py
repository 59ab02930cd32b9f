"""One tenant has Corral write to thousands of pods; another's few writes come among the first.

Each kind of write has a queue of its own in which namespaces take turns: a namespace's next write
waits for what is under way and for one of each other namespace. Judged by the order in which the
API server has taken the writes: in the order of time, the other's would come after all of these.
Reports are in `test_tenants.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cluster import GPU, Cluster, Object, Objects, collection, grid
from tests.controlplane.plane import ControlPlane
from tests.controlplane.test_tenants import tenants
from tests.corral_process import CorralProcess
from tests.tenants import LOUD, QUIET
from tests.workloads import asking, behind_gate, gates_of, member, members

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.alone,
    pytest.mark.slow,
    pytest.mark.thorough,
    pytest.mark.timeout(300),
]

__all__ = ["tenants"]  # a fixture

FLOOD = 2_000  # pods
FLOOD_SECONDS = 120.0  # until all of them are rejected; 10 s where nothing else runs
TURN_SECONDS = 30.0  # until the other's writes are seen; what they wait for is counted
REPLAY_SECONDS = 2.0  # the changes of a test come at once; the flood goes on meanwhile
WAKES_PER_SECOND = 100
REMOVALS_PER_SECOND = 10
UNGATED = 'corral_pods_ungated_total{outcome="ungated"}'
WOKEN = 'corral_wakes_total{outcome="woken"}'
REJECTED = 'corral_filter_answers_total{answer="rejected"}'
REMOVED = 'corral_removals_total{{how="{}",outcome="done"}}'

Mark = Callable[[Object], Hashable]


class Lane:
    """The writes of one kind from now on; each changes what `mark` says of a pod's watch event.

    Of an event of which it says None nothing is known.
    """

    def __init__(self, cluster: Cluster, mark: Mark) -> None:
        self._cluster, self._mark = cluster, mark
        pods = cluster.list("Pod")
        self._marks = {uid_of(each): mark({"type": "ADDED", "object": each}) for each in pods}
        page = cluster.request("GET", collection("Pod"), params={"limit": 1}).json()
        self._version = page["metadata"]["resourceVersion"]

    def loud_before_quiet(self, *, writes: int = 1) -> int:
        """How many pods of the loud tenant were written to between the quiet one's last pod and
        the last of so many writes to his.
        """
        turns = self._turns()
        assert turns.count(QUIET) >= writes, turns
        assert turns[-1] == LOUD, "the flood was over"
        last = max(at for at, namespace in enumerate(turns) if namespace == QUIET)
        among = turns[:last].count(LOUD)
        print(f"{among} of {turns.count(LOUD)} writes before the last of {turns.count(QUIET)}")
        return among

    def _turns(self) -> list[str]:
        """Whose pods were written to, in that order, since the last pod of the quiet tenant."""
        found: list[str] = []
        asked = {"resourceVersion": self._version}
        for change in self._cluster.watch("Pod", REPLAY_SECONDS, **asked):
            uid, namespace = uid_of(change["object"]), change["object"]["metadata"]["namespace"]
            mark = self._mark(change)
            if change["type"] == "ADDED" and namespace == QUIET:
                found = []
            elif mark is None:
                continue
            elif self._marks.get(uid, mark) != mark:
                found.append(namespace)
            self._marks[uid] = mark
        return found


def test_2000_pods_to_ungate_come_after_another_tenants(
    plane: ControlPlane, tenants: Cluster, tmp_path: Path
) -> None:
    """Without a kube-scheduler, which has one queue for the pods of all namespaces."""
    plane.nodes(grid(racks=4, nodes=8, gpus=8))
    *first, last = map(behind_gate, flood())
    with CorralProcess(plane.kubeconfig("corral"), tmp_path) as corral:
        tenants.create_all(first)
        lane = Lane(tenants, lambda change: len(gates_of(change["object"])))
        tenants.create(last)
        tenants.wait(lambda: corral.metric(UNGATED), TURN_SECONDS, "the flood to begin")
        tenants.create_all(map(behind_gate, gang("beside")))

        def are_free() -> bool:
            return not any(map(gates_of, tenants.list("Pod", QUIET)))

        tenants.wait(are_free, TURN_SECONDS, "the gates to be taken off")
        assert lane.loud_before_quiet(writes=4) <= FLOOD / 4
        assert corral.bugs() == {}


def test_2000_pods_to_wake_delay_another_tenants_by_a_second_at_most(
    plane: ControlPlane, tenants: Cluster, tmp_path: Path
) -> None:
    plane.nodes(grid(racks=4, nodes=8, gpus=8))
    *first, last = flood()
    *waiting, missing = gang("beside")
    pace = {"wake_per_second": WAKES_PER_SECOND, "wake_burst": 1}
    with ExitStack() as stack:
        corral = stack.enter_context(CorralProcess(plane.kubeconfig("corral"), tmp_path, **pace))
        plane.start_scheduler(extender=corral.url)
        stack.callback(plane.stop_scheduler)  # before so many pods are deleted one by one
        tenants.create_all([*waiting, *first])
        asked = len(first) + len(waiting)
        tenants.wait(lambda: corral.metric(REJECTED) >= asked, FLOOD_SECONDS, "all to be rejected")
        before = corral.metric(WOKEN)
        lane = Lane(tenants, wake_of)
        tenants.create(last)
        tenants.wait(lambda: corral.metric(WOKEN) > before, TURN_SECONDS, "the flood to begin")
        tenants.create(missing)
        tenants.wait(lambda: len(tenants.bound(QUIET)) == 4, TURN_SECONDS, "the gang's start")
        assert lane.loud_before_quiet() <= WAKES_PER_SECOND
        assert corral.bugs() == {}


def test_2000_pods_to_delete_delay_another_tenants_by_two_seconds_at_most(
    plane: ControlPlane, tenants: Cluster, tmp_path: Path
) -> None:
    plane.nodes(grid(racks=1, nodes=4, gpus=8))
    excess = [member("flood", number, 1) for number in range(FLOOD)]
    tenants.create_all(in_namespace(excess, LOUD))
    removing = {"delete_excess_pods": True, "evict_per_second": REMOVALS_PER_SECOND}
    kubeconfig = plane.kubeconfig("corral")
    with (
        plane.granted("corral-delete-excess"),
        CorralProcess(kubeconfig, tmp_path, **removing) as corral,
    ):
        begun = REMOVED.format("delete")
        tenants.wait(lambda: corral.metric(begun) > REMOVALS_PER_SECOND, TURN_SECONDS, "the flood")
        lane = Lane(tenants, is_gone)
        tenants.create_all(in_namespace([member("beside", n, 1) for n in range(2)], QUIET))
        tenants.wait(lambda: len(tenants.list("Pod", QUIET)) == 1, TURN_SECONDS, "the deletion")
        assert lane.loud_before_quiet() <= 2 * REMOVALS_PER_SECOND
        assert corral.bugs() == {}


def test_1000_gangs_to_evict_delay_another_tenants_by_two_seconds_at_most(
    plane: ControlPlane, tenants: Cluster, tmp_path: Path
) -> None:
    """Every gang runs on two nodes that have no room for more, and one of these goes."""
    loud, loud_too, quiet, quiet_too = [
        each["metadata"]["name"] for each in plane.nodes(grid(racks=1, nodes=4, gpus=8))
    ]
    gangs = (running(f"g{number}", loud, loud_too) for number in range(FLOOD // 2))
    tenants.create_all(in_namespace([each for gang in gangs for each in gang], LOUD))
    tenants.create_all(in_namespace(running("beside", quiet, quiet_too), QUIET))
    evicting = {"fail_fast": True, "evict_per_second": REMOVALS_PER_SECOND}
    kubeconfig = plane.kubeconfig("corral")
    with plane.granted("corral-evict"), CorralProcess(kubeconfig, tmp_path, **evicting) as corral:
        begun = REMOVED.format("evict")
        tenants.delete("Node", loud)
        tenants.wait(lambda: corral.metric(begun) > REMOVALS_PER_SECOND, TURN_SECONDS, "the flood")
        lane = Lane(tenants, is_gone)
        tenants.delete("Node", quiet)
        tenants.wait(lambda: not tenants.list("Pod", QUIET), TURN_SECONDS, "the evictions")
        assert lane.loud_before_quiet(writes=2) <= 2 * REMOVALS_PER_SECOND
        assert corral.bugs() == {}


def flood() -> Objects:
    """One gang of the tenant with many pods, which fit anywhere."""
    pods = members("flood", FLOOD, requests={"cpu": "10m"}, annotations=asking(unconstrained=True))
    return in_namespace(pods, LOUD)


def gang(name: str) -> Objects:
    """Four pods of the other tenant."""
    return in_namespace(members(name, 4), QUIET)


def running(name: str, *nodes: str) -> Objects:
    """A gang with a pod on each of these nodes, all GPUs of which it takes."""
    return [
        member(name, number, len(nodes), requests={GPU: 8}, nodeName=node)
        for number, node in enumerate(nodes)
    ]


def in_namespace(pods: Objects, namespace: str) -> Objects:
    for each in pods:
        each["metadata"]["namespace"] = namespace
    return pods


def uid_of(thing: Object) -> str:
    uid: str = thing["metadata"]["uid"]
    return uid


def wake_of(change: Object) -> Hashable:
    """What Corral has written on a pod for kube-scheduler to look at it: its node, or a number."""
    pod = change["object"]
    if pod["spec"].get("nodeName"):
        return None  # it is bound, and the API server clears its nomination
    number: str = pod["metadata"].get("annotations", {}).get("corral.dev/wake", "")
    node: str = pod.get("status", {}).get("nominatedNodeName", "")
    return number, node


def is_gone(change: Object) -> Hashable:
    """Whether the pod was deleted."""
    gone: bool = change["type"] == "DELETED"
    return gone
