"""Corral behind the webhook that deploy/webhook.yaml installs, on the real control plane.

    with installed(plane, tmp_path) as webhook:          # the API server calls it from here on
        cluster.create(member("red", 0, 2))              # … and stores the pod gated
        plane.start_scheduler(extender=webhook.corral.url)

Only where Corral is, and whom to trust there, differs from what is shipped, and what the comments
there say of some settings. Installing costs as long as Corral takes to start; the API server
notices within a tenth of a second.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from tests.certificates import pair
from tests.cluster import Object, collection
from tests.controlplane.admission import BROKEN, GATED, Admission
from tests.controlplane.plane import ROOT, ControlPlane, free_ports
from tests.corral_process import CorralProcess

__all__ = [
    "BROKEN",
    "GATED",
    "MUTATING",
    "SHIPPED",
    "VALIDATING",
    "Webhook",
    "configurations",
    "installed",
    "path_of",
]
SHIPPED = ROOT / "deploy" / "webhook.yaml"
MUTATING = "MutatingWebhookConfiguration"
VALIDATING = "ValidatingWebhookConfiguration"
OF_GROVE = "not-of-grove-alone"  # the condition that goes where members need a marker
SEPARATED = "', '"
NONE: Mapping[str, Any] = {}


class Webhook(Admission):
    """A Corral whose webhook the API server calls."""


@contextmanager
def installed(plane: ControlPlane, folder: Path, **settings: Any) -> Iterator[Webhook]:
    """A Corral with its webhook in effect; afterwards neither, whatever happens meanwhile.

    settings: Corral's own, beside those of the webhook.
    """
    cluster = plane.cluster()
    certificate, key = pair("apiserver").write(folder)
    (port,) = free_ports(1)
    settings |= {
        "admission_listen": f"127.0.0.1:{port}",
        "admission_cert": str(certificate),
        "admission_key": str(key),
    }
    with (
        CorralProcess(plane.kubeconfig("corral"), folder, **settings) as corral,
        ExitStack() as removals,
    ):
        for configuration in configurations(f"https://127.0.0.1:{port}", settings):
            path = path_of(configuration["kind"])
            cluster.request("POST", path, body=configuration)
            one = f"{path}/{configuration['metadata']['name']}"
            removals.callback(partial(cluster.request, "DELETE", one))
        webhook = Webhook(corral, cluster)
        webhook.wait_effective()
        yield webhook


def path_of(kind: str) -> str:
    """Where the API server has its MUTATING or VALIDATING configurations."""
    return collection(kind, None, "admissionregistration.k8s.io/v1")


def configurations(url: str, settings: Mapping[str, Any] = NONE) -> Iterator[Object]:
    """Those that are shipped; only where Corral is, and whom to trust there, is replaced.

    settings: Corral's, of which `scheduler_name` and `marker_resource` are said there as well.
    """
    text = SHIPPED.read_text(encoding="utf-8")
    if names := settings.get("scheduler_name"):
        text = text.replace("== 'corral'", f"in ['{names.replace(',', SEPARATED)}']")
    for document in yaml.safe_load_all(text):
        for each in document.get("webhooks", []):
            if settings.get("marker_resource") and each["name"] == "gate.corral.dev":
                each["failurePolicy"] = "Fail"
                asked = each["matchConditions"]
                each["matchConditions"] = [one for one in asked if one["name"] != OF_GROVE]
            each["clientConfig"] = {
                "url": url + each["clientConfig"]["service"]["path"],
                "caBundle": base64.b64encode(pair("apiserver").certificate).decode(),
            }
        if document["kind"] in (MUTATING, VALIDATING):
            yield document
