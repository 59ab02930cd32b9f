"""Grove's own load with Corral beside kube-scheduler: many small PodGangs at once.

    python -m benchmarks.pod_gangs [--json] [--pod-gangs 500] [--pods 2]

Grove's operator makes the pods of one PodCliqueSet, a PodGang for each of its replicas, on 100
nodes with the stand-in for kubelets (tests/controlplane). Each PodGang has to be in one rack of ten
nodes. The time is from applying the PodCliqueSet until the last pod is bound.
Baseline: the same pods without a topology, on the stock kube-scheduler, which binds each alone.
Source: grove's scale test of 500 PodGangs of 2 pods on 100 nodes, `default-scheduler` and no
topology: all ready after 61.8 s.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import defaultdict
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from benchmarks.load import Binds
from benchmarks.table import Row, show
from tests.cluster import RACK, Cluster, Object, node
from tests.controlplane.grove import (
    PART_OF,
    POD_GANG,
    SCHEDULER,
    clique,
    grove_operator,
    pod_clique_set,
)
from tests.controlplane.kubelet import kubelets
from tests.controlplane.plane import ControlPlane, profiles
from tests.corral_process import scheduled

NODES, NODES_PER_RACK = 100, 10
MOST_SECONDS = 300.0
CLEAR_SECONDS = 600.0  # Grove's operator takes its finalizers off one by one
NAME = "load"

Figures = dict[str, float]


def run(pod_gangs: int, pods: int, *, with_corral: bool) -> Figures:
    """One PodCliqueSet on a fresh control plane: seconds until all is bound, PodGangs in a rack."""
    with tempfile.TemporaryDirectory(prefix="corral-bench-") as made, ExitStack() as stack:
        folder = Path(made)
        plane = stack.enter_context(ControlPlane(folder))
        plane.nodes(nodes())
        stack.enter_context(grove_operator(plane, folder, {"rack": RACK}))
        if with_corral:
            as_it_comes = {"audit_seconds": 60.0}  # tests have the books checked all the time
            stack.enter_context(scheduled(plane, folder, SCHEDULER, levels=(), **as_it_comes))
        else:
            plane.start_scheduler(profiles=profiles(SCHEDULER))
        stack.callback(plane.stop_scheduler)
        cluster = plane.cluster()
        stack.enter_context(kubelets(cluster))
        binds = Binds(plane)
        stack.callback(binds.stop)
        binds.start()
        pack = "rack" if with_corral else ""
        began = time.monotonic()
        cluster.create(
            pod_clique_set(NAME, clique("worker", pods, gpus=0), replicas=pod_gangs, pack=pack)
        )
        binds.wait(pod_gangs * pods, MOST_SECONDS)
        seconds = max(binds.at.values(), default=began) - began
        whole = sum(
            len(its) == pods and len({rack_of(name) for name in its}) == 1
            for its in gangs(cluster.list("Pod", "default", labelSelector=f"{PART_OF}={NAME}"))
        )
        clear(cluster)
        return {"s": seconds, "pods": float(len(binds.at)), "gangs": float(whole)}


def clear(cluster: Cluster) -> None:
    """Delete what Grove's operator has made, while it is there to take its finalizers off."""
    cluster.delete_all("PodCliqueSet")
    for kind in ("PodCliqueSet", "PodGang", "Pod"):
        cluster.wait(partial(_is_none_left, cluster, kind), CLEAR_SECONDS, f"no {kind} is left")


def _is_none_left(cluster: Cluster, kind: str) -> bool:
    return not cluster.list(kind, "default")


def nodes() -> list[Object]:
    """Equal nodes, rack by rack."""
    return [
        node(
            f"r{number // NODES_PER_RACK}-n{number}", labels={RACK: f"r{number // NODES_PER_RACK}"}
        )
        for number in range(NODES)
    ]


def rack_of(name: str) -> str:
    """The rack of a node."""
    return name.partition("-")[0]


def gangs(pods: list[Object]) -> list[list[str]]:
    """The nodes of each PodGang's bound pods."""
    found: dict[str, list[str]] = defaultdict(list)
    for each in pods:
        if on := each["spec"].get("nodeName"):
            found[each["metadata"]["labels"][POD_GANG]].append(on)
    return list(found.values())


def main() -> None:
    """Measure both, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="a JSON list instead of the table")
    parser.add_argument("--pod-gangs", type=int, default=500)
    parser.add_argument("--pods", type=int, default=2, help="of each PodGang")
    chosen = parser.parse_args()
    stock = run(chosen.pod_gangs, chosen.pods, with_corral=False)
    corral = run(chosen.pod_gangs, chosen.pods, with_corral=True)
    case = f"{chosen.pod_gangs} PodGangs of {chosen.pods}"
    figures = (
        ("applied to all bound", "s", "<= 62 s"),
        ("bound", "pods", str(chosen.pod_gangs * chosen.pods)),
        ("whole and in one rack", "gangs", str(chosen.pod_gangs)),
    )
    rows = [
        Row(
            "pod_gangs",
            f"{case}: {what}",
            NODES,
            corral[unit],
            unit,
            stock[unit],
            corral[unit] / stock[unit] if unit == "s" else None,
            target,
        )
        for what, unit, target in figures
    ]
    show(rows, as_json=chosen.json)


if __name__ == "__main__":
    main()
