"""Nothing that a test starts outlives it. Needs no control plane."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.controlplane.process import Process, ProcessEnded

ROOT = Path(__file__).resolve().parent.parent.parent


def test_a_stopped_process_is_gone_and_may_be_stopped_again(tmp_path: Path) -> None:
    process = Process(["sleep", "60"], tmp_path / "log")
    process.check()
    process.stop()
    process.stop()
    assert not _runs(process.pid)


def test_a_process_that_ended_by_itself_is_reported_with_its_last_words(tmp_path: Path) -> None:
    process = Process(["sh", "-c", "echo no such flag; exit 7"], tmp_path / "log")
    _wait_until(lambda: "no such flag" in process.text())
    with pytest.raises(ProcessEnded, match=r"(?s)sh ended with exit code 7.*no such flag"):
        _wait_until(lambda: not _is_running(process))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child of its parent's end")
def test_a_process_dies_with_a_killed_pytest(tmp_path: Path) -> None:
    script = (
        "import pathlib, sys, time\n"
        "from tests.controlplane.process import Process\n"
        "process = Process(['sleep', '60'], pathlib.Path(sys.argv[1]))\n"
        "print(process.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path / "log")],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert _runs(child)
        parent.send_signal(signal.SIGKILL)
    _wait_until(lambda: not _runs(child))


def _runs(pid: int) -> bool:
    """Whether that process exists and is more than an entry nobody has collected yet."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")
    return not status.exists() or status.read_text().rpartition(")")[2].split()[0] != "Z"


def _is_running(process: Process) -> bool:
    process.check()
    return True


def _wait_until(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.01)
