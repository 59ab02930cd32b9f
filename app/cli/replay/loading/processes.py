"""A cluster and a Corral for it, each in a process of its own on loopback, as they are run."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

from app.errors import CorralError

START_SECONDS = 120.0
STOP_SECONDS = 10.0
PATIENT_SECONDS = 86_400.0  # pods come when the load says, not when Corral wakes them
HELD_SECONDS = 60.0  # at /bind, by a gang of which a pod was not sent


class NotStarted(CorralError):
    """A process of ours did not come up."""


@dataclass(frozen=True, slots=True)
class Running:
    """Where the two answer."""

    cluster: str
    corral: str


@contextmanager
def running(snapshot: dict[str, Any], levels: tuple[str, ...]) -> Iterator[Running]:
    """Both, for as long as a block lasts. Raises: NotStarted."""
    spawn = multiprocessing.get_context("spawn")
    with TemporaryDirectory() as folder:
        kubeconfig = Path(folder) / "kubeconfig"
        ours, theirs = spawn.Pipe()
        cluster = spawn.Process(target=run_cluster, args=(snapshot, kubeconfig, theirs))
        ours_too, theirs_too = spawn.Pipe()
        corral = spawn.Process(target=run_corral, args=(kubeconfig, levels, theirs_too))
        started: list[BaseProcess] = []
        try:
            cluster.start()
            started.append(cluster)
            cluster_url = _url(ours, cluster, "the sandboxed cluster")
            corral.start()
            started.append(corral)
            yield Running(cluster_url, _url(ours_too, corral, "Corral"))
        finally:
            for process in reversed(started):
                _stop(process)


def _url(pipe: Connection, process: BaseProcess, what: str) -> str:
    """Raises: NotStarted."""
    waited = 0.0
    while not pipe.poll(0.1):
        waited += 0.1
        if not process.is_alive():
            code = process.exitcode
            raise NotStarted(f"{what} did not start: it ended with exit code {code}")
        if waited > START_SECONDS:
            raise NotStarted(f"{what} did not start within {START_SECONDS:.0f} s")
    url: str = pipe.recv()
    return url


def _stop(process: BaseProcess) -> None:
    process.terminate()
    process.join(STOP_SECONDS)
    if process.is_alive():
        process.kill()
        process.join()


def run_cluster(snapshot: dict[str, Any], kubeconfig: Path, pipe: Connection) -> None:
    """The API server of the sandbox, without a scheduler: the load is one."""
    from app.sandbox import Sandbox

    async def run() -> None:
        async with Sandbox(has_topology_crd=True, run_pods=True, asks_token=False) as cluster:
            cluster.load(snapshot)
            cluster.write_kubeconfig(kubeconfig)
            gc.collect()
            gc.freeze()  # all that is there stays: to look through it again takes 0.1 s each time
            pipe.send(cluster.url)
            await asyncio.Event().wait()

    _run(run, pipe)


def run_corral(kubeconfig: Path, levels: tuple[str, ...], pipe: Connection) -> None:
    """Corral as `corral serve` runs it, ready when it has read the cluster and made its plans."""
    from app.cli.common.logs import log_to_stderr
    from app.main import started
    from app.setting_values import Address
    from app.settings import Settings

    log_to_stderr("error")
    settings = Settings(
        kubeconfig=kubeconfig,
        extender_listen=Address("127.0.0.1", 0),
        levels=levels,
        percentage_of_nodes_to_score=100,
        log_level="error",
        hold_seconds=PATIENT_SECONDS,
        rewake_seconds=PATIENT_SECONDS,
        gang_bind_seconds=HELD_SECONDS,
    )

    async def run() -> None:
        async with started(settings) as parts:
            before: object = None
            # Ready when it has read the cluster, and no gang has changed its phase for a second.
            while parts.unready() or (now := parts.engine.gangs_by_phase()) != before:
                before = parts.unready() or now
                await asyncio.sleep(1.0)
            pipe.send(parts.extender_url)
            await asyncio.Event().wait()

    _run(run, pipe)


def _end_with(pipe: Connection) -> None:
    """End when the process that started this one is gone, however it ended."""
    with suppress(EOFError, OSError):
        pipe.recv()
    os._exit(0)  # an orderly stop would wait for others, and is not seen


def _run(work: Any, pipe: Connection) -> None:
    import uvloop

    # From the beginning: it may be gone before this one is ready, or never is.
    Thread(target=_end_with, args=(pipe,), daemon=True).start()
    # Ctrl-C is for the process that started this one, which ends it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(work())
