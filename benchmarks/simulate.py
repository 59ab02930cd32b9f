"""How long the event loop is kept while a user simulates, and the answer takes in a thread.

    python -m benchmarks.simulate [--json] [--nodes 5000] [--pods 20000] [--times 10]

The cluster is that of `explain`: every node runs its share of the pods. The books are copied on the
loop; the thread makes an engine of its own of them, and searches. Beside it the loop sleeps a
millisecond at a time: what that takes longer is how long others wait.

    fits       a Job that takes a rack, in half of its GPUs
    short      one that would need others to go
    large      1,000 pods that fit
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import time
from collections.abc import Iterator

from app.admission.scope import Scope
from app.kube.core import aside
from app.simulate.body import objects_in
from app.simulate.copying import Copy
from app.simulate.given import Given, all_given
from app.simulate.simulating import Rules, simulate
from app.state.engine import Engine
from benchmarks.explain import NODES_PER_RACK, filled, took_by_step
from benchmarks.table import Row, show
from tests.cluster import GPU, RACK
from tests.records import REQUIRED

ON_LOOP, LAG = "<= 5", "<= 5"
RULES = Rules(Scope("corral"))


def main() -> None:
    """Measure each case, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="a JSON list instead of the table")
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods", type=int, default=20_000, help="bound")
    parser.add_argument("--times", type=int, default=10, help="so often each is asked")
    chosen = parser.parse_args()
    engine = filled(chosen.nodes, chosen.pods)
    engine.tick(1.0)
    rows: list[Row] = []
    for name, given in CASES.items():
        rows += asyncio.run(rows_of(engine, name, given, chosen.nodes, chosen.times))
    show(rows, as_json=chosen.json)


def job(name: str, pods: int, gpus: int, required: str | None = RACK) -> tuple[Given, ...]:
    """A Job as a user writes it."""
    resources = {"requests": {"cpu": "100m", GPU: gpus}}
    spec = {"schedulerName": "corral", "containers": [{"name": "main", "resources": resources}]}
    said = {REQUIRED: required} if required else {UNCONSTRAINED: "true"}
    template = {"metadata": {"annotations": said}, "spec": spec}
    thing = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"parallelism": pods, "template": template},
    }
    return all_given(objects_in(json.dumps(thing).encode()), "default")


UNCONSTRAINED = "kueue.x-k8s.io/podset-unconstrained-topology"
CASES = {
    "fits": job("fits", NODES_PER_RACK, 4),
    "short": job("short", NODES_PER_RACK, 8),
    "large": job("large", 1_000, 1, None),
}


async def rows_of(
    engine: Engine, name: str, given: tuple[Given, ...], nodes: int, times: int
) -> list[Row]:
    """The time on the loop, in all, and how late the loop was meanwhile."""
    on_loop, in_all, late = list[float](), list[float](), list[float]()

    async def watch() -> None:
        while True:
            began = time.perf_counter()
            await asyncio.sleep(0.001)
            late.append(1000 * (time.perf_counter() - began) - 1.0)

    watching = asyncio.create_task(watch())
    for _ in range(times):
        began = time.perf_counter()
        steps = [*took_by_step(Copy.in_steps(engine, 2.0))]
        *_, (_, copy) = steps
        on_loop.append(1000 * max(took for took, _ in steps))
        await aside.read(lambda its, copy=copy: simulate(its, copy, RULES), given, 0)
        in_all.append(1000 * (time.perf_counter() - began))
    watching.cancel()
    return list(_rows(name, nodes, on_loop, in_all, late))


def _rows(
    name: str, nodes: int, on_loop: list[float], in_all: list[float], late: list[float]
) -> Iterator[Row]:
    for what, found, target in (("on the loop", on_loop, ON_LOOP), ("in all", in_all, "")):
        yield Row("simulate", f"{name}: {what}, median", nodes, statistics.median(found), "ms")
        yield Row("simulate", f"{name}: {what}, worst", nodes, max(found), "ms", target=target)
    p99 = sorted(late)[int(0.99 * len(late))]
    yield Row("simulate", f"{name}: loop late, p99", nodes, p99, "ms", target=LAG)


if __name__ == "__main__":
    main()
