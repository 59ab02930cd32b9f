"""`corral replay --check`: what a journal shows, for people and for programs."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner, Result

from app.cli import main
from tests.app.state.journal.checking.test_check import history, lines_of, node_is_too_small


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["replay", "--check", *map(str, arguments)])


def test_a_journal_in_which_all_went_well_is_said_to_be_good(tmp_path: Path) -> None:
    path = tmp_path / "journal.gz"
    path.write_bytes(gzip.compress(b"".join(history().lines)))
    ran = run(path)
    assert ran.exit_code == 0
    assert "every promise was kept: 1 gangs started, 3 pods bound" in ran.stdout


def test_what_is_broken_is_said_with_its_line_and_ends_with_1(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    lines = node_is_too_small(lines_of(history()))
    path.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    ran = run(path)
    assert ran.exit_code == 1
    first, *_, last = ran.stdout.splitlines()
    assert "not within capacity: pod default/g" in first
    assert "8 of nvidia.com/gpu are on n" in first
    assert first.startswith("line ")
    assert last.startswith("3 promises were broken")
    found = json.loads(run("-o", "json", path).stdout)
    assert [each["promise"] for each in found["broken"]] == ["within capacity"] * 3
    assert found["pods_bound"] == 3
    named = run("-o", "name", path).stdout.splitlines()
    assert named == [each["about"] for each in found["broken"]]


def test_a_torn_gzip_file_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "journal.gz"
    path.write_bytes(gzip.compress(b"".join(history().lines))[:-20])
    ran = run(path)
    assert ran.exit_code == 2
    assert "gzip: " in ran.stderr


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param(b"", "the file is empty", id="empty"),
        pytest.param(b'{"schema":"cluster-snapshot/v1"}', "--load", id="snapshot"),
        pytest.param(None, ": No such file or directory", id="none"),
    ],
)
def test_a_file_that_is_no_journal_is_one_sentence(
    tmp_path: Path, content: bytes | None, said: str
) -> None:
    path = tmp_path / "journal"
    if content is not None:
        path.write_bytes(content)
    ran = run(path)
    assert ran.exit_code == 2
    (sentence,) = ran.stderr.splitlines()
    assert str(path) in sentence
    assert sentence.endswith(said)


@pytest.mark.parametrize("options", [(), ("--check",)], ids=["again", "checked"])
@pytest.mark.parametrize(
    ("call", "args", "said"),
    [
        pytest.param("apply", [["applied", "Frob", {}]], "kind 'Frob' is not known", id="kind"),
        pytest.param(
            "apply",
            [["listed", "Pod", [{"uid": 5}], 0]],
            "Expected `str`, got `int` - at `$.uid`",
            id="record",
        ),
        pytest.param("frob", [], "call 'frob' is not known", id="call"),
    ],
)
def test_a_line_that_this_corral_does_not_know_is_named(
    tmp_path: Path, options: Sequence[str], call: str, args: object, said: str
) -> None:
    path = tmp_path / "journal"
    line = msgspec.json.encode({"line": "in", "now": 1.0, "call": call, "args": args}) + b"\n"
    path.write_bytes(history().lines[0] + line + b'{"line":"out"}\n')
    ran = CliRunner().invoke(main, ["replay", *options, str(path)])
    assert ran.exit_code == 2
    assert ran.stderr == f"corral: journal {path}: journal line 2: {said}\n"
