"""What the image would contain, made by the Dockerfile's own instructions, runs where it may.

By its unprivileged user, on a tree that nobody may write, beside the real API server.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from app.cli.doctor import shipped
from app.version import this_build
from tests.controlplane.image import Image
from tests.controlplane.plane import ControlPlane, free_ports
from tests.controlplane.process import Process, running
from tests.corral_process import READY_SECONDS

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(400)]

COMMIT = "0f3c1a5e"


@pytest.fixture(scope="module")
def image() -> Iterator[Image]:
    """Built once; not among pytest's folders, which are closed to other users."""
    folder = Path(tempfile.mkdtemp(prefix="corral-image-"))
    made = Image(folder, {"BASE": "", "COMMIT": COMMIT})
    try:
        made.build()
        yield made
    finally:
        made.remove()


def said_by(image: Image, *arguments: str) -> str:
    ran = subprocess.run(
        image.command(*arguments), capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def files(image: Image) -> dict[str, int]:
    """Every file of it, and when it was changed last."""
    return {str(each): each.lstat().st_mtime_ns for each in image.folder.rglob("*")}


def test_it_says_its_version_and_commit_and_has_what_the_commands_read(image: Image) -> None:
    told = json.loads(said_by(image, "version", "-o", "json"))
    assert (told["version"], told["commit"]) == (this_build().version, COMMIT)
    assert told["protocols"]["kube_schedulers"] == list(shipped.minors())
    config = said_by(image, "doctor", "--write-config", "1.36")
    assert config == shipped.scheduler_config("1.36", "sidecar")


def test_its_user_may_write_nothing_of_it(image: Image) -> None:
    uid, _, _ = image.user.partition(":")
    assert int(uid) > 0
    own = image.folder / "opt" / "corral"
    probe = ["sh", "-c", 'touch "$0"/new || touch "$0"/bin/corral', str(own)]
    entry = image.entrypoint
    image.entrypoint = []
    try:
        ran = subprocess.run(
            image.command(*probe), capture_output=True, text=True, timeout=30, check=False
        )
    finally:
        image.entrypoint = entry
    assert ran.returncode != 0
    assert ran.stderr.count("Permission denied") == 2


def test_it_has_what_is_pinned_and_nothing_that_builds_or_tests(image: Image) -> None:
    (installed,) = image.folder.glob("opt/corral/lib/python*/site-packages")
    there = {each.name for each in installed.iterdir()}
    assert {"app", "topology", "numpy", "uvicorn"} <= there
    assert not {"tests", "benchmarks", "deploy", "hatchling", "pytest"} & there
    assert sorted(each.name for each in (image.folder / "opt").iterdir()) == ["corral"]
    assert not (image.folder / "src").exists()


def test_it_serves_by_that_user_and_leaves_its_tree_as_it_was(
    image: Image, plane: ControlPlane, tmp_path: Path
) -> None:
    before = files(image)
    (port,) = free_ports(1)
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = handed(plane.kubeconfig("corral"), Path(folder), image.user)
        command = image.command(
            kubeconfig=str(kubeconfig),
            extender_listen=f"127.0.0.1:{port}",
            levels="example.com/block,example.com/rack",
        )
        with (
            running(command, tmp_path / "image.log") as process,
            httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client,
        ):
            wait_ready(process, client)
            assert client.get("/healthz").text == "ok"
            assert client.get("/version").json()["commit"] == COMMIT
            assert f'commit="{COMMIT}"' in client.get("/metrics").text
            assert uid_of(process) == int(image.user.split(":")[0]) or os.geteuid() != 0
    assert files(image) == before


def handed(kubeconfig: Path, folder: Path, user: str) -> Path:
    """The kubeconfig, with the authority that it names, where that user alone reads them."""
    text = kubeconfig.read_text(encoding="utf-8")
    authority = next(line.split()[-1] for line in text.splitlines() if "authority" in line)
    shutil.copy(authority, folder / "ca.crt")
    (folder / "kubeconfig").write_text(text.replace(authority, str(folder / "ca.crt")))
    if os.geteuid() == 0:
        for each in (folder, *folder.iterdir()):
            os.chown(each, *map(int, user.split(":")))
    return folder / "kubeconfig"


def wait_ready(process: Process, client: httpx.Client) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        process.check()
        try:
            if client.get("/readyz").status_code == 200:
                return
        except httpx.HTTPError:
            pass
        time.sleep(0.05)
    raise AssertionError(f"not ready after {READY_SECONDS:g} s:\n{process.text()[-2000:]}")


def uid_of(process: Process) -> int:
    return Path(f"/proc/{process.pid}").stat().st_uid
