"""Gangs through a real kube-scheduler with Corral, beside the stock one that ignores gangs.

    python -m benchmarks.scheduler [--json] [--workloads W1,W2,W3,W4] [--runs 1]

Every case has a fresh etcd, kube-apiserver and kube-scheduler (tests/controlplane builds them).
Nodes have 64 cpu, 512Gi, 110 pods and 8 GPUs; 16 nodes to a rack, 16 racks to a block.

    8 connections ──POST pods──▶ kube-apiserver ◀── kube-scheduler ──▶ corral serve
                                       └──watch of bound pods──▶ first and last bind

pods/s is bound pods over first POST → last bind seen on the watch, so creation is included, on the
same cores. Members are pods of a Kueue pod group without gates: whoever comes before its gang is
complete is rejected once and woken. Baselines: the stock scheduler with its default sampling.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx

from benchmarks.load import NODES, PODS, Binds, create
from benchmarks.table import Row, show
from tests.cluster import BLOCK, GPU, RACK, Object, node, pod
from tests.controlplane.plane import SCHEDULER_CONFIG, ControlPlane, free_ports, wait_ready
from tests.controlplane.process import Process

NODES_PER_RACK, RACKS_PER_BLOCK = 16, 16
CLIENT = {"qps": 2000, "burst": 4000}  # of kube-scheduler: far above what it reaches here
SETTLE_SECONDS = 30.0  # for the first, ordinary pod to be bound
PREFIX = "kueue.x-k8s.io/"
PROCESSES = ("corral", "kube-scheduler", "kube-apiserver", "etcd")
CORRAL = (sys.executable, "-m", "app")  # what the command `corral` runs
WRITES = ("POST", "PATCH", "PUT", "DELETE")

Figures = dict[tuple[str, str], float]
"""(name, unit) -> value of one run."""

ALL_BOUND = ("last pod created to all bound", "s")
RATE = ("bound per second", "pods/s")
SPREAD, WIDEST = ("gang spread, median", "s"), ("gang spread, largest", "s")
WHOLE = ("gangs whole in one rack", "gangs")


@dataclass(frozen=True, slots=True)
class Workload:
    """Equal gangs, created gang by gang. Units: `seconds` bounds the wait for all binds."""

    nodes: int
    gangs: int
    pods_per_gang: int
    gpus_per_pod: int
    in_one_rack: bool
    seconds: float

    @property
    def pods(self) -> int:
        return self.gangs * self.pods_per_gang

    def pod_bodies(self) -> Iterator[bytes]:
        """The members as JSON, named gang-member."""
        topology = {PREFIX + "podset-required-topology": RACK} if self.in_one_rack else {}
        for gang in range(self.gangs):
            group = {
                PREFIX + "pod-group-name": f"gang{gang}",
                PREFIX + "pod-group-total-count": str(self.pods_per_gang),
            }
            for member in range(self.pods_per_gang):
                requests: dict[str, str | int] = {
                    "cpu": "1",
                    "memory": "4Gi",
                    GPU: self.gpus_per_pod,
                }
                name = f"gang{gang}-{member}"
                yield _json(pod(name, requests=requests, annotations=group | topology))


WORKLOADS = {
    "W1": Workload(512, 1, 512, 8, in_one_rack=False, seconds=60),
    # Two GPUs each: the gangs take half of all GPUs, eight of them fill a rack, as four do in W4
    # at half the cluster. With eight GPUs each only 125 such gangs would fit.
    "W2": Workload(1000, 250, 8, 2, in_one_rack=True, seconds=90),
    "W3": Workload(5000, 250, 8, 2, in_one_rack=True, seconds=120),
    # 64 pods with 2 GPUs are the 128 GPUs of one rack.
    "W4": Workload(1000, 31, 64, 2, in_one_rack=True, seconds=90),
}

# DESIGN.md section 9. The ratios to the stock scheduler are meant for gated, narrowed members.
TARGETS = {
    ("W1", ALL_BOUND): "<= 1.5 s",
    ("W1", SPREAD): "<= 0.5 s",
    ("W2", RATE): ">= 0.8x, gated",
    ("W3", RATE): ">= 0.8x, gated",
    ("W4", RATE): ">= 0.8x, gated",
    ("W4", WIDEST): "<= 0.2 s",
    **{(name, WHOLE): str(WORKLOADS[name].gangs) for name in ("W2", "W3", "W4")},
}
GATELESS_TARGET = ">= 0.4x"


# -- what it costs ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Costs:
    """Counters at one moment: CPU seconds, peak MiB, writes the API server took."""

    cpu: dict[str, float]
    peak_mib: dict[str, float]
    writes: float

    @classmethod
    def now(cls, plane: ControlPlane) -> Costs:
        cpu: dict[str, float] = {}
        peak: dict[str, float] = {}
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                fields = (folder / "stat").read_text().rpartition(") ")[2].split()
                if int(fields[1]) != os.getpid():
                    continue  # no child of ours
                command = (folder / "cmdline").read_text().split("\0")
                status = (folder / "status").read_text()
            except OSError:
                continue  # it ended meanwhile
            is_corral = tuple(command[: len(CORRAL)]) == CORRAL
            name = "corral" if is_corral else Path(command[0]).name
            cpu[name] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
            peak[name] = int(status.partition("VmHWM:")[2].split()[0]) / 1024
        return cls(cpu, peak, _writes(plane))


def _writes(plane: ControlPlane) -> float:
    return sum(
        value
        for name, value in plane.apiserver_metrics().items()
        if name.startswith("apiserver_request_total{")
        and any(f'verb="{verb}"' in name for verb in WRITES)
        and 'resource="leases"' not in name
    )


def corral_counts(url: str) -> Counter[str]:
    """Corral's own counters by name and label, or nothing without a Corral."""
    if not url:
        return Counter()
    text = httpx.get(f"{url}/metrics", timeout=10, trust_env=False).text
    samples = (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    return Counter({name: int(float(value)) for name, value in samples})


# -- one case --------------------------------------------------------------------------------------


def run(workload: Workload, *, has_corral: bool, percentage: int = 0) -> Figures:
    """One workload on a fresh control plane. `percentage` of nodes to score; 0: the default."""
    with tempfile.TemporaryDirectory(prefix="corral-bench-") as folder, ExitStack() as stack:
        plane = stack.enter_context(ControlPlane(Path(folder)))
        create(plane, NODES, (_json(one) for one in nodes(workload.nodes)))
        extender = _corral(plane, stack) if has_corral else ""
        client = {"kubeconfig": str(plane.kubeconfig("corral-scheduler")), **CLIENT}
        stock = [{"schedulerName": "corral", "percentageOfNodesToScore": percentage}]
        plane.start_scheduler(
            SCHEDULER_CONFIG,
            extender or None,
            clientConnection=client,
            **({} if has_corral else {"profiles": stock}),
        )
        stack.callback(plane.stop_scheduler)
        binds = Binds(plane)
        stack.callback(binds.stop)
        binds.start()
        _settle(plane, binds)
        costs, counts = Costs.now(plane), corral_counts(extender)
        began, created = create(plane, PODS, workload.pod_bodies())
        binds.wait(workload.pods, workload.seconds)
        counts = corral_counts(extender) - counts
        return {
            **_times(workload, binds, began, created),
            **_spent(workload, costs, Costs.now(plane), counts),
        }


def nodes(wanted: int) -> Iterator[Object]:
    """That many equal nodes, rack by rack; the last rack may be a part of one."""
    for number in range(wanted):
        rack = number // NODES_PER_RACK
        block = rack // RACKS_PER_BLOCK
        labels = {BLOCK: f"b{block}", RACK: f"b{block}-r{rack}"}
        yield node(f"b{block}-r{rack}-n{number}", labels=labels, gpus=8)


def _corral(plane: ControlPlane, stack: ExitStack) -> str:
    """Starts `corral serve` as its own process; returns where kube-scheduler reaches it."""
    (port,) = free_ports(1)
    settings = plane.folder / "corral.yaml"
    settings.write_text("percentage_of_nodes_to_score: 100\n", encoding="utf-8")
    command = [
        *CORRAL,
        "serve",
        f"--kubeconfig={plane.kubeconfig('corral')}",
        f"--extender-listen=127.0.0.1:{port}",
        f"--levels={BLOCK},{RACK}",
        f"--settings={settings}",
    ]
    process = Process(command, plane.folder / "corral.log")
    stack.callback(process.stop)
    url = f"http://127.0.0.1:{port}"
    wait_ready(process, f"{url}/readyz")
    return url


def _settle(plane: ControlPlane, binds: Binds) -> None:
    """Has one ordinary pod bound and deleted: then all caches are filled, all connections open."""
    create(plane, PODS, [_json(pod("first"))])
    binds.wait(1, SETTLE_SECONDS)
    if "first" not in binds.at:
        raise TimeoutError(f"no pod was bound in {SETTLE_SECONDS:g} s: {plane.scheduler_log}")
    plane.cluster().delete("Pod", "first")
    time.sleep(1.0)  # kube-scheduler and Corral hear of it; what they do beside it is over
    binds.at.clear()


def _times(workload: Workload, binds: Binds, began: float, created: float) -> Figures:
    at = dict(binds.at)
    last = max(at.values(), default=created)
    members: dict[str, list[str]] = {}
    for name in at:
        members.setdefault(name.partition("-")[0], []).append(name)
    whole = [names for names in members.values() if len(names) == workload.pods_per_gang]
    spreads = [max(at[name] for name in names) - min(at[name] for name in names) for names in whole]
    racks = [{binds.node_of[name].rpartition("-")[0] for name in names} for names in whole]
    figures = {
        ALL_BOUND: last - created,
        RATE: len(at) / (last - began),
        ("created per second", "pods/s"): workload.pods / (created - began),
        ("pods left unbound", "pods"): float(workload.pods - len(at)),
        ("gangs bound in part", "gangs"): float(len(members) - len(whole)),
    }
    if spreads:
        figures[SPREAD], figures[WIDEST] = statistics.median(spreads), max(spreads)
    if workload.in_one_rack:
        figures[WHOLE] = float(sum(len(of_gang) == 1 for of_gang in racks))
    return figures


def _spent(workload: Workload, before: Costs, after: Costs, counts: Counter[str]) -> Figures:
    figures: Figures = {}
    for name in PROCESSES:
        if name in after.cpu:
            figures[f"CPU of {name}", "s"] = after.cpu[name] - before.cpu[name]
            figures[f"peak RSS of {name}", "MiB"] = after.peak_mib[name]
    figures["API writes, creation included", "per pod"] = (
        after.writes - before.writes
    ) / workload.pods
    for said, name in (
        ("/filter answers", "corral_filter_answers_total"),
        ("rejected in /filter", 'corral_filter_answers_total{answer="rejected"}'),
        ("woken", "corral_wakes_total"),
    ):
        if counts:
            found = sum(value for key, value in counts.items() if key.startswith(name))
            figures[said, "per pod"] = found / workload.pods
    return figures


# -- the table -------------------------------------------------------------------------------------


def rows_of(name: str, measured: list[Figures], stock: list[Figures]) -> Iterator[Row]:
    """Medians of all runs of one workload, Corral's beside the stock scheduler's."""
    for key in measured[0]:
        figure, unit = key
        value = statistics.median(run[key] for run in measured if key in run)
        known = [run[key] for run in stock if key in run]
        baseline = statistics.median(known) if known else None
        # How a scheduler that knows no gangs spreads them is no yardstick.
        if key in (SPREAD, WIDEST, WHOLE):
            baseline = None
        yield _row(f"{name} {figure}", name, value, unit, baseline, TARGETS.get((name, key), ""))


def _row(case: str, name: str, value: float, unit: str, baseline: float | None, target: str) -> Row:
    return Row(
        benchmark="scheduler",
        case=case,
        nodes=WORKLOADS[name].nodes,
        value=value,
        unit=unit,
        baseline=baseline,
        ratio=value / baseline if baseline else None,
        target=target,
    )


def measure(name: str, runs: int) -> list[Row]:
    """All rows of one workload; Corral and the stock scheduler take turns."""
    workload = WORKLOADS[name]
    stock, gateless, every_node = [], [], []
    for _ in range(runs):
        stock.append(run(workload, has_corral=False))
        gateless.append(run(workload, has_corral=True))
        if name == "W2":
            every_node.append(run(workload, has_corral=False, percentage=100))
    rows = list(rows_of(name, gateless, stock))
    if every_node:
        value = statistics.median(run[RATE] for run in gateless)
        baseline = statistics.median(run[RATE] for run in every_node)
        case = f"{name} {RATE[0]}, beside stock at 100 %"
        rows.insert(2, _row(case, name, value, RATE[1], baseline, GATELESS_TARGET))
    return rows


def _json(thing: Object) -> bytes:
    return json.dumps(thing, separators=(",", ":")).encode()


def main() -> None:
    """Measures every workload asked for and prints one table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print a JSON list")
    parser.add_argument("--workloads", default=",".join(WORKLOADS), help="names, with commas")
    parser.add_argument("--runs", type=int, default=1, help="runs of each case; medians are shown")
    arguments = parser.parse_args()
    names = arguments.workloads.split(",")
    if unknown := sorted(set(names) - WORKLOADS.keys()):
        parser.error(f"no workload {unknown[0]!r}; there are {', '.join(WORKLOADS)}")
    show([row for name in names for row in measure(name, arguments.runs)], as_json=arguments.json)


if __name__ == "__main__":
    main()
