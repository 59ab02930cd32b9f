"""How long `corral audit` takes over a large cluster, and how much memory.

    python -m benchmarks.audit [--json] [--nodes 5000] [--pods-per-node 30] [--gang 8]

Every pod is a member of a gang of that size which requires a rack. The sandbox's API server serves
the lists from another process, on the same cores. The baseline is a plain listing of the same
pods, page by page, nothing decoded.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from app.sandbox import ClusterPlan, Sandbox, synthetic_snapshot
from app.sandbox.apiserver.storage.kinds import Object
from benchmarks.start import listed, pods_of
from benchmarks.table import Row, show
from tests.cluster import BLOCK, RACK
from tests.workloads import GROUP, REQUIRED, TOTAL


def _peak_mib(pid: int) -> float:
    """The most that a process has had resident; 0 once it has ended."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024 if "VmHWM:" in status else 0.0


def gangs_of(node: str, pods: int, size: int) -> Iterator[Object]:
    """The pods of a node, in gangs of this size; what is left over is in a smaller one."""
    for at, each in enumerate(pods_of(node, pods)):
        gang = at // size
        members = min(size, pods - gang * size)
        annotations = {GROUP: f"{node}-{gang}", TOTAL: str(members), REQUIRED: RACK}
        yield {**each, "metadata": {**each["metadata"], "annotations": annotations}}


async def measure(nodes: int, pods_per_node: int, gang: int) -> list[Row]:
    snapshot = synthetic_snapshot(ClusterPlan(nodes=nodes))
    snapshot["pods"] = [
        pod
        for node in snapshot["nodes"]
        for pod in gangs_of(node["metadata"]["name"], pods_per_node, gang)
    ]
    async with Sandbox() as sandbox:
        sandbox.load(snapshot)
        del snapshot
        plain = await listed(sandbox)
        with tempfile.TemporaryDirectory() as folder:
            kubeconfig = Path(folder) / "kubeconfig"
            sandbox.write_kubeconfig(kubeconfig)
            began = time.monotonic()
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "app", "audit", "-A", "-o", "name"),
                *("--kubeconfig", str(kubeconfig), "--levels", f"{BLOCK},{RACK}"),
            )
            ended = asyncio.ensure_future(process.wait())
            peak = 0.0
            while not ended.done():
                peak = max(peak, _peak_mib(process.pid))
                await asyncio.wait([ended], timeout=0.1)
            code, seconds = ended.result(), time.monotonic() - began
    if code != 0:
        raise SystemExit(f"corral audit ended with {code}")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    case = f"{nodes * pods_per_node} pods in gangs of {gang}"
    return [
        Row("audit", case, nodes, seconds, "s", plain, seconds / plain),
        Row("audit", f"{case}, CPU", nodes, used.ru_utime + used.ru_stime, "s"),
        Row("audit", f"{case}, peak resident", nodes, peak, "MiB"),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods-per-node", type=int, default=30)
    parser.add_argument("--gang", type=int, default=8)
    asked = parser.parse_args()
    rows = asyncio.run(measure(asked.nodes, asked.pods_per_node, asked.gang))
    show(rows, as_json=asked.json)


if __name__ == "__main__":
    main()
