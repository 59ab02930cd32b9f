"""How long /prioritize takes on a busy cluster where usual pods' room decides.

    python -m benchmarks.prioritize [--json] [--nodes 5000] [--data ../shared/data]

Recorded nodes with GPUs (openb 2023), as often as it takes, and recorded pods at random until two
GPUs of three are given out, with `fewest_fragments` and `device_parts`. The engine is asked with
the names of all nodes: for a request that it was asked for just before, for one that it was not
asked for lately, and for one after the other, each bound before the next one. Figures are the
least of many calls, of the last kind the tenth part below: whatever else runs on the machine only
ever adds to them.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from msgspec.structs import replace

from app.kube.core.objects import NodeRecord
from app.kube.watch.events import Applied, Listed
from app.state.engine import Engine
from app.state.settings import EngineSettings
from benchmarks.quality.allocation import GPU, WHOLE, Asked, trace
from benchmarks.table import Row, show
from tests.app.state.world import LISTED, Names
from tests.records import BLOCK, RACK, pod

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
GIVEN_OUT = 2 / 3  # of the GPUs
CALLS = 300
TRIES = 5  # nodes that a pod is tried on before it is left out


@dataclass(slots=True)
class Cluster:
    """One engine, and what is taken of each node."""

    nodes: list[NodeRecord]
    rng: Random = field(default_factory=lambda: Random(1))
    engine: Engine = field(init=False)
    taken: dict[str, Counter[str]] = field(init=False)
    pods: int = 0

    def __post_init__(self) -> None:
        parts = ((GPU, WHOLE),)
        self.engine = Engine(
            EngineSettings(
                levels=(BLOCK, RACK), kinds=LISTED, fewest_fragments=True, device_parts=parts
            )
        )
        for kind in LISTED:
            self.engine.apply(Listed(kind, tuple(self.nodes) if kind == "Node" else ()), 0.0)
        self.taken = {each.name: Counter() for each in self.nodes}

    def fill(self, pods: list[Asked]) -> None:
        """Run pods, each on a random node that has room."""
        most = GIVEN_OUT * sum(dict(each.allocatable)[GPU] for each in self.nodes)
        given = 0
        while given < most:
            asked = self.rng.choice(pods)
            for node in self.rng.choices(self.nodes, k=TRIES):
                taken, has = self.taken[node.name], dict(node.allocatable)
                if all(taken[name] + amount <= has[name] for name, amount in asked.request):
                    taken.update(dict(asked.request))
                    given += dict(asked.request).get(GPU, 0)
                    self.bind(asked, node.name)
                    break
        for _ in range(len(self.nodes) // 100 + 1):
            self.engine.tick(1.0)  # which looks at the devices of a hundred nodes

    def bind(self, asked: Asked, node: str) -> None:
        self.pods += 1
        runs = replace(pod(f"p{self.pods}"), request=asked.request, node=node, phase="Running")
        self.engine.apply(Applied(runs), 1.0)

    def seconds(self, asked: Asked) -> tuple[float, str]:
        """How long one call takes, and the best node."""
        waits, names = replace(pod("waits"), request=asked.request), Names(self.taken)
        began = time.perf_counter()
        scores = self.engine.prioritize(waits, names, 1.0)
        seconds = time.perf_counter() - began
        return seconds, names[scores.index(max(scores))]


def measure(nodes: int, data: Path) -> list[Row]:
    of = trace(data, "default")
    times = range(-(-nodes // len(of.nodes)))
    every = [_copy(node, number) for number in times for node in of.nodes]
    cluster, pods = Cluster(every[:nodes]), [each for each in of.pods if each.gpus]
    cluster.fill(pods)
    first = pods[0]
    cluster.seconds(first)
    known = min(cluster.seconds(first)[0] for _ in range(CALLS))
    another = min(cluster.seconds(_differing(first, at))[0] for at in range(CALLS))
    in_turn = []
    for _ in range(CALLS):
        asked = cluster.rng.choice(pods)
        seconds, node = cluster.seconds(asked)
        in_turn.append(seconds)
        cluster.bind(asked, node)
    return [
        Row("/prioritize", "a request asked for before", nodes, known * 1e3, "ms", target="<= 0.5"),
        Row("/prioritize", "one that is new", nodes, another * 1e3, "ms"),
        Row("/prioritize", "pods in turn", nodes, sorted(in_turn)[CALLS // 10] * 1e3, "ms"),
    ]


def _copy(node: NodeRecord, number: int) -> NodeRecord:
    """The node under another name, in another block."""
    labels = {**node.labels, BLOCK: f"{node.labels[BLOCK]}-{number}"}
    return replace(node, name=f"{node.name}-{number}", uid=f"{node.uid}-{number}", labels=labels)


def _differing(asked: Asked, number: int) -> Asked:
    amounts = dict(asked.request)
    amounts["cpu"] += 1 + number
    return Asked(tuple(sorted(amounts.items())), asked.gpus, asked.part)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print a JSON list")
    parser.add_argument("--nodes", default="5000", help="with commas")
    parser.add_argument("--data", type=Path, default=DATA, help="the recorded traces")
    options = parser.parse_args()
    sizes = map(int, options.nodes.split(","))
    show([row for nodes in sizes for row in measure(nodes, options.data)], as_json=options.json)


if __name__ == "__main__":
    main()
