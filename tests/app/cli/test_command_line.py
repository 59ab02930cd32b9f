"""The command line as a whole: what each --help has to say, completion, and kubectl's way in."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from app.cli import main
from app.cli.common.options import NOT_READ
from tests.app.state.recorded import with_a_gang_that_runs
from tests.cluster import node

ROOT = Path(__file__).parents[3]
SHELL = '#!/bin/sh\nexec {python} -c \'import sys; sys.argv[0] = "{name}"; {does}\' "$@"\n'
PROGRAMS = {
    "kubectl-corral": "from app.cli import main; main()",
    "kubectl_complete-corral": "from app.cli.common.completion import kubectl; kubectl()",
}


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command that does something, with the words that lead to it."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


TOP = typer.main.get_command(main)
ALL = [pytest.param(path, command, id=" ".join(path)) for path, command in commands(TOP)]


def help_of(*path: str) -> str:
    ran = CliRunner().invoke(main, [*path, "--help"])
    assert ran.exit_code == 0
    return ran.stdout


def examples(text: str) -> list[list[str]]:
    """The lines of a help that are commands to be typed, as a shell splits them."""
    after = text.partition("Example")[2].partition("Exit code")[0]
    found = [shlex.split(line) for line in after.splitlines() if line.startswith("    corral ")]
    return [words[1 : words.index(">") if ">" in words else None] for words in found]


def parses(words: list[str]) -> None:
    """Raises: what typer says of words that no command takes; nothing is run."""
    with contextlib.ExitStack() as stack:
        context = stack.enter_context(TOP.make_context("corral", list(words)))
        while context._protected_args or context.args:
            left = [*context._protected_args, *context.args]
            name, command, rest = context.command.resolve_command(context, left)
            context = stack.enter_context(command.make_context(name, rest, parent=context))
            if not hasattr(command, "commands"):
                return


@pytest.mark.parametrize(("path", "command"), ALL)
def test_every_help_has_examples_that_parse_and_lead_to_the_command(path, command):
    found = examples(help_of(*path))
    assert found, f"corral {' '.join(path)} --help has no example"
    for words in found:
        parses(words)
        assert tuple(words[: len(path)]) == path


@pytest.mark.parametrize("path", [(), ("topology",), ("topology", "generate")], ids=" ".join)
def test_the_help_of_a_group_has_examples_that_parse(path):
    found = examples(help_of(*path).partition("Options:")[0])
    assert found
    for words in found:
        parses(words)
        assert tuple(words[: len(path)]) == path


@pytest.mark.parametrize(("path", "command"), ALL)
def test_every_help_says_what_its_exit_codes_mean(path, command):
    text = help_of(*path).partition("Options:")[0]
    codes = re.findall(r"^ +(?:Exit code )?(\d): \S", text, re.MULTILINE)
    assert codes[0] == "0"
    assert codes == sorted(set(codes))
    assert "2" in codes  # as typer ends for options that it does not know


def test_an_example_that_no_command_takes_would_be_noticed():
    with pytest.raises(Exception, match="No such option"):
        parses(["explain", "x", "--bogus"])
    with pytest.raises(Exception, match="No such command"):
        parses(["nothing"])


def test_what_documents_call_commands_are_commands():
    shown = re.findall(r"^ {4}\$? ?(corral .+)$", (ROOT / "README.md").read_text(), re.MULTILINE)
    whole = [line for line in shown if not line.endswith("\\")]
    assert whole
    for line in whole:
        parses(shlex.split(re.split(" #| \\|", line)[0])[1:])


def test_the_version_is_that_of_the_distribution():
    ran = CliRunner().invoke(main, ["--version"])
    assert (ran.exit_code, ran.stdout) == (0, f"corral {version('corral')}\n")


# -- kubectl, and shells ---------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A folder that has the programs that the distribution installs, as pip writes them."""
    for name, does in PROGRAMS.items():
        program = tmp_path / name
        program.write_text(SHELL.format(python=sys.executable, name=name, does=does))
        program.chmod(0o755)
    return tmp_path


def ran(path: Path, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program as kubectl does: by its name, from PATH."""
    environment = {"PATH": f"{path}:/usr/bin:/bin", "HOME": str(path)}
    return subprocess.run(
        [name, *arguments],
        capture_output=True, text=True, env=environment, cwd=ROOT, timeout=30, check=False,
    )  # fmt: skip


def test_the_distribution_installs_these_programs():
    import tomllib

    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts["kubectl-corral"] == scripts["corral"] == "app.cli:main"
    assert scripts["kubectl_complete-corral"] == "app.cli.common.completion:kubectl"


def test_kubectl_finds_corral_on_the_path(path):
    found = ran(path, "kubectl-corral", "explain", "--help")
    assert found.returncode == 0, found.stderr
    assert "corral explain training-job" in found.stdout


@pytest.mark.parametrize(
    ("typed", "values", "directive"),
    [
        pytest.param(["exp"], ["explain"], ":4", id="command"),
        pytest.param(
            ["topology", ""], ["show", "usage", "generate"], ":4", id="command_of_a_group"
        ),
        pytest.param(["explain", "--na"], ["--namespace"], ":4", id="option"),
        pytest.param(["gangs", "-o", ""], ["table", "json", "yaml", "name"], ":4", id="value"),
        pytest.param(["audit", "--kubeconfig", ""], [], ":0", id="file"),
        pytest.param(["explain", "it's", "-o", "j"], ["json"], ":4", id="quote"),
    ],
)
def test_kubectl_completes_words_and_says_whether_files_are_meant(path, typed, values, directive):
    found = ran(path, "kubectl_complete-corral", *typed)
    assert found.returncode == 0, found.stderr
    *words, last = found.stdout.splitlines()
    assert [each for each in words if each] == values
    assert last == directive


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_get_a_completion_that_asks_corral(shell, monkeypatch):
    monkeypatch.setenv("_CORRAL_COMPLETE", f"source_{shell}")
    ran = CliRunner().invoke(main, [], prog_name="corral")
    assert ran.exit_code == 0
    assert f"_CORRAL_COMPLETE=complete_{shell}" in ran.stdout


NODES = "--levels=example.com/rack --nodes={nodes}"


@pytest.mark.parametrize(
    "words",
    [
        "version --client",
        "doctor --write-config 1.36",
        "doctor --no-cluster --settings {settings}",
        f"topology show {NODES}",
        f"topology generate hypernodes {NODES}",
        "replay --check {journal}",
        "replay {journal}",
    ],
)
def test_output_that_is_not_read_to_its_end_is_no_error_of_any_command(tmp_path, words):
    (tmp_path / "nodes").write_text(json.dumps(node("a", labels={"example.com/rack": "r"})))
    (tmp_path / "settings").write_text("")
    with (tmp_path / "journal").open("wb") as file:
        with_a_gang_that_runs(file.write)
    files = {each: tmp_path / each for each in ("nodes", "settings", "journal")}
    closed, output = os.pipe()
    os.close(closed)
    ran = subprocess.run(
        [sys.executable, "-m", "app", *words.format(**files).split()],
        cwd=ROOT, stdout=output, stderr=subprocess.PIPE, timeout=30, check=False,
    )  # fmt: skip
    os.close(output)
    assert (ran.returncode, ran.stderr) == (NOT_READ, b"")


@pytest.mark.parametrize("words", ["show", "generate hypernodes"])
def test_a_disk_without_space_is_one_sentence_of_a_command_whose_output_is_kept(tmp_path, words):
    (tmp_path / "nodes").write_text(json.dumps(node("a", labels={"example.com/rack": "r"})))
    with Path("/dev/full").open("wb") as full:
        ran = subprocess.run(
            [sys.executable, "-m", "app", *f"topology {words} {NODES}".format(
                nodes=tmp_path / "nodes"
            ).split()],
            cwd=ROOT, stdout=full, stderr=subprocess.PIPE, timeout=30, check=False,
        )  # fmt: skip
    assert (ran.returncode, ran.stderr) == (2, b"corral: [Errno 28] No space left on device\n")
