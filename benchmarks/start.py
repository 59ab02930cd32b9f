"""How long a restart takes: from the process's start to ready, with every node and pod listed.

    python -m benchmarks.start [--json] [--nodes 5000] [--pods-per-node 30]

The sandbox's API server serves the lists from a process of its own, on the same cores. The
baseline is a plain listing of the same pods, page by page, nothing decoded.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import aiohttp

from app.sandbox import ClusterPlan, Sandbox, synthetic_snapshot
from app.sandbox.apiserver.storage.kinds import Object
from benchmarks.table import Row, show
from tests.cluster import BLOCK, RACK

MOST_SECONDS = 120.0
PAGE = 500
FILLING = {"name": "A", "value": "b" * 1500}  # a pod of a real cluster is 3 to 4 kB


def pods_of(node: str, pods: int) -> Iterator[Object]:
    """Ordinary running pods of one node."""
    container = {
        "name": "work",
        "image": "example.invalid/work",
        "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}},
        "env": [FILLING],
    }
    for place in range(pods):
        yield {
            "metadata": {"name": f"{node}-{place}", "namespace": "default"},
            "spec": {"nodeName": node, "containers": [container]},
            "status": {"phase": "Running"},
        }


async def listed(sandbox: Sandbox) -> float:
    """Seconds a client needs to read every pod, page by page."""
    began = time.monotonic()
    headers = {"Authorization": f"Bearer {sandbox.token}"}
    async with aiohttp.ClientSession(sandbox.url, headers=headers) as api:
        more = ""
        while True:
            params = {"limit": str(PAGE), "continue": more}
            async with api.get("/api/v1/pods", params=params) as answer:
                head = (await answer.read())[:400]
            if b'"continue":"' not in head:
                return time.monotonic() - began
            more = head.partition(b'"continue":"')[2].partition(b'"')[0].decode()


async def started(sandbox: Sandbox, folder: Path) -> tuple[float, float, float]:
    """Seconds to ready, CPU seconds and resident MiB of a new `corral serve`."""
    kubeconfig, log = folder / "kubeconfig", folder / "corral.log"
    sandbox.write_kubeconfig(kubeconfig)
    began = time.monotonic()
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "app", "serve", "--kubeconfig", str(kubeconfig)),
            *("--extender-listen", "127.0.0.1:0", "--levels", f"{BLOCK},{RACK}"),
            stderr=output,
        )
    try:
        async with asyncio.timeout(MOST_SECONDS):
            while b'"synced"' not in log.read_bytes():  # noqa: ASYNC110  # another process's file
                await asyncio.sleep(0.05)
        seconds = time.monotonic() - began
        status = Path(f"/proc/{process.pid}/status").read_text()  # noqa: ASYNC240
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(") ")[2].split()  # noqa: ASYNC240
    finally:
        process.terminate()
        await process.wait()
    resident = int(status.partition("VmRSS:")[2].split()[0]) / 1024
    return seconds, (int(fields[11]) + int(fields[12])) / 100, resident


async def measure(nodes: int, pods_per_node: int) -> list[Row]:
    snapshot = synthetic_snapshot(ClusterPlan(nodes=nodes))
    snapshot["pods"] = [
        pod
        for node in snapshot["nodes"]
        for pod in pods_of(node["metadata"]["name"], pods_per_node)
    ]
    case = f"{nodes * pods_per_node} pods"
    async with Sandbox() as sandbox:
        sandbox.load(snapshot)
        del snapshot
        plain = await listed(sandbox)
        with tempfile.TemporaryDirectory() as folder:
            seconds, cpu, resident = await started(sandbox, Path(folder))
    ready = f"{case}, start to ready"
    return [
        Row("start", ready, nodes, seconds, "s", plain, seconds / plain, "<= 15 s"),
        Row("start", f"{case}, CPU of corral", nodes, cpu, "s"),
        Row("start", f"{case}, resident when ready", nodes, resident, "MiB", target="<= 600 MiB"),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods-per-node", type=int, default=30)
    asked = parser.parse_args()
    show(asyncio.run(measure(asked.nodes, asked.pods_per_node)), as_json=asked.json)


if __name__ == "__main__":
    main()
