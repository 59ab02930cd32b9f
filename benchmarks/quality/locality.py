"""How few leaf switches recorded jobs get, replayed on the tree they ran on.

Jobs come in the order in which they were first seen, take whole hosts and give them back at the
end that was inferred; ends come before starts of the same second. Each names the switch as its
preferred level. The least a job can need is the sum of the largest switches of an empty partition.
"""

from __future__ import annotations

import gzip
import json
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import Any

from topology import (
    NODE_LEVEL,
    Capacity,
    Constraint,
    DomainOrder,
    Gang,
    Group,
    NoFit,
    Options,
    PodSet,
    ResourceAxis,
    Tree,
    build,
    find,
)

LEVELS = ["cell", "rack", "switch", NODE_LEVEL]
SWITCH = 2  # its index
WHOLE_HOST = (1, 1)
SEED = 1

Job = tuple[int, int | None, tuple[int, ...]]


@dataclass(frozen=True)
class Partition:
    """One partition of Leonardo: hosts by their path, and the jobs that ran there."""

    paths: dict[str, tuple[str, ...]]
    jobs: tuple[Job, ...]

    @property
    def switches(self) -> list[int]:
        """Hosts per switch, largest first."""
        sizes: dict[tuple[str, ...], int] = {}
        for path in self.paths.values():
            sizes[path[:3]] = sizes.get(path[:3], 0) + 1
        return sorted(sizes.values(), reverse=True)


def partition(data: Path, name: str) -> Partition:
    """Read a partition and its jobs. Raises: OSError."""
    topology = json.loads((data / "topologies" / "leonardo.json").read_text(encoding="utf-8"))
    paths = dict(_paths(topology["tree"][name], ()))
    with gzip.open(data / "hpc-placements.json.gz", "rt", encoding="utf-8") as file:
        recorded = json.load(file)["systems"]["leonardo"]
    pattern = recorded["hostPattern"]
    jobs = [
        (first, end, tuple(hosts))
        for _, first, end, hosts in recorded["jobs"]
        if all(pattern % host in paths for host in hosts)
    ]
    return Partition(paths, tuple(sorted(jobs, key=lambda job: job[0])))


def _paths(tree: Any, above: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    if isinstance(tree, list):
        yield from ((host, (*above, host)) for host in tree)
        return
    for name, inside in tree.items():
        yield from _paths(inside, (*above, name))


def least(of: Partition) -> list[int]:
    """The switches of each job if it had the largest ones of the empty partition."""
    sizes = list(accumulate(of.switches))
    return [bisect_left(sizes, len(hosts)) + 1 for _, _, hosts in of.jobs]


def replayed(of: Partition, order: DomainOrder, *, closed: float = 0.0) -> list[int]:
    """The switches of each job, with a share of the hosts closed at random.

    Raises: ValueError if a job finds no place.
    """
    tree = build(LEVELS, of.paths, generation=1)
    capacity = Capacity(ResourceAxis(), tree)
    capacity.axis.vector([("host", 1)])
    shut = set(Random(SEED).sample(sorted(of.paths), int(len(of.paths) * closed)))
    for slot, host in enumerate(tree.nodes):
        capacity.set_node(slot, WHOLE_HOST, is_open=host not in shut)
    running: list[tuple[int, list[int]]] = []
    switches = list[int]()
    for first, end, hosts in of.jobs:
        while running and running[0][0] <= first:
            for slot in heappop(running)[1]:
                capacity.use(slot, WHOLE_HOST, -1)
        slots = _placed(tree, capacity, len(hosts), order)
        for slot in slots:
            capacity.use(slot, WHOLE_HOST, 1)
        switches.append(len({int(tree.domain_of[SWITCH][slot]) for slot in slots}))
        if end is not None:
            heappush(running, (end, slots))
    return switches


def _placed(tree: Tree, capacity: Capacity, hosts: int, order: DomainOrder) -> list[int]:
    job = PodSet("job", hosts, WHOLE_HOST, constraint=Constraint(preferred="switch"))
    gang = Gang("ns/job", Group("job", (job,)))
    found = find(tree, capacity, gang, {}, Options(order=order))
    if isinstance(found, NoFit):
        raise ValueError(f"a job of {hosts} hosts finds no place: {found}")
    return [slot for slot, _ in found.pod_sets[0].slots]
