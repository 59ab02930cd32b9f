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

from tests.cluster import Object
from tests.controlplane.plane import ROOT, ControlPlane
from tests.controlplane.webhook import Admission
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
        admission = Admission(corral, plane.cluster(), validates)
        admission.wait_effective()
        yield admission


@contextmanager
def applied(plane: ControlPlane, *, validates: bool = True) -> Iterator[None]:
    """The policies in the cluster while the block lasts; it takes a moment until they count."""
    cluster = plane.cluster()
    with ExitStack() as removals:
        for document in documents():
            if document["kind"].startswith(VALIDATING) and not validates:
                continue
            cluster.create(document)
            name = document["metadata"]["name"]
            removals.callback(partial(cluster.delete, document["kind"], name, ""))
        yield


def documents() -> list[Object]:
    """The policies and their bindings, as they are shipped."""
    return list(yaml.safe_load_all(SHIPPED.read_text(encoding="utf-8")))
