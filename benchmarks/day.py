"""Whether memory grows while events of a cluster come: in one process, as fast as they are taken.

    python -m benchmarks.day [--json] [--nodes 5000] [--pods-per-node 10] [--events 200000]

5,000 nodes have some 1,700,000 events of pods in 24 hours; `--events 1700000` is a whole day, and
takes a few minutes. The watch's own decoder reads each of them, and the engine takes it at the time
when it would have come, 20 a second; it is told the time after each hundred. Figures are the
resident memory of this process, which grows until every ordinary pod has been replaced once: what
was read together is then scattered.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from app.kube.decoding import wire
from app.kube.watch.events import Applied, Deleted, Event, Listed
from app.kube.watch.resource import Resource
from app.process.engine_settings import engine_settings
from app.settings import Settings
from app.state.engine import Engine
from benchmarks.large_cluster import EVENTS_PER_LIFE, Objects, Size
from benchmarks.table import Row, show
from tests.cluster import BLOCK, RACK

EVENTS_PER_SECOND = 20.0  # 1.7 million in 24 hours
EVENTS_A_TICK = 100
LOOKS = 10  # at the memory
TARGET = "<= 1.05"  # of what it was when every ordinary pod had been replaced once

_LINE = msgspec.json.Decoder(wire.WatchLine)


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="a JSON list instead of the table")
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods-per-node", type=int, default=10)
    parser.add_argument("--events", type=int, default=200_000)
    asked = parser.parse_args()
    size = Size(asked.nodes, asked.pods_per_node)
    show(list(measure(size, asked.events)), as_json=asked.json)


def measure(size: Size, events: int) -> Iterator[Row]:
    """The memory at intervals, its growth since the first, and what an event took."""
    engine, objects = Engine(engine_settings(Settings(levels=(BLOCK, RACK)))), Objects(size)
    read = {each.kind: each for each in engine.dialects.resources(engine.dialects.keeps)}
    _fill(engine, objects, read)
    gc.collect()
    gc.freeze()
    yield Row("day", f"{size.pods} pods: resident at the start", size.nodes, resident(), "MiB")
    began, first = time.process_time(), 0.0
    for part in range(1, LOOKS + 1):
        _play(engine, objects, read["Pod"], events * (part - 1) // LOOKS, events * part // LOOKS)
        gc.collect()
        now = resident()
        if events * part // LOOKS >= EVENTS_PER_LIFE * (size.pods - size.nodes):
            first = first or now  # each ordinary pod has been replaced once
        case = f"resident after {events * part // LOOKS} events"
        grown = (first, now / first, TARGET) if first else ()
        yield Row("day", case, size.nodes, now, "MiB", *grown)
    assert engine.differences() == []
    assert len(engine.books.bound) >= size.pods - size.nodes
    microseconds = 1e6 * (time.process_time() - began) / events
    yield Row("day", "CPU of an event, made and taken", size.nodes, microseconds, "us")


def _fill(engine: Engine, objects: Objects, read: dict[str, Resource]) -> None:
    size = objects.size
    for kind in engine.settings.kinds:
        if kind not in ("Node", "Pod"):
            engine.apply(Listed(kind, ()), 0.0)
    nodes = tuple(read["Node"].decode(objects.node(each)) for each in range(size.nodes))
    engine.apply(Listed("Node", nodes), 0.0)
    pods = tuple(read["Pod"].decode(objects.pod(each)) for each in range(size.pods))
    engine.apply(Listed("Pod", pods), 0.0)
    engine.tick(0.0)


def _play(engine: Engine, objects: Objects, pods: Resource, first: int, last: int) -> None:
    """Give the engine these of the day's events."""
    for number in range(first, last):
        now = 1.0 + number / EVENTS_PER_SECOND
        engine.apply(_event(pods, objects.event(number, number + 2)), now)
        if number % EVENTS_A_TICK == 0:
            engine.tick(now)


def _event(pods: Resource, line: bytes) -> Event:
    told = _LINE.decode(line)
    record = pods.decode(told.object)
    return Deleted(record) if told.type == "DELETED" else Applied(record)


def resident() -> float:
    """MiB of this process."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


if __name__ == "__main__":
    main()
