"""One process of the control plane: started with its log in a file, stopped by its handle.

Nothing outlives the tests: every process is its own session, so that the terminal's Ctrl-C ends
pytest and pytest ends them in order; and on Linux the kernel kills it when pytest itself is killed.
"""

from __future__ import annotations

import ctypes
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

STOP_SECONDS = 10.0  # from SIGTERM to SIGKILL; etcd and the API server need under one
LAST_LINES = 20  # of a log, in the message about a process that ended by itself

PR_SET_PDEATHSIG = 1  # <linux/prctl.h>
_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


class ProcessEnded(Exception):
    """A process that should run does not: its name, exit code and last words."""


class Process:
    """A running program; `stop` may be called any number of times."""

    def __init__(self, command: Sequence[str | Path], log: Path) -> None:
        self.name = Path(command[0]).name
        self.log = log
        self._command = [str(word) for word in command]
        self._popen = self._started()

    def _started(self) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as output:
            return subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_die_with_parent if _libc else None,
            )

    @property
    def pid(self) -> int:
        return self._popen.pid

    def check(self) -> None:
        """Raises `ProcessEnded` when the process is not running any more."""
        code = self._popen.poll()
        if code is not None:
            last = "\n".join(self.text().splitlines()[-LAST_LINES:])
            raise ProcessEnded(f"{self.name} ended with exit code {code}; {self.log} ends:\n{last}")

    def text(self) -> str:
        """Everything it has written so far."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def pause(self) -> None:
        """SIGSTOP: it does nothing until `resume`."""
        self._popen.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """It goes on, and does not know that time has passed."""
        self._popen.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """SIGKILL, and waits until it is gone."""
        self._popen.kill()
        self._popen.wait(STOP_SECONDS)

    def start_again(self) -> None:
        """The same program anew, after `kill`."""
        self._popen = self._started()

    def stop(self) -> None:
        """Ends it and waits until it is gone."""
        if self._popen.poll() is None:
            self._popen.terminate()
        try:
            self._popen.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            self._popen.wait(STOP_SECONDS)


@contextmanager
def running(command: Sequence[str | Path], log: Path) -> Iterator[Process]:
    """The program while the block lasts. Raises: ProcessEnded if it has ended before."""
    process = Process(command, log)
    try:
        yield process
        process.check()
    finally:
        process.stop()


def _die_with_parent() -> None:
    assert _libc is not None
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
