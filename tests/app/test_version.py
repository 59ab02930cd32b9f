"""Which Corral this is, said in one place."""

from __future__ import annotations

import platform
import tomllib
from pathlib import Path

import pytest

from app.version import COMMIT, UNKNOWN, this_build

ROOT = Path(__file__).resolve().parents[2]


def test_the_version_is_that_of_pyproject():
    said = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert this_build().version == said["version"]
    assert this_build().python == platform.python_version()


@pytest.mark.parametrize(
    ("said", "commit"),
    [
        pytest.param("0f3c1a", "0f3c1a", id="of_the_image"),
        pytest.param("", UNKNOWN, id="empty"),
        pytest.param(None, UNKNOWN, id="none"),
    ],
)
def test_the_commit_is_what_the_image_was_built_from(monkeypatch, said, commit):
    monkeypatch.delenv(COMMIT, raising=False)
    if said is not None:
        monkeypatch.setenv(COMMIT, said)
    assert this_build().commit == commit


def test_the_version_is_written_in_one_file():
    """A number of our own stands in pyproject.toml alone; the code asks the distribution."""
    version = this_build().version
    code = [*ROOT.glob("app/**/*.py"), *ROOT.glob("topology/**/*.py")]
    assert [each for each in code if f'"{version}"' in each.read_text(encoding="utf-8")] == []
