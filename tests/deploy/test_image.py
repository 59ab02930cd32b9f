"""What goes into the image: pinned, listed, and nothing that was not meant to.

No image is built here; the Dockerfile is read as text.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from app.settings import ENV_PREFIX, Settings
from app.version import COMMIT

ROOT = Path(__file__).resolve().parent.parent.parent
DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
INSTRUCTIONS = re.findall(r"(?m)^[A-Z]+ (?:\\\n|.)*", DOCKERFILE)
PINNED, BUILD_PINNED = "deploy/constraints.txt", "deploy/build-constraints.txt"


def pins(file: str) -> dict[str, str]:
    """Name -> version of what a file of pip's pins; each with a hash at least."""
    text = (ROOT / file).read_text(encoding="utf-8")
    found = dict(re.findall(r"(?m)^([a-z0-9-]+)==(\S+)(?: ; [^\\\n]+)? \\\n +--hash=sha256:", text))
    assert len(found) == len(re.findall(r"(?m)^[^ #\n]", text))
    return found


def pyproject() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def copied() -> list[str]:
    """Everything of the checkout that is copied into a stage."""
    copies = [each.split()[1:-1] for each in INSTRUCTIONS if each.startswith("COPY ")]
    return [source for sources in copies if "--from=build" not in sources for source in sources]


@pytest.mark.parametrize(
    ("file", "wanted"),
    [
        pytest.param(PINNED, pyproject()["project"]["dependencies"], id="run"),
        pytest.param(BUILD_PINNED, pyproject()["build-system"]["requires"], id="build"),
    ],
)
def test_every_dependency_is_pinned_with_hashes_at_a_version_it_allows(
    file: str, wanted: list[str]
) -> None:
    pinned = pins(file)
    for dependency in map(Requirement, wanted):
        assert dependency.specifier.contains(pinned[dependency.name.lower()])


def test_the_image_is_built_on_what_its_builder_names_and_on_no_other() -> None:
    sources = [each.split()[1] for each in INSTRUCTIONS if each.startswith("FROM ")]
    assert sources == ["${BASE}", "${BASE}"]
    assert "ARG BASE\n" in DOCKERFILE  # without a default
    assert "--build-arg BASE=REGISTRY/python:3.13-slim@sha256:" in DOCKERFILE


def test_the_image_says_which_commit_it_was_built_from() -> None:
    assert f"{COMMIT}=$COMMIT" in DOCKERFILE
    assert "ARG COMMIT=unknown\n" in DOCKERFILE
    assert '--build-arg COMMIT="$(git rev-parse HEAD)"' in DOCKERFILE
    assert COMMIT.removeprefix(ENV_PREFIX).lower() not in Settings.model_fields


def test_pip_installs_by_hash_or_without_an_index() -> None:
    calls = [
        call
        for each in INSTRUCTIONS
        if each.startswith("RUN ")
        for call in each.split("&&")
        if "/bin/pip " in call
    ]
    assert len(calls) == 4
    for call in calls:
        assert "--require-hashes" in call or {"--no-index", "--no-deps"} <= {*call.split()}


def test_the_context_is_what_the_dockerfile_copies_and_nothing_else() -> None:
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"
    assert sorted(rule for rule in rules if rule.startswith("!")) == sorted(
        f"!{source}" for source in copied()
    )
    assert all((ROOT / source).exists() for source in copied())
    assert {*pyproject()["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]} <= {*copied()}


@pytest.mark.slow
def test_the_bill_of_materials_has_every_pin_with_its_hashes(tmp_path: Path) -> None:
    (line,) = [each for each in DOCKERFILE.splitlines() if "cyclonedx-py " in each]
    command = line.strip("# ").split()
    target = tmp_path / command[-1]
    tool = [sys.executable, "-W", "ignore", "-m", "cyclonedx_py"]
    subprocess.run([*tool, *command[1:-1], target], cwd=ROOT, check=True, timeout=60)
    listed = json.loads(target.read_text(encoding="utf-8"))
    assert {each["name"]: each["version"] for each in listed["components"]} == pins(PINNED)
    for each in listed["components"]:
        assert any(reference["hashes"] for reference in each["externalReferences"])
    assert listed["metadata"]["component"]["version"] == pyproject()["project"]["version"]
