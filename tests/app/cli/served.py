"""A Corral's port for people, as a command reaches it: HTTP on loopback, in a thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import uvicorn
from fastapi import FastAPI

from app.api.routes import people
from app.api.standing import Standing
from app.state.engine import Engine

START_SECONDS = 10.0


@contextmanager
def served(app: FastAPI, *, lifespan: Literal["on", "off"] = "off") -> Iterator[str]:
    """Where the application answers."""
    config = uvicorn.Config(app, port=0, log_level="error", lifespan=lifespan)
    running = uvicorn.Server(config)
    thread = threading.Thread(target=running.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + START_SECONDS
    while not running.started and time.monotonic() < deadline:
        time.sleep(0.01)
    assert running.started
    host, port = running.servers[0].sockets[0].getsockname()[:2]
    try:
        yield f"http://{host}:{port}"
    finally:
        running.should_exit = True
        thread.join(START_SECONDS)


@contextmanager
def corral(engine: Engine, standing: Standing) -> Iterator[str]:
    """Where a Corral with this engine answers people."""
    app = FastAPI()
    app.include_router(people(engine, standing))
    with served(app) as url:
        yield url
