"""`corral topology usage` against a Corral's port, as a user runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from app.api.standing import Standing
from app.cli import main
from app.cli.common.options import NOT_READ
from app.cli.topology.usage import bar
from tests.app.api.cluster.test_topology import cluster
from tests.app.cli.served import corral
from tests.records import GPU

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with corral(cluster(), Standing(lambda: "")) as url:
        yield url


def run(server: str, *arguments: str) -> Result:
    return CliRunner().invoke(
        main, ["topology", "usage", *arguments], env={"CORRAL_SERVER": server, "COLUMNS": "200"}
    )


def test_a_tree_with_bars_and_places(server: str) -> None:
    ran = run(server, "--free-for", f"{GPU}=4", "--free-for", "g")
    assert ran.exit_code == 0
    header, root, *lines = ran.stdout.splitlines()
    assert header.split("   ")[0] == "DOMAIN"
    assert f"FREE FOR {GPU}=4" in header
    names = [line.split("cloud.")[0].split()[-1] for line in lines[:4]]
    assert names == ["b0", "r0", "b1", "r1"]
    assert lines[1].split()[-5:] == ["##++......", "7/16", "9", "2", "4"]
    assert root.split()[-4:] == ["7/32", "17", "2", "4"]
    assert any("cordoned (b0)" in line for line in lines)


def test_a_part_of_it_down_to_the_nodes(server: str) -> None:
    ran = run(server, "--under", "b1", "--level", "kubernetes.io/hostname", "-o", "name")
    assert ran.stdout.split() == ["b1", "b1/r1", "b1/r1/b0", "b1/r1/b1"]


def test_programs_get_what_v1_answers(server: str) -> None:
    found = json.loads(run(server, "-o", "json").stdout)
    assert [each["domain"] for each in found["domains"]] == ["b0", "b0/r0", "b1", "b1/r1"]


@pytest.mark.parametrize(
    "option",
    ["--level=no/such", "--under=b9", "--topology=x", "--free-for=x=y", "--resource=no/such"],
)
def test_what_is_not_there_is_one_sentence_by_the_name_of_its_option(
    server: str, option: str
) -> None:
    ran = run(server, option)
    name, _, value = option.partition("=")
    assert (ran.exit_code, len(ran.stderr.splitlines())) == (2, 1)
    assert ran.stderr.startswith(f"corral: {name}: {value}")


def test_a_reader_who_has_enough_is_told_nothing(server: str) -> None:
    nobody, output = os.pipe()
    os.close(nobody)
    ran = subprocess.run(
        [sys.executable, "-m", "app", "topology", "usage", "--server", server],
        cwd=ROOT, stdout=output, stderr=subprocess.PIPE, timeout=30, check=False,
    )  # fmt: skip
    os.close(output)
    assert (ran.returncode, ran.stderr) == (NOT_READ, b"")


@pytest.mark.parametrize(
    ("used", "reserved", "free", "drawn"),
    [
        (0, 0, 10, ".........."),
        (5, 2, 3, "#####++..."),
        (10, 0, 0, "##########"),
        (3, 0, 3, "###...xxxx"),
        (20, 5, 0, "##########"),
    ],
)
def test_a_bar_is_as_long_as_all_there_is(used: int, reserved: int, free: int, drawn: str) -> None:
    amount = {"capacity": 10, "used": used, "reserved": reserved, "free": free}
    assert bar(amount) == drawn
