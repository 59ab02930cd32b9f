"""What a Deployment says of Corral and kube-scheduler: files, environment, who they are.

Pure: the ConfigMaps that it names are read by `reading/cluster.py`.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from app.cli.doctor.seen import Object
from app.dialects import corral
from app.settings import ENV_PREFIX, SETTINGS_FILE, Settings

CONFIG_FLAG = "--config"
DEFAULT_ACCOUNT = "default"  # of a pod that names none
TOKEN_COMMAND = ["corral", "token"]  # that keeps a token of another account than the pod's


@dataclass(frozen=True, slots=True)
class InConfigMap:
    """One entry of a ConfigMap in the Deployment's namespace."""

    name: str
    key: str


def scheduler_container(deployment: Object) -> Object | None:
    """The container that runs kube-scheduler."""
    return next((one for one in containers(deployment) if "kube-scheduler" in _words(one)), None)


def corral_container(deployment: Object) -> Object | None:
    """The container that runs `corral serve`."""
    return next((one for one in containers(deployment) if "serve" in _words(one)), None)


def config_file(deployment: Object) -> InConfigMap | None:
    """Where kube-scheduler's configuration is, if a ConfigMap has it."""
    found = scheduler_container(deployment)
    path = flag(found, CONFIG_FLAG) if found else ""
    return mounted(deployment, found, path) if found and path else None


def settings_file(deployment: Object) -> InConfigMap | None:
    """Where the file of `corral serve --settings` is, if a ConfigMap has it."""
    found = corral_container(deployment)
    if found is None:
        return None
    path = flag(found, f"--{SETTINGS_FILE}") or literals(found).get(SETTINGS_FILE, "")
    return mounted(deployment, found, path) if path else None


def given(container: Object, config_maps: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """The settings in a container's environment and flags; flags count most.

    `config_maps`: the content of those that its envFrom names.
    """
    found: dict[str, str] = {}
    for name in environment_maps(container):
        found |= _settings_in(config_maps.get(name, {}))
    found |= literals(container)
    for name in Settings.model_fields:
        if text := flag(container, f"--{name.replace('_', '-')}"):
            found[name] = text
    found.pop(SETTINGS_FILE, None)
    return found


def environment_maps(container: Object) -> list[str]:
    """The ConfigMaps that a container has its environment from."""
    sources = container.get("envFrom") or []
    return [each["configMapRef"]["name"] for each in sources if each.get("configMapRef")]


def literals(container: Object) -> dict[str, str]:
    """The settings that stand in a container's environment as values."""
    pairs = ((each["name"], each.get("value")) for each in container.get("env") or [])
    return _settings_in({name: value for name, value in pairs if value is not None})


def account(deployment: Object) -> str:
    """Who Corral is, as NAMESPACE/NAME: whose token its neighbour keeps, or who the pod is."""
    for one in (*(_pod(deployment).get("initContainers") or []), *containers(deployment)):
        words = _words(one)
        if words[:2] == TOKEN_COMMAND and len(words) > 2:
            return words[2]
    return pod_account(deployment)


def pod_account(deployment: Object) -> str:
    """Whose token kubelet gives the pods, as NAMESPACE/NAME."""
    name = _pod(deployment).get("serviceAccountName") or DEFAULT_ACCOUNT
    return f"{deployment['metadata'].get('namespace', '')}/{name}"


def mounted(deployment: Object, container: Object, path: str) -> InConfigMap | None:
    """The ConfigMap that has a file of a container; None if no ConfigMap does."""
    volume, inside = _volume(deployment, container, path)
    source = volume.get("configMap")
    if not source:
        return None
    keys = {each["path"]: each["key"] for each in source.get("items") or []}
    return InConfigMap(source["name"], keys.get(inside, inside))


def flag(container: Object, name: str) -> str:
    """What follows a flag in a container's command; "" if it is not there."""
    words = _words(container)
    for at, word in enumerate(words):
        if word == name and at + 1 < len(words):
            return words[at + 1]
        if word.startswith(f"{name}="):
            return word.partition("=")[2]
    return ""


def containers(deployment: Object) -> list[Object]:
    """The containers of its pods, without those that run before them."""
    return list(_pod(deployment).get("containers") or [])


def webhooks_of(configuration: Object) -> list[Object]:
    """The webhooks of a configuration that is Corral's; [] of any other."""
    return list(configuration.get("webhooks") or []) if is_corrals(configuration) else []


def called(webhook: Object) -> str:
    """What a webhook calls: NAMESPACE/NAME of a Service, or a URL."""
    client = webhook["clientConfig"]
    service = client.get("service")
    return f"{service['namespace']}/{service['name']}" if service else str(client.get("url", ""))


def is_corrals(configuration: Object) -> bool:
    """Whether a configuration has webhooks of Corral, whatever it is called."""
    named = (str(each.get("name", "")) for each in configuration.get("webhooks") or [])
    return any(name.endswith(corral.WEBHOOKS) for name in named)


def _pod(deployment: Object) -> Object:
    spec: Object = deployment["spec"]["template"]["spec"]
    return spec


def _words(container: Object) -> list[str]:
    return [str(word) for word in _flat(container.get("command"), container.get("args"))]


def _flat(*lists: list[Any] | None) -> Iterator[Any]:
    return (each for one in lists for each in one or [])


def _settings_in(environment: Mapping[str, str]) -> dict[str, str]:
    return {
        name.removeprefix(ENV_PREFIX).lower(): value
        for name, value in environment.items()
        if name.startswith(ENV_PREFIX)
    }


def _volume(deployment: Object, container: Object, path: str) -> tuple[Object, str]:
    """The volume a file is in, and its path there."""
    for mount in container.get("volumeMounts") or []:
        inside = posixpath.relpath(path, mount["mountPath"])
        if not inside.startswith(".."):
            volumes = _pod(deployment).get("volumes") or []
            found = (each for each in volumes if each["name"] == mount["name"])
            return next(found, {}), inside
    return {}, ""
