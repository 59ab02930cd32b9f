"""`corral token`: one sentence for each mistake; what it keeps is in tests/app/kube/client."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.cli import main
from app.cli.serve import USAGE_ERROR
from tests.app.kube.service_account import mounted

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("account", ["corral", "/corral", "corral-system/", "a/b/c"])
def test_an_account_without_its_namespace_is_refused(tmp_path, account):
    result = CliRunner().invoke(main, ["token", account, str(tmp_path)])
    assert result.exit_code == USAGE_ERROR
    assert f"service account {account!r}: expected NAMESPACE/NAME" in result.output


@pytest.mark.slow
def test_it_goes_on_until_it_is_told_to_stop_and_logs_what_fails(tmp_path):
    folder = mounted(tmp_path / "mounted", "secret")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # and does not listen
        environment = {
            **os.environ,
            "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": str(closed.getsockname()[1]),
        }
        flags = ["token", "corral-system/corral", tmp_path, f"--service-account={folder}"]
        with subprocess.Popen(
            [sys.executable, "-m", "app", *flags],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        ) as running:
            line = json.loads(running.stderr.readline())
            running.send_signal(signal.SIGTERM)
            assert running.wait(timeout=30) == 0
    assert (line["event"], line["level"]) == ("token", "warning")
    assert line["path"] == "/api/v1/namespaces/corral-system/serviceaccounts/corral/token"
    assert "secret" not in line["problem"]


@pytest.mark.slow
def test_outside_a_pod_it_says_so(tmp_path):
    flags = ["token", "corral-system/corral", tmp_path, f"--service-account={tmp_path}"]
    environment = {name: os.environ[name] for name in os.environ if "KUBERNETES" not in name}
    ran = subprocess.run(
        [sys.executable, "-m", "app", *flags],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert ran.returncode == USAGE_ERROR
    assert ran.stderr.startswith("corral: service account of this pod: ")
    assert "Traceback" not in ran.stderr
