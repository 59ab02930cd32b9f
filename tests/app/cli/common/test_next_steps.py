"""`corral demo` leads from a gang that waits to the same gang bound, by what the terminal says."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.api.page import AT
from app.cli.common.next_steps import INDENT, Addresses, change_for, lines
from app.cli.showcase import BLOCK, RACK, TOO_BIG
from tests.controlplane.process import Process

ROOT = Path(__file__).parents[4]
LAST = "/prioritize"  # the last line to type asks this
SECONDS = 60.0  # of a busy machine; about 3 otherwise
BASICS = ("sh", "env", "curl", "diff", "grep", "sed")


def typed(printed: str) -> list[str]:
    """The lines to type, wherever they stand."""
    begin = re.compile(rf"{INDENT}(\S.*)")
    return [found[1] for line in printed.splitlines() if (found := begin.fullmatch(line))]


@contextmanager
def staying(folder: Path, path: str) -> Iterator[str]:
    """What a demo has printed that stays up."""
    command = ["env", f"PATH={path}", f"PYTHONPATH={ROOT}", sys.executable, "-m", "app", "demo"]
    process = Process(command, folder / "demo.log")
    try:
        deadline = time.monotonic() + SECONDS
        while LAST not in process.text():
            process.check()
            assert time.monotonic() < deadline, process.text()
            time.sleep(0.05)
        yield process.text()
    finally:
        process.stop()


class Terminal:
    """A shell that has no more than what is typed into it."""

    def __init__(self, path: str, home: Path) -> None:
        self._environment = {"PATH": path, "PYTHONPATH": str(ROOT), "HOME": str(home)}
        self._exports: list[str] = []

    def type(self, line: str) -> str:
        if line.startswith("export "):
            self._exports.append(line)
        ran = subprocess.run(
            ["sh", "-c", "\n".join([*self._exports, line])],
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        # diff ends with 1 where files differ, as all else does where it fails.
        assert ran.returncode == 0 or line.startswith("diff "), (line, ran.stdout, ran.stderr)
        return ran.stdout


def programs(folder: Path, *more: str) -> str:
    """A PATH that has these programs and no others."""
    for name in (*BASICS, *more):
        found = shutil.which(name)
        if found is None:
            pytest.skip(f"there is no {name}")
        (folder / name).symlink_to(found)
    return str(folder)


@pytest.mark.slow
@pytest.mark.parametrize("tools", [(), ("kubectl",)], ids=["curl", "kubectl"])
def test_what_the_demo_prints_leads_from_a_gang_that_waits_to_the_same_gang_bound(tmp_path, tools):
    (tmp_path / "bin").mkdir()
    path = programs(tmp_path / "bin", *tools)
    terminal = Terminal(path, tmp_path)
    with staying(tmp_path, path) as printed:
        steps = iter(typed(printed))
        said = {}
        for line in steps:
            said[line] = terminal.type(line)
            if " replace " in line or " -d @" in line:
                break
        waiting = said["corral gangs --phase waiting"].splitlines()
        assert [row.split()[1] for row in waiting[1:]] == ["too-big"]
        helps = re.search(r"would fit with too-big in one (\S+)", said["corral explain too-big"])
        assert helps
        (difference,) = (said[line] for line in said if line.startswith("diff "))
        assert [line for line in difference.splitlines() if line.startswith(">")] == [
            f'>           "kueue.x-k8s.io/podset-required-topology": "{helps[1]}"'
        ]
        (simulated,) = (said[line] for line in said if line.startswith("corral simulate "))
        assert " Fits " in simulated
        explain, where, *asked = steps
        deadline = time.monotonic() + SECONDS
        while "Is          running" not in (now := terminal.type(explain)):
            assert time.monotonic() < deadline, now
        assert len(set(re.findall(r"node-\d+", terminal.type(where)))) == TOO_BIG.pods
        answers = [terminal.type(line) for line in asked]
        for line in asked:
            body = json.loads(Path(line.rpartition("@")[2]).read_bytes())
            assert len(body["NodeNames"]) == 1523
            assert body["Pod"]["metadata"]["name"]
    pinned, scored = (json.loads(answer) for answer in answers[:2])
    assert len(pinned["NodeNames"]) == 1
    # Of so many nodes those without points are left out.
    assert 0 < len(scored) <= 1523
    assert all(each["Score"] for each in scored)
    assert not Path(asked[0].rpartition("@")[2]).exists()  # nothing is left behind


WIDER = {"kind": "WiderLevel", "level": BLOCK}
NO_LEVEL = {"kind": "WiderLevel", "level": ""}
FEWER = {"kind": "FewerPods", "pods": 6}
NODES = {"kind": "NodesBack", "nodes": ["n1"]}


@pytest.mark.parametrize(
    ("relaxations", "changed"),
    [
        pytest.param([WIDER, FEWER], ("required", BLOCK, 20), id="wider"),
        pytest.param([NO_LEVEL], ("unconstrained", "", 20), id="no_level"),
        pytest.param([NODES, FEWER], ("required", RACK, 6), id="fewer_pods"),
        pytest.param([{"kind": "FewerPods", "pods": 0}, NODES, {"kind": "Never"}], None, id="none"),
    ],
)
def test_the_first_relaxation_that_is_about_the_manifest_is_made(relaxations, changed):
    found = change_for(TOO_BIG, relaxations)
    piece = found and found.piece
    assert (piece and (piece.mode, piece.level, piece.pods)) == changed


@pytest.mark.parametrize(
    ("explanation", "last"),
    [
        pytest.param(None, f"{INDENT}corral gangs", id="it_does_not_wait"),
        pytest.param(
            {"relaxations": [NODES]},
            "No change of its manifest helps in a cluster this full: try a smaller --load.",
            id="no_change_of_it_helps",
        ),
    ],
)
def test_nothing_is_told_to_be_changed_where_no_change_would_do(explanation, last, tmp_path):
    at = Addresses("http://corral", "http://api", tmp_path / "kubeconfig", tmp_path)
    said = [line for line in lines(at, TOO_BIG, explanation, "corral") if line]
    assert said[-1] == last
    assert any(line.endswith(f"{at.corral}{AT}") for line in said)
    assert not list(tmp_path.iterdir())
