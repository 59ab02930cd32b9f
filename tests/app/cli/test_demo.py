"""`corral demo --once` as a new user runs it, in a process of its own."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest

from app.cli.demo import PLACE_SECONDS, Shown, Stage, _answer, _domains, _place, _print_table, _seen
from app.cli.showcase import BLOCK, RACK, SHOWPIECES, with_levels
from app.sandbox import Sandbox
from tests.app.kube.apiserver import reply, serving

RECORDED = Path(__file__).parents[4] / "shared" / "data" / "openb-2023.json.gz"
WORDS = {RACK: ["rack"], BLOCK: ["block"], "": []}
WITHIN = {RACK: r"block-\d+-rack-\d+", BLOCK: r"block-\d+(-rack-\d+|, \d+ racks)"}
SECONDS = 60  # of a busy machine; about 4 otherwise

pytestmark = pytest.mark.slow


def demo(*flags: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-m", "app", "demo", "--once", *flags],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def rows(printed: str) -> dict[str, list[str]]:
    """Gang -> the cells of its row."""
    cells = [re.split(r"\s{2,}", line) for line in printed.splitlines()]
    names = {piece.name for piece in SHOWPIECES}
    return {row[0]: row[1:] for row in cells if row[0] in names}


def test_a_dozen_gangs_are_placed_and_the_one_that_cannot_be_is_told_why():
    printed = demo()
    placed = {name: row for name, row in rows(printed).items() if row[-1] != "waits"}
    assert set(placed) == {piece.name for piece in SHOWPIECES} - {"too-big"}
    for piece in SHOWPIECES:
        _, _, constraint, domains, *_ = rows(printed)[piece.name]
        assert constraint.split() == [piece.mode, *WORDS[piece.level]]
        if piece.name in placed and piece.mode == "required":
            assert re.fullmatch(WITHIN[piece.level], domains)
    assert "\ntoo-big: gang default/too-big cannot be placed" in printed


@pytest.mark.parametrize(
    ("racks", "said"),
    [
        pytest.param({("b1", "r1")}, "r1", id="one_rack"),
        pytest.param({("b1", "r1"), ("b1", "r2")}, "b1, 2 racks", id="one_block"),
        pytest.param({("b1", "r1"), ("b1", "r2"), ("b2", "r3")}, "2 blocks, 3 racks", id="more"),
    ],
)
def test_where_a_gang_is_is_said_by_the_narrowest_domain_that_holds_it(racks, said):
    assert _domains(racks) == said


def condition(kind: str, message: str) -> dict[str, str]:
    return {"type": kind, "status": "False", "message": message}


VERDICT = condition("PodScheduled", "gang default/a cannot be placed: 1 of 2 pods fit")


@pytest.mark.parametrize(
    ("pods", "why"),
    [
        pytest.param([{}, {}], None, id="pods_without_a_status"),
        pytest.param([{"conditions": []}, {}], None, id="no_condition"),
        pytest.param(
            [{"conditions": [condition("PodScheduled", "0/9 nodes")]}, {}], None, id="other"
        ),
        pytest.param(
            [{"conditions": [{**VERDICT, "type": "Ready"}]}, {}], None, id="other_condition"
        ),
        pytest.param(
            [{"conditions": [condition("PodScheduled", "0/9 nodes")]}, {"conditions": [VERDICT]}],
            VERDICT["message"],
            id="the_second_pod_has_it",
        ),
    ],
)
def test_a_gang_waits_once_one_of_its_pods_says_why(pods, why):
    piece = replace(SHOWPIECES[0], pods=2)
    shown = _seen(piece, [{"spec": {}, "status": status} for status in pods], {}, 0.5)
    assert (shown and (shown.why, shown.nodes, shown.seconds)) == (why and (why, 0, 0.5))


@pytest.mark.parametrize(
    ("nodes", "seen"),
    [
        pytest.param(["n1", None], None, id="one_is_not_bound"),
        pytest.param(["n1", "n1"], ("r1", 1), id="on_one_node"),
        pytest.param(["n1", "n2"], ("b1, 2 racks", 2), id="on_two"),
    ],
)
def test_a_gang_is_placed_once_each_of_its_pods_is_bound(nodes, seen):
    piece = replace(SHOWPIECES[0], pods=2)
    pods = [{"spec": {"nodeName": node} if node else {}} for node in nodes]
    shown = _seen(piece, pods, {"n1": ("b1", "r1"), "n2": ("b1", "r2")}, 0.5)
    assert (shown and (shown.domains, shown.nodes)) == seen


@pytest.mark.parametrize(
    ("length", "shown"),
    [(159, "x" * 159), (160, "x" * 160), (161, "x" * 157 + "..."), (900, "x" * 157 + "...")],
)
async def test_of_an_answer_the_start_is_shown(length, shown):
    async with serving() as server:
        server.script = [reply(200, "x" * length)]
        assert await _answer(f"{server.url}/filter", b"{}") == shown


def test_the_table_has_a_line_for_each_gang_and_says_which_waits(capsys):
    gpus, cpus = (replace(SHOWPIECES[0], name=name, gpus=n) for name, n in (("a", 2), ("b", 0)))
    _print_table([Shown(gpus, "rack-1", 3, 0.126), Shown(cpus, seconds=9.0, why="too large")])
    lines = [re.split(r"\s{2,}", line) for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        ["gang", "pods", "each", "constraint", "domains", "nodes", "seconds"],
        ["a", "4", "2 GPU", "required rack", "rack-1", "3", "0.13"],
        ["b", "4", "4 CPU", "required rack", "-", "-", "waits"],
        [""],
        ["b: too large"],
    ]


async def test_the_demo_waits_for_no_gang_that_has_been_shown():
    async with Sandbox() as sandbox:
        headers = {"Authorization": f"Bearer {sandbox.token}"}
        async with aiohttp.ClientSession(sandbox.url, headers=headers) as api:
            stage = Stage("", sandbox, None, api, Path())
            assert await asyncio.wait_for(_place(stage, ()), PLACE_SECONDS / 2) == []


def test_a_demo_that_ends_says_how_it_would_stay_and_prints_nothing_to_type():
    printed = demo()
    assert "--once" in printed.splitlines()[-1]
    assert "curl " not in printed


@pytest.mark.skipif(not RECORDED.exists(), reason="the recorded cluster is not beside the project")
def test_a_recorded_cluster_works_as_well():
    printed = demo("--snapshot", str(RECORDED))
    assert "1,523 nodes" in printed
    assert sum(row[-1] != "waits" for row in rows(printed).values()) == len(SHOWPIECES) - 1


def test_a_snapshot_that_is_none_is_named():
    ran = subprocess.run(
        [sys.executable, "-m", "app", "demo", "--once", "--snapshot", __file__],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert ran.returncode == 2
    assert "--snapshot" in ran.stderr
    assert Path(__file__).name in ran.stderr


def test_a_cluster_without_levels_gets_racks_by_name_order():
    nodes = [{"metadata": {"name": f"n{i:02}"}} for i in range(17)]
    levels = with_levels({"nodes": nodes})
    assert levels is not None
    assert {levels["n00"], levels["n15"]} == {("block-0", "rack-0")}
    assert levels["n16"] == ("block-0", "rack-1")
