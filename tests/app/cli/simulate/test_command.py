"""`corral simulate` against a Corral's port, as a user runs it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from app.admission.scope import Scope
from app.api.standing import Standing
from app.cli import main
from app.cli.simulate.command import NOT_ALL_FIT
from app.simulate.simulating import Rules
from tests.app.api.test_simulating import job
from tests.app.cli.served import corral
from tests.app.simulate.clusters import engine_of
from tests.app.state.world import four_racks


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Where a Corral answers whose cluster has four racks of four nodes."""
    engine, standing = engine_of(four_racks()), Standing(lambda: "")
    with corral(engine, replace(standing, rules=Rules(Scope("corral")))) as url:
        yield url


def run(server: str, *arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(
        main, ["simulate", *arguments], env={"CORRAL_SERVER": server}, input=stdin
    )


def text(*things: object) -> str:
    return "\n---\n".join(map(yaml.safe_dump, things))


def test_what_fits_is_a_line_and_its_nodes(server: str, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(text(job("t", 4)))
    ran = run(server, "-f", str(file), "-n", "team-a")
    assert ran.exit_code == 0
    header, line, *_ = ran.stdout.splitlines()
    assert header.split() == ["OBJECT", "GANG", "VERDICT", "PODS", "DOMAINS"]
    assert line.split()[:5] == ["Job", "team-a/t", "team-a/t", "Fits", "4/4"]
    assert "n03: 1 pod: t-3" in ran.stdout


def test_the_objects_of_several_files_are_simulated_together(server: str, tmp_path: Path) -> None:
    first, second = tmp_path / "a.yaml", tmp_path / "b.json"
    first.write_text(text(job("t", 4), job("u", 4)))
    second.write_text(json.dumps(job("v", 4)))
    ran = run(server, "-f", str(first), "-f", str(second), "-f", "-", stdin=text(job("w", 5)))
    assert ran.exit_code == NOT_ALL_FIT
    found = [line.split()[1:4] for line in ran.stdout.splitlines()[1:5]]
    assert found == [[f"default/{each}", f"default/{each}", verdict] for each, verdict in (
        ("t", "Fits"), ("u", "Fits"), ("v", "Fits"), ("w", "DoesNotFit"))]  # fmt: skip
    wrong = run(server, "-f", str(first), "-f", "-", stdin="5")
    assert wrong.exit_code == 2
    assert wrong.stderr.startswith(f"corral: {first}, stdin: object 3 ")


def test_a_gang_of_one_pod_is_told_of_as_one(server: str) -> None:
    ran = run(server, "-f", "-", stdin=text(job("t", 1)))
    assert "gang default/t fits: its only pod has a place" in ran.stdout


def test_what_does_not_fit_says_why_and_ends_with_its_own_code(server: str) -> None:
    ran = run(server, "-f", "-", stdin=text(job("t", 5), job("u", 1)))
    assert ran.exit_code == NOT_ALL_FIT
    assert "default/u" in ran.stdout
    assert "What helps  would fit with t in one" in ran.stdout
    assert "4 of 5 pods" in ran.stdout


@pytest.mark.parametrize(("output", "read"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_programs_get_what_v1_answers(server: str, output: str, read: object) -> None:
    ran = run(server, "-f", "-", "-o", output, stdin=text(job("t", 2)))
    found = read(ran.stdout)  # type: ignore[operator]
    assert (ran.exit_code, found["gangs"][0]["verdict"], found["pods"]) == (0, "Fits", 2)


def test_names_are_those_of_the_gangs(server: str) -> None:
    ran = run(server, "-f", "-", "-o", "name", stdin=text(job("t", 2), job("u", 1)))
    assert (ran.exit_code, ran.stdout.split()) == (0, ["default/t", "default/u"])


def test_a_tenants_text_does_nothing_to_the_terminal(server: str) -> None:
    thing = job("t", 1)
    thing["spec"]["template"]["spec"]["schedulerName"] = "x\x1b[31m"
    ran = run(server, "-f", "-", stdin=json.dumps(thing))
    assert ran.exit_code == 0
    assert "\x1b" not in ran.stdout


@pytest.mark.parametrize(
    ("content", "code", "named"),
    [
        ("a: [", 2, "stdin: the body is no YAML"),
        ("", 2, "stdin: the body has no object"),
        ("#" * 2**21, 2, "stdin: the body has more than"),
        ("kind: Service\napiVersion: v1\nmetadata: {name: web}", 2, "Service web"),
        (None, 2, "corral: /tmp/nothing.yaml: No such file or directory"),
    ],
)
def test_what_cannot_be_simulated_is_one_sentence(
    server: str, content: str | None, code: int, named: str
) -> None:
    ran = run(server, "-f", "/tmp/nothing.yaml" if content is None else "-", stdin=content)
    assert ran.exit_code == code
    assert named in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
