"""What Kueue's webhook does to a pod with a queue name, as a server that kube-apiserver calls.

Source: kueue pkg/controller/jobs/pod/pod_webhook.go (v0.16), Default; the name of its configuration
as its manifests have it.
"""

from __future__ import annotations

import base64
import json
import ssl
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.certificates import HOST, pair
from tests.cluster import Cluster, Object, collection, pod
from tests.controlplane.admission import EFFECTIVE_SECONDS, tried
from tests.workloads import QUEUE

MUTATING = "MutatingWebhookConfiguration"
NAME = "kueue-mutating-webhook-configuration"
MANAGED = "kueue.x-k8s.io/managed"
GATE = "kueue.x-k8s.io/admission"


@contextmanager
def installed(cluster: Cluster) -> Iterator[None]:
    """Kueue's webhook in effect while the block lasts."""
    server = ThreadingHTTPServer((HOST, 0), _Handler)
    with tempfile.TemporaryDirectory() as folder:
        certificate, key = pair("apiserver").write(Path(folder))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        cluster.create(_configuration(server.server_address[1]))
        probe = pod("probe", labels={QUEUE: "team"}, scheduler="another")
        cluster.wait(
            lambda: MANAGED in tried(cluster, probe)["metadata"]["labels"],
            EFFECTIVE_SECONDS,
            "the first call of Kueue's webhook",
        )
        yield
    finally:
        cluster.request("DELETE", f"{collection(MUTATING)}/{NAME}")
        server.shutdown()
        thread.join()
        server.server_close()


def _configuration(port: int) -> Object:
    bundle = base64.b64encode(pair("apiserver").certificate).decode()
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"]}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": MUTATING,
        "metadata": {"name": NAME},
        "webhooks": [
            {
                "name": "mpod.kb.io",
                "clientConfig": {"url": f"https://{HOST}:{port}/", "caBundle": bundle},
                "admissionReviewVersions": ["v1"],
                "rules": [{**rule, "resources": ["pods"]}],
                "failurePolicy": "Fail",
                "sideEffects": "None",
            }
        ],
    }


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["request"]
        patch = _patch(asked["object"])
        response: Object = {"uid": asked["uid"], "allowed": True}
        if patch:
            text = base64.b64encode(json.dumps(patch).encode()).decode()
            response |= {"patchType": "JSONPatch", "patch": text}
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
        body = json.dumps({**review, "response": response}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""


def _patch(thing: Object) -> list[Object]:
    labels = thing["metadata"].get("labels", {})
    if QUEUE not in labels or MANAGED in labels:
        return []
    gates = [*thing["spec"].get("schedulingGates", []), {"name": GATE}]
    return [
        {"op": "add", "path": "/metadata/labels", "value": {**labels, MANAGED: "true"}},
        {"op": "add", "path": "/spec/schedulingGates", "value": gates},
    ]
