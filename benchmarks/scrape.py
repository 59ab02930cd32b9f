"""How long one scrape of /metrics keeps the event loop.

    python -m benchmarks.scrape [--json] [--nodes 5000] [--gangs 2000] [--times 50]

Half of the gangs run, four pods each, the others wait for room; two shapes are watched. The
baseline is the same text without what follows the engine: `prometheus_client` alone. Every one is
made anew here, where the port (app/extender/health.py) makes one a second at most.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator

from app.dialects.registry import DIALECTS
from app.kube.watch.events import Listed
from app.metrics import Metrics
from app.process.engine_settings import engine_settings
from app.process.serving.exposition import Exposition, shapes_of
from app.settings import Settings
from app.state.engine import Engine
from benchmarks.explain import filled
from benchmarks.table import Row, show
from tests.cluster import BLOCK, RACK
from tests.records import group, pod

TARGET = "<= 20"
PODS = 4  # of a gang
SHAPES = "node:nvidia.com/gpu=8; half:nvidia.com/gpu=4,cpu=16"


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="a JSON list instead of the table")
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--gangs", type=int, default=2_000)
    parser.add_argument("--times", type=int, default=50, help="scrapes")
    chosen = parser.parse_args()
    show(list(rows(chosen.nodes, chosen.gangs, chosen.times)), as_json=chosen.json)


def rows(nodes: int, gangs: int, times: int) -> Iterator[Row]:
    """The median and the longest."""
    settings = Settings(levels=(BLOCK, RACK), metric_shapes=SHAPES)  # type: ignore[arg-type]
    metrics = Metrics(DIALECTS.kinds)
    exposition = Exposition(with_gangs(nodes, gangs), metrics, shapes_of(settings))
    whole = milliseconds(exposition, times)
    bare = milliseconds(metrics.exposition, times)
    for what, of in (("median", statistics.median), ("longest", max)):
        value, baseline = of(whole), of(bare)
        yield Row(
            "scrape",
            f"{gangs} gangs, {what}",
            nodes,
            value,
            "ms",
            baseline,
            value / baseline,
            TARGET,
        )


def with_gangs(nodes: int, gangs: int) -> Engine:
    """Full of gangs that run, as far as nodes go; the others wait."""
    engine = Engine(engine_settings(Settings(levels=(BLOCK, RACK))))
    pods = []
    names = list(filled(nodes, nodes).books.nodes.values())
    for number in range(gangs):
        said = group(f"g{number}", PODS, RACK)
        runs = number % 2 == 0
        on = [names[(number * PODS + at) % nodes].name if runs else "" for at in range(PODS)]
        pods += [
            pod(f"g{number}-{at}", on=on[at], gpus=8 if runs else 64, annotations=said)
            for at in range(PODS)
        ]
    for kind in DIALECTS.kinds:
        if kind not in ("Node", "Pod"):
            engine.apply(Listed(kind, ()), 0.0)
    engine.apply(Listed("Node", tuple(names)), 0.0)
    engine.apply(Listed("Pod", tuple(pods)), 0.0)
    for tick in range(100):
        engine.tick(float(tick))
    assert len(engine.gangs.by_key) == gangs
    return engine


def milliseconds(work: Callable[[], object], times: int) -> list[float]:
    """The CPU that it takes, each time: other programs on the machine do not count."""
    found = []
    for _ in range(times):
        began = time.thread_time()
        work()
        found.append(1000 * (time.thread_time() - began))
    return found


if __name__ == "__main__":
    main()
