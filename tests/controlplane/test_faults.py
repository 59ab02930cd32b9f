"""An API server that misbehaves towards Corral alone: nothing is bound twice, no gang is torn.

Each fault lasts while gangs are created, one half of them behind the gate; then it ends, and all
of them are whole soon after. kube-scheduler's own connection is sound throughout, so it asks all
the time.
"""

from __future__ import annotations

import os
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from tests.cluster import GPU, RACK, Cluster, Objects, grid
from tests.controlplane.chronicle import Chronicle
from tests.controlplane.fault_proxy import READS, WATCHES, WRITES, Fault, FaultProxy
from tests.controlplane.plane import ControlPlane
from tests.controlplane.seen import clear
from tests.corral_process import CorralProcess
from tests.workloads import asking, behind_gate, members

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

ROUNDS = int(os.environ.get("CORRAL_FAULT_ROUNDS", "3"))
STARTS = int(os.environ.get("CORRAL_FAULT_ROUNDS", "1"))
REPEATED = int(os.environ.get("CORRAL_FAULT_ROUNDS", "2"))  # where a round takes longer
GANGS, SIZE = 4, 4  # in each round: 12 gangs meet with each fault
FAULT_SECONDS = 1.5
HEALED_SECONDS = 10.0  # until every gang is whole
SEEN_SECONDS = 10.0
BACK_OFF_SECONDS = 10.0  # podMaxBackoffSeconds: pods were refused for as long as there was no list

FAULTS = {
    "every second write is put off (429)": Fault("429", WRITES, every=2),
    "every second write fails (500)": Fault("500", WRITES, every=2),
    "every write fails (503)": Fault("503", WRITES),
    "the answer to every second write is lost": Fault("lost", WRITES, every=2),
    "every third write hangs": Fault("hung", WRITES, every=3, seconds=1.0),
    "everything is slow": Fault("slow", seconds=0.3),
    "every watch ends at its next line": Fault("closed", WATCHES),
    "every fifth line of a watch is cut in half": Fault("truncated", WATCHES, every=5),
    "every fifth line of a watch follows garbage": Fault("garbage", WATCHES, every=5),
    "every tenth line of a watch says that its version is gone": Fault("gone", WATCHES, every=10),
    "every line of a watch comes twice": Fault("twice", WATCHES),
    "every line of a watch is late": Fault("late", WATCHES, seconds=0.05),
}


def gangs(round: int) -> Objects:
    """The pods of one round, gang by gang."""
    made: Objects = []
    for number in range(GANGS):
        pods = members(
            f"g{round}-{number}", SIZE, requests={GPU: 8}, annotations=asking(required=RACK)
        )
        made.extend(behind_gate(one) if number % 2 else one for one in pods)
    return made


def has_met(proxy: FaultProxy, before: int) -> bool:
    """Whether something has met with a fault since there had been so many."""
    return proxy.faulted > before


def whole(cluster: Cluster, seconds: float = HEALED_SECONDS) -> None:
    """Wait until all pods of a round have nodes. Raises: AssertionError."""
    cluster.wait(lambda: len(cluster.bound()) == GANGS * SIZE, seconds, "every gang whole")


def whole_history(cluster: Cluster, chronicle: Chronicle, rounds: int) -> None:
    """Wait until all bindings are told of, and nothing in them is wrong. Raises: AssertionError."""
    wanted = rounds * GANGS * SIZE
    cluster.wait(lambda: chronicle.bindings == wanted, SEEN_SECONDS, "the end of the history")
    assert chronicle.problems == []


@pytest.mark.timeout(140 + 20 * ROUNDS)  # 15 to 40 s on an idle machine
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_gangs_are_whole_soon_after_a_fault_of_the_api_server_and_no_rule_is_broken(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path, fault: Fault
) -> None:
    plane.nodes(grid(racks=6, nodes=4, gpus=8))
    with (
        FaultProxy(plane) as proxy,
        Chronicle(plane, gpus_per_node=8) as chronicle,
        CorralProcess(proxy.kubeconfig(plane.kubeconfig("corral")), tmp_path) as corral,
    ):
        plane.start_scheduler(extender=corral.url)
        for round in range(ROUNDS):
            before = proxy.faulted
            proxy.begin(fault)
            cluster.create_all(gangs(round))
            time.sleep(FAULT_SECONDS)
            # On a busy machine the tenth line of a watch may come later.
            cluster.wait(partial(has_met, proxy, before), SEEN_SECONDS, "the fault")
            proxy.heal()
            whole(cluster)
            clear(cluster)
        whole_history(cluster, chronicle, ROUNDS)


@pytest.mark.timeout(120 + 40 * STARTS)
@pytest.mark.parametrize(
    "fault",
    [Fault("429", READS), Fault("500", READS, every=2), Fault("410", READS, every=3)],
    ids=lambda fault: fault.what,
)
def test_corral_starts_as_soon_as_its_lists_are_answered(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path, fault: Fault
) -> None:
    plane.nodes(grid(racks=6, nodes=4, gpus=8))
    with (
        FaultProxy(plane) as proxy,
        Chronicle(plane, gpus_per_node=8) as chronicle,
        ExitStack() as stack,
    ):
        corral = CorralProcess(proxy.kubeconfig(plane.kubeconfig("corral")), tmp_path)
        stack.push(corral)
        plane.start_scheduler(extender=corral.url)
        for round in range(STARTS):
            before = proxy.faulted
            proxy.begin(fault)
            corral.start_unready()
            cluster.create_all(gangs(round))
            cluster.wait(partial(has_met, proxy, before), SEEN_SECONDS, "Corral to list something")
            time.sleep(FAULT_SECONDS)
            proxy.heal()
            corral.wait_ready(HEALED_SECONDS)
            whole(cluster, BACK_OFF_SECONDS + HEALED_SECONDS)
            corral.kill()
            clear(cluster)
        whole_history(cluster, chronicle, STARTS)
