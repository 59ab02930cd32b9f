"""A stand-in for kubectl on PATH: `port-forward` relays to a server, or fails as it is told.

What it was called with, and its process id, are in files beside it, a line a call.
"""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

PROGRAM = r"""#!{python} -I
import json, os, signal, socket, sys, threading, time
told = json.load(open({settings!r}))
with open({calls!r}, "a") as calls:
    calls.write(json.dumps({{"pid": os.getpid(), "argv": sys.argv[1:]}}) + "\n")
if told["ignores_sigterm"]:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
time.sleep(told["late"])
if told["fails"] or (told["refuses"] and any(told["refuses"] in one for one in sys.argv)):
    sys.stderr.write((told["fails"] or "forbidden") + "\n")
    sys.exit(1)
listener = socket.create_server(("127.0.0.1", 0))
print("Forwarding from 127.0.0.1:%d -> 8888" % listener.getsockname()[1], flush=True)

def relay(one, other):
    while data := one.recv(65536):
        other.sendall(data)
    try:
        other.shutdown(socket.SHUT_WR)
    except OSError:
        pass

while True:
    near, _ = listener.accept()
    print("Handling connection for %d" % listener.getsockname()[1], flush=True)
    far = socket.create_connection(("127.0.0.1", told["port"]))
    for pair in ((near, far), (far, near)):
        threading.Thread(target=relay, args=pair, daemon=True).start()
"""


class Kubectl:
    """The program, and what it was asked."""

    def __init__(self, folder: Path, port: int = 0) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self._settings, self._calls = folder / "settings.json", folder / "calls"
        self._told: dict[str, Any] = {
            "port": port, "fails": "", "late": 0, "ignores_sigterm": False, "refuses": "",
        }  # fmt: skip
        self.set()
        program = folder / "kubectl"
        program.write_text(
            PROGRAM.format(
                python=sys.executable, settings=str(self._settings), calls=str(self._calls)
            )
        )
        program.chmod(program.stat().st_mode | stat.S_IXUSR)

    def set(self, **told: Any) -> None:
        """How it behaves from its next call on."""
        self._told |= told
        self._settings.write_text(json.dumps(self._told))

    @property
    def calls(self) -> list[list[str]]:
        """The words of each call."""
        return [each["argv"] for each in self._lines()]

    def running(self) -> list[int]:
        """Those of its processes that have not ended."""
        return [each["pid"] for each in self._lines() if _runs(each["pid"])]

    def _lines(self) -> list[Any]:
        if not self._calls.exists():
            return []
        return [json.loads(line) for line in self._calls.read_text().splitlines()]


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
