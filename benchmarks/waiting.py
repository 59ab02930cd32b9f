"""How long /filter takes beside thousands of gangs that wait, while pods end all the time.

    python -m benchmarks.waiting [--json] [--nodes 5000] [--gangs 2000] [--seconds 20]

One server process with Corral's engine, driver, routes and guard; its watch is stubbed. Every node
is full of one pod that runs. Each waiting gang is of two pods that need a node each in one rack;
50 pods end a second, and others take their places a tenth of a second later. Another process asks
/filter in turns about an ordinary pod and a member that waits, every node a candidate. Figures:
the 99th percentile of what the client waits, beside the same without any gang, and how long a gang
of another namespace waits for its plan that comes meanwhile and fits.

    no gang          the baseline
    one shape        all gangs request the same
    own selector     each selects a label that no node has
    own affinity     each allows all nodes but two of its own
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import time
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import count
from multiprocessing.connection import Connection
from random import Random

from fastapi import APIRouter, Request, Response
from msgspec.structs import replace

from app.dialects.registry import DIALECTS
from app.dialects.spec import GangKey
from app.kube.core.objects import PodRecord, Requirement, Shape, Taint, Term, Toleration
from app.kube.decoding.decode import decode_node
from app.kube.watch.events import Applied, Deleted, Listed
from app.metrics import Metrics
from app.process.driver import Driver
from app.process.engine_settings import engine_settings
from app.settings import Settings
from app.state.engine import Engine
from benchmarks.filter import Client, answer, gang, node_name, racks, served, stored
from benchmarks.table import Row, show
from tests.cluster import BLOCK, GPU, HOSTNAME, RACK
from tests.records import group, pod

ENDING_EVERY = 0.02  # seconds
BACK_AFTER = 5  # endings
ASK_EVERY = 0.01  # seconds, between two requests of the client
ARRIVAL_EVERY = 0.5  # seconds, of a gang in another namespace
QUIET = "quiet"  # that namespace, and a taint on the two nodes it has for itself
CASES = ("no gang", "one shape", "own selector", "own affinity")
TARGET = "<= 20"  # of what a client waits, whatever else does
DELAY_TARGET = "<= 1000"  # of what a gang does because of another namespace


# -- the server ------------------------------------------------------------------------------------


def serve(nodes: int, gangs: int, case: str, port: Connection) -> None:
    """Serves until the process is ended; tells its port first."""
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(nodes, gangs, case, port))


async def _serve(nodes: int, gangs: int, case: str, port: Connection) -> None:
    settings = Settings(levels=(BLOCK, RACK), percentage_of_nodes_to_score=100)
    engine, metrics = Engine(engine_settings(settings)), Metrics(DIALECTS.kinds)
    stepped = asyncio.Event()  # the engine has taken another input
    driver = Driver(
        engine, engine, lambda effects: stepped.set(), metrics, tick_seconds=settings.tick_seconds
    )
    running = fill(engine, nodes, gangs, case)
    delays: list[float] = []
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(driver.tick())
        tasks.create_task(_end_pods(driver, running))
        tasks.create_task(_arrive(driver, engine, stepped, delays))
        tasks.create_task(answer(engine, settings, metrics, port, figures(engine, delays)))


def fill(engine: Engine, nodes: int, gangs: int, case: str) -> list[PodRecord]:
    """Lists a cluster whose nodes are full, but for two, and the gangs; returns the pods there."""
    now = time.monotonic()
    records = [decode_node(json.dumps(each).encode()) for each in racks(nodes)]
    for at in (0, 1):
        records[at] = replace(records[at], taints=(Taint(QUIET, "", "NoSchedule"),))
    running = [pod(f"r{at}", on=each.name, phase="Running") for at, each in enumerate(records[2:])]
    waiting = [each for at in range(gangs) for each in members(f"w{at}", shape_of(case, at))]
    for kind in DIALECTS.kinds:
        if kind not in ("Node", "Pod"):
            engine.apply(Listed(kind, ()), now)
    engine.apply(Listed("Node", tuple(records)), now)
    engine.apply(Listed("Pod", (*running, *waiting)), now)
    return running


def shape_of(case: str, number: int) -> Shape:
    """What the pods of one waiting gang ask of nodes."""
    if case == "own selector":
        return Shape(selector=(("pool", f"p{number}"),))
    if case == "own affinity":
        own = (node_name(number), node_name(number + 1))
        return Shape(terms=(Term(expressions=(Requirement(HOSTNAME, "NotIn", own),)),))
    return Shape()


def members(name: str, shape: Shape, namespace: str = "default") -> list[PodRecord]:
    """A gang of two pods that need a node each, in one rack."""
    said = group(name, 2, RACK)
    pods = [pod(f"{name}-{at}", annotations=said, shape=shape) for at in range(2)]
    return [replace(each, namespace=namespace) for each in pods]


async def _end_pods(driver: Driver, running: Sequence[PodRecord]) -> None:
    """A pod ends every now and then, and a while later another one runs in its place."""
    chance, numbers, gone = Random(0), count(), deque[PodRecord]()
    left = list(running)
    while True:
        await asyncio.sleep(ENDING_EVERY)
        at = chance.randrange(len(left))
        driver.apply(Deleted(left[at]))
        gone.append(left[at])
        left[at] = left[-1]
        left.pop()
        if len(gone) > BACK_AFTER:
            name = f"n{next(numbers)}"
            left.append(replace(gone.popleft(), name=name, uid=f"uid-{name}"))
            driver.apply(Applied(left[-1]))


async def _arrive(
    driver: Driver, engine: Engine, stepped: asyncio.Event, delays: list[float]
) -> None:
    """Gangs of another namespace come, one after the other, and are gone once they have a plan."""
    tolerates = Shape(tolerations=(Toleration(QUIET, "Exists", "", ""),))
    for number in count():
        await asyncio.sleep(ARRIVAL_EVERY)
        pods = members(f"q{number}", tolerates, QUIET)
        came = time.monotonic()
        for each in pods:
            driver.apply(Applied(each))
        key = GangKey(QUIET, f"q{number}", "group")
        while len(engine.gangs.by_key[key].plan.nodes) < len(pods):
            stepped.clear()
            await stepped.wait()
        delays.append(time.monotonic() - came)
        for each in pods:
            driver.apply(Deleted(each))


def figures(engine: Engine, delays: list[float]) -> APIRouter:
    """/figures: how many gangs wait, and the seconds that each gang waited that came meanwhile."""
    router = APIRouter()

    @router.route("/figures", methods=["POST"])
    async def figures(request: Request) -> Response:
        return Response(json.dumps([sum(1 for _ in engine.gangs.plannable()), delays]).encode())

    return router


# -- the client ------------------------------------------------------------------------------------


def measure(nodes: int, gangs: int, case: str, seconds: float) -> tuple[list[float], list[float]]:
    """Seconds per answer, and per gang that came meanwhile."""
    with served(serve, nodes, gangs, case) as client:
        took = list(_ask(client, nodes, seconds, has_gangs=gangs > 0))
        waiting, delays = json.loads(client.post("/figures", b""))
    if waiting < gangs:
        raise AssertionError(f"{case}: {waiting} of {gangs} gangs wait")
    return took, delays


def _ask(client: Client, nodes: int, seconds: float, *, has_gangs: bool) -> Iterator[float]:
    names = [node_name(number) for number in range(nodes)]
    asked = [stored("ordinary", "memory", 2**30, {})]
    if has_gangs:
        asked.append(gang("w0", 2)[0] | {"spec": stored("w0-0", GPU, 8, {})["spec"]})
    bodies = [
        json.dumps({"Pod": each, "Nodes": None, "NodeNames": names}).encode() for each in asked
    ]
    until = time.perf_counter() + seconds
    for number in count():
        if time.perf_counter() > until:
            return
        time.sleep(ASK_EVERY)
        began = time.perf_counter()
        client.post("/filter", bodies[number % len(bodies)])
        yield time.perf_counter() - began


def rows(nodes: int, gangs: int, seconds: float) -> Iterator[Row]:
    """One table: the answers of every case beside those without gangs, and the delays."""
    alone = 0.0
    for case in CASES:
        waiting = 0 if case == CASES[0] else gangs
        took, delays = measure(nodes, waiting, case, seconds)
        slow = statistics.quantiles(took, n=100)[98] * 1e3
        alone = alone or slow
        name = f"{waiting} waiting gangs, {case}"
        yield Row(
            "waiting", f"{name}: /filter, p99", nodes, slow, "ms", alone, slow / alone, TARGET
        )
        longest = max(delays) * 1e3
        yield Row(
            "waiting", f"{name}: another's gang, longest", nodes, longest, "ms", target=DELAY_TARGET
        )


def main() -> None:
    """Measures every case and prints one table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print a JSON list")
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--gangs", type=int, default=2_000)
    parser.add_argument("--seconds", type=float, default=20.0, help="per case")
    arguments = parser.parse_args()
    found = list(rows(arguments.nodes, arguments.gangs, arguments.seconds))
    show(found, as_json=arguments.json)


if __name__ == "__main__":
    main()
