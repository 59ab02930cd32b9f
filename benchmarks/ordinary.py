"""Ordinary pods through a profile that Corral extends, beside the stock scheduler.

    python -m benchmarks.ordinary [--json] [--nodes 1000,5000] [--runs 1] [--cases asked,marker …]

2,000 pods that are in no gang, created as in benchmarks.scheduler: a fresh control plane for each
case, pods/s from the first POST to the last of them that is bound.

    stock          nothing of Corral's; kube-scheduler samples nodes as it likes (the baseline)
    all nodes      every pod is asked about, percentageOfNodesToScore 100
    asked          every pod is asked about, and kube-scheduler samples as it likes
    marker         scheduler-config/1.36-marker.yaml: Corral is asked about members alone

`… beside gangs`: 50 gangs of 8, each in one rack and taken in by the webhook, are created first;
how many are whole in one rack, and when the last of them is bound, is told as well. The stock
scheduler has the same pods, and knows nothing of gangs.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from benchmarks.costs import PROCESSES, Costs
from benchmarks.load import NODES, PODS, Binds, create
from benchmarks.scheduler import CLIENT, WITHOUT_CORRAL, Mode, corral, settle
from benchmarks.table import Row, show
from benchmarks.workloads import Workload, body_of, nodes
from tests.cluster import pod
from tests.controlplane.plane import SCHEDULER_CONFIG, ControlPlane

ORDINARY = 2_000
SECONDS = 240.0  # for all of them to be bound
GANGS, PODS_PER_GANG = 50, 8
MARKER_CONFIG = SCHEDULER_CONFIG.with_name(f"{SCHEDULER_CONFIG.stem}-marker.yaml")

Figures = dict[tuple[str, str], float]
RATE = ("bound per second", "pods/s")
STARTED = ("first gang created to last bound", "s")


@dataclass(frozen=True, slots=True)
class Case:
    """How kube-scheduler and Corral are set up. `percentage`: None, as in the file."""

    config: Path = SCHEDULER_CONFIG
    percentage: int | None = 0
    has_corral: bool = True
    is_marked: bool = False
    target: str = ""

    @property
    def settings(self) -> dict[str, object]:
        """Corral's, beside those of every benchmark."""
        sample = {"percentage_of_nodes_to_score": self.percentage or 0}
        return sample | ({"marker_resource": True, "needs_nodes": "off"} if self.is_marked else {})


CASES = {
    "stock": Case(has_corral=False),
    "all nodes": Case(percentage=100),
    "asked": Case(target=">= 0.6x"),
    "marker": Case(MARKER_CONFIG, percentage=None, is_marked=True, target=">= 0.9x"),
}


def run(case: Case, wanted: int, gangs: int) -> Figures:
    """One case on a fresh control plane."""
    workload = Workload(wanted, gangs, PODS_PER_GANG, 2, in_one_rack=True, seconds=SECONDS)
    with started(case, wanted, "webhook" if case.has_corral else "stock") as (plane, binds, _):
        costs = Costs.now(plane)
        bodies = [*workload.pod_bodies(is_gated=False), *ordinary_pods()]
        began, _ = create(plane, PODS, bodies)
        binds.wait(len(bodies), SECONDS)
        return {**_times(binds, began, gangs), **_spent(costs, Costs.now(plane), len(bodies))}


@contextmanager
def started(case: Case, wanted: int, mode: Mode) -> Iterator[tuple[ControlPlane, Binds, str]]:
    """A fresh control plane of so many nodes with kube-scheduler, and where Corral is, or ""."""
    with tempfile.TemporaryDirectory(prefix="corral-bench-") as folder, ExitStack() as stack:
        manifests = None if case.has_corral else WITHOUT_CORRAL
        plane = stack.enter_context(ControlPlane(Path(folder), manifests=manifests))
        create(plane, NODES, (body_of(one) for one in nodes(wanted)))
        extender = corral(plane, stack, mode, case.settings).url if case.has_corral else ""
        _start_scheduler(plane, case, extender)
        stack.callback(plane.stop_scheduler)
        binds = Binds(plane)
        stack.callback(binds.stop)
        binds.start()
        settle(plane, binds)
        yield plane, binds, extender


def _start_scheduler(plane: ControlPlane, case: Case, extender: str) -> None:
    profiles = yaml.safe_load(case.config.read_text(encoding="utf-8"))["profiles"]
    if case.percentage is not None:
        profiles = [{**each, "percentageOfNodesToScore": case.percentage} for each in profiles]
    client = {"kubeconfig": str(plane.kubeconfig("corral-scheduler")), **CLIENT}
    plane.start_scheduler(case.config, extender or None, clientConnection=client, profiles=profiles)


def ordinary_pods() -> Iterator[bytes]:
    """Pods of a service or a small job: no gang, no device."""
    for number in range(ORDINARY):
        yield body_of(pod(f"ordinary-{number}", requests={"cpu": "1", "memory": "4Gi"}))


def _times(binds: Binds, began: float, gangs: int) -> Figures:
    at = dict(binds.at)
    ordinary = [moment for name, moment in at.items() if name.startswith("ordinary-")]
    members: dict[str, list[str]] = {}
    for name in at.keys() - {each for each in at if each.startswith("ordinary-")}:
        members.setdefault(name.partition("-")[0], []).append(name)
    figures: Figures = {
        RATE: len(ordinary) / (max(ordinary, default=began + 1) - began),
        ("pods left unbound", "pods"): float(ORDINARY - len(ordinary)),
    }
    if gangs:
        whole = [names for names in members.values() if len(names) == PODS_PER_GANG]
        racks = [{binds.node_of[name].rpartition("-")[0] for name in names} for names in whole]
        figures["gangs whole in one rack", "gangs"] = float(sum(len(one) == 1 for one in racks))
        last = max((at[name] for names in members.values() for name in names), default=began)
        figures[STARTED] = last - began
    return figures


def _spent(before: Costs, after: Costs, pods: int) -> Figures:
    return {
        (f"CPU of {name}", "ms per pod"): 1000 * (after.cpu[name] - before.cpu[name]) / pods
        for name in PROCESSES
        if name in after.cpu
    }


def measure(wanted: int, names: list[str], gangs: int, runs: int) -> Iterator[Row]:
    """All rows of one size; the cases take turns."""
    found: dict[str, list[Figures]] = {name: [] for name in names}
    for _ in range(runs):
        for name in names:
            found[name].append(run(CASES[name], wanted, gangs))
    beside = " beside gangs" if gangs else ""
    for name in names:
        for key in found[name][0]:
            value = statistics.median(one[key] for one in found[name])
            known = [one[key] for one in found.get("stock", ()) if key in one]
            baseline = statistics.median(known) if known and key[1] != "gangs" else None
            ratio = value / baseline if baseline else None
            target = CASES[name].target if key == RATE and not gangs else ""
            case = f"{name}{beside}: {key[0]}"
            yield Row("ordinary", case, wanted, value, key[1], baseline, ratio, target)


def main() -> None:
    """Measures every case asked for and prints one table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print a JSON list")
    parser.add_argument("--nodes", default="1000,5000", help="sizes, with commas")
    parser.add_argument("--runs", type=int, default=1, help="runs of each case; medians are shown")
    parser.add_argument("--cases", default=",".join(CASES), help="names, with commas")
    parser.add_argument("--gangs", default=f"0,{GANGS}", help="so many beside them, with commas")
    arguments = parser.parse_args()
    names = arguments.cases.split(",")
    if unknown := sorted(set(names) - CASES.keys()):
        parser.error(f"no case {unknown[0]!r}; there are {', '.join(CASES)}")
    rows = [
        row
        for size in arguments.nodes.split(",")
        for gangs in arguments.gangs.split(",")
        for row in measure(int(size), names, int(gangs), arguments.runs)
    ]
    show(rows, as_json=arguments.json)


if __name__ == "__main__":
    main()
