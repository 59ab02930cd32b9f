"""Which part of Corral a sample of its stack is of."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from benchmarks.sampled import by_part, sampled

RUN = "run (/lib/asyncio/runners.py:1)"
SERVER = "run_asgi (/site/uvicorn/protocols/http/httptools_impl.py:2)"
VERBS = "answer (/corral/app/extender/routes.py:3)"
ENGINE = "filter (/corral/app/state/engine.py:4)"
JSON = "dumps (/lib/json/__init__.py:5)"


@pytest.mark.parametrize(
    ("frames", "part"),
    [
        pytest.param([RUN], "the rest", id="of_no_part"),
        pytest.param([RUN, SERVER], "HTTP server", id="a_library_by_itself"),
        pytest.param([RUN, SERVER, VERBS], "verbs", id="what_a_library_calls"),
        pytest.param([RUN, SERVER, VERBS, ENGINE], "engine", id="the_innermost_of_two"),
        pytest.param([RUN, SERVER, VERBS, JSON], "verbs", id="a_library_of_no_part_inside"),
    ],
)
def test_a_sample_is_of_the_innermost_part(frames: list[str], part: str) -> None:
    assert by_part([f"{';'.join(frames)} 7"]) == {part: 7}


def test_samples_of_one_part_add_up() -> None:
    assert by_part([f"{RUN};{VERBS} 2", f"{RUN};{ENGINE} 3", f"{VERBS} 4"]) == {
        "verbs": 6,
        "engine": 3,
    }


@pytest.mark.slow
def test_a_process_that_works_is_sampled() -> None:
    """What it does is of no part of Corral's."""
    command = [sys.executable, "-c", "while True: sum(range(1000))"]
    with subprocess.Popen(command) as process:
        try:
            with sampled(process.pid) as found:
                _wait_for_cpu(process.pid, seconds=2.0)
        finally:
            process.kill()
    assert set(found) == {"the rest"}
    assert found["the rest"] > 0


def _wait_for_cpu(pid: int, seconds: float) -> None:
    """Return once the process has had so much of the processor."""
    ticks = os.sysconf("SC_CLK_TCK")
    used = 0.0
    while used < seconds:
        time.sleep(0.05)
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            fields = file.read().rpartition(") ")[2].split()
        used = (int(fields[11]) + int(fields[12])) / ticks
