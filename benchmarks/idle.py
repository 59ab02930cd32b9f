"""What ten thousand gated pods cost while they wait: CPU of kube-scheduler and of Corral.

    python -m benchmarks.idle [--json] [--pods 10000] [--seconds 60]

A full cluster of 1,000 nodes with 8 GPUs, 16 nodes to a rack. Gangs of 8 wait for a rack, 8 GPUs a
pod, and none fits, so all their pods are marked for autoscalers, once. Measured twice, each time
without the gated pods (the baseline) and with them:

    quiet     nothing happens
    events    a pod of the full cluster ends and another takes its place, once a second, and three
              nodes report, as 1,000 kubelets do that have nothing to say
"""

from __future__ import annotations

import argparse
import json
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.costs import PROCESSES, Costs, corral_counts
from benchmarks.load import NODES, PODS, create
from benchmarks.table import Row, show
from tests.cluster import BLOCK, GPU, MERGE, RACK, Cluster, Object, node, pod
from tests.controlplane.plane import ControlPlane
from tests.corral_process import CorralProcess
from tests.workloads import GATE, GROUP, REQUIRED, TOTAL

NODES_OF_CLUSTER, NODES_PER_RACK, RACKS_PER_BLOCK = 1000, 16, 16
PODS_PER_GANG = 8
SETTLE_SECONDS = 180.0  # for every gang to be known, planned once, and marked
MARKS = 'corral_node_asks_total{how="mark",result="written"}'
EVENTS = 'corral_reports_total{outcome="written"}'
# As it comes, 2,500 events are written in 20 minutes; tests have the books checked all the time.
SOON = {"report_per_minute": 60_000, "audit_seconds": 60.0}
CALM_SECONDS = 10.0  # between a change of the cluster and the measurement
TARGETS = {"corral": "< 1 % more", "kube-scheduler": "nothing more"}

Percent = dict[str, float]
"""CPU per process, in hundredths of a core."""


def nodes() -> Iterator[Object]:
    for number in range(NODES_OF_CLUSTER):
        rack = number // NODES_PER_RACK
        labels = {BLOCK: f"b{rack // RACKS_PER_BLOCK}", RACK: f"r{rack}"}
        yield node(f"n{number}", labels=labels, gpus=8)


def busy(number: int) -> Object:
    """The pod that fills one node; bound from the start."""
    return pod(f"busy-{number}", requests={GPU: 8}, nodeName=f"n{number}")


def waiting(pods: int) -> Iterator[Object]:
    """Gated members of gangs that each want half a rack."""
    for number in range(pods):
        gang, member = divmod(number, PODS_PER_GANG)
        group = {GROUP: f"gang{gang}", TOTAL: str(PODS_PER_GANG), REQUIRED: RACK}
        yield pod(f"gang{gang}-{member}", requests={GPU: 8}, annotations=group, gates=(GATE,))


def spent(plane: ControlPlane, seconds: float) -> Percent:
    """CPU of every process over that time."""
    before = Costs.now(plane)
    began = time.monotonic()
    time.sleep(seconds)
    after = Costs.now(plane)
    took = time.monotonic() - began
    return {name: 100 * (after.cpu[name] - before.cpu[name]) / took for name in PROCESSES}


@contextmanager
def events(plane: ControlPlane) -> Iterator[None]:
    """What happens each second in a cluster that is full and stays it, until the block ends."""
    is_over = threading.Event()
    churn = threading.Thread(target=_churn, args=(plane, is_over), name="churn")
    churn.start()
    try:
        yield
    finally:
        is_over.set()
        churn.join(CALM_SECONDS)


def _churn(plane: ControlPlane, is_over: threading.Event) -> None:
    cluster: Cluster = plane.cluster()
    at = 0
    while not is_over.wait(1.0):
        at = (at + 1) % NODES_OF_CLUSTER
        cluster.delete("Pod", f"busy-{at}")
        cluster.create(busy(at))
        for other in range(3):
            _report(cluster, f"n{(at + 300 * other) % NODES_OF_CLUSTER}")


def _report(cluster: Cluster, name: str) -> None:
    """A kubelet says that its node is as it was: only the time is new."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    ready = {"type": "Ready", "status": "True", "reason": "Test", "lastHeartbeatTime": now}
    body = {"status": {"conditions": [ready]}}
    cluster.request("PATCH", f"{NODES}/{name}/status", body=body, content_type=MERGE)


def both(plane: ControlPlane, seconds: float) -> dict[str, Percent]:
    """Quiet, and with events."""
    quiet = spent(plane, seconds)
    with events(plane):
        time.sleep(CALM_SECONDS)
        return {"quiet": quiet, "events": spent(plane, seconds)}


def wait_known(cluster: Cluster, corral: CorralProcess, gangs: int) -> None:
    """Returns when every gang is complete, has been told that it does not fit, and is marked.

    Events are written by and by, so it waits until no more come.
    """
    known = 'corral_gangs{phase="waiting"}'
    cluster.wait(lambda: corral.metric(known) == gangs, SETTLE_SECONDS, f"{gangs} waiting gangs")
    pods = gangs * PODS_PER_GANG
    cluster.wait(lambda: corral.metric(MARKS) >= pods, SETTLE_SECONDS, f"{pods} marked pods")

    def is_calm() -> bool:
        before = corral.metric(EVENTS)
        time.sleep(CALM_SECONDS)
        return corral.metric(EVENTS) == before

    cluster.wait(is_calm, SETTLE_SECONDS, "no more events")


def measure(pods: int, seconds: float) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="corral-bench-") as folder, ExitStack() as stack:
        plane = stack.enter_context(ControlPlane(Path(folder)))
        create(plane, NODES, (_json(one) for one in nodes()))
        create(plane, PODS, (_json(busy(number)) for number in range(NODES_OF_CLUSTER)))
        kubeconfig = plane.kubeconfig("corral")
        corral = stack.enter_context(CorralProcess(kubeconfig, Path(folder), **SOON))
        plane.start_scheduler(extender=corral.url)
        stack.callback(plane.stop_scheduler)
        time.sleep(CALM_SECONDS)
        without = both(plane, seconds)
        create(plane, PODS, (_json(one) for one in waiting(pods)))
        wait_known(plane.cluster(), corral, pods // PODS_PER_GANG)
        counts = corral_counts(corral.url)
        found = both(plane, seconds)
        counts = corral_counts(corral.url) - counts
        resident = Costs.now(plane).peak_mib["corral"]
    for case, percent in found.items():
        for name, value in percent.items():
            yield _row(
                f"{pods} gated pods, {case}: CPU of {name}", value, without[case][name], name
            )
    for said, key in (
        ("events written", EVENTS),
        ("marks written again", MARKS),
        ("pods woken", 'corral_wakes_total{outcome="woken"}'),
        ("engine errors", 'corral_engine_errors_total{input="tick"}'),
    ):
        yield Row("idle", f"{pods} gated pods: {said}", NODES_OF_CLUSTER, float(counts[key]), "")
    yield Row("idle", f"{pods} gated pods: peak RSS", NODES_OF_CLUSTER, resident, "MiB")


def _row(case: str, value: float, baseline: float, name: str) -> Row:
    return Row(
        "idle",
        case,
        NODES_OF_CLUSTER,
        value,
        "% of a core",
        baseline,
        value / baseline if baseline else None,
        TARGETS.get(name, ""),
    )


def _json(thing: Object) -> bytes:
    return json.dumps(thing, separators=(",", ":")).encode()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print a JSON list")
    parser.add_argument("--pods", type=int, default=10_000, help="gated pods; 8 to a gang")
    parser.add_argument("--seconds", type=float, default=60.0, help="each of four measurements")
    asked = parser.parse_args()
    show(list(measure(asked.pods, asked.seconds)), as_json=asked.json)


if __name__ == "__main__":
    main()
