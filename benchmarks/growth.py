"""What a cluster of up to 100,000 nodes and 1,000,000 pods costs, and how that grows.

    python -m benchmarks.growth [--json] [--nodes 1000,5000,20000,100000] [--pods-per-node 10]
                                [--seconds 30] [--rate 1000]

Three processes: an API server that makes lists and a watch (`large_cluster.py`), Corral as it is
shipped (`app.main`), and this one, which asks it as kube-scheduler and people do. One pod in ten is
a member of a gang of eight that runs, each in its rack; all others are ordinary pods.

Once Corral is ready, `--rate` events of pods a second come for `--seconds`, and a heartbeat of each
node every five minutes. The lag of an event is the time from when it was due until the engine has
taken it. Beside them /filter is asked 20 times a second, in turns for an ordinary pod and for a
member with a place, about as many nodes as kube-scheduler finds by default before it asks: 5,000 of
100,000 (`numFeasibleNodesToFind`). The longest stall is how late a timer of Corral's loop was.
The books are checked three times as often as by default, so that this is in the figures.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from app.kube.core.objects import PodRecord
from app.kube.watch.events import Applied, Deleted, Event
from app.main import build, run
from app.sandbox.cluster import kubeconfig
from app.setting_values import Address
from app.settings import Settings
from app.state.reserve.plans import Plans
from benchmarks import large_cluster
from benchmarks.large_cluster import PREFIX, Size, node_name
from benchmarks.table import Row, show
from tests.cluster import BLOCK, RACK, pod

READY_SECONDS = 300.0
AUDIT_SECONDS = 20.0
STALL_SECONDS = 0.005  # between two looks at how late the loop is
GANG = 64  # pods of the gang that is planned, in one rack
PAUSE_SECONDS = 0.05  # between two questions of kube-scheduler
TIMES = 5  # that people ask
SAMPLED_FROM = 100
TARGETS = {  # at 100,000 nodes
    "ready": "<= 90",
    "resident": "<= 2560",
    "event lag p99": "<= 100",
    "/filter p99": "<= 20",
}


# -- Corral, in a process of its own ---------------------------------------------------------------


@dataclass(slots=True)
class Seen:
    """What was measured inside since it was asked last: milliseconds."""

    lags: list[float] = field(default_factory=list)
    ticks: list[float] = field(default_factory=list)
    stalls: list[float] = field(default_factory=list)
    plans: list[float] = field(default_factory=list)


def corral(api_server: str, pipe: Connection) -> None:
    """Runs one Corral until the process is ended; tells its ports, then what it is asked for."""
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_corral(api_server, pipe))


async def _corral(api_server: str, pipe: Connection) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kubeconfig"
        kubeconfig.write(path, url=api_server, token="none")
        any_port = Address("127.0.0.1", 0)
        settings = Settings(
            kubeconfig=path,
            levels=(BLOCK, RACK),
            extender_listen=any_port,
            api_listen=any_port,
            audit_seconds=AUDIT_SECONDS,
        )
        parts = await build(settings)
    seen = Seen()
    engine: Any = parts.engine
    engine.apply = _timed_events(engine.apply, seen)
    engine.tick = _timed(engine.tick, seen.ticks.append)
    plans: Any = Plans
    plans.make = _timed(Plans.make, seen.plans.append)
    stalls = asyncio.create_task(_stalls(seen))
    pipe.send((parts.extender_url, parts.api_url))
    threading.Thread(target=_tell, args=(pipe, seen), daemon=True).start()
    await run(parts, asyncio.Event())
    stalls.cancel()


def _timed_events(apply: Callable[..., Any], seen: Seen) -> Callable[..., Any]:
    def timed(event: Event, now: float) -> Any:
        effects = apply(event, now)
        if isinstance(event, Applied | Deleted) and isinstance(event.record, PodRecord):
            seen.lags.append(1e3 * time.monotonic() - int(event.record.version) / 1e3)
        return effects

    return timed


def _timed(step: Callable[..., Any], took: Callable[[float], None]) -> Callable[..., Any]:
    def timed(*arguments: Any) -> Any:
        began = time.monotonic()
        result = step(*arguments)
        took(1e3 * (time.monotonic() - began))
        return result

    return timed


async def _stalls(seen: Seen) -> None:
    while True:
        due = time.monotonic() + STALL_SECONDS
        await asyncio.sleep(STALL_SECONDS)
        seen.stalls.append(1e3 * max(0.0, time.monotonic() - due))


def _tell(pipe: Connection, seen: Seen) -> None:
    while True:
        pipe.recv()
        lists = (seen.lags, seen.ticks, seen.stalls, seen.plans)
        pipe.send(lists)
        for each in lists:
            each.clear()  # the list stays: who measures has it


# -- who asks --------------------------------------------------------------------------------------


class Client:
    """One connection to a port."""

    def __init__(self, url: str) -> None:
        self._connection = HTTPConnection(url.removeprefix("http://"), timeout=READY_SECONDS)

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

    def ask(self, path: str, body: bytes | None = None) -> tuple[int, bytes, float]:
        """Status and body of the answer, and how many milliseconds it took."""
        began = time.perf_counter()
        self._connection.request("GET" if body is None else "POST", path, body)
        answer = self._connection.getresponse()
        read = answer.read()
        return answer.status, read, 1e3 * (time.perf_counter() - began)

    def milliseconds(self, path: str, body: bytes | None = None) -> float:
        """How long a successful answer took. Raises: AssertionError for another one."""
        status, read, took = self.ask(path, body)
        assert status == 200, (path, status, read[:300])
        assert b'"Error":"' not in read[:200], (path, read[:300])
        return took


def sampled(nodes: int) -> int:
    """How many nodes kube-scheduler looks for by default: 5 % of the largest clusters."""
    return min(nodes, max(nodes * max(50 - nodes // 125, 5) // 100, SAMPLED_FROM))


def questions(nodes: int) -> tuple[bytes, bytes]:
    """What kube-scheduler sends to /filter: of an ordinary pod, and of a member."""
    names = [node_name(number) for number in range(sampled(nodes))]
    ordinary = pod("asked", requests={"cpu": "500m"})
    ordinary["metadata"]["uid"] = "asked"
    member = pod("planned-00000000", requests={"cpu": "500m", "nvidia.com/gpu": 1})
    member["metadata"] |= {
        "uid": "planned8b1f1a60-0000-4000-8000-000000000000",
        "annotations": {PREFIX + "pod-group-name": "planned"},
    }
    of_ordinary, of_member = (
        json.dumps({"Pod": each, "Nodes": None, "NodeNames": names}).encode()
        for each in (ordinary, member)
    )
    return of_ordinary, of_member


# -- measuring -------------------------------------------------------------------------------------


@dataclass(slots=True)
class Found:
    """The rows of one size."""

    size: Size
    rows: list[Row] = field(default_factory=list)

    def add(self, case: str, value: float, unit: str = "ms", target: str = "") -> None:
        """Note one figure."""
        self.rows.append(Row("growth", case, self.size.nodes, value, unit, target=target))

    def spread(self, case: str, values: Sequence[float], target: str = "") -> None:
        """Note the median and the 99th percentile."""
        self.add(f"{case} p50", percentile(values, 50))
        self.add(f"{case} p99", percentile(values, 99), target=target)


def percentile(values: Sequence[float], share: int) -> float:
    """The value that so many of a hundred are not above."""
    return sorted(values)[max(0, -(-len(values) * share // 100) - 1)]


@contextmanager
def started(target: Callable[..., None], *arguments: object) -> Iterator[tuple[Any, Any, int]]:
    """What a process says first, the pipe to it and its id; ended with the block."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process: BaseProcess = context.Process(target=target, args=(*arguments, theirs), daemon=True)
    process.start()
    try:
        if not ours.poll(READY_SECONDS):
            raise TimeoutError(f"{target.__name__} did not start")
        yield ours.recv(), ours, process.pid or 0
    finally:
        process.terminate()
        process.join(READY_SECONDS)


def measure(size: Size, seconds: float, rate: float) -> list[Row]:
    """Every figure of one size."""
    found = Found(size)
    with started(large_cluster.serve, size) as (port, _, _):
        api_server = f"http://127.0.0.1:{port}"
        began = time.monotonic()
        with (
            started(corral, api_server) as (urls, pipe, process),
            closing(Client(api_server)) as world,
            closing(Client(urls[0])) as scheduler,
            closing(Client(urls[1])) as person,
        ):
            _ready(found, person, process, began)
            _steady(found, world, scheduler, pipe, seconds, rate)
            _asked(found, person, pipe)
            world.ask("/churn?rate=0")
            found.add("resident at the end", memory(process, "VmRSS"), "MiB")
    return found.rows


def _ready(found: Found, person: Client, process: int, began: float) -> None:
    until = time.monotonic() + READY_SECONDS
    while person.ask("/readyz")[0] != 200:
        assert time.monotonic() < until, "not ready in time"
        time.sleep(0.1)
    found.add(f"{found.size.pods} pods: ready", time.monotonic() - began, "s", TARGETS["ready"])
    time.sleep(3.0)  # the first tick after it has settled the garbage collector
    found.add("resident", memory(process, "VmRSS"), "MiB", TARGETS["resident"])
    found.add("resident at most", memory(process, "VmHWM"), "MiB", TARGETS["resident"])
    found.add("CPU until ready", cpu_seconds(process), "s")


def _steady(
    found: Found, world: Client, scheduler: Client, pipe: Any, seconds: float, rate: float
) -> None:
    ordinary, member = questions(found.size.nodes)
    _taken(pipe)
    world.ask(f"/churn?rate={rate}")
    world.ask(f"/gang?name=planned&pods={GANG}")
    took: list[float] = []
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        took += [scheduler.milliseconds("/filter", each) for each in (ordinary, member)]
        time.sleep(PAUSE_SECONDS * 2)
    lags, ticks, stalls, plans = _taken(pipe)
    events = f"{rate:.0f} events/s"
    found.add("events taken", len(lags) / seconds, "1/s")
    found.spread(f"{events}: event lag", lags, TARGETS["event lag p99"])
    names = f"{sampled(found.size.nodes)} names"
    found.spread(f"{events}, {names}: /filter", took, TARGETS["/filter p99"])
    found.spread("tick", ticks)
    found.add("longest tick", max(ticks))
    found.add("longest stall", max(stalls))
    found.add(f"plan of a gang of {GANG} in one rack", max(plans))
    found.add("check of the books", 1e3 * _series(scheduler, "corral_audit_seconds"))


def _asked(found: Found, person: Client, pipe: Any) -> None:
    """What people and Prometheus ask, while events come as before."""
    _taken(pipe)
    for path in ("/metrics", "/v1/topology", "/v1/map"):
        took = []
        for _ in range(TIMES):
            time.sleep(1.1)  # each answer is kept for a second
            took.append(person.milliseconds(path))
        stalls = _taken(pipe)[2]
        found.add(f"GET {path}", statistics.median(took))
        found.add(f"GET {path}: longest stall", max(stalls))


def _taken(pipe: Any) -> Sequence[list[float]]:
    """Lags, ticks, stalls, plans."""
    pipe.send("")
    taken: Sequence[list[float]] = pipe.recv()
    return taken


def _series(client: Client, name: str) -> float:
    time.sleep(1.1)  # a scrape is kept for a second
    text = client.ask("/metrics")[1].decode()
    return float(next(each for each in text.splitlines() if each.startswith(f"{name} ")).split()[1])


def memory(process: int, name: str) -> float:
    """MiB, as Linux counts them: VmRSS now, VmHWM the most until now."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.partition(f"{name}:")[2].split()[0]) / 1024


def cpu_seconds(process: int) -> float:
    """What a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def main() -> None:
    """Measure each size, and print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="a JSON list instead of the table")
    parser.add_argument("--nodes", default="1000,5000,20000,100000", help="sizes, with commas")
    parser.add_argument("--pods-per-node", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=30.0, help="of events, each size")
    parser.add_argument("--rate", type=float, default=1_000.0, help="events of pods a second")
    asked = parser.parse_args()
    sizes = [Size(int(each), asked.pods_per_node) for each in asked.nodes.split(",")]
    show(
        [row for size in sizes for row in measure(size, asked.seconds, asked.rate)],
        as_json=asked.json,
    )


if __name__ == "__main__":
    main()
