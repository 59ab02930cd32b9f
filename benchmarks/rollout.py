"""W2 while both replicas of {kube-scheduler, Corral} are replaced, beside W2 while they stay.

    python -m benchmarks.rollout [--json] [--cases restart,upgrade,downgrade]

1,000 nodes and 250 gangs of eight, each in one rack, all created at once behind our gate. The
leading pair ends a second after the first pod, when hundreds wait: by SIGTERM, as of kubelet. When
another one is ready, so does the second. The release before is tests/controlplane/releases.py's.
Exit code 1 if a gang is partial or in two racks, or a pod was on two nodes.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import median

from benchmarks.load import NODES, PODS, Binds, create
from benchmarks.table import Row, show
from benchmarks.workloads import WORKLOADS, body_of, nodes
from tests.cluster import Objects
from tests.controlplane.chronicle import Chronicle
from tests.controlplane.plane import ControlPlane
from tests.controlplane.releases import release_before
from tests.controlplane.rollout import Replicas, pods_of
from tests.corral_process import ROOT

W2 = WORKLOADS["W2"]
END_AFTER_SECONDS = 1.0
CASES = ("restart", "upgrade", "downgrade")
LONGER_SECONDS = 10.0  # a gang may wait for the sake of a rollout


@dataclass
class Run:
    """One run of W2: how long each gang waited, in seconds from its last pod's creation on."""

    waits: dict[str, float]
    problems: list[str]
    rollout_seconds: float = 0.0


def run(old: Path, new: Path | None) -> Run:
    """W2 on a fresh control plane; with `new`, the replicas of `old` are replaced meanwhile."""
    with (
        tempfile.TemporaryDirectory(prefix="corral-bench-") as folder,
        ControlPlane(Path(folder)) as plane,
    ):
        create(plane, NODES, (body_of(one) for one in nodes(W2.nodes)))
        binds = Binds(plane)
        with (
            Replicas(plane, Path(folder), "corral", old) as replicas,
            Chronicle(plane, gpus_per_node=8) as chronicle,
            ThreadPoolExecutor(1) as other,
        ):
            binds.start()
            try:
                names = replicas.names()
                if new is not None:
                    replicas.start(new)
                bodies = W2.pod_bodies(is_gated=True)
                creation = other.submit(create, plane, PODS, bodies)
                began = time.monotonic()
                ahead = time.time() - began
                if new is not None:
                    time.sleep(END_AFTER_SECONDS)
                    replicas.end(names[0])
                    replicas.start(new)
                    replicas.end(names[1])
                rollout_seconds = time.monotonic() - began
                creation.result()
                binds.wait(W2.pods, W2.seconds)
            finally:
                binds.stop()
            waits = gang_waits(plane.cluster().list("Pod", "default"), binds.at, ahead)
            return Run(waits, list(chronicle.problems), rollout_seconds)


def gang_waits(pods: Objects, bound_at: Mapping[str, float], ahead: float) -> dict[str, float]:
    """Of each gang that is whole, in seconds.

    `bound_at`: monotonic; `ahead`: of it is the wall clock, by which pods are created. That is told
    in whole seconds, so a wait is up to 1 s too long.
    """
    created: dict[str, float] = {}
    for each in pods:
        at = datetime.fromisoformat(each["metadata"]["creationTimestamp"]).timestamp() - ahead
        gang = each["metadata"]["name"].rpartition("-")[0]
        created[gang] = max(created.get(gang, 0.0), at)
    return {
        gang: max(bound_at[pod] for pod in names) - last
        for gang, last in created.items()
        if (names := pods_of(gang, W2.pods_per_gang)) <= bound_at.keys()
    }


def measure(case: str) -> Iterator[Row]:
    """All rows of one case."""
    with tempfile.TemporaryDirectory(prefix="corral-before-") as folder:
        before = ROOT if case == "restart" else release_before(Path(folder))
        old, new = (ROOT, before) if case == "downgrade" else (before, ROOT)
        undisturbed, rolled = run(old, None), run(old, new)

    def row(what: str, value: float, unit: str, baseline: float | None, target: str) -> Row:
        return Row("rollout", f"W2 {case}: {what}", W2.nodes, value, unit, baseline, target=target)

    waits, undisturbed_waits = rolled.waits.values(), undisturbed.waits.values()
    yield row("a gang waits, median", median(waits), "s", median(undisturbed_waits), "")
    target = f"<= {max(undisturbed_waits) + LONGER_SECONDS:.1f} s"
    yield row("longest wait", max(waits), "s", max(undisturbed_waits), target)
    not_whole = [float(W2.gangs - len(each.waits)) for each in (rolled, undisturbed)]
    yield row("gangs not whole", not_whole[0], "gangs", not_whole[1], "0")
    problems = [float(len(each.problems)) for each in (rolled, undisturbed)]
    yield row("what may never be seen", problems[0], "times", problems[1], "0")
    yield row("the rollout took", rolled.rollout_seconds, "s", None, "")


def main() -> int:
    """Measures every case asked for and prints one table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print a JSON list")
    parser.add_argument("--cases", default=",".join(CASES), help="names, with commas")
    arguments = parser.parse_args()
    cases = arguments.cases.split(",")
    if unknown := sorted(set(cases) - set(CASES)):
        parser.error(f"no case {unknown[0]!r}; there are {', '.join(CASES)}")
    rows = [row for case in cases for row in measure(case)]
    show(rows, as_json=arguments.json)
    return int(any(row.value for row in rows if row.target == "0"))


if __name__ == "__main__":
    raise SystemExit(main())
