"""How long several shapes take to pack, and how many questions are decided.

    python -m benchmarks.packing [--json] [--nodes 16,64,256]

Every node holds about four pods of three shapes and has up to a tenth to spare; asked for is a
share of those pods. Up to 1.00 there is a packing, since one was planted; beyond, the answer is
a packing, a proof that there is none, or neither. "used" is the same on nodes of one model that
are used to different degrees.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import NamedTuple

import numpy as np

from benchmarks.table import Row, show
from topology import Counts, Mask
from topology.packing.pack import Packing, pack

GIB = 2**30
SHAPES, PODS_PER_NODE = 3, 4
FACTORS = (0.97, 1.0, 1.03)
QUESTIONS = 25
TARGET_NODES, TARGET = 64, "<= 50 ms"


class Question(NamedTuple):
    """What `pack` is asked."""

    free: Counts
    requests: Counts
    may_host: Mask
    pods: tuple[int, ...]


def question(kind: str, nodes: int, factor: float, seed: int) -> Question:
    """Nodes with a planted packing, and a share of its pods; always the same."""
    chance = np.random.default_rng(seed)
    requests = np.stack(
        [
            np.ones(SHAPES, dtype=np.int64),
            chance.integers(2, 17, SHAPES) * 500,
            chance.integers(2, 33, SHAPES) * GIB,
            chance.integers(0, 3, SHAPES),
        ],
        axis=1,
    )
    if kind == "planted":
        held = chance.multinomial(PODS_PER_NODE, [1 / SHAPES] * SHAPES, size=nodes).T
        free = requests.T @ held
        free = free + (free * 0.1 * chance.random(free.shape)).astype(np.int64)
        free[0] = 110
    else:
        free = used_nodes(nodes, chance)
        held = filled(free, requests, chance)
    pods = held.sum(axis=1)
    asked = np.floor(pods * factor) if factor <= 1 else np.ceil(pods * factor)
    mask = np.ones((SHAPES, nodes), dtype=np.bool_)
    return Question(free, requests, mask, tuple(int(number) for number in asked))


def used_nodes(nodes: int, chance: np.random.Generator) -> Counts:
    """Free amounts of nodes with 64 cores, 256 GiB and 8 GPUs. Shapes: (4, nodes)."""
    busy = chance.integers(0, 9, nodes)
    return np.stack(
        [110 - busy, 64_000 - busy * 6_500, (256 - busy * 25) * GIB, 8 - np.minimum(busy, 8)]
    )


def filled(free: Counts, requests: Counts, chance: np.random.Generator) -> Counts:
    """Pods that fill every node in a random order of shapes. Shapes: (shapes, nodes)."""
    held = np.zeros((SHAPES, free.shape[1]), dtype=np.int64)
    for node, left in enumerate(free.T.copy()):
        for shape in chance.integers(0, SHAPES, 64):
            if (requests[shape] <= left).all():
                left -= requests[shape]
                held[shape, node] += 1
    return held


def measure(kind: str, nodes: int, factor: float) -> list[Row]:
    """Median and longest time, and how many questions were packed or proven not to fit."""
    milliseconds, packed, proven = [], 0, 0
    for seed in range(QUESTIONS):
        asked = question(kind, nodes, factor, seed)
        begin = time.perf_counter()
        answer = pack(*asked)
        milliseconds.append((time.perf_counter() - begin) * 1e3)
        if isinstance(answer, Packing):
            packed += 1
        else:
            proven += answer.is_proven
    case, of = f"{kind}, {factor:.2f} of the pods", f"of {QUESTIONS}"
    target = TARGET if nodes == TARGET_NODES else ""
    must = str(QUESTIONS) if factor <= 1 and nodes == TARGET_NODES else ""
    return [
        Row(
            "packing",
            f"{case}, median",
            nodes,
            statistics.median(milliseconds),
            "ms",
            target=target,
        ),
        Row("packing", f"{case}, longest", nodes, max(milliseconds), "ms"),
        Row("packing", f"{case}, packed", nodes, packed, of, target=must),
        Row("packing", f"{case}, proven not to fit", nodes, proven, of),
    ]


def main() -> None:
    """Measures every size asked for and prints one table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print a JSON list")
    parser.add_argument("--nodes", default="16,64,256", help="sizes, with commas")
    arguments = parser.parse_args()
    sizes = [int(size) for size in arguments.nodes.split(",")]
    pack(*question("planted", 16, 1.0, 0))  # what the first call loads is no part of a question
    rows = [
        row
        for kind in ("planted", "used")
        for nodes in sizes
        for factor in FACTORS
        for row in measure(kind, nodes, factor)
    ]
    show(rows, as_json=arguments.json)


if __name__ == "__main__":
    main()
