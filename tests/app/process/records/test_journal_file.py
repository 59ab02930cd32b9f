"""The file a journal is kept in: its bound, what was there before, and a disk that is full."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from app.errors import SettingsError
from app.process.records.journal_file import JournalFile


def test_lines_are_kept_in_their_order(tmp_path):
    journal = JournalFile(tmp_path / "j", 100)
    for line in (b"one\n", b"two\n"):
        journal.write(line)
    journal.close()
    assert (tmp_path / "j").read_bytes() == b"one\ntwo\n"
    assert journal.size == 8


def test_a_full_journal_ends_with_a_whole_line_and_takes_no_shorter_one_later(tmp_path):
    journal = JournalFile(tmp_path / "j", 10)
    for line in (b"first\n", b"second\n", b"3\n"):
        journal.write(line)
    assert (tmp_path / "j").read_bytes() == b"first\n"
    assert journal.size == 6


def test_a_journal_is_filled_to_its_last_byte(tmp_path):
    journal = JournalFile(tmp_path / "j", 10)
    for line in (b"first\n", b"2nd\n", b"\n"):
        journal.write(line)
    assert (tmp_path / "j").read_bytes() == b"first\n2nd\n"
    assert journal.size == 10
    journal.close()  # once more does no harm


def test_the_journal_of_the_process_before_is_kept_beside_the_new_one(tmp_path):
    for said in (b"first\n", b"second\n", b"third\n"):
        journal = JournalFile(tmp_path / "j", 100)
        journal.write(said)
        journal.close()
    assert (tmp_path / "j").read_bytes() == b"third\n"
    assert (tmp_path / "j.previous").read_bytes() == b"second\n"


def test_a_file_that_cannot_be_made_is_named(tmp_path):
    with pytest.raises(SettingsError, match=r"journal .*absent/j: cannot be written: .*No such"):
        JournalFile(tmp_path / "absent" / "j", 100)


@pytest.mark.parametrize("name", ["j", "j.previous"])
@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo, lambda path: path.symlink_to("/dev/null")])
def test_what_is_no_regular_file_is_refused_and_left_alone(tmp_path, name, make):
    make(tmp_path / name)
    found = (tmp_path / name).lstat()
    with pytest.raises(SettingsError, match=rf"journal {tmp_path}/{name}: not a regular file"):
        JournalFile(tmp_path / "j", 100)
    assert (tmp_path / name).lstat().st_ino == found.st_ino
    assert [each.name for each in tmp_path.iterdir()] == [name]


def test_a_link_to_a_regular_file_is_a_journal_too(tmp_path):
    (tmp_path / "target").write_bytes(b"first\n")
    (tmp_path / "j").symlink_to("target")
    journal = JournalFile(tmp_path / "j", 100)
    journal.write(b"second\n")
    journal.close()
    assert (tmp_path / "j").read_bytes() == b"second\n"
    assert (tmp_path / "j.previous").read_bytes() == b"first\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a disk that is full")
def test_a_full_disk_ends_the_journal_and_nothing_else(tmp_path):
    journal = JournalFile(tmp_path / "j", 10**6)
    journal.close()
    with Path("/dev/full").open("wb", buffering=0) as full:
        journal._file = full
        for _ in range(3):
            journal.write(b"line\n")
        assert full.closed
    assert journal.size == 0
