"""Kubeflow's training operator on the control plane, with gangs the way Volcano has them.

    with training_operator(plane, tmp_path):    # a job has no pods while its PodGroup is Pending
        cluster.create(training_job("PyTorchJob", "pytorchReplicaSpecs", "train", …))

It makes a PodGroup for each job, annotates the pods with its name, and gives those that name no
scheduler Volcano's. Its webhooks are not installed.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.certificates import pair
from tests.cluster import Cluster
from tests.controlplane.kinds import TRAINING, VERSIONS
from tests.controlplane.plane import ControlPlane, free_ports, operator
from tests.controlplane.process import Process, running
from tests.controlplane.webhook import VALIDATING

NAMESPACE = "kubeflow"
SECRET = "training-operator-webhook-cert"
WEBHOOK = "validator.training-operator.kubeflow.org"
# Where it waits for the certificate of its webhook, whatever its flags say.
CERTIFICATES = Path("/tmp/k8s-webhook-server/serving-certs")
# What it is for here. Its MPIJob is an older one than the MPI operator's, which is served instead:
# while a kind that it is for is not served, it ends after two minutes.
KINDS = tuple(kind for kind, version in VERSIONS.items() if version == TRAINING)


@contextmanager
def training_operator(plane: ControlPlane, folder: Path) -> Iterator[Process]:
    """The operator while the block lasts; KINDS are served already.

    Raises: BinariesMissing.
    """
    _make_certificates()
    with _expected(plane.cluster()):
        probes, webhook = free_ports(2)
        command: list[str | Path] = [
            operator("training-operator"),
            f"--kubeconfig={plane.kubeconfig()}",
            "--gang-scheduler-name=volcano",
            "--metrics-bind-address=0",
            f"--health-probe-bind-address=127.0.0.1:{probes}",
            f"--webhook-server-port={webhook}",
            *(f"--enable-scheme={kind}" for kind in KINDS),
        ]
        with running(command, folder / "training-operator.log") as process:
            yield process


def _make_certificates() -> None:
    """Writes a pair once, for all operators of this machine: another test's may read it now."""
    CERTIFICATES.mkdir(parents=True, exist_ok=True)
    with (CERTIFICATES / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not all((CERTIFICATES / name).exists() for name in ("tls.crt", "tls.key")):
            pair("training-operator").write(CERTIFICATES)


@contextmanager
def _expected(cluster: Cluster) -> Iterator[None]:
    """What its manifests put there and it fills with certificates, whether they are used or not."""
    if cluster.get("Namespace", NAMESPACE) is None:  # it cannot be deleted here, and is left
        namespace = {"name": NAMESPACE}
        cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": namespace})
    secret = {"name": SECRET, "namespace": NAMESPACE}
    cluster.create({"apiVersion": "v1", "kind": "Secret", "metadata": secret})
    version = "admissionregistration.k8s.io/v1"
    webhook = {"apiVersion": version, "kind": VALIDATING, "metadata": {"name": WEBHOOK}}
    cluster.create({**webhook, "webhooks": []})
    try:
        yield
    finally:
        cluster.delete(VALIDATING, WEBHOOK)
        cluster.delete("Secret", SECRET, NAMESPACE)
