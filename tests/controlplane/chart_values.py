"""Values that the tests of the chart share, and what the two programs read of its objects."""

from __future__ import annotations

from typing import Any

import yaml

from app.settings import ENV_PREFIX, Settings
from tests.cluster import Object, Objects
from tests.controlplane.packaged import key, one

SERVERS = ["192.0.2.1/32", "192.0.2.2/32"]  # as network-policy.yaml names them
# Each optional manifest -> the values that bring it.
OPTIONS = {
    "webhook.yaml": {"webhook": {"enabled": True, "certificate": "given"}},
    "policies.yaml": {"policies": {"enabled": True}},
    "api.yaml": {"api": {"enabled": True, "certificate": "given"}},
    "hypernode-crd.yaml": {"hyperNodeCrd": {"enabled": True}},
}
OF_POD = "10.0.0.1"  # what the downward API says: an address, and a name as good as any
EVERYTHING: dict[str, Any] = {
    **{name: value for each in OPTIONS.values() for name, value in each.items()},
    "networkPolicy": {"enabled": True, "apiServers": SERVERS},
}
BY_LABEL = {"matchLabels": {"team": "a"}, "matchExpressions": [{"key": "x", "operator": "Exists"}]}
PLACING: dict[str, Any] = {
    "image": {
        "repository": "r/corral",
        "digest": f"sha256:{'0' * 64}",
        "pullPolicy": "Always",
        "pullSecrets": [{"name": "pull"}],
    },
    "scheduler": {"image": {"tag": "v1.35.9"}, "resources": {"requests": {"cpu": "2"}}},
    "replicas": 1,
    "resources": {"limits": {"memory": "4Gi"}},
    "nodeSelector": {"node-role.kubernetes.io/control-plane": ""},
    "tolerations": [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
    "priorityClassName": "high",
    "podAnnotations": {"a": "b"},
    "podLabels": {"c": "d"},
}


def env(objects: Objects) -> dict[str, str]:
    """The environment of Corral's container, and the ConfigMap of the webhook where it is there."""
    every = container(objects, "corral")["env"]
    config = [each["data"] for each in objects if key(each)[::2] == ("ConfigMap", "corral-webhook")]
    return {each["name"]: each.get("value", OF_POD) for each in every} | {
        name: value for data in config for name, value in data.items()
    }


def settings(objects: Objects) -> Settings:
    """What Corral starts with."""
    return Settings(
        **{name.removeprefix(ENV_PREFIX).lower(): text for name, text in env(objects).items()}
    )


def container(objects: Objects, name: str) -> Object:
    pod = one(objects, "Deployment", "corral")["spec"]["template"]["spec"]
    every = [*pod.get("initContainers", []), *pod["containers"]]
    return next(each for each in every if each["name"] == name)


def config(objects: Objects) -> Any:
    """The KubeSchedulerConfiguration."""
    return yaml.safe_load(one(objects, "ConfigMap", "corral-scheduler")["data"]["config.yaml"])
