"""`corral version`: what this program is, what it speaks, and what the running one is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
import yaml
from fastapi import FastAPI
from typer.testing import CliRunner, Result

from app.admission import review
from app.cli import main
from app.cli.common.options import USAGE_ERROR
from app.cli.doctor import shipped
from app.extender.health import health
from app.sandbox.cluster import snapshot
from app.state.journal import lines
from app.version import COMMIT, this_build
from tests.app.cli.served import served


@pytest.fixture(autouse=True)
def _nowhere(monkeypatch, tmp_path):
    """A machine without a kubeconfig."""
    for name in ("KUBECONFIG", "CORRAL_SERVER", "CORRAL_AT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may run as a user that does not exist")
@pytest.mark.slow
def test_a_user_without_a_home_is_told_the_version_and_may_serve():
    """As in an image that names a number for its user, and sets no HOME."""
    as_nobody = (
        "import os, sys; os.setresuid(65533, 0, 0)\n"  # by name; files are read as before
        "from app.cli import main\n"
        "main(sys.argv[1:], prog_name='corral')"
    )
    given = {
        name: value for name, value in os.environ.items() if name not in ("HOME", "KUBECONFIG")
    }
    for arguments, code, says in (
        (["version", "-o", "name"], 0, this_build().version),
        (["serve", "--kubeconfig", "/none"], USAGE_ERROR, "/none"),
    ):
        command = [sys.executable, "-c", as_nobody, *arguments]
        ran = subprocess.run(command, env=given, capture_output=True, text=True, timeout=60)
        assert "Traceback" not in ran.stderr
        assert ran.returncode == code
        assert says in ran.stdout + ran.stderr


@pytest.fixture
def server() -> Iterator[str]:
    """Where a Corral answers probes."""
    app = FastAPI()
    app.include_router(health(lambda: "not yet", lambda: b""))
    with served(app) as url:
        yield url


def ran(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["version", *arguments])


def test_it_says_its_version_build_and_python():
    found = ran()
    assert found.exit_code == 0
    rows = dict(line.split(maxsplit=1) for line in found.stdout.splitlines()[1:])
    assert (rows["corral"], rows["commit"]) == (this_build().version, this_build().commit)
    assert rows["python"] == this_build().python
    assert "server" not in rows


def test_it_says_every_protocol_that_it_speaks_in_the_words_of_who_defines_it():
    told = json.loads(ran("-o", "json").stdout)["protocols"]
    assert told == {
        "extender": "extender/v1",
        "scheduler_config": "kubescheduler.config.k8s.io/v1",
        "kube_schedulers": list(shipped.minors()),
        "admission": review.API_VERSION,
        "snapshot": snapshot.SCHEMA,
        "journal": lines.VERSION,
    }


@pytest.mark.parametrize("minor", shipped.minors())
def test_the_configurations_have_the_version_that_is_told(minor):
    for mode in shipped.MODES:
        said = yaml.safe_load(shipped.scheduler_config(minor, mode))["apiVersion"]
        assert json.loads(ran("-o", "json").stdout)["protocols"]["scheduler_config"] == said


def test_a_program_reads_the_same_as_yaml_and_the_number_alone():
    assert yaml.safe_load(ran("-o", "yaml").stdout) == json.loads(ran("-o", "json").stdout)
    assert ran("-o", "name").stdout == f"{this_build().version}\n"


def test_the_running_corral_is_asked_where_one_is_named(monkeypatch):
    monkeypatch.setenv(COMMIT, "0f3c1a")
    app = FastAPI()
    app.include_router(health(lambda: "", lambda: b""))
    monkeypatch.delenv(COMMIT)
    with served(app) as url:
        told = json.loads(ran("--server", url, "-o", "json").stdout)
        table = ran("--server", url).stdout
    assert (told["commit"], told["server"]["commit"]) == ("unknown", "0f3c1a")
    assert told["server"]["version"] == this_build().version
    assert next(line for line in table.splitlines() if "0f3c1a" in line).startswith("server")


def test_a_corral_that_is_not_ready_says_its_version(server):
    assert json.loads(ran("--server", server, "-o", "json").stdout)["server"]["version"]


def test_a_corral_that_does_not_answer_leaves_its_own_version_and_fails():
    with served(FastAPI()) as url:  # a Corral before there was /version
        found = ran("--server", url, "-o", "json")
    assert found.exit_code == 1
    assert json.loads(found.stdout)["version"] == this_build().version
    assert json.loads(found.stdout)["server"] is None
    assert "404" in found.stderr
    gone = ran("--server", url)
    assert gone.exit_code == 1
    assert "does not answer" in gone.stderr


def test_what_is_no_corral_is_not_taken_for_one():
    app = FastAPI()
    app.get("/version")(lambda: {"major": "1", "gitVersion": "v1.36.3"})
    with served(app) as url:
        found = ran("--server", url)
    assert found.exit_code == 1
    assert "is no Corral" in found.stderr


def test_no_corral_is_asked_for_the_program_alone():
    found = ran("--client", "--server", "http://127.0.0.1:1")
    assert (found.exit_code, found.stderr) == (0, "")
