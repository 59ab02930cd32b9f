"""How long the event loop is kept when a user asks why a gang waits, and the answer takes.

    python -m benchmarks.explain [--json] [--nodes 5000] [--pods 20000] [--times 20]

Every node runs as many pods of lower priority, with owners that make them again, so that who would
have to go is searched for as well; but for one on each node they are in gangs of eight. The
question is copied on the loop, in steps between which others have it: the longest counts. The
answer is searched in a thread.

    short      all nodes of a rack, which are half full: pods of lower priority would have to go
    never      more pods than any rack has nodes
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from app.dialects.registry import DIALECTS
from app.explain.answering import answer
from app.explain.asking import asking
from app.kube.core.objects import Owner, PodRecord
from app.kube.decoding.decode import decode_node
from app.kube.watch.events import Applied, Listed
from app.process.engine_settings import engine_settings
from app.settings import Settings
from app.state.engine import Engine
from benchmarks.filter import racks
from benchmarks.table import Row, show
from tests.cluster import BLOCK, RACK
from tests.records import group, pod

ON_LOOP, IN_ALL = "<= 5", "<= 100"
OWNER = Owner("apps/v1", "ReplicaSet", "web", "uid-web")
NODES_PER_RACK = 16
GANG = 8  # pods
_R = TypeVar("_R")


def main() -> None:
    """Measure each case, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="a JSON list instead of the table")
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods", type=int, default=20_000, help="bound")
    parser.add_argument("--times", type=int, default=20, help="so often each is asked")
    chosen = parser.parse_args()
    engine = filled(chosen.nodes, chosen.pods)
    rows: list[Row] = []
    for name, members in CASES.items():
        rows += rows_of(engine, name, members(), chosen.nodes, chosen.times)
    show(rows, as_json=chosen.json)


def filled(nodes: int, pods: int) -> Engine:
    """Every node has its share of the pods, and 8 GPUs of which these take half."""
    engine = Engine(engine_settings(Settings(levels=(BLOCK, RACK))))
    now = 0.0
    records = [decode_node(json.dumps(each).encode()) for each in racks(nodes)]
    each = max(1, pods // nodes)
    running = [
        pod(
            f"r{at}-{number}", gpus=4 if number == 0 else 0, cpu=100, on=one.name,
            phase="Running", priority=-10, owner=OWNER,
            annotations=group(f"r{at // GANG}-{number}", GANG) if number else None,
        )
        for at, one in enumerate(records[: len(records) // GANG * GANG]) for number in range(each)
    ]  # fmt: skip
    for kind in DIALECTS.kinds:
        if kind not in ("Node", "Pod"):
            engine.apply(Listed(kind, ()), now)
    engine.apply(Listed("Node", tuple(records)), now)
    engine.apply(Listed("Pod", tuple(running)), now)
    while engine.gangs.unreviewed:
        engine.tick(now)
    return engine


def short() -> list[PodRecord]:
    """As many pods as a rack has nodes, each of which takes all GPUs of one."""
    said = group("short", NODES_PER_RACK, RACK)
    return [pod(f"short{at}", annotations=said) for at in range(NODES_PER_RACK)]


def never() -> list[PodRecord]:
    """Four times as many."""
    said = group("never", 4 * NODES_PER_RACK, RACK)
    return [pod(f"never{at}", annotations=said) for at in range(4 * NODES_PER_RACK)]


CASES: dict[str, Callable[[], list[PodRecord]]] = {"short": short, "never": never}


def rows_of(
    engine: Engine, name: str, members: list[PodRecord], nodes: int, times: int
) -> Iterator[Row]:
    """The time on the loop and in all, the median and the worst."""
    now = 1.0
    for each in members:
        engine.apply(Applied(each), now)
    engine.tick(now)
    (gang,) = [each for each in engine.gangs.by_key.values() if each.key.name == name]
    on_loop, in_all = list[float](), list[float]()
    for _ in range(times):
        began = time.perf_counter()
        steps = [*took_by_step(engine.making_room.crowd())]
        *_, (_, crowd) = steps
        last = time.perf_counter()
        asked = asking(engine, gang, now, crowd=crowd)
        longest = max(time.perf_counter() - last, *(took for took, _ in steps))
        on_loop.append(1000 * longest)
        said = answer(asked)
        in_all.append(1000 * (time.perf_counter() - began))
        assert not said.fits_now
    for what, found, target in (("on the loop", on_loop, ON_LOOP), ("in all", in_all, IN_ALL)):
        yield Row("explain", f"{name}: {what}, median", nodes, statistics.median(found), "ms")
        yield Row("explain", f"{name}: {what}, worst", nodes, max(found), "ms", target=target)


def took_by_step(steps: Iterator[_R]) -> Iterator[tuple[float, _R]]:
    """Seconds, and what it yields, of each step."""
    while True:
        began = time.perf_counter()
        try:
            found = next(steps)
        except StopIteration:
            return
        yield time.perf_counter() - began, found


if __name__ == "__main__":
    main()
