"""What the page costs: the browser until the map is there, and the loop that answers it.

    python -m benchmarks.page [--json] [--nodes 5000] [--gangs 2000] [--times 5]

Every node runs four ordinary pods; the gangs have eight pods each, which run. `/v1/map` is copied
on the loop in steps and drawn in a thread; both in CPU time. The page is loaded anew each time, by
a Chromium on this machine, from a server in a process of its own; without one that part is left
out. Its figures count from the start of the navigation.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import shutil
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import httpx
import uvicorn
from fastapi import FastAPI

from app.api.following.stream import Stream
from app.api.page import AT, page
from app.api.routes import people
from app.api.standing import Standing
from app.explain.changes import Changes
from app.explain.topology.map import Known, copied, drawn
from app.kube.watch.events import Listed
from app.state.engine import Engine
from benchmarks.explain import filled
from benchmarks.table import Row, show
from tests.records import RACK, group, pod

PODS_PER_GANG, ORDINARY = 8, 4  # ordinary pods of each node
START_SECONDS, LOAD_SECONDS = 120.0, 60.0
CHROMIUM = "chromium"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


def main() -> None:
    """Measure, and print the table; with --serve be the server that the browser asks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="a JSON list instead of the table")
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--gangs", type=int, default=2_000)
    parser.add_argument("--times", type=int, default=5, help="so often each is asked")
    parser.add_argument("--serve", type=int, metavar="PORT", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.serve:
        serve(cluster(chosen.nodes, chosen.gangs), chosen.serve)
        return
    rows = list(of_map(cluster(chosen.nodes, chosen.gangs), chosen.nodes, chosen.times))
    if shutil.which(CHROMIUM):
        rows += of_browser(chosen.nodes, chosen.gangs, chosen.times)
    show(rows, as_json=chosen.json)


def cluster(nodes: int, gangs: int) -> Engine:
    """Ordinary pods on every node, and gangs that run, each on nodes beside each other."""
    engine = filled(nodes, ORDINARY * nodes)
    names = engine.books.topologies[""].tree.nodes or tuple(engine.books.nodes)
    members = [
        pod(
            f"g{gang}-{at}", gpus=1, cpu=100, on=names[(gang * PODS_PER_GANG + at) % len(names)],
            phase="Running", annotations=group(f"g{gang}", PODS_PER_GANG, RACK),
        )
        for gang in range(gangs) for at in range(PODS_PER_GANG)
    ]  # fmt: skip
    ordinary = [
        pod(f"o{at}-{number}", gpus=0, cpu=100, on=name, phase="Running")
        for at, name in enumerate(names)
        for number in range(ORDINARY)
    ]
    engine.apply(Listed("Pod", (*ordinary, *members)), 1.0)
    engine.tick(1.0)
    return engine


def of_map(engine: Engine, nodes: int, times: int) -> Iterator[Row]:
    """The longest step on the loop, all of them together, and what the thread takes."""
    longest, together, beside, size = list[float](), list[float](), list[float](), 0
    for _ in range(times):
        steps, known = list[float](), None
        copying = copied(engine, "")
        while True:
            began = time.thread_time()
            found = next(copying, None)
            steps.append(1000 * (time.thread_time() - began))
            known = found or known
            if isinstance(found, Known):
                break
        longest.append(max(steps))
        together.append(sum(steps))
        began = time.thread_time()
        assert known is not None
        content = drawn(known, "", lambda _: True).model_dump_json().encode()
        size = len(gzip.compress(content, 1))
        beside.append(1000 * (time.thread_time() - began))
    for what, figures, target in (
        ("map: longest step on the loop", longest, "<= 5"),
        ("map: all steps on the loop", together, ""),
        ("map: in the thread", beside, ""),
    ):
        yield Row("page", what, nodes, statistics.median(figures), "ms", target=target)
    yield Row("page", "map: compressed", nodes, size / 1000, "kB")


def of_browser(nodes: int, gangs: int, times: int) -> Iterator[Row]:
    """From the start of the navigation to the first map, and how long drawing it takes."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    sizes = ("--nodes", str(nodes), "--gangs", str(gangs))
    command = [sys.executable, "-m", "benchmarks.page", "--serve", str(port), *sizes]
    server = subprocess.Popen(command)
    try:
        url = f"http://127.0.0.1:{port}{AT}"
        _wait_for(url)
        first, drawing = _loaded(url, times)
    finally:
        server.terminate()
        server.wait(START_SECONDS)
    yield Row("page", "browser: until the map is there, median", nodes, statistics.median(first),
              "ms", target="<= 1000")  # fmt: skip
    yield Row("page", "browser: until the map is there, worst", nodes, max(first), "ms")
    yield Row(
        "page", "browser: drawing it", nodes, statistics.median(drawing), "ms", target="<= 16"
    )


def _wait_for(url: str) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        try:
            if httpx.get(url).is_success:
                return
        except httpx.TransportError:
            time.sleep(0.2)
    raise TimeoutError(f"no answer from {url}")


def _loaded(url: str, times: int) -> tuple[list[float], list[float]]:
    """Each time in a new tab with an empty cache."""
    from playwright.sync_api import sync_playwright

    first, drawing = list[float](), list[float]()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which(CHROMIUM), args=FLAGS)
        for _ in range(times):
            tab = browser.new_page(viewport={"width": 1440, "height": 900})
            tab.set_default_timeout(1000 * LOAD_SECONDS)
            tab.goto(url)
            tab.locator("#summary", has_text="nodes").wait_for()
            tab.locator("#status.live").wait_for()
            tab.wait_for_timeout(500)
            found = tab.evaluate("import('./map.js').then((map) => map.drawing)")
            first.append(found["firstAt"])
            drawing.append(found["milliseconds"])
            tab.close()
        browser.close()
    return first, drawing


def serve(engine: Engine, port: int) -> None:
    """The page and /v1 of an engine that stands still, until a signal ends it."""
    stream = Stream(Changes(engine), seconds=0.1)

    @asynccontextmanager
    async def following(_app: FastAPI) -> AsyncIterator[None]:
        task = asyncio.create_task(stream.run())
        yield
        task.cancel()

    app = FastAPI(lifespan=following)
    app.include_router(page())
    app.include_router(people(engine, Standing(lambda: "", stream=stream)))
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning", loop="uvloop")


if __name__ == "__main__":
    main()
