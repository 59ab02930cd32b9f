"""`corral serve` as a user runs it: a process with a port of its own, ended by its handle.

    with scheduled(plane, folder) as corral:    # beside a kube-scheduler that asks it
        corral.kill()                           # as the kernel would: nothing is said
        corral.start()                          # on the same port

It works against anything that answers like an API server, and dies with the test process.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx
import yaml

from app.fresh import FRESH_SECONDS
from tests.cluster import BLOCK, RACK
from tests.controlplane.plane import ControlPlane, free_ports, profiles
from tests.controlplane.process import Process

ROOT = Path(__file__).resolve().parent.parent
IN_TREE = ("sh", "-c", 'cd "$0" && exec "$@"')  # `python -m app` needs no installation there
IN_ROOT = (*IN_TREE, ROOT)

READY_SECONDS = 20.0  # 1.5 s on an idle machine
BUGS = ("corral_engine_errors_total", "corral_audit_differences_total")
AUDITED = "corral_audit_seconds"  # the last check of the books; 0 before the first
AUDIT_SECONDS = 0.2  # between two of them, not 60: most tests are over by then
EXIT_SECONDS = 25.0  # bind_seconds (15) and CLOSE_SECONDS (5), and a little


class _Serve(Process):
    """One run of the program: a `Process` that may also be killed, and has an exit code."""

    def __init__(self, tree: Path, flags: Sequence[str | Path], log: Path) -> None:
        super().__init__([*IN_TREE, tree, sys.executable, "-m", "app", "serve", *flags], log)
        self.name = "corral serve"

    def signalled(self, signum: int, seconds: float) -> int:
        """Sends the signal and returns the exit code. Raises: TimeoutError."""
        self._popen.send_signal(signum)
        try:
            return self._popen.wait(seconds)
        except subprocess.TimeoutExpired as error:
            raise TimeoutError(f"{self.name} runs {seconds:g} s after signal {signum}") from error


class CorralProcess:
    """A Corral that can be started, killed, stopped and started again; always the same URL.

    Without a kubeconfig it is the service account of its pod. Further keywords are settings, by
    their names in `app/settings.py`; its books are checked all the time, for `bugs`. With an
    `extender_cert` its port is open to other machines, and another one answers for health and
    metrics. `tree`: the sources that run, if not these.
    """

    def __init__(
        self,
        kubeconfig: Path | None,
        folder: Path,
        *,
        levels: Sequence[str] = (BLOCK, RACK),
        tree: Path = ROOT,
        **settings: object,
    ) -> None:
        self._tree = tree
        port, people = free_ports(2)
        self.url = self._people = f"http://127.0.0.1:{port}"
        host = "127.0.0.1"
        if "extender_cert" in settings:
            host, self.url = "0.0.0.0", f"https://127.0.0.1:{port}"
            settings["api_listen"] = f"127.0.0.1:{people}"
            self._people = f"http://127.0.0.1:{people}"
        self.log = folder / "corral.log"
        self._run: _Serve | None = None
        self._scraped_at = 0.0
        self._file = folder / "corral-settings.yaml"
        self._settings: dict[str, object] = {
            "levels": ",".join(levels),
            "audit_seconds": AUDIT_SECONDS,
        }
        self._set(settings)
        self._flags = (
            *((f"--kubeconfig={kubeconfig}",) if kubeconfig is not None else ()),
            f"--extender-listen={host}:{port}",
            f"--settings={self._file}",
        )

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._run is not None:
            self._run.kill()  # nobody waits for what it would still say, in hundreds of tests

    def start(self) -> None:
        """Starts it and returns when it is ready. Raises: ProcessEnded; TimeoutError."""
        self.start_unready()
        self.wait_ready()

    def restart_with(self, **settings: object) -> None:
        """Stops it and starts it with other settings. Raises: ProcessEnded; TimeoutError."""
        self.terminate()
        self._set(settings)
        self.start()

    def start_unready(self) -> None:
        """Starts it; it may not have read the cluster yet."""
        if self._run is not None:
            raise RuntimeError("it runs already: kill or terminate it first")
        self._run = _Serve(self._tree, self._flags, self.log)

    def wait_ready(self, seconds: float = READY_SECONDS) -> None:
        """Returns when /readyz says yes. Raises: ProcessEnded; TimeoutError."""
        run = self._running()
        deadline = time.monotonic() + seconds
        last = "no answer"
        with httpx.Client(base_url=self._people, timeout=2.0, trust_env=False) as client:
            while time.monotonic() < deadline:
                run.check()
                try:
                    answer = client.get("/readyz")
                except httpx.HTTPError as error:
                    last = str(error)
                else:
                    if answer.status_code == 200:
                        return
                    last = answer.text
                time.sleep(0.02)
        raise TimeoutError(f"corral is not ready after {seconds:g} s: {last}; {self.log}")

    @property
    def listens_to_people(self) -> str:
        """HOST:PORT of health and metrics."""
        return self._people.removeprefix("http://")

    @property
    def pid(self) -> int:
        """Of the run under way."""
        return self._running().pid

    def resident(self) -> float:
        """MiB of memory in use."""
        text = Path(f"/proc/{self.pid}/status").read_text(encoding="utf-8")
        (line,) = (each for each in text.splitlines() if each.startswith("VmRSS:"))
        return int(line.split()[1]) / 1024

    def kill(self) -> None:
        """SIGKILL: what a crash, or the end of memory, looks like."""
        self._running().signalled(signal.SIGKILL, EXIT_SECONDS)
        self._run = None

    def pause(self) -> None:
        """SIGSTOP: what a machine without any time for it looks like."""
        self._running().pause()

    def resume(self) -> None:
        """It goes on where it was."""
        self._running().resume()

    def terminate(self) -> int:
        """SIGTERM; the exit code once it has gone. Raises: TimeoutError."""
        code = self._running().signalled(signal.SIGTERM, EXIT_SECONDS)
        self._run = None
        return code

    def metric(self, name: str) -> float:
        """One sample of /metrics, by its whole name with labels. Raises: KeyError."""
        return self.metrics()[name]

    def metrics(self) -> dict[str, float]:
        """Every sample of /metrics, by its whole name with labels; as they are now.

        Corral gives one answer for FRESH_SECONDS: what the last call may have got is waited out.
        """
        time.sleep(max(0.0, self._scraped_at + FRESH_SECONDS - time.monotonic()))
        text = httpx.get(f"{self._people}/metrics", timeout=5.0, trust_env=False).text
        self._scraped_at = time.monotonic()
        samples = (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
        return {name: float(value) for name, value in samples}

    def bugs(self) -> dict[str, float]:
        """The counters of Corral's own faults that are not 0; empty while it does not run.

        Its books were checked after what has happened so far. Raises: TimeoutError.
        """
        if self._run is None:
            return {}
        time.sleep(AUDIT_SECONDS)
        deadline = time.monotonic() + READY_SECONDS
        while not (told := self.metrics())[AUDITED]:
            if time.monotonic() > deadline:
                raise TimeoutError(f"the books are not checked in {READY_SECONDS:g} s; {self.log}")
        assert all(any(name.startswith(bug) for name in told) for bug in BUGS)
        return {name: value for name, value in told.items() if value and name.startswith(BUGS)}

    def _set(self, settings: Mapping[str, object]) -> None:
        self._settings |= settings
        self._file.write_text(yaml.safe_dump(self._settings), encoding="utf-8")

    def _running(self) -> _Serve:
        if self._run is None:
            raise RuntimeError("it does not run: start it first")
        return self._run


@contextmanager
def scheduled(
    plane: ControlPlane, folder: Path, scheduler: str = "corral", **settings: Any
) -> Iterator[CorralProcess]:
    """A Corral with the rights that are shipped and a kube-scheduler that asks it, both ready.

    They start side by side: hundreds of tests begin with them. scheduler: whose pods they are for,
    by schedulerName. Raises: as `CorralProcess.start`.
    """
    kubeconfig = plane.kubeconfig("corral")
    corral = CorralProcess(kubeconfig, folder, scheduler_name=scheduler, **settings)
    with ExitStack() as stack:
        stack.push(corral)
        corral.start_unready()
        plane.start_scheduler(extender=corral.url, profiles=profiles(scheduler))
        corral.wait_ready()
        yield corral
