"""`corral replay`: what `corral serve --journal` has written, played again."""

from __future__ import annotations

import gzip
import json
import os
import tracemalloc
from importlib import import_module
from threading import Thread

import msgspec
import pytest
from typer.testing import CliRunner

from app.cli import main
from app.cli.replay import reading
from app.kube.watch.events import Listed
from app.state.journal.lines import first_line
from app.state.settings import EngineSettings
from tests.app.state.recorded import with_a_gang_that_runs

replay_module = import_module("app.cli.replay.comparing")


def run(*arguments):
    return CliRunner().invoke(main, ["replay", *map(str, arguments)])


@pytest.fixture
def journal(tmp_path):
    """A gang that is placed and bound."""
    path = tmp_path / "journal"
    with path.open("wb") as file:
        world = with_a_gang_that_runs(file.write)
        world.apply(Listed("Pod", tuple(world.pods.values())))
    return path


def test_a_journal_played_again_comes_to_the_same(journal):
    ran = run(journal)
    assert ran.exit_code == 0
    lines = len(journal.read_bytes().splitlines())
    assert ran.output == f"equal: {lines} lines\n"


def test_an_answer_that_is_another_is_shown_with_its_line(journal):
    lines = journal.read_bytes().splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if b'"call":"filter"' in line)
    answer = json.loads(lines[at + 1])
    lines[at + 1] = json.dumps({**answer, "digest": "0" * 16}).encode() + b"\n"
    journal.write_bytes(b"".join(lines))
    ran = run(journal)
    assert ran.exit_code == 1
    assert f"differs: line {at + 1}, filter at " in ran.output
    assert "equal" not in ran.output


def test_programs_get_what_was_compared_and_what_differs(journal):
    lines = journal.read_bytes().splitlines(keepends=True)
    found = json.loads(run(journal, "-o", "json").stdout)
    assert (found["lines"], found["differences"]) == (len(lines), [])
    assert found["answers"] > 0
    at = next(i for i, line in enumerate(lines) if b'"call":"filter"' in line)
    lines[at + 1] = json.dumps({**json.loads(lines[at + 1]), "digest": "0" * 16}).encode() + b"\n"
    journal.write_bytes(b"".join(lines))
    ran = run(journal, "-o", "json")
    assert ran.exit_code == 1
    (difference,) = json.loads(ran.stdout)["differences"]
    assert difference.startswith(f"line {at + 1}, filter at ")
    assert run(journal, "-o", "name").stdout.splitlines() == [difference]


@pytest.mark.parametrize(("most", "shown", "is_cut"), [(1, 1, True), (2, 2, True), (99, 3, False)])
def test_no_more_differences_are_shown_than_say_something_new(
    journal, monkeypatch, most, shown, is_cut
):
    monkeypatch.setattr(replay_module, "MOST_DIFFERENCES", most)
    lines = journal.read_bytes().splitlines(keepends=True)
    for at, line in enumerate(lines):
        if b'"call":"filter"' in line:
            answer = json.loads(lines[at + 1])
            lines[at + 1] = json.dumps({**answer, "digest": "0" * 16}).encode() + b"\n"
    journal.write_bytes(b"".join(lines))
    ran = run(journal)
    assert ran.exit_code == 1
    assert ran.output.count("differs: ") == shown
    assert ("… and perhaps more" in ran.output) is is_cut


def test_a_torn_last_line_is_told_and_no_difference(journal):
    journal.write_bytes(journal.read_bytes()[:-10])
    ran = run(journal)
    assert ran.exit_code == 0
    assert "is torn after" in ran.output


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param(b'{"journal":99,"settings":{}}\n', "version 99 is not known", id="version"),
        pytest.param(b"no journal\n", "journal line 1", id="another_file"),
        pytest.param(b"", "the file is empty", id="empty"),
        pytest.param(b'{"schema":"cluster-snapshot/v1",', "--load", id="snapshot"),
        pytest.param(None, "No such file", id="absent"),
    ],
)
def test_what_is_no_journal_is_said_in_one_sentence(tmp_path, content, said):
    path = tmp_path / "file"
    if content is not None:
        path.write_bytes(content)
    ran = run(path)
    assert ran.exit_code == 2
    assert said in ran.stderr
    assert len(ran.stderr.strip().splitlines()) == 1


def test_no_line_of_a_journal_is_acted_on_by_the_terminal(tmp_path):
    """Settings that are none are named, and may have any name: a journal may be another's."""
    path, escape = tmp_path / "file", "\x1b]0;owned\x07\n"
    path.write_bytes(msgspec.json.encode({"journal": 3, "settings": {escape: 1}}) + b"\n")
    ran = run(path)
    assert ran.exit_code == 2
    assert "are not known" in ran.stderr
    assert len(ran.stderr.strip().splitlines()) == 1
    assert not {"\x1b", "\x07"} & set(ran.output)


def test_a_line_without_an_end_is_not_read_into_memory(tmp_path, monkeypatch):
    """Packed, a gigabyte of it is a megabyte."""
    monkeypatch.setattr(reading, "LONGEST_LINE", 2**20)
    path = tmp_path / "file"
    with gzip.open(path, "wb") as file:
        file.write(first_line(EngineSettings()) + b"\n")
        for _ in range(64):
            file.write(b" " * 2**20)
    tracemalloc.start()
    try:
        ran = run(path)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert ran.exit_code == 2
    assert "line 2: more than 1048576 bytes" in ran.stderr
    assert most < 16 * 2**20


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "packed"])
def test_a_journal_may_come_from_a_pipe_or_stdin(journal, tmp_path, pack):
    content = pack(journal.read_bytes())
    ran = CliRunner().invoke(main, ["replay", "-"], input=content)
    assert (ran.exit_code, ran.stdout) == (0, run(journal).stdout)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = Thread(target=pipe.write_bytes, args=(content,), daemon=True)
    writer.start()
    ran = run("--check", pipe)
    assert ran.exit_code == 0, ran.output
    assert "every promise was kept" in ran.stdout
