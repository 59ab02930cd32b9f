"""A proxy on loopback in front of one server, in a thread with an event loop of its own."""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import TracebackType
from typing import Self

START_SECONDS = 10.0


class Proxy(ABC):
    """Listens at `url` while the `with` block lasts, in front of the server at `target`."""

    _loop: asyncio.AbstractEventLoop
    _over: asyncio.Event

    def __init__(self, target: str) -> None:
        self.url = ""
        self._target = target
        self._is_up = threading.Event()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._run()), name="proxy", daemon=True
        )

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._is_up.wait(START_SECONDS):
            raise TimeoutError("the proxy does not listen")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(START_SECONDS)

    def kubeconfig(self, direct: Path) -> Path:
        """A copy of a kubeconfig that names this proxy where the original names the server."""
        path = direct.with_suffix(".through-proxy")
        text = direct.read_text(encoding="utf-8").replace(self._target, self.url)
        path.write_text(text, encoding="utf-8")
        return path

    @abstractmethod
    def _listening(self) -> AbstractAsyncContextManager[str]:
        """Listens on a free port while it lasts; its value is the URL."""

    async def _run(self) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        async with self._listening() as self.url:
            self._is_up.set()
            await self._over.wait()
