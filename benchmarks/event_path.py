"""How much code one watch event passes through: files it enters, and returns of their functions.

    python -m benchmarks.event_path [--json]

Each kind of event is given to `Engine.apply` of a small cluster, and Python's profiler reports the
calls. Counted are the functions of `app` and `topology`; a comprehension or generator expression
belongs to the function it stands in. The figures are the same on every machine and in every run.
"""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType

from msgspec.structs import replace

from app.kube.core.objects import PodRecord, Record
from app.kube.watch.events import Applied, Listed
from app.state.engine import Engine
from app.state.settings import EngineSettings
from benchmarks.table import Row, show
from tests.records import BLOCK, RACK, group, node, pod

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = tuple(f"{ROOT / package}/" for package in ("app", "topology"))
KINDS = ("Topology", "Job", "Node", "Pod")
GATE = "corral.dev/gang"
PODS_PER_GANG = 4
NODES = tuple(
    node(f"b{rack // 2}/r{rack}/n{rack}{index}") for rack in range(4) for index in range(4)
)
STATUS_OF_A_MEMBER = "a bound member of a running gang reports its status"
TARGETS = {STATUS_OF_A_MEMBER: ("<= 13", "<= 33")}  # files, returns


@dataclass(frozen=True, slots=True)
class Followed:
    """The files a call entered, and how many of their functions returned."""

    files: frozenset[str]
    returns: int


def followed(call: Callable[[], object]) -> Followed:
    """What a call went through."""
    frames: set[FrameType] = set()  # a generator that yields often is one frame

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        is_ours = code.co_filename.startswith(PACKAGES)
        if event == "return" and is_ours and not code.co_name.startswith("<"):
            frames.add(frame)

    gc.disable()  # to end a generator that others have left is not the call's work
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
        gc.enable()
    return Followed(frozenset(frame.f_code.co_filename for frame in frames), len(frames))


def events() -> Iterator[tuple[str, Sequence[PodRecord], Record]]:
    """The kind of event, the pods that exist before it, and the object as it is from then on."""
    gang = [
        pod(f"a-{i}", annotations=group("a", PODS_PER_GANG, RACK)) for i in range(PODS_PER_GANG)
    ]
    running = [replace(each, node=NODES[i].name) for i, each in enumerate(gang)]
    gated = [replace(each, gates=(GATE,)) for each in gang]
    ordinary = pod("b", on=NODES[0].name)
    yield STATUS_OF_A_MEMBER, running, replace(running[0], phase="Running", version="2")
    yield "an ordinary pod reports its status", [ordinary], replace(ordinary, phase="Running")
    yield "a gated pod is created, its gang is not complete", gated[:-2], gated[-2]
    yield "a gated pod is created, its gang is complete", gated[:-1], gated[-1]
    yield "a node reports its status", running, replace(NODES[0], version="2")


def engine_with(pods: Sequence[PodRecord]) -> Engine:
    """An engine that has read its cluster."""
    engine = Engine(EngineSettings(levels=(BLOCK, RACK), kinds=KINDS))
    lists: dict[str, tuple[Record, ...]] = {"Node": NODES, "Pod": tuple(pods)}
    for kind in KINDS:
        engine.apply(Listed(kind, lists.get(kind, ())), now=0.0)
    engine.tick(now=1.0)
    return engine


def measure() -> Iterator[Row]:
    for case, pods, record in events():
        engine = engine_with(pods)
        path = followed(partial(engine.apply, Applied(record), 2.0))
        most_files, most_returns = TARGETS.get(case, ("", ""))
        counts = [("files", len(path.files), most_files), ("returns", path.returns, most_returns)]
        for unit, value, target in counts:
            yield Row("event_path", case, len(NODES), value, unit, target=target)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print a JSON list")
    asked = parser.parse_args()
    show(list(measure()), as_json=asked.json)


if __name__ == "__main__":
    main()
