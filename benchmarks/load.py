"""Load on a real API server: pods created over a few connections, bindings seen on a watch."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from typing import BinaryIO
from urllib.parse import urlsplit

import httpx
import msgspec

from tests.controlplane.plane import ControlPlane, token

CONNECTIONS = 8  # of the creator
AHEAD = 8  # requests one connection sends before it reads the answers
SHORT_ANSWER = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
PODS, NODES = "/api/v1/namespaces/default/pods", "/api/v1/nodes"


def create(plane: ControlPlane, path: str, bodies: Iterable[bytes]) -> tuple[float, float]:
    """When the first POST began and the last one was answered (monotonic seconds).

    Requests are pipelined: each connection sends a few ahead of the answers, so that creating costs
    this process next to nothing, on the cores that are measured.
    Raises: RuntimeError unless every answer is 201.
    """
    left = iter(list(bodies))  # taking the next one is atomic
    address = urlsplit(plane.url)
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {address.netloc}\r\n"
        f"Authorization: Bearer {token('admin')}\r\n"
        f"Content-Type: application/json\r\nAccept: {SHORT_ANSWER}\r\nContent-Length: "
    ).encode()
    tls = ssl.create_default_context(cafile=plane.ca)

    def work(_number: int) -> None:
        host = address.hostname or ""
        with (
            socket.create_connection((host, address.port or 443), timeout=30) as plain,
            tls.wrap_socket(plain, server_hostname=host) as connection,
        ):
            answers = connection.makefile("rb")
            while batch := list(islice(left, AHEAD)):
                connection.sendall(
                    b"".join(b"%b%d\r\n\r\n%b" % (head, len(body), body) for body in batch)
                )
                for _ in batch:
                    _check_created(answers, path)

    began = time.monotonic()
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        list(pool.map(work, range(CONNECTIONS)))
    return began, time.monotonic()


def _check_created(answers: BinaryIO, path: str) -> None:
    """Read one answer. Raises: RuntimeError unless it is 201."""
    status = answers.readline()
    length, is_chunked = 0, False
    while (header := answers.readline().lower()) not in (b"\r\n", b""):
        if header.startswith(b"content-length:"):
            length = int(header.partition(b":")[2])
        is_chunked |= header.startswith(b"transfer-encoding:")
    text = answers.read(length)
    while is_chunked and (size := int(answers.readline(), 16)):
        text += answers.read(size + 2)
    if is_chunked:
        answers.readline()
    if b" 201 " not in status:
        raise RuntimeError(f"POST {path}: {status!r} {text[:1000]!r}")


class _Metadata(msgspec.Struct, gc=False):
    name: str = ""


class _Spec(msgspec.Struct, gc=False):
    nodeName: str = ""


class _Pod(msgspec.Struct, gc=False):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    spec: _Spec = msgspec.field(default_factory=_Spec)


class _Line(msgspec.Struct, gc=False):
    type: str
    object: _Pod


@dataclass(slots=True)
class Binds:
    """Every bound pod as the watch shows it: name -> when first seen, and its node."""

    plane: ControlPlane
    at: dict[str, float] = field(default_factory=dict)
    node_of: dict[str, str] = field(default_factory=dict)
    _is_over: bool = False

    def start(self) -> None:
        """Watches in a thread of its own until `stop`, again whenever the watch is cut."""
        threading.Thread(target=self._run, name="watch", daemon=True).start()

    def stop(self) -> None:
        self._is_over = True

    def wait(self, pods: int, seconds: float) -> None:
        """Returns when that many pods are bound, or after that time."""
        deadline = time.monotonic() + seconds
        while len(self.at) < pods and time.monotonic() < deadline:
            time.sleep(0.02)

    def _run(self) -> None:
        decode = msgspec.json.Decoder(_Line).decode
        query = {"watch": "true", "fieldSelector": "spec.nodeName!="}
        tls = ssl.create_default_context(cafile=self.plane.ca)
        headers = {"Authorization": f"Bearer {token('admin')}"}
        with httpx.Client(verify=tls, headers=headers, timeout=None, trust_env=False) as client:
            while not self._is_over:
                try:
                    with client.stream("GET", self.plane.url + PODS, params=query) as answer:
                        for line in _lines(answer.iter_raw()):
                            self._see(decode(line).object)
                except httpx.HTTPError:
                    time.sleep(0.05)  # cut under load, or the plane is stopping

    def _see(self, seen: _Pod) -> None:
        if seen.spec.nodeName and seen.metadata.name not in self.at:
            self.at[seen.metadata.name] = time.monotonic()
            self.node_of[seen.metadata.name] = seen.spec.nodeName


def _lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    tail = b""
    for chunk in chunks:
        *lines, tail = (tail + chunk).split(b"\n")
        yield from lines
