"""The wall clock may be set forward or back at any time: nothing may be decided by it."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WALL = {"time", "time_ns", "now", "utcnow", "today", "fromtimestamp", "localtime", "gmtime"}
CLOCKS = {"time", "datetime", "date"}
SHOWN = {
    "app/api/decisions.py": "the time of a decision, for people",
    "app/api/simulating.py": "creation times of pods that nobody creates",
    "app/cli/doctor/reading/cluster.py": "compared with the API server's own",
    "app/controllers/report.py": "the time of an event, for people",
    "app/controllers/objects/status.py": "the time of a condition, for people",
    "app/controllers/pods/mark.py": "the time of a condition, for people",
    "app/controllers/pods/wake.py": "an annotation's value, which only has to be another one",
    "app/kube/leading/own_lease.py": "the time of a renewal, which only has to be another one",
    "app/process/driver.py": "the times of a span, for collectors of traces",
    "app/sandbox/cluster/sandbox.py": "creation times, as an API server has them",
}


def reads_of_the_wall_clock(source: str) -> list[int]:
    """The lines that read it: `time.time()`, `datetime.now(…)` and the like."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Attribute) and node.attr in WALL
        if isinstance(node.value, ast.Name) and node.value.id in CLOCKS
    ]


def test_it_is_read_where_its_time_is_only_shown():
    found = {
        str(file.relative_to(ROOT))
        for package in ("app", "topology")
        for file in (ROOT / package).rglob("*.py")
        if reads_of_the_wall_clock(file.read_text(encoding="utf-8"))
    }
    assert found == set(SHOWN)


def test_a_read_is_seen():
    source = "import time\nfrom datetime import datetime\ntime.monotonic()\nx = datetime.now()\n"
    assert reads_of_the_wall_clock(source) == [4]
    assert reads_of_the_wall_clock("time.time()") == [1]
