"""The journal of this process as a file: written until it is full, then closed, with a warning.

FILE            every input of the engine since this process began, for `corral replay`
FILE.previous   the journal of the process before, which may have crashed
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import structlog

from app.errors import SettingsError

log = structlog.get_logger(__name__)

PIECE_BYTES = 2**18  # read at a time, for a dump


class JournalFile:
    """Keeps lines, as many as fit; never raises once it is open.

    Units: `most_bytes` and `size` in bytes. Raises: SettingsError if the file cannot be made.
    """

    def __init__(self, path: Path, most_bytes: int) -> None:
        self.size = 0
        self._path, self._most_bytes = path, most_bytes
        previous = path.with_name(f"{path.name}.previous")
        try:
            for each in (path, previous):
                if each.exists() and not each.is_file():  # renamed, /dev/null would be gone
                    raise SettingsError(f"journal {each}: not a regular file")
            if path.exists():
                path.replace(previous)
            self._file = path.open("xb")
        except OSError as error:
            raise SettingsError(f"journal {path}: cannot be written: {error}") from error

    def write(self, line: bytes) -> None:
        """Keep this line, unless an earlier one could not be kept."""
        if self._file.closed:
            return
        if self.size + len(line) > self._most_bytes:
            self._end(f"it would exceed {self._most_bytes} bytes, its limit")
            return
        try:
            self._file.write(line)
        except OSError as error:
            self._end(str(error))
            return
        self.size += len(line)

    @property
    def is_whole(self) -> bool:
        """Whether every line so far was kept."""
        return not self._file.closed

    def pieces(self) -> Iterator[bytes]:
        """The lines so far, from the file; those that follow are not among them."""
        try:
            self._file.flush()
        except OSError as error:
            self._end(str(error))
        return _pieces(self._path, self.size)

    def close(self) -> None:
        """Write out what is still in memory."""
        try:
            self._file.close()
        except OSError as error:
            log.error("journal", path=str(self._path), problem=str(error))

    def _end(self, problem: str) -> None:
        log.warning("journal ends", path=str(self._path), problem=problem)
        self.close()


def _pieces(path: Path, size: int) -> Iterator[bytes]:
    with path.open("rb") as file:
        while size and (piece := file.read(min(PIECE_BYTES, size))):
            size -= len(piece)
            yield piece
