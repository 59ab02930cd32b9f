"""HTTP to the API server: bytes in, bytes out, every failure one of `app.errors`.

One connection pool, large enough for a whole gang to be bound at once. No retries: the caller
knows whether a second request is right.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Protocol

import aiohttp
import msgspec
from yarl import URL

from app.errors import ApiError, NotListening, TooLong, Unreachable, api_error
from app.kube.client.credentials import Credentials
from app.kube.decoding import wire
from app.kube.decoding.large.escapes import shortened

CONNECTIONS = 256  # one gang's bindings at once; more wait for a free connection
REQUEST_SECONDS = 30.0  # httpTimeout of kube-scheduler's extenders: it waits no longer
CONNECT_SECONDS = 10.0
IDLE_SECONDS = 60.0  # less than the 90 after which the API server closes an idle connection
# Bytes of one object as JSON. etcd takes 1.5 MiB, and there `<` is one byte; Go's JSON makes six of
# it, and seven of what is small and has a long name: 10.5 MiB.
LONGEST_OBJECT = 16 * 2**20
READ_BYTES = 2**18  # per read: a burst of events arrives in few of them
LONGEST_REFUSAL = 2**16  # bytes read of an error's body
LONGEST_PAUSE = 300.0  # seconds; a Retry-After beyond this is cut

_JSON = "application/json"
_NO_HEADERS: Mapping[str, str] = {}
_STATUS = msgspec.json.Decoder(wire.Status)


class Access(Protocol):
    """Address and identity; `credentials.Credentials`, or a plain one for a local server.

    `tls` may be another one later.
    """

    url: str
    proxy: str | None
    server_name: str | None
    tls: ssl.SSLContext | None

    async def headers(self) -> dict[str, str]: ...

    def expire(self) -> None: ...


class Transport:
    """Requests and streams over one pool of connections. Close it when done."""

    def __init__(self, access: Access, *, connections: int = CONNECTIONS) -> None:
        self._access = access
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=connections, keepalive_timeout=IDLE_SECONDS),
            headers={"User-Agent": "corral", "Accept": _JSON, "Accept-Encoding": "identity"},
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=READ_BYTES,
        )

    @classmethod
    async def from_kubeconfig(
        cls, path: str | Path, *, context: str | None = None, connections: int = CONNECTIONS
    ) -> Transport:
        """Connect as a context of a kubeconfig says; None: its current one.

        Raises: SettingsError.
        """
        access = await Credentials.from_kubeconfig(path, context=context)
        return cls(access, connections=connections)

    @classmethod
    async def in_cluster(cls, folder: str | Path, *, connections: int = CONNECTIONS) -> Transport:
        """Connect with this pod's service account; kubelet has mounted it into the folder.

        Raises: SettingsError.
        """
        return cls(Credentials.in_cluster(folder), connections=connections)

    async def close(self) -> None:
        """Close every connection; streams that are open end as Unreachable."""
        await self._session.close()

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: object = None,
        content_type: str = _JSON,
        timeout: float = REQUEST_SECONDS,
        most_bytes: int = LONGEST_OBJECT,
    ) -> bytes:
        """Return the body of a 2xx answer, shortened. `body` is written as JSON unless it is bytes.

        Units: timeout in seconds, over what it takes to say who we are, and again over everything
            else: queueing, connecting, sending, reading.
        Raises: ApiError or the member of its tree for the status; Unreachable without one; TooLong
            for an answer of more than `most_bytes`, as soon as so many have come.
        """
        if body is not None and not isinstance(body, bytes):
            body = msgspec.json.encode(body)
        headers = {"Content-Type": content_type} if body is not None else _NO_HEADERS
        limit = aiohttp.ClientTimeout(total=timeout, sock_connect=CONNECT_SECONDS)
        try:
            url = self._url(path, params)
            async with await self._open(method, url, limit, body, headers) as answer:
                await self._check(answer)
                return await _read(answer, most_bytes, f"{method} {path}")
        except (aiohttp.ClientError, OSError) as error:
            raise _unreachable(f"{method} {path}", error) from error

    async def date_of(self, path: str, *, timeout: float = REQUEST_SECONDS) -> str:
        """Return the Date header of an answer, whole seconds as HTTP writes them; "" without one.

        Raises: as `request`.
        """
        limit = aiohttp.ClientTimeout(total=timeout, sock_connect=CONNECT_SECONDS)
        try:
            async with await self._open("GET", self._url(path, None), limit) as answer:
                await self._check(answer)
                return answer.headers.get("Date", "")
        except (aiohttp.ClientError, OSError) as error:
            raise _unreachable(f"GET {path}", error) from error

    async def stream(
        self, path: str, params: Mapping[str, str], read_timeout: float
    ) -> AsyncGenerator[bytes, None]:
        """Yield the lines of a watch, shortened, until the server ends it; close with `aclosing`.

        A last line that was cut off is not yielded. Units: read_timeout in seconds of silence.
        Raises: as `request`; TooLong for a line longer than LONGEST_OBJECT.
        """
        limit = aiohttp.ClientTimeout(
            total=None, sock_connect=CONNECT_SECONDS, sock_read=read_timeout
        )
        try:
            async with await self._open("GET", self._url(path, params), limit) as answer:
                await self._check(answer)
                begun: list[bytes] = []  # of a line that has not ended, joined once
                begun_bytes = 0
                async for chunk in answer.content.iter_any():
                    first, *rest = chunk.split(b"\n")
                    begun.append(shortened(first, begun_bytes))
                    begun_bytes += len(first)
                    if begun_bytes > LONGEST_OBJECT:
                        raise TooLong(f"watch of {path}: line over {LONGEST_OBJECT} bytes")
                    if rest:
                        line, begun = b"".join(begun), rest[-1:]
                        begun_bytes = len(rest[-1])
                        yield line
                        for line in rest[:-1]:
                            yield line
        except (aiohttp.ClientError, OSError) as error:
            raise _unreachable(f"watch of {path}", error) from error

    def _url(self, path: str, params: Mapping[str, str] | None) -> URL:
        # Paths arrive escaped; escaping them again would name another object.
        url = URL(self._access.url + path, encoded=True)
        return url.update_query(params) if params else url

    async def _open(
        self,
        method: str,
        url: URL,
        timeout: aiohttp.ClientTimeout,
        body: bytes | None = None,
        headers: Mapping[str, str] = _NO_HEADERS,
    ) -> aiohttp.ClientResponse:
        async with asyncio.timeout(timeout.total):
            identity = await self._access.headers()
        return await self._session.request(
            method,
            url,
            data=body,
            headers={**headers, **identity},
            timeout=timeout,
            allow_redirects=False,
            # By it connections are told apart: those of an authority before are not used again.
            ssl=self._access.tls if self._access.tls is not None else True,
            proxy=self._access.proxy,
            server_hostname=self._access.server_name,
        )

    async def _check(self, answer: aiohttp.ClientResponse) -> None:
        if 200 <= answer.status < 300:
            return
        if answer.status == HTTPStatus.UNAUTHORIZED:
            self._access.expire()
        raise await _refusal(answer)


async def _read(answer: aiohttp.ClientResponse, most_bytes: int, what: str) -> bytes:
    chunks: list[bytes] = []
    received = 0
    async for chunk in answer.content.iter_any():
        chunks.append(shortened(chunk, received))
        received += len(chunk)
        if received > most_bytes:
            raise TooLong(f"{what}: answer over {most_bytes} bytes")
    return b"".join(chunks)


async def _refusal(answer: aiohttp.ClientResponse) -> ApiError:
    payload = b""
    # To its end: one read has what has come so far, and a connection is closed with what is left.
    async for chunk in answer.content.iter_any():
        payload = (payload + chunk)[:LONGEST_REFUSAL]
        if len(payload) == LONGEST_REFUSAL:
            break
    try:
        status = _STATUS.decode(payload)
    except (ValueError, RecursionError):  # a proxy's page, or a cut answer
        status = wire.Status(message=payload[:200].decode("utf-8", "replace"))
    return api_error(
        answer.status,
        status.reason or str(answer.reason or ""),
        status.message or "",
        _pause(answer.headers.get("Retry-After", "")),
    )


def _pause(header: str) -> float | None:
    # The API server writes whole seconds; the date form of HTTP is not used there.
    if not (header.isascii() and header.isdecimal()):
        return None
    return min(float(header), LONGEST_PAUSE)


def _unreachable(what: str, error: Exception) -> Unreachable:
    is_refused = isinstance(error, aiohttp.ClientConnectorError) and isinstance(
        error.os_error, ConnectionRefusedError
    )
    kind = NotListening if is_refused else Unreachable
    return kind(f"{what}: {str(error) or type(error).__name__}")
