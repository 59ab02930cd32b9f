"""`corral sandbox` in a process of its own, asked over HTTP and ended by a signal."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request

import pytest

pytestmark = pytest.mark.slow


def test_it_serves_a_synthetic_cluster_and_writes_a_kubeconfig(tmp_path):
    kubeconfig = tmp_path / "kubeconfig"
    command = [sys.executable, "-m", "app", "sandbox", "--nodes", "20"]
    with subprocess.Popen(
        [*command, "--kubeconfig", str(kubeconfig)], stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        said = [running.stdout.readline() for _ in range(3)]
        url = said[-1].rpartition(" ")[2].strip()
        with urllib.request.urlopen(f"{url}/api/v1/nodes", timeout=10) as answer:
            nodes = json.load(answer)["items"]
        running.send_signal(signal.SIGINT)
        assert running.wait(timeout=10) == 0
    assert len(nodes) == 20
    assert url in kubeconfig.read_text()


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        pytest.param(["--overlay", "x"], "--overlay needs --snapshot", id="overlay_alone"),
        pytest.param(["--api-listen", "0.0.0.0:1"], "127.0.0.1:PORT only", id="not_loopback"),
        pytest.param(["--snapshot", "/nowhere"], "/nowhere", id="no_such_file"),
    ],
)
def test_options_that_cannot_be_meant_are_named(flags, said):
    ran = subprocess.run(
        [sys.executable, "-m", "app", "sandbox", *flags],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert ran.returncode == 2
    assert said in ran.stderr
