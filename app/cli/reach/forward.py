"""`kubectl port-forward` to Corral's pod, for as long as a command asks it.

kubectl finds the pod, says who asks and lets the API server decide whether they may: what it says
when it fails is the reason that is told. It is stopped by its own handle, also when the command is
ended by a signal.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO, Any

from app.cli.common.columns import on_one_line
from app.errors import CorralError, SettingsError

OPEN_SECONDS = 30.0  # kubectl may run a plugin that logs in; usually one or two
STOP_SECONDS = 3.0  # then it is killed
POLL_SECONDS = 0.02
LONGEST_REASON = 500  # characters of what kubectl says
KUBECTL = "kubectl"
ENDING = (signal.SIGTERM, signal.SIGHUP)  # Ctrl-C unwinds the program as it is
PORT = 8888  # where `corral serve` listens in its pod

_FORWARDING = re.compile(rb"^Forwarding from 127\.0\.0\.1:(\d+) -> ", re.MULTILINE)
# What its libraries log of each try, before kubectl itself says what is wrong.
_LOGGED = re.compile(r"[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ ")
_AT = re.compile(r"([^/:]+)/([^/:]+/[^/:]+)(?::(\d{1,5}))?")


class NoWay(CorralError):
    """kubectl opened no way to Corral; the message has its reason."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where Corral runs; `target` as kubectl takes it, such as `deployment/corral`."""

    namespace: str
    target: str
    port: int


def place_in(text: str) -> Place:
    """NAMESPACE/KIND/NAME or NAMESPACE/KIND/NAME:PORT. Raises: SettingsError."""
    found = _AT.fullmatch(text)
    if found is None or text.startswith("-") or not 0 < int(found[3] or PORT) <= 65_535:
        raise SettingsError(
            f"--at {text}: expected NAMESPACE/KIND/NAME[:PORT], such as"
            " corral-system/deployment/corral:8888"
        )
    return Place(found[1], found[2], int(found[3] or PORT))


class Forward:
    """A port on loopback that leads to Corral, until `close`."""

    def __init__(self, place: Place, kubeconfig: str = "", context: str = "") -> None:
        """Returns when the port is open. Raises: NoWay."""
        kubectl = shutil.which(KUBECTL)
        if kubectl is None:
            raise NoWay(
                f"{KUBECTL} is not on PATH, and it opens the way to Corral in a cluster:"
                " --server URL names another one"
            )
        which = (("--kubeconfig", kubeconfig), ("--context", context))
        command = [
            kubectl,
            *(f"{flag}={value}" for flag, value in which if value),
            "port-forward", f"--namespace={place.namespace}", "--address=127.0.0.1",
            place.target, f":{place.port}",
        ]  # fmt: skip
        self._said: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # closed by `close`
        self._problems: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        self._signals = _end_by_exit()
        self._run: subprocess.Popen[bytes] | None = None
        try:
            self._run = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=self._said, stderr=self._problems,
                start_new_session=True,  # Ctrl-C is for us: we end it
            )  # fmt: skip
            self.url = f"http://127.0.0.1:{self._port(self._run, command)}"
        except OSError as error:
            self.close()
            raise NoWay(f"{kubectl}: {error.strerror or error}") from error
        except BaseException:
            self.close()
            raise

    @property
    def is_open(self) -> bool:
        """Whether kubectl still runs: it ends with the pod that it leads to."""
        return self._run is not None and self._run.poll() is None

    def close(self) -> None:
        """Stop kubectl; nothing of it is left."""
        if self._run is not None:
            self._run.terminate()
            try:
                self._run.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._run.kill()
                self._run.wait()
            self._run = None
        self._said.close()
        self._problems.close()
        for signum, handler in self._signals:
            signal.signal(signum, handler)
        self._signals = []

    def _port(self, run: subprocess.Popen[bytes], command: Sequence[str]) -> int:
        """The port that kubectl says it has taken. Raises: NoWay."""
        what = " ".join([KUBECTL, *command[1:]])
        deadline = time.monotonic() + OPEN_SECONDS
        while True:
            has_ended = run.poll() is not None
            if found := _FORWARDING.search(_read(self._said)):
                return int(found[1])
            if has_ended:
                why = self._reason() or f"it ended with exit code {run.returncode}"
                raise NoWay(f"`{what}`: {why}")
            if time.monotonic() > deadline:
                why = self._reason() or "it does not say which port it has taken"
                raise NoWay(f"`{what}`: no port within {OPEN_SECONDS:g} s: {why}")
            time.sleep(POLL_SECONDS)

    def _reason(self) -> str:
        lines = _read(self._problems).decode("utf-8", "replace").splitlines()
        told = [each for each in lines if not _LOGGED.match(each)] or lines
        text = on_one_line(" ".join(" ".join(told).split()))
        return text if len(text) <= LONGEST_REASON else f"… {text[-LONGEST_REASON:]}"


def _read(file: IO[bytes]) -> bytes:
    """What is in it so far; kubectl writes where it is, not where we read."""
    return os.pread(file.fileno(), 64 * 1024, 0)


def _end_by_exit() -> list[tuple[int, Any]]:
    """Have a signal unwind the program, so that kubectl is stopped; the handlers before."""
    if threading.current_thread() is not threading.main_thread():
        return []
    ours = [each for each in ENDING if signal.getsignal(each) is signal.SIG_DFL]
    return [(int(each), signal.signal(each, _exit)) for each in ours]


def _exit(signum: int, _frame: object) -> None:
    sys.exit(128 + signum)
