"""HTTP as cheap as it gets, so that the client is not what is measured: kept-alive connections."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from urllib.parse import urlsplit

from app.errors import CorralError

MOST_BYTES = 64 * 2**20


class NoAnswer(CorralError):
    """A request has no answer, or one that is no answer of Corral's."""


class Client:
    """As many connections as there are requests at one time; each is used again."""

    def __init__(self, url: str) -> None:
        address = urlsplit(url)
        if address.scheme != "http" or address.hostname is None:
            raise NoAnswer(f"--server {url}: an http:// address is required")
        self._host, self._port = address.hostname, address.port or 80
        self._idle: deque[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = deque()
        self._open: set[asyncio.StreamWriter] = set()

    async def request(self, method: str, path: str, body: bytes = b"", *, seconds: float) -> bytes:
        """The answer's body. Raises: NoAnswer."""
        try:
            async with asyncio.timeout(seconds):
                return await self._request(method, path, body)
        except TimeoutError as error:
            raise NoAnswer(f"{path}: no answer within {seconds:.0f} s") from error
        except (OSError, asyncio.IncompleteReadError, ValueError) as error:
            raise NoAnswer(f"{path}: {error!r}") from error

    async def follow(self, path: str, on_line: Callable[[bytes], None]) -> None:
        """Read a stream line by line until it ends or this is cancelled. Raises: NoAnswer."""
        try:
            reader, writer = await self._connection()
        except OSError as error:
            raise NoAnswer(f"{path}: {error!r}") from error
        try:
            writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
            status = await reader.readline()
            if b" 200 " not in status:
                raise NoAnswer(f"{path}: {status.decode('latin-1').strip()}")
            while line := await reader.readline():
                on_line(line)
        except (OSError, ValueError) as error:
            raise NoAnswer(f"{path}: {error!r}") from error
        finally:
            self._open.discard(writer)
            writer.close()

    async def _request(self, method: str, path: str, body: bytes) -> bytes:
        reader, writer = await self._connection()
        is_whole = False
        try:
            writer.write(
                f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\n\r\n".encode()
                + body
            )
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
            if length > MOST_BYTES:
                raise ValueError(f"an answer of {length} bytes")
            answer = await reader.readexactly(length)
            is_whole = True
        except IndexError as error:
            raise ValueError("an answer without a length") from error
        finally:
            if is_whole:
                self._idle.append((reader, writer))
            else:
                self._open.discard(writer)
                writer.close()
        if not head.startswith(b"http/1.1 200"):
            status, _, _ = head.decode("latin-1").partition("\r\n")
            raise NoAnswer(f"{path}: {status}")
        return answer

    async def _connection(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        while self._idle:
            reader, writer = self._idle.pop()
            if not reader.at_eof():
                return reader, writer
            self._open.discard(writer)
            writer.close()
        reader, writer = await asyncio.open_connection(self._host, self._port, limit=2**20)
        self._open.add(writer)
        return reader, writer

    async def close(self) -> None:
        """End every connection."""
        for writer in self._open:
            writer.close()
        closed = (writer.wait_closed() for writer in self._open)
        await asyncio.gather(*closed, return_exceptions=True)
        self._open.clear()
        self._idle.clear()
