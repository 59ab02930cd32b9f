"""What users apply out of deploy/, as Helm and kustomize themselves make it.

chart({"settings": {"preempt": "on"}}, namespace="gang-scheduling")    -> its objects
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.cluster import STRICT, Cluster, Object, Objects, collection
from tests.controlplane.plane import ROOT, operator

CHART = ROOT / "deploy" / "chart"
KUBERNETES = "1.36.3"  # that Helm takes the cluster for, which it does not ask
HOME = "corral-system"

Key = tuple[str, str, str]


class NotRendered(Exception):
    """Helm refused the values; says why."""


def chart(
    values: Mapping[str, Any] | None = None,
    namespace: str = HOME,
    package: Path = CHART,
    kubernetes: str = KUBERNETES,
) -> Objects:
    """The objects of the chart with these values. Raises: NotRendered; BinariesMissing."""
    flags = ["template", "corral", package, f"--namespace={namespace}", "--values=-"]
    command = [operator("helm"), *flags, f"--kube-version={kubernetes}"]
    given = json.dumps(values or {})
    ran = subprocess.run(command, input=given, capture_output=True, text=True, timeout=60)
    if ran.returncode != 0:
        lines = ran.stderr.splitlines()
        # Helm tells of every link that it follows.
        raise NotRendered("\n".join(each for each in lines if "symbolic link" not in each))
    return documents(ran.stdout)


def kustomized(folder: Path = ROOT / "deploy") -> Objects:
    """The objects that `kubectl apply -k` applies. Raises: BinariesMissing."""
    command = [operator("kustomize"), "build", folder]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return documents(ran.stdout)


def manifests(*files: str) -> Objects:
    """The objects of files in deploy/."""
    texts = ((ROOT / "deploy" / file).read_text(encoding="utf-8") for file in files)
    return [each for text in texts for each in documents(text)]


def documents(text: str) -> Objects:
    return [each for each in yaml.safe_load_all(text) if each]


def key(thing: Object) -> Key:
    """What there is one of: kind, namespace and name."""
    metadata = thing["metadata"]
    return thing["kind"], metadata.get("namespace", ""), metadata["name"]


def by_key(things: Objects) -> dict[Key, Object]:
    found = {key(each): each for each in things}
    assert len(found) == len(things), "an object is there twice"
    return found


def one(things: Objects, kind: str, name: str) -> Object:
    (found,) = [each for each in things if key(each)[::2] == (kind, name)]
    return found


def tried(cluster: Cluster, thing: Object) -> None:
    """Has the API server try a server-side apply of the object. Raises: Refused."""
    kind, namespace, name = key(thing)
    path = f"{collection(kind, namespace or None, thing['apiVersion'])}/{name}"
    cluster.request(
        "PATCH",
        path,
        body=thing,
        content_type="application/apply-patch+yaml",
        params={"dryRun": "All", "force": "true", "fieldManager": "helm", **STRICT},
    )


def helm(kubeconfig: Path, *flags: str, values: Mapping[str, Any] | None = None) -> str:
    """What Helm says after one of its commands on a cluster. Raises: NotRendered."""
    given = ["--values=-"] if values is not None else []
    return said_by_helm(
        *flags, f"--kubeconfig={kubeconfig}", *given, stdin=json.dumps(values or {})
    )


def said_by_helm(*flags: str, stdin: str = "") -> str:
    """What Helm says after one of its commands. Raises: NotRendered."""
    command = [operator("helm"), *flags]
    ran = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=120)
    if ran.returncode != 0:
        raise NotRendered(ran.stderr)
    return ran.stdout
