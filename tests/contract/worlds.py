"""The sandbox with a Corral in it, behind plain HTTP, in a thread with an event loop of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from app.main import started
from app.sandbox import Sandbox
from app.sandbox.scheduler.facts.scheduler_config import SchedulerConfig
from app.setting_values import Address
from app.settings import Settings
from tests.cluster import Cluster
from tests.controlplane.plane import SCHEDULER_CONFIG

START_SECONDS = 20.0
STOP_SECONDS = 30.0


@contextmanager
def sandbox(folder: Path, levels: Sequence[str], **more: Any) -> Iterator[Cluster]:
    """As `sandbox_and_corral`, for those who ask Corral nothing."""
    with sandbox_and_corral(folder, levels, **more) as (cluster, _):
        yield cluster


@contextmanager
def sandbox_and_corral(
    folder: Path, levels: Sequence[str], *, speed: float = 10.0, **settings: Any
) -> Iterator[tuple[Cluster, str]]:
    """A client of a sandbox that is scheduled by the configuration file we ship, and Corral's URL.

    speed: how much faster than kube-scheduler's its back-offs pass. settings: Corral's own.
    """
    kubeconfig = folder / "sandbox.kubeconfig"
    world = _World(
        Settings(
            kubeconfig=kubeconfig,
            levels=tuple(levels),
            extender_listen=Address("127.0.0.1", 0),
            **settings,
        ),
        kubeconfig,
        speed,
    )
    thread = threading.Thread(target=world.run, name="sandbox", daemon=True)
    thread.start()
    try:
        url, token = world.wait_started()
        with Cluster(url, token) as cluster:
            yield cluster, world.corral_url
    finally:
        world.end()
        thread.join(STOP_SECONDS)
        assert not thread.is_alive(), "the sandbox does not stop"
    world.check()


class _World:
    def __init__(self, settings: Settings, kubeconfig: Path, speed: float) -> None:
        self._settings, self._kubeconfig, self._speed = settings, kubeconfig, speed
        self.corral_url = ""
        self._started = threading.Event()
        self._address: tuple[str, str] | None = None
        self._failure: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended = asyncio.Event()

    def run(self) -> None:
        try:
            asyncio.run(self._live())
        except BaseException as error:
            self._failure = error
        finally:
            self._started.set()

    def wait_started(self) -> tuple[str, str]:
        """The URL and the token. Raises: whatever kept it from starting."""
        assert self._started.wait(START_SECONDS), "the sandbox does not start"
        self.check()
        assert self._address is not None
        return self._address

    def check(self) -> None:
        """Raises what ended it before its time."""
        if self._failure is not None:
            raise self._failure

    def end(self) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._ended.set)

    async def _live(self) -> None:
        self._loop = asyncio.get_running_loop()
        async with Sandbox() as sandbox:
            sandbox.write_kubeconfig(self._kubeconfig)
            async with started(self._settings) as corral:
                await sandbox.schedule_with(config=asking(corral.extender_url), speed=self._speed)
                self._address = sandbox.url, sandbox.token
                self.corral_url = corral.extender_url
                self._started.set()
                await self._ended.wait()


def asking(extender_url: str) -> SchedulerConfig:
    """The configuration that we ship, with Corral there."""
    config = SchedulerConfig.read(SCHEDULER_CONFIG)
    extenders = tuple(replace(one, url=extender_url) for one in config.extenders)
    return replace(config, extenders=extenders)
