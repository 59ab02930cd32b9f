"""A file of lines, packed or not."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

from app.errors import DecodeError

GZIP = b"\x1f\x8b"
SNAPSHOT = b'{"schema":"cluster-snapshot'


@contextmanager
def lines_of(path: Path) -> Iterator[Iterator[bytes]]:
    """The lines of a journal. Raises: OSError; DecodeError for a broken gzip file."""
    with path.open("rb") as raw:
        is_packed = raw.read(len(GZIP)) == GZIP
        raw.seek(0)
        if not is_packed:
            yield iter(raw)
            return
        with gzip.open(raw) as packed:
            yield _unpacked(packed)


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


def _unpacked(packed: Iterable[bytes]) -> Iterator[bytes]:
    try:
        for line in packed:  # noqa: UP028 (what is raised here is translated)
            yield line
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DecodeError(f"gzip: {error}") from error
