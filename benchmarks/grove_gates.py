"""For how long Grove's own gate still stands once Corral knows of all pods of a PodGang.

    python -m benchmarks.grove_gates [--json] [--pod-gangs 50] [--pods 8]

A pod can be narrowed to nodes only while it has a gate, and Grove takes every gate off with its
own. So a Grove pod can be narrowed only between the moment when its PodGang names all its pods and
the one when the first of them has no gate any more. Grove's operator makes the pods; nothing else
looks at them. For a gang behind Corral's own gate it takes a tick from there, of a tenth of a
second at most, and a patch for each pod.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from benchmarks.pod_gangs import clear, nodes
from benchmarks.table import Row, show
from tests.cluster import RACK, Cluster, Object
from tests.controlplane.grove import POD_GANG, clique, grove_operator, pod_clique_set
from tests.controlplane.plane import ControlPlane
from tests.workloads import gates_of

MOST_SECONDS = 300.0
NAME = "load"


@dataclass(slots=True)
class Seen:
    """When the watch showed what of each PodGang; seconds."""

    pods: int
    """Of each of them."""
    named: dict[str, float] = field(default_factory=dict)
    made: dict[str, dict[str, float]] = field(default_factory=lambda: defaultdict(dict))
    ungated: dict[str, dict[str, float]] = field(default_factory=lambda: defaultdict(dict))

    def pod_gang(self, its: Object) -> None:
        """It may name all its pods now."""
        groups = its.get("spec", {}).get("podgroups") or ()
        if sum(len(group.get("podReferences") or ()) for group in groups) == self.pods:
            self.named.setdefault(its["metadata"]["name"], time.monotonic())

    def pod(self, its: Object) -> None:
        """It is there, and may have no gate any more."""
        of, name = its["metadata"]["labels"][POD_GANG], its["metadata"]["name"]
        self.made[of].setdefault(name, time.monotonic())
        if not gates_of(its):
            self.ungated[of].setdefault(name, time.monotonic())

    def windows(self) -> list[float]:
        """Of each PodGang, from when all is known until the first pod has no gate; seconds."""
        return [
            min(self.ungated[name].values()) - max(named, *self.made[name].values())
            for name, named in self.named.items()
            if len(self.ungated[name]) == len(self.made[name]) == self.pods
        ]


def run(pod_gangs: int, pods: int) -> list[float]:
    """One PodCliqueSet on a fresh control plane without a scheduler: the windows, in seconds."""
    seen = Seen(pods)
    with tempfile.TemporaryDirectory(prefix="corral-bench-") as made, ExitStack() as stack:
        folder = Path(made)
        plane = stack.enter_context(ControlPlane(folder))
        plane.nodes(nodes())
        stack.enter_context(grove_operator(plane, folder, {"rack": RACK}))
        cluster = plane.cluster()
        for kind, take in (("PodGang", seen.pod_gang), ("Pod", seen.pod)):
            threading.Thread(target=_watch, args=(cluster, kind, take), daemon=True).start()
        cluster.create(
            pod_clique_set(NAME, clique("worker", pods, gpus=0), replicas=pod_gangs, pack="rack")
        )
        ends = time.monotonic() + MOST_SECONDS
        while len(seen.windows()) < pod_gangs and time.monotonic() < ends:
            time.sleep(0.2)
        clear(cluster)
        return seen.windows()


def _watch(cluster: Cluster, kind: str, take: Callable[[Object], None]) -> None:
    with suppress(httpx.HTTPError):  # the plane stops
        for event in cluster.watch(kind, MOST_SECONDS, "default"):
            take(event["object"])


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="a JSON list instead of the table")
    parser.add_argument("--pod-gangs", type=int, default=50)
    parser.add_argument("--pods", type=int, default=8, help="of each PodGang")
    chosen = parser.parse_args()
    windows = sorted(run(chosen.pod_gangs, chosen.pods))
    if not windows:
        raise SystemExit(f"no PodGang was whole within {MOST_SECONDS:g} s")
    case = f"{len(windows)} of {chosen.pod_gangs} PodGangs of {chosen.pods}"
    figures = {
        "shortest": windows[0],
        "median": statistics.median(windows),
        "longest": windows[-1],
    }
    rows = [
        Row(
            "grove_gates",
            f"{case}: gates stand, {name}",
            len(windows),
            seconds * 1e3,
            "ms",
        )
        for name, seconds in figures.items()
    ]
    show(rows, as_json=chosen.json)


if __name__ == "__main__":
    main()
