"""A file of lines, packed or not; also one that can be read only once, such as a pipe."""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from itertools import chain, count
from pathlib import Path
from typing import IO, cast

from app.errors import DecodeError

GZIP = b"\x1f\x8b"
STDIN = Path("-")
SNAPSHOT = b'{"schema":"cluster-snapshot'
LONGEST_LINE = 2**30  # bytes; a list of 150,000 pods has 150 MB


@contextmanager
def lines_of(path: Path) -> Iterator[Iterator[bytes]]:
    """The lines of a journal. Raises: OSError; DecodeError for a broken gzip file, or no lines."""
    with nullcontext(_stdin()) if path == STDIN else path.open("rb") as raw:
        if raw.peek(len(GZIP))[: len(GZIP)] != GZIP:
            yield _lines(raw)
            return
        with gzip.open(raw) as packed:
            yield _unpacked(cast(IO[bytes], packed))


@contextmanager
def journal_of(path: Path) -> Iterator[Iterator[bytes]]:
    """The lines of a file that has to be a journal. Raises: OSError, DecodeError."""
    with lines_of(path) as lines:
        first = next(lines, b"")
        if not first:
            raise DecodeError("the file is empty")
        if first.startswith(SNAPSHOT):
            raise DecodeError("no decision is recorded in a snapshot of a cluster: --load")
        yield chain((first,), lines)


def _stdin() -> io.BufferedReader:
    return io.BufferedReader(cast(io.RawIOBase, sys.stdin.buffer))


def _lines(file: IO[bytes]) -> Iterator[bytes]:
    """Raises: DecodeError for a line that ends nowhere near."""
    for number in count(1):
        line = file.readline(LONGEST_LINE + 1)
        if len(line) > LONGEST_LINE:
            raise DecodeError(f"journal line {number}: more than {LONGEST_LINE} bytes")
        if not line:
            return
        yield line


def _unpacked(packed: IO[bytes]) -> Iterator[bytes]:
    try:
        yield from _lines(packed)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DecodeError(f"gzip: {error}") from error
