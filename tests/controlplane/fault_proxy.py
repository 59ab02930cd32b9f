"""An HTTP proxy on loopback between one client and the API server, with a fault in it at will.

with FaultProxy(plane) as proxy:
    proxy.kubeconfig(direct)            # plain HTTP to the proxy, TLS from there on
    proxy.begin(Fault("429", on=WRITES, every=2))
    proxy.heal()                        # from now on everything passes untouched
    proxy.faulted                       # how many requests, or lines of watches, met with it

The network under it is `cut_proxy.py`.
"""

from __future__ import annotations

import asyncio
import json
import re
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import aiohttp
from aiohttp import web

from tests.controlplane.plane import ControlPlane
from tests.controlplane.proxy import Proxy

MOST_BODY = 64 * 1024 * 1024
READS, PAGES, WRITES, WATCHES, ALL = "read", "page", "write", "watch", ""
LONG_EVERY = 8
PASSED_ON = {"authorization", "accept", "content-type", "user-agent", "accept-encoding"}
PASSED_BACK = {"content-type", "content-encoding", "retry-after", "audit-id"}

_Answer = web.StreamResponse


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to every so manieth request of a kind, or to lines of watches.

    `on`: READS, WRITES, WATCHES, or PAGES, the reads of a list's second page and of those after it.
    `path`: part of the paths that it is about.

    Of requests: "429", "500", "503", "410" are the answer, nothing is passed on; "lost": it is
    passed on, and the connection ends without the answer; "hung": for `seconds` nothing comes, then
    the connection ends; "slow": it waits for `seconds` first, one in LONG_EVERY for `longest` where
    that is given, and is passed on then, even if its client has given up.
    Of a watch's lines: "closed" ends the stream in front of it, "truncated" in the middle of it;
    "garbage" puts bytes before it that are no JSON, "gone" is the API server's error of an expired
    version; "twice" repeats it; "late" is `seconds` late, and all that follow it; "silent": neither
    it nor anything after it comes, and the connection stays.
    """

    what: str
    on: str = ALL
    every: int = 1
    seconds: float = 0.0
    longest: float = 0.0
    path: str = ""


LINE_FAULTS = ("closed", "truncated", "garbage", "gone", "twice", "late", "silent")


class FaultProxy(Proxy):
    """Passes requests on to the API server and its answers back."""

    def __init__(self, plane: ControlPlane) -> None:
        super().__init__(plane.url)
        self.faulted = 0
        self._ca = plane.ca
        self._fault: Fault | None = None
        self._matched = 0

    def begin(self, fault: Fault) -> None:
        """From now on requests meet with it."""
        self._matched = 0
        self._fault = fault

    def heal(self) -> None:
        """From now on nothing does; a request that hangs goes on hanging."""
        self._fault = None

    @asynccontextmanager
    async def _listening(self) -> AsyncIterator[str]:
        trusted = ssl.create_default_context(cafile=self._ca)
        connector = aiohttp.TCPConnector(ssl=trusted, limit=0)
        timeout = aiohttp.ClientTimeout(total=None)
        async with aiohttp.ClientSession(
            connector=connector, timeout=timeout, auto_decompress=False
        ) as self._session:
            app = web.Application(client_max_size=MOST_BODY)
            app.router.add_route("*", "/{path:.*}", self._answer)
            runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5)
            await runner.setup()
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            host, port = runner.addresses[0][:2]
            yield f"http://{host}:{port}"
            await runner.cleanup()

    # -- requests ------------------------------------------------------------------------------

    async def _answer(self, request: web.Request) -> _Answer:
        body = await request.read()
        fault = self._met(request)
        if fault is not None and re.fullmatch(r"\d{3}", fault.what):
            return _refusal(int(fault.what))
        if fault is not None and fault.seconds:
            is_long = fault.longest and self.faulted % LONG_EVERY == 0
            await asyncio.sleep(fault.longest if is_long else fault.seconds)
        if fault is not None and fault.what == "hung":
            return _hung_up(request)
        headers = {key: value for key, value in request.headers.items() if _is_in(key, PASSED_ON)}
        url = self._target + request.raw_path
        try:
            async with self._session.request(
                request.method, url, data=body or None, headers=headers
            ) as theirs:
                if fault is not None and fault.what == "lost":
                    await theirs.read()
                    return _hung_up(request)
                back = {k: v for k, v in theirs.headers.items() if _is_in(k, PASSED_BACK)}
                answer = web.StreamResponse(status=theirs.status, headers=back)
                await answer.prepare(request)
                parts = (
                    self._lines(request, theirs)
                    if _kinds_of(request) == {WATCHES}
                    else _parts(theirs)
                )
                async for part in parts:
                    await answer.write(part)
                await answer.write_eof()
                return answer
        except (aiohttp.ClientError, ConnectionError):
            return _hung_up(request)
        except _Torn:
            return _hung_up(request)

    def _met(self, request: web.Request, *, is_line: bool = False) -> Fault | None:
        """The fault that this request, or this line of its answer, meets with."""
        fault = self._fault
        if fault is None or (fault.what in LINE_FAULTS) != is_line:
            return None
        if fault.on not in (*_kinds_of(request), ALL) or fault.path not in request.path:
            return None
        self._matched += 1
        if self._matched % fault.every:
            return None
        self.faulted += 1
        return fault

    # -- watches -------------------------------------------------------------------------------

    async def _lines(
        self, request: web.Request, theirs: aiohttp.ClientResponse
    ) -> AsyncIterator[bytes]:
        """The stream by lines, with what a fault makes of them. Raises: _Torn."""
        rest = b""
        async for part in theirs.content.iter_any():
            *lines, rest = (rest + part).split(b"\n")
            for line in lines:
                async for made in self._line(request, line + b"\n"):
                    yield made

    async def _line(self, request: web.Request, line: bytes) -> AsyncIterator[bytes]:
        fault = self._met(request, is_line=True)
        match "" if fault is None else fault.what:
            case "closed":
                raise _Torn
            case "truncated":
                yield line[: len(line) // 2]
                raise _Torn
            case "gone":
                status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
                yield json.dumps({"type": "ERROR", "object": status}).encode() + b"\n"
                raise _Torn
            case "garbage":
                yield b'{"type":"ADDED","object":\xff\xfe}}]\n' + line
            case "twice":
                yield line + line
            case "late":
                await asyncio.sleep(fault.seconds if fault else 0.0)
                yield line
            case "silent":
                await asyncio.Event().wait()
            case _:
                yield line


class _Torn(Exception):
    """The stream ends here without its end."""


async def _parts(theirs: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    async for part in theirs.content.iter_any():
        yield part


def _kinds_of(request: web.Request) -> set[str]:
    if request.method != "GET":
        return {WRITES}
    if request.query.get("watch") in ("1", "true", "True"):
        return {WATCHES}
    return {READS, PAGES} if "continue" in request.query else {READS}


def _is_in(name: str, names: set[str]) -> bool:
    return name.lower() in names


def _refusal(status: int) -> web.Response:
    """An answer of the API server's own shape."""
    said = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": status}
    headers = {"Retry-After": "1"} if status == 429 else {}
    reasons = {429: "TooManyRequests", 410: "Expired", 503: "ServiceUnavailable"}
    said["reason"], said["message"] = reasons.get(status, "InternalError"), "a fault of the test"
    return web.json_response(said, status=status, headers=headers)


def _hung_up(request: web.Request) -> _Answer:
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=500)
