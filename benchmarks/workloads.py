"""The gangs that benchmarks bring, and the nodes that these run on.

16 nodes to a rack, 16 racks to a block; each node has 64 cpu, 512Gi, 110 pods and 8 GPUs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from app.dialects.kueue.pod_groups import FAST
from tests.cluster import BLOCK, GPU, RACK, Object, job, node, pod
from tests.workloads import GATE, GROUP, REQUIRED, TOTAL

NODES_PER_RACK, RACKS_PER_BLOCK = 16, 16


@dataclass(frozen=True, slots=True)
class Workload:
    """Equal gangs, created gang by gang. Units: `seconds` bounds the wait for all binds."""

    nodes: int
    gangs: int
    pods_per_gang: int
    gpus_per_pod: int
    in_one_rack: bool
    seconds: float
    as_jobs: bool = False
    """The Job controller makes the pods."""

    @property
    def pods(self) -> int:
        return self.gangs * self.pods_per_gang

    def pod_bodies(self, *, is_gated: bool, is_fast: bool = False) -> Iterator[bytes]:
        """The members as JSON, named gang-member."""
        requests: dict[str, str | int] = {"cpu": "1", "memory": "4Gi", GPU: self.gpus_per_pod}
        topology = {REQUIRED: RACK} if self.in_one_rack else {}
        topology |= {FAST: "true"} if is_fast else {}
        gates = (GATE,) if is_gated else ()
        for gang in range(self.gangs):
            group = {GROUP: f"gang{gang}", TOTAL: str(self.pods_per_gang)}
            for member in range(self.pods_per_gang):
                name = f"gang{gang}-{member}"
                yield body_of(
                    pod(name, requests=requests, annotations=group | topology, gates=gates)
                )

    def job_bodies(self) -> Iterator[bytes]:
        """A Job for each gang, as JSON; its pods are named gang-index-…"""
        requests: dict[str, str | int] = {"cpu": "1", "memory": "4Gi", GPU: self.gpus_per_pod}
        topology = {REQUIRED: RACK} if self.in_one_rack else {}
        size = self.pods_per_gang
        for gang in range(self.gangs):
            made = job(f"gang{gang}", pods=size, requests=requests, annotations=topology)
            # With fewer, giving pods back that were born in place might end the Job.
            made["spec"]["backoffLimit"] = size
            yield body_of(made)


WORKLOADS = {
    "W1": Workload(512, 1, 512, 8, in_one_rack=False, seconds=60),
    # Two GPUs each: the gangs take half of all GPUs, eight of them fill a rack, as four do in W4
    # at half the cluster. With eight GPUs each only 125 such gangs would fit.
    "W2": Workload(1000, 250, 8, 2, in_one_rack=True, seconds=90),
    "W3": Workload(5000, 250, 8, 2, in_one_rack=True, seconds=120),
    # 64 pods with 2 GPUs are the 128 GPUs of one rack.
    "W4": Workload(1000, 31, 64, 2, in_one_rack=True, seconds=90),
    "W5": Workload(1000, 1, 4000, 2, in_one_rack=False, seconds=180),
    "W6": Workload(1250, 1, 10_000, 1, in_one_rack=False, seconds=300),
    "W7": Workload(5000, 1, 1000, 2, in_one_rack=False, seconds=180),
    "J2": Workload(1000, 250, 8, 2, in_one_rack=True, seconds=120, as_jobs=True),
}


def nodes(wanted: int) -> Iterator[Object]:
    """That many equal nodes, rack by rack; the last rack may be a part of one."""
    for number in range(wanted):
        rack = number // NODES_PER_RACK
        block = rack // RACKS_PER_BLOCK
        labels = {BLOCK: f"b{block}", RACK: f"b{block}-r{rack}"}
        yield node(f"b{block}-r{rack}-n{number}", labels=labels, gpus=8)


def body_of(thing: Object) -> bytes:
    return json.dumps(thing, separators=(",", ":")).encode()
