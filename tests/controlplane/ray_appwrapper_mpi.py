"""KubeRay, AppWrapper and the MPI operator on the control plane.

    with operators(plane, folder):
        cluster.create(app_wrapper("train", job("train", pods=4)))

They run without webhooks, and each reads its own kinds only.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from tests.cluster import Cluster
from tests.controlplane.kinds import served
from tests.controlplane.plane import ControlPlane, free_ports, operator, wait_ready
from tests.controlplane.process import running

KINDS = ("RayCluster", "RayJob", "RayService", "AppWrapper", "MPIJob")
NAMESPACE = "appwrapper-system"
CONFIGURATION = "appwrapper-operator-config"


@contextmanager
def operators(plane: ControlPlane, folder: Path) -> Iterator[None]:
    """All three while the block lasts; afterwards neither their kinds nor objects. Pods stay.

    Raises: BinariesMissing.
    """
    with (
        served(plane.cluster(), KINDS),
        _kuberay(plane, folder),
        _app_wrapper(plane, folder),
        _mpi_operator(plane, folder),
    ):
        yield


def clear(cluster: Cluster) -> None:
    """No object is left of which one of them makes pods; the pods may be."""
    for kind in ("RayJob", "RayCluster", "AppWrapper", "MPIJob"):  # a RayJob makes RayClusters
        cluster.clear(kind)


@contextmanager
def _kuberay(plane: ControlPlane, folder: Path) -> Iterator[None]:
    metrics, probes = free_ports(2)
    command: list[str | Path] = [
        operator("kuberay"),
        f"--kubeconfig={plane.kubeconfig()}",
        f"--metrics-addr=127.0.0.1:{metrics}",
        f"--health-probe-bind-address=127.0.0.1:{probes}",
        "--enable-leader-election=false",
    ]
    with running(command, folder / "kuberay.log") as process:
        wait_ready(process, f"http://127.0.0.1:{probes}/readyz")
        yield
        plane.cluster().clear("RayJob")  # KubeRay has to agree


@contextmanager
def _app_wrapper(plane: ControlPlane, folder: Path) -> Iterator[None]:
    (probes,) = free_ports(1)
    _configure(plane.cluster(), f"127.0.0.1:{probes}")
    # It reads from its environment alone where its configuration is.
    command: list[str | Path] = [
        "env",
        f"NAMESPACE={NAMESPACE}",
        operator("appwrapper"),
        f"--kubeconfig={plane.kubeconfig()}",
    ]
    with running(command, folder / "appwrapper.log") as process:
        # To answer /readyz it starts its webhooks' server, and ends for want of a certificate.
        wait_ready(process, f"http://127.0.0.1:{probes}/healthz")
        yield
        plane.cluster().clear("AppWrapper")  # its controller has to agree


def _configure(cluster: Cluster, probes: str) -> None:
    """Where its probes are answered, and what it is not to do: nodes and rights are no matter."""
    if cluster.get("Namespace", NAMESPACE) is None:  # it cannot be deleted here, and is left
        namespace = {"name": NAMESPACE}
        cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": namespace})
    settings = {
        "appwrapper": {
            "autopilot": {"injectAntiAffinities": False, "monitorNodes": False},
            "userRBACAdmissionCheck": False,
        },
        "controllerManager": {"metrics": {"bindAddress": "0"}, "health": {"bindAddress": probes}},
        "webhooksEnabled": False,
    }
    cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": CONFIGURATION, "namespace": NAMESPACE},
            "data": {"config.yaml": yaml.safe_dump(settings)},
        }
    )


@contextmanager
def _mpi_operator(plane: ControlPlane, folder: Path) -> Iterator[None]:
    command: list[str | Path] = [
        operator("mpi-operator"),
        f"-kubeConfig={plane.kubeconfig()}",
        "-lock-namespace=default",  # its leader's
    ]
    with running(command, folder / "mpi-operator.log") as process:
        # On this port whatever its flags say; where it is taken, the operator ends.
        wait_ready(process, "http://127.0.0.1:8080/healthz")
        yield
