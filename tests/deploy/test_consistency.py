"""Facts that stand in two files of deploy/, scheduler-config/ and the settings say the same."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

from app.settings import ENV_PREFIX, Settings

ROOT = Path(__file__).resolve().parent.parent.parent
CONFIG = ROOT / "scheduler-config" / "1.36.yaml"


def test_the_config_map_holds_the_scheduler_configuration_word_for_word() -> None:
    assert _shipped("ConfigMap")["data"]["config.yaml"] == CONFIG.read_text(encoding="utf-8")


def test_the_scheduler_image_is_of_the_minor_its_configuration_is_for() -> None:
    assert f":v{CONFIG.stem}." in _container("kube-scheduler")["image"]


def test_the_kubeconfig_is_where_the_configuration_looks_for_it() -> None:
    mounts = _container("kube-scheduler")["volumeMounts"]
    folder = next(one["mountPath"] for one in mounts if one["name"] == "scheduler")
    assert _config()["clientConnection"]["kubeconfig"] == f"{folder}/kubeconfig"
    assert "kubeconfig" in _shipped("ConfigMap")["data"]


def test_every_environment_variable_is_a_setting_that_is_valid() -> None:
    settings = _settings()
    assert settings.percentage_of_nodes_to_score == _profile()["percentageOfNodesToScore"]
    assert settings.scheduler_name == _profile()["schedulerName"]
    prefixes = {_extender(verb)["urlPrefix"] for verb in ("filter", "bind")}
    assert prefixes == {f"http://{settings.extender_listen}"}


def test_corral_follows_the_lease_its_neighbour_takes() -> None:
    lock = yaml.safe_load(_shipped("ConfigMap")["data"]["config.yaml"])["leaderElection"]
    wanted = f"{lock['resourceNamespace']}/{lock['resourceName']}"
    assert _settings().neighbour_lease == wanted


def test_a_held_binding_ends_before_the_schedulers_time_limit() -> None:
    settings = _settings()
    limit = float(_extender("bind")["httpTimeout"].removesuffix("s"))
    assert settings.gang_bind_seconds + settings.bind_seconds < limit


def test_the_grace_of_a_pod_is_longer_than_the_schedulers_time_limit() -> None:
    # What is held at /bind is refused at once when the pod ends.
    limit = float(_extender("filter")["httpTimeout"].removesuffix("s"))
    spec = _shipped("Deployment")["spec"]["template"]["spec"]
    assert spec["terminationGracePeriodSeconds"] > limit


def test_every_runtime_dependency_is_pinned_with_hashes_at_a_version_it_allows() -> None:
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    text = (ROOT / "deploy" / "constraints.txt").read_text(encoding="utf-8")
    pins = dict(re.findall(r"(?m)^([a-z0-9-]+)==(\S+)(?: ; [^\\\n]+)? \\\n +--hash=sha256:", text))
    for dependency in map(Requirement, pyproject["project"]["dependencies"]):
        assert dependency.specifier.contains(pins[dependency.name.lower()])


@pytest.mark.parametrize("file", sorted((ROOT / "deploy").glob("*")), ids=lambda file: file.name)
def test_no_shipped_file_names_a_place_to_download_packages_from(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert not re.search(r"(?i)--(extra-)?index-url[ =]+\w|GOPROXY|registry=|pip\.conf", text)


def _config() -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(CONFIG.read_text(encoding="utf-8"))
    return content


def _profile() -> dict[str, Any]:
    (profile,) = _config()["profiles"]
    return dict(profile)


def _extender(verb: str) -> dict[str, Any]:
    (extender,) = [one for one in _config()["extenders"] if f"{verb}Verb" in one]
    return dict(extender)


def _shipped(kind: str) -> dict[str, Any]:
    text = (ROOT / "deploy" / "corral.yaml").read_text(encoding="utf-8")
    (document,) = [one for one in yaml.safe_load_all(text) if one["kind"] == kind]
    return dict(document)


def _container(name: str) -> dict[str, Any]:
    containers = _shipped("Deployment")["spec"]["template"]["spec"]["containers"]
    return dict(next(one for one in containers if one["name"] == name))


def _settings() -> Settings:
    """The settings the shipped container starts with."""
    # What only the cluster knows (`valueFrom`) is any name.
    given = {one["name"]: one.get("value", "any") for one in _container("corral")["env"]}
    assert all(name.startswith(ENV_PREFIX) for name in given)
    return Settings(**{name.removeprefix(ENV_PREFIX).lower(): given[name] for name in given})
