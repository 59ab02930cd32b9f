"""A recording is written whole, for its owner alone, and over nothing else."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.cli.record.recording import write


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.mark.parametrize("name", ["out.json", "out.json.gz"])
def test_what_lay_there_before_lets_nobody_else_read_it(tmp_path: Path, name: str) -> None:
    theirs, file = tmp_path / "theirs", tmp_path / name
    theirs.write_bytes(b"theirs")
    theirs.chmod(0o666)
    for put in (os.symlink, os.link):  # where anybody may write, such as /tmp
        put(theirs, f"{file}.partial")
        write(str(file), [b"a secret", b" of ours"])
        raw = file.read_bytes()
        assert (gzip.decompress(raw) if name.endswith(".gz") else raw) == b"a secret of ours"
        assert (mode(file), theirs.read_bytes()) == (0o600, b"theirs")


def test_what_is_no_file_is_written_to_and_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write(str(pipe), [b"a", b"b"])
        assert os.read(reader, 10) == b"ab"
    finally:
        os.close(reader)
    assert pipe.is_fifo()
    assert list(tmp_path.iterdir()) == [pipe]


def test_of_one_that_is_cut_short_nothing_is_left(tmp_path: Path) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"a"
        raise OSError("cut short")

    with pytest.raises(OSError, match="cut short"):
        write(str(tmp_path / "out.json"), pieces())
    assert list(tmp_path.iterdir()) == []
