"""`corral sandbox` in a process of its own, asked over HTTP and ended by a signal."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.controlplane.process import Process

pytestmark = pytest.mark.slow
START_SECONDS = 20.0  # of a busy machine; about 1 otherwise
END_SECONDS = 10.0
SAID = "Kubernetes API: "

# Starts the program with SIGINT ignored, as `nohup` and `cmd &` in a script do, or as a terminal
# has it; whatever pytest itself was started with.
WITH_SIGINT = "import os, signal, sys; signal.signal(signal.SIGINT, signal.Handlers({how})); "
WITH_SIGINT += "os.execv(sys.executable, [sys.executable, '-m', 'app', 'sandbox', *sys.argv[1:]])"


class Running(Process):
    """One `corral sandbox`."""

    def __init__(self, folder: Path, sigint: signal.Handlers, *flags: str) -> None:
        starter = WITH_SIGINT.format(how=int(sigint))
        super().__init__([sys.executable, "-c", starter, *flags], folder / "sandbox.log")

    def wait_url(self) -> str:
        """Where the API is. Raises: ProcessEnded, TimeoutError."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            self.check()
            urls = [line for line in self.text().splitlines() if line.startswith(SAID)]
            if urls:
                return urls[0].removeprefix(SAID)
            time.sleep(0.02)
        raise TimeoutError(f"no API after {START_SECONDS:g} s: {self.text()}")

    def signalled(self, signum: int, seconds: float = END_SECONDS) -> int:
        """The exit code after this signal. Raises: subprocess.TimeoutExpired."""
        self._popen.send_signal(signum)
        return self._popen.wait(seconds)


@contextmanager
def running(folder: Path, sigint: signal.Handlers, *flags: str) -> Iterator[Running]:
    process = Running(folder, sigint, *flags)
    try:
        yield process
    finally:
        process.stop()


@pytest.mark.parametrize(
    ("signum", "sigint"),
    [
        pytest.param(signal.SIGINT, signal.SIG_DFL, id="ctrl_c"),
        pytest.param(signal.SIGTERM, signal.SIG_DFL, id="sigterm"),
        pytest.param(signal.SIGTERM, signal.SIG_IGN, id="sigterm_where_ctrl_c_is_ignored"),
    ],
)
def test_it_serves_a_synthetic_cluster_until_it_is_told_to_end(
    tmp_path: Path, signum: int, sigint: signal.Handlers
) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    with running(tmp_path, sigint, "--nodes=20", f"--kubeconfig={kubeconfig}") as sandbox:
        url = sandbox.wait_url()
        nodes = httpx.get(f"{url}/api/v1/nodes", timeout=10, trust_env=False).json()["items"]
        assert sandbox.signalled(signum) == 0
    assert len(nodes) == 20
    assert url in kubeconfig.read_text()
    assert "Traceback" not in sandbox.text()


def test_a_ctrl_c_that_is_not_for_it_leaves_it_running(tmp_path: Path) -> None:
    with running(tmp_path, signal.SIG_IGN) as sandbox:
        url = sandbox.wait_url()
        with pytest.raises(subprocess.TimeoutExpired):
            sandbox.signalled(signal.SIGINT, 0.5)
        assert httpx.get(f"{url}/readyz", timeout=10, trust_env=False).text == "ok"


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        pytest.param(["--overlay", "x"], "--overlay needs --snapshot", id="overlay_alone"),
        pytest.param(["--api-listen", "0.0.0.0:1"], "127.0.0.1:PORT only", id="not_loopback"),
        pytest.param(["--snapshot", "/nowhere"], "/nowhere: No such file", id="no_such_file"),
        pytest.param(["--extender", "x:8888"], "--extender x:8888: no http", id="no_address"),
        pytest.param(["--api-listen", "127.0.0.1:70000"], "ports end at 65535", id="no_port"),
    ],
)
def test_options_that_contradict_each_other_are_named(flags, said):
    assert said in refused(*flags)


def test_a_port_that_is_taken_is_named():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        assert refused("--api-listen", address) == f"corral: {address}: Address already in use\n"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param("kind: [", "not YAML: ", id="no_yaml"),
        pytest.param("profiles: x", "Expected `array | null`, got `str` - at `$.profiles`", id="x"),
        pytest.param("extenders: [{}]", "missing required field `urlPrefix`", id="no_url"),
        pytest.param(
            "extenders: [{urlPrefix: 'https://x', tlsConfig: {caFile: /nowhere}}]",
            "/nowhere: No such file",
            id="no_ca",
        ),
    ],
)
def test_what_is_wrong_with_a_scheduler_configuration_is_said_in_a_line(tmp_path, content, said):
    file = tmp_path / "config.yaml"
    file.write_text(f"{content}\nkind: KubeSchedulerConfiguration\n")
    assert said in refused("--scheduler-config", str(file))


def refused(*flags: str) -> str:
    """What it says to options that it does not take, on one line."""
    ran = subprocess.run(
        [sys.executable, "-m", "app", "sandbox", *flags],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert ran.returncode == 2
    assert ran.stderr.count("\n") == 1
    return ran.stderr
