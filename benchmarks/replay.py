"""What a recorded cluster's pods wait for answers, at several rates: the load of `corral replay`.

    python -m benchmarks.replay [--json] [--rates 25,50,100] [--seconds 20] [--snapshot FILE]

Cluster, Corral and load are a process each on loopback. The loop is open: latencies count from
when a pod was due, so what the load itself is late with is in them; the row `late` says how much
that was at most. Without ../shared/data a generated cluster of 1,500 nodes takes its place.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import orjson

from app.cli.replay.loading.command import Asked, load
from app.cli.replay.loading.figures import FILTER_MEMBER, Figures
from app.sandbox import ClusterPlan, synthetic_snapshot
from benchmarks.table import Row, show

RECORDED = Path(__file__).parents[2] / "shared" / "data" / "openb-2023.json.gz"
OVERLAY = "homogeneous"
TARGET = "p99 <= 5 ms"  # of a planned member


def rows_of(figures: Figures) -> Iterator[Row]:
    """Every figure of one load. Units: milliseconds, and pods per second."""
    nodes = figures.nodes
    at = f"{figures.rate:g} pods/s"
    yield Row("replay", f"{at}: bound", nodes, figures.pods_per_second, "pods/s", figures.rate,
              figures.pods_per_second / figures.rate)  # fmt: skip
    for name, timings in figures.rows.items():
        if not timings.seconds:
            continue
        for word, share in (("p50", 0.5), ("p99", 0.99)):
            target = TARGET if (name, word) == (FILTER_MEMBER, "p99") else ""
            value = timings.percentile(share) * 1e3
            yield Row("replay", f"{at}: {name}, {word}", nodes, value, "ms", target=target)
    yield Row("replay", f"{at}: the load itself was late, at most", nodes, figures.late * 1e3, "ms")
    for what, pods in (("shed", figures.shed), ("unfinished", figures.unfinished),
                       ("fit nowhere", figures.unschedulable)):  # fmt: skip
        if pods:
            yield Row("replay", f"{at}: {what}", nodes, pods, "pods")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.replay", description=__doc__)
    parser.add_argument("--json", action="store_true", help="for machines")
    parser.add_argument("--rates", default="25,50,100", help="pods per second, with commas")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each rate")
    parser.add_argument("--snapshot", type=Path, help="a cluster-snapshot/v1")
    asked = parser.parse_args()
    with TemporaryDirectory() as folder:
        file, overlay = asked.snapshot or RECORDED, "" if asked.snapshot else OVERLAY
        if not file.exists() and asked.snapshot is None:
            file, overlay = Path(folder) / "generated.json", ""
            file.write_bytes(orjson.dumps(synthetic_snapshot(ClusterPlan(nodes=1_500, load=0.8))))
        rows = [
            row
            for rate in asked.rates.split(",")
            for row in rows_of(load(Asked(file, float(rate), asked.seconds, overlay), _say))
        ]
    show(rows, as_json=asked.json)
    return 0


def _say(text: str) -> None:
    print(text, file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
