"""A storm of ordinary pods that want the nodes of gangs, beside the same gangs without it.

    python -m benchmarks.storm [--json] [--runs 1] [--cases asked,marker …] [--before 1000]

50 gangs of 8 pods with two GPUs, each gang in one rack, are created on 512 nodes of 8 GPUs, in the
midst of 2,000 ordinary pods with one GPU: as fast as they are taken, so many of these before the
gangs, the others right behind them. kube-scheduler prefers empty nodes, and the gangs hold a fifth
of them. There is room for all, in every order.

    asked         kube-scheduler asks Corral about every pod
    marker        scheduler-config/1.36-marker.yaml: Corral is asked about members alone
    … born        the gangs are born in place; else they wait behind the gate
    stock         no Corral, no gangs, the same pods: what the storm costs by itself

Every case is run without and with the storm, each on a fresh control plane. A gang is started when
its last pod is bound; times are from the first member created. Ordinary pods that came before wait
in kube-scheduler's queue before the gangs. Exit code 1 unless every gang is whole and in one rack.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from benchmarks.costs import corral_counts
from benchmarks.load import PODS, Binds, create
from benchmarks.ordinary import CASES as CASES_OF_ORDINARY
from benchmarks.ordinary import Case, started
from benchmarks.scheduler import Mode
from benchmarks.table import Row, show
from benchmarks.workloads import Workload, body_of
from tests.cluster import GPU, pod

GANGS = Workload(512, 50, 8, 2, in_one_rack=True, seconds=240)
ORDINARY = 2_000
SETTLE_SECONDS = 2.0  # until Corral has counted the last start

Key = tuple[str, str]  # name, unit
Figures = dict[Key, float]
MEDIAN, LAST = ("median gang started", "s"), ("last gang started", "s")
WHOLE = ("gangs whole in one rack", "gangs")
TARGETS = {MEDIAN: "<= 2x", LAST: "<= 2x", WHOLE: str(GANGS.gangs)}


@dataclass(frozen=True, slots=True)
class Storm:
    """How kube-scheduler and Corral are set up, and how gangs come."""

    case: Case
    mode: Mode


def _storms() -> Iterator[tuple[str, Storm]]:
    for name in ("asked", "marker"):
        case = CASES_OF_ORDINARY[name]
        yield name, Storm(case, "webhook")
        yield f"{name} born", Storm(case, "born")
    yield "stock", Storm(CASES_OF_ORDINARY["stock"], "stock")


CASES = dict(_storms())


def run(storm: Storm, before: int, behind: int) -> Figures:
    """One case on a fresh control plane, with so many ordinary pods."""
    with started(storm.case, GANGS.nodes, storm.mode) as (plane, binds, extender):
        members = GANGS.pod_bodies(is_gated=False, is_fast=storm.mode == "born")
        create(plane, PODS, _ordinary_pods(range(before)))
        ordinary = before + behind
        began, _ = create(plane, PODS, [*members, *_ordinary_pods(range(before, ordinary))])
        binds.wait(GANGS.pods + ordinary, GANGS.seconds)
        time.sleep(SETTLE_SECONDS)
        plans = corral_counts(extender)["corral_gang_plans_total"]
        return _figures(binds, began, ordinary, plans)


def _ordinary_pods(numbers: Iterable[int]) -> Iterator[bytes]:
    for number in numbers:
        yield body_of(pod(f"ordinary-{number}", requests={"cpu": "1", "memory": "4Gi", GPU: 1}))


def _figures(binds: Binds, began: float, ordinary: int, plans: int) -> Figures:
    at = dict(binds.at)
    members: dict[str, list[str]] = {}
    for name in at:
        members.setdefault(name.partition("-")[0], []).append(name)
    bound = len(members.pop("ordinary", ()))
    whole = [names for names in members.values() if len(names) == GANGS.pods_per_gang]
    racks = [{binds.node_of[name].rpartition("-")[0] for name in names} for names in whole]
    started = [max(at[name] for name in names) - began for names in whole]
    return {
        MEDIAN: statistics.median(started) if started else GANGS.seconds,
        LAST: max(started) if len(whole) == GANGS.gangs else GANGS.seconds,
        WHOLE: float(sum(len(of_gang) == 1 for of_gang in racks)),
        ("plans made", "per gang"): plans / GANGS.gangs,
        ("ordinary pods left unbound", "pods"): float(ordinary - bound),
    }


def measure(name: str, runs: int, before: int) -> Iterator[Row]:
    """The rows of one case: medians with the storm, beside those without it."""
    storm = CASES[name]
    calm: list[Figures] = []
    stormy: list[Figures] = []
    for _ in range(runs):
        calm.append(run(storm, 0, 0))
        stormy.append(run(storm, before, ORDINARY - before))
    for key in stormy[0]:
        value, baseline = (
            statistics.median(each[key] for each in found) for found in (stormy, calm)
        )
        is_time = key in (MEDIAN, LAST)
        yield Row(
            "storm",
            f"{name}: {key[0]}",
            GANGS.nodes,
            min(each[key] for each in stormy) if key == WHOLE else value,
            key[1],
            baseline,
            value / baseline if is_time else None,
            TARGETS.get(key, "") if storm.case.has_corral else "",
        )


def main() -> None:
    """Measures every case asked for and prints one table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print a JSON list")
    parser.add_argument("--runs", type=int, default=1, help="runs of each case; medians are shown")
    parser.add_argument("--cases", default=",".join(CASES), help="names, with commas")
    parser.add_argument(
        "--before", type=int, default=ORDINARY // 2, help="ordinary pods that come before the gangs"
    )
    arguments = parser.parse_args()
    names = arguments.cases.split(",")
    if unknown := sorted(set(names) - CASES.keys()):
        parser.error(f"no case {unknown[0]!r}; there are {', '.join(CASES)}")
    rows = [row for name in names for row in measure(name, arguments.runs, arguments.before)]
    show(rows, as_json=arguments.json)
    kept = (row for row in rows if row.case.endswith(WHOLE[0]) and row.target)
    sys.exit(0 if all(row.value == GANGS.gangs for row in kept) else 1)


if __name__ == "__main__":
    main()
