"""`corral serve` as a process: signals, exit codes, and one sentence for each mistake."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from app.cli.serve import OTHER_FILES, file_limit, raise_file_limit
from app.sandbox import Sandbox
from tests.cluster import BLOCK, RACK

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.slow
@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
async def test_serve_ends_with_0_on_a_signal(tmp_path, signum):
    async with Sandbox() as sandbox:
        sandbox.write_kubeconfig(tmp_path / "kubeconfig")
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "app",
            "serve",
            f"--kubeconfig={tmp_path / 'kubeconfig'}",
            "--extender-listen=127.0.0.1:0",
            f"--levels={BLOCK},{RACK}",
            cwd=ROOT,
            env={**os.environ, "CORRAL_LEVLES": "rack"},
            stderr=subprocess.PIPE,
        )
        assert process.stderr is not None
        lines = list[bytes]()
        try:
            async with asyncio.timeout(30):
                while not lines or b'"synced"' not in lines[-1]:
                    lines.append(await process.stderr.readline())
                    assert lines[-1], "ended before it was ready"
                process.send_signal(signum)
                rest = await process.stderr.read()
                assert await process.wait() == 0
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    assert b"Traceback" not in rest
    (told,) = [json.loads(line) for line in lines if b"no such setting" in line]
    assert (told["variable"], told["meant"]) == ("CORRAL_LEVLES", "CORRAL_LEVELS")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        pytest.param(["--extender-listen=nowhere"], "flag --extender-listen", id="address"),
        pytest.param(["--kubeconfig=/absent/file"], "/absent/file", id="kubeconfig"),
        pytest.param(["--settings=/absent.yaml"], "/absent.yaml: cannot be read", id="file"),
        pytest.param(["--levels=gkee"], "did you mean 'gke'", id="preset"),
        pytest.param([], "service account", id="not_in_a_cluster"),
    ],
)
def test_serve_says_in_one_sentence_what_is_wrong_and_ends_with_2(flags, complaint):
    listen = [] if "--extender-listen=nowhere" in flags else ["--extender-listen=127.0.0.1:0"]
    bare = {key: value for key, value in os.environ.items() if not key.startswith("KUBERNETES_")}
    ran = subprocess.run(
        [sys.executable, "-m", "app", "serve", *listen, *flags],
        cwd=ROOT,
        env=bare,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert ran.returncode == 2
    assert complaint in ran.stderr
    assert ran.stderr.startswith("corral: ")
    assert len(ran.stderr.strip().splitlines()) == 1
    assert ran.stdout == ""


@pytest.mark.slow
def test_help_names_every_option_of_serve():
    ran = subprocess.run(
        [sys.executable, "-m", "app", "serve", "--help"],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "120"},
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert ran.returncode == 0
    for option in (
        "--kubeconfig FILE",
        "--extender-listen HOST:PORT",
        "--api-listen HOST:PORT",
        "--levels KEY,KEY,",
        "--scheduler-name NAME",
        "--settings FILE",
    ):
        assert option in ran.stdout


@pytest.mark.slow
def test_help_is_quick_because_the_server_is_not_loaded():
    code = "import sys, app.cli; print(*sorted(sys.modules))"
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=30
    )
    assert ran.returncode == 0
    loaded = set(ran.stdout.split())
    assert "typer" in loaded
    assert not loaded & {"numpy", "fastapi", "uvicorn", "pydantic", "aiohttp", "app.main"}


@pytest.mark.parametrize(
    ("soft", "hard", "limit"),
    [
        pytest.param(1024, 1_048_576, 10_000 + OTHER_FILES, id="as_many_as_are_needed"),
        pytest.param(1024, 4096, 4096, id="as_many_as_there_may_be"),
        pytest.param(1024, -1, 10_000 + OTHER_FILES, id="no_hard_limit"),
        pytest.param(-1, -1, -1, id="no_limit_at_all"),
        pytest.param(1_048_576, 1_048_576, 1_048_576, id="there_are_more"),
        pytest.param(10_000 + OTHER_FILES, -1, 10_000 + OTHER_FILES, id="there_are_as_many"),
        pytest.param(10_000 + OTHER_FILES - 1, -1, 10_000 + OTHER_FILES, id="one_is_missing"),
    ],
)
def test_the_limit_of_open_files_is_raised_to_what_connections_need(soft, hard, limit):
    assert file_limit(soft, hard, 10_000, unlimited=-1) == limit


def test_the_file_limit_grows_no_further_than_it_may():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        raise_file_limit(10**9)
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[1] == hard
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= soft
        raise_file_limit(1)
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= soft
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
