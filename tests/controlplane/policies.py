"""The policies that deploy/policies.yaml installs, on the real control plane.

    with installed_policies(plane, tmp_path) as admission:   # kube-apiserver evaluates them now
        cluster.create(member("red", 0, 2))                  # … and stores the pod gated
        plane.start_scheduler(extender=admission.corral.url)

They are applied as they are shipped: there is nothing that a test would have to replace. Corral
runs without a port for a webhook.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from tests.cluster import Cluster, Object
from tests.controlplane.admission import Admission, wait_effective
from tests.controlplane.plane import ROOT, ControlPlane
from tests.corral_process import CorralProcess

SHIPPED = ROOT / "deploy" / "policies.yaml"
MUTATING = "MutatingAdmissionPolicy"
VALIDATING = "ValidatingAdmissionPolicy"


@contextmanager
def installed_policies(
    plane: ControlPlane, folder: Path, *, validates: bool = True, **settings: Any
) -> Iterator[Admission]:
    """A Corral without a webhook, and the policies in effect; afterwards neither.

    validates: whether mistakes are refused; without it pods are gated and nothing else.
    """
    with (
        CorralProcess(plane.kubeconfig("corral"), folder, **settings) as corral,
        applied(plane, validates=validates),
    ):
        yield Admission(
            corral, plane.cluster(), validates, is_gated_by_corral=False, hashes_roles=False
        )


@contextmanager
def applied(plane: ControlPlane, *, validates: bool = True) -> Iterator[None]:
    """The policies in effect while the block lasts, without any Corral."""
    cluster = plane.cluster()
    with ExitStack() as removals:
        # kube-apiserver notices a moment later, as it does that they are there.
        removals.callback(partial(wait_effective, cluster, gates=False, validates=False))
        for document in documents():
            if document["kind"].startswith(VALIDATING) and not validates:
                continue
            cluster.create(document)
            name = document["metadata"]["name"]
            removals.callback(partial(cluster.delete, document["kind"], name, ""))
        wait_effective(cluster, validates=validates)
        yield


@contextmanager
def unchecked(cluster: Cluster) -> Iterator[None]:
    """Of policies in effect the one that gates alone, while the block lasts."""
    binding = f"{VALIDATING}Binding"
    (document,) = [each for each in documents() if each["kind"] == binding]
    cluster.delete(binding, document["metadata"]["name"], "")
    try:
        wait_effective(cluster, validates=False)
        yield
    finally:
        cluster.create(document)
        wait_effective(cluster)


def documents() -> list[Object]:
    """The policies and their bindings, as they are shipped."""
    return list(yaml.safe_load_all(SHIPPED.read_text(encoding="utf-8")))
