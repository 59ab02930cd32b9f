"""Facts that stand in two files of deploy/, scheduler-config/ and the settings say the same."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.cli.token import KUBELETS_FOLDER
from app.kube.decoding.requests import MARKERS
from app.settings import ENV_PREFIX, Settings

ROOT = Path(__file__).resolve().parent.parent.parent
CONFIG = ROOT / "scheduler-config" / "1.36.yaml"
CONFIGS = sorted(CONFIG.parent.glob("*.yaml"))


def test_the_config_map_holds_the_scheduler_configuration_word_for_word() -> None:
    assert _shipped("ConfigMap")["data"]["config.yaml"] == CONFIG.read_text(encoding="utf-8")


def test_there_is_a_configuration_for_each_supported_version_in_every_way() -> None:
    minors = ("1.34", "1.35", "1.36", "1.37")
    ways = ("", "-mtls", "-marker", "-mtls-marker")
    assert {file.stem for file in CONFIGS} == {f"{m}{way}" for m in minors for way in ways}


@pytest.mark.parametrize("file", CONFIGS, ids=lambda file: file.stem)
def test_the_configurations_of_all_versions_differ_in_the_version_they_name_alone(
    file: Path,
) -> None:
    """What Corral needs of it has not changed since 1.34; test_schedulers.py starts each."""
    minor, dash, way = file.stem.partition("-")
    (title, rest), (own_title, own_rest) = (
        each.read_text(encoding="utf-8").split("\n", 1)
        for each in (CONFIG.with_name(f"{CONFIG.stem}{dash}{way}.yaml"), file)
    )
    assert own_title == title.replace(CONFIG.stem, minor)
    assert own_rest == rest


def test_the_configuration_for_another_machine_differs_in_how_corral_is_reached() -> None:
    here, there = (
        yaml.safe_load(file.read_text(encoding="utf-8"))
        for file in (CONFIG, CONFIG.with_name(f"{CONFIG.stem}-mtls.yaml"))
    )
    for extender in there["extenders"]:
        tls = extender.pop("tlsConfig")
        # Without a caFile kube-scheduler would trust any certificate.
        assert set(tls) == {"caFile", "certFile", "keyFile"}
        assert extender.pop("urlPrefix").startswith("https://")
        assert extender.pop("enableHTTPS") is True
    for extender in here["extenders"]:
        assert extender.pop("urlPrefix").startswith("http://127.0.0.1:")
        assert extender.pop("enableHTTPS") is False
    assert [profile.pop("percentageOfNodesToScore") for profile in here["profiles"]] == [100]
    assert there == here


@pytest.mark.parametrize("way", ["", "-mtls"])
def test_the_configuration_for_members_alone_differs_in_its_resources_and_its_sample(
    way: str,
) -> None:
    every, members = (
        yaml.safe_load(CONFIG.with_name(f"{CONFIG.stem}{way}{also}.yaml").read_text("utf-8"))
        for also in ("", "-marker")
    )
    managed = [each for extender in members["extenders"] for each in extender["managedResources"]]
    assert managed == [{"name": name, "ignoredByScheduler": True} for name in MARKERS]
    for extender in members["extenders"]:
        del extender["managedResources"]
    sampled = [profile.pop("percentageOfNodesToScore", 0) for profile in every["profiles"]]
    assert sampled == [0 if way else 100]
    assert members == every


def test_the_scheduler_image_is_of_the_minor_its_configuration_is_for() -> None:
    assert f":v{CONFIG.stem}." in _container("kube-scheduler")["image"]


def test_the_kubeconfig_is_where_the_configuration_looks_for_it() -> None:
    mounts = _container("kube-scheduler")["volumeMounts"]
    folder = next(one["mountPath"] for one in mounts if one["name"] == "scheduler")
    assert _config()["clientConnection"]["kubeconfig"] == f"{folder}/kubeconfig"
    assert "kubeconfig" in _shipped("ConfigMap")["data"]


def test_every_environment_variable_is_a_setting_that_is_valid() -> None:
    settings = _settings()
    assert settings.percentage_of_nodes_to_score == _profile().get("percentageOfNodesToScore", 0)
    assert settings.scheduler_name == _profile()["schedulerName"]
    prefixes = {_extender(verb)["urlPrefix"] for verb in ("filter", "bind")}
    assert prefixes == {f"http://{settings.extender_listen}"}


def test_corral_follows_the_lease_its_neighbour_takes() -> None:
    lock = yaml.safe_load(_shipped("ConfigMap")["data"]["config.yaml"])["leaderElection"]
    wanted = f"{lock['resourceNamespace']}/{lock['resourceName']}"
    assert _settings().neighbour_lease == wanted


def test_each_container_has_the_token_of_its_own_account_and_no_other() -> None:
    pod = _shipped("Deployment")["spec"]["template"]["spec"]
    (keeper,) = pod["initContainers"]
    _, _, account, folder = keeper["command"]
    mounts = {
        container["name"]: {each["name"]: each["mountPath"] for each in container["volumeMounts"]}
        for container in (keeper, *pod["containers"])
    }
    assert mounts["token"] == {"scheduler-token": str(KUBELETS_FOLDER), "corral-token": folder}
    assert "corral-token" not in mounts["kube-scheduler"]
    assert "scheduler-token" not in mounts["corral"]
    assert mounts["corral"]["corral-token"] == folder == str(_settings().service_account)
    assert (account, pod["serviceAccountName"]) == ("corral-system/corral", "corral-scheduler")
    users = yaml.safe_load(_shipped("ConfigMap")["data"]["kubeconfig"])["users"]
    token = users[0]["user"]["tokenFile"]
    assert token == f"{mounts['kube-scheduler']['scheduler-token']}/token"


def test_every_token_ends() -> None:
    pod = _shipped("Deployment")["spec"]["template"]["spec"]
    volumes = {each["name"]: each for each in pod["volumes"]}
    (token, *_) = volumes["scheduler-token"]["projected"]["sources"]
    assert token["serviceAccountToken"]["expirationSeconds"] == 3600
    assert volumes["corral-token"]["emptyDir"]["medium"] == "Memory"
    texts = [each.read_text(encoding="utf-8") for each in (ROOT / "deploy").glob("*.yaml")]
    kinds = {one["kind"] for text in texts for one in yaml.safe_load_all(text)}
    assert "Deployment" in kinds
    assert "Secret" not in kinds


def test_a_held_binding_ends_before_the_schedulers_time_limit() -> None:
    settings = _settings()
    limit = float(_extender("bind")["httpTimeout"].removesuffix("s"))
    assert settings.gang_bind_seconds + settings.bind_seconds < limit


def test_the_grace_of_a_pod_is_longer_than_the_schedulers_time_limit() -> None:
    # What is held at /bind is refused at once when the pod ends.
    limit = float(_extender("filter")["httpTimeout"].removesuffix("s"))
    spec = _shipped("Deployment")["spec"]["template"]["spec"]
    assert spec["terminationGracePeriodSeconds"] > limit


@pytest.mark.parametrize("file", ["corral.yaml", "beside.yaml"])
def test_pods_that_are_not_ready_keep_no_node_from_being_drained(file: str) -> None:
    text = (ROOT / "deploy" / file).read_text(encoding="utf-8")
    (budget,) = [
        each["spec"] for each in yaml.safe_load_all(text) if each["kind"] == "PodDisruptionBudget"
    ]
    assert budget["minAvailable"] == 1
    assert budget["unhealthyPodEvictionPolicy"] == "AlwaysAllow"


@pytest.mark.parametrize(
    "file",
    sorted(each for each in (ROOT / "deploy").rglob("*") if each.is_file()),
    ids=lambda file: file.name,
)
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
