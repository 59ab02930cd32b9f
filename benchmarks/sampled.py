"""Where a process of ours spends its CPU: py-spy looks at its stack some hundred times a second.

stack, outermost first      run ─ handle ─ _answered ─ filter ─ find
                                                    └─ the innermost frame of a known part
"""

from __future__ import annotations

import signal
import subprocess
import sysconfig
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PER_SECOND = 200
LONGEST_SECONDS = 3600
ENDS_SECONDS = 30.0
# A sample is of the part whose file, or folder, its innermost frame of any part is in.
PARTS = {
    "/topology/": "searches",
    "/app/state/": "engine",
    "/app/dialects/": "engine",
    "/app/extender/": "verbs",
    "/app/verbs/": "verbs",
    "/app/admission/": "webhook",
    "/app/kube/watch/": "watch",
    "/app/kube/decoding/": "watch",
    "/app/kube/": "API client",
    "/app/controllers/": "API client",
    "/aiohttp/": "API client",
    "/uvicorn/": "HTTP server",
    "/starlette/": "HTTP server",
    "/fastapi/": "HTTP server",
    "/app/process/": "the rest",
    "/app/main.py": "the rest",
}
REST = "the rest"


@contextmanager
def sampled(pid: int) -> Iterator[Counter[str]]:
    """Sample a process in this block; afterwards the counter has the samples of each part.

    Idle threads are not sampled. Raises: FileNotFoundError without py-spy.
    """
    program = Path(sysconfig.get_path("scripts")) / "py-spy"
    found: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="corral-sampled-") as folder:
        stacks = Path(folder) / "stacks"
        seconds, rate = str(LONGEST_SECONDS), str(PER_SECOND)
        command = [program, "record", "--nonblocking", "--full-filenames", "-f", "raw"]
        process = subprocess.Popen(
            [*command, "-r", rate, "-d", seconds, "-o", str(stacks), "-p", str(pid)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            yield found
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(ENDS_SECONDS)
        found.update(by_part(stacks.read_text(encoding="utf-8").splitlines()))


def by_part(lines: list[str]) -> Counter[str]:
    """The samples of each part, of stacks as py-spy writes them: frames, outermost first, a number.

    A frame is "function (file:line)".
    """
    found: Counter[str] = Counter()
    for line in lines:
        stack, _, samples = line.rpartition(" ")
        found[_part(stack.split(";"))] += int(samples)
    return found


def _part(frames: list[str]) -> str:
    for frame in reversed(frames):
        for where, part in PARTS.items():
            if where in frame:
                return part
    return REST
