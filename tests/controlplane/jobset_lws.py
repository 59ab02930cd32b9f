"""The controllers of JobSet and LeaderWorkerSet on the control plane, with their webhooks.

    with controllers(plane, folder):
        cluster.create(job_set("train", annotations=asking(required=RACK), driver={}))

Their webhooks are those of their modules; only where they listen, whom to trust there, and which
pods they are asked about differs.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import yaml

from tests.certificates import pair
from tests.cluster import Cluster, Object, collection
from tests.controlplane.kinds import STATEFUL_SET, VERSIONS, served
from tests.controlplane.plane import ControlPlane, free_ports, operator, wait_ready
from tests.controlplane.process import Process, running

# What the two read; without the last one, the controller of LeaderWorkerSets does not start.
KINDS = ("JobSet", "LeaderWorkerSet", "DisaggregatedSet")


# Program -> the API group of its configuration file, and the label that tells its pods from others.
PROGRAMS = {
    "jobset": ("config.jobset.x-k8s.io", "jobset.sigs.k8s.io/jobset-name"),
    "lws": ("config.lws.x-k8s.io", "leaderworkerset.sigs.k8s.io/name"),
}
JOB_SETS, LEADER_WORKER_SETS = (
    collection(kind, "default", VERSIONS[kind]) for kind in ("JobSet", "LeaderWorkerSet")
)
GONE_SECONDS = 20.0


@contextmanager
def controllers(plane: ControlPlane, folder: Path) -> Iterator[None]:
    """Both while the block lasts; afterwards neither their kinds nor objects. Pods stay.

    Raises: BinariesMissing.
    """
    with served(plane.cluster(), KINDS), ExitStack() as stack:
        for program, (group, label) in PROGRAMS.items():
            stack.enter_context(_controller(plane, folder, program, group, label))
        yield


def clear(cluster: Cluster) -> None:
    """No JobSet, LeaderWorkerSet or StatefulSet is left; pods of the first may be."""
    for path in (JOB_SETS, LEADER_WORKER_SETS):
        cluster.request("DELETE", path)
    stateful_sets = collection("StatefulSet", "default", STATEFUL_SET)
    # It goes after its pods, and while it is being deleted its controller makes no more of them.
    cluster.request("DELETE", stateful_sets, params={"propagationPolicy": "Foreground"})

    def is_empty() -> bool:
        return not cluster.request("GET", stateful_sets).json()["items"]

    cluster.wait(is_empty, GONE_SECONDS, "no StatefulSet left")
    # The garbage collector is slow to: a LeaderWorkerSet of the same name would take those for its
    # own, and has no pods once they go.
    cluster.request("DELETE", collection("ControllerRevision", "default", STATEFUL_SET))


@contextmanager
def _controller(
    plane: ControlPlane, folder: Path, program: str, group: str, its_pods: str
) -> Iterator[Process]:
    """group: of its configuration file. its_pods: the label that tells its pods from others."""
    cluster, binary = plane.cluster(), operator(program)
    (port,) = free_ports(1)
    certificates = folder / f"{program}-certificates"
    certificates.mkdir()
    pair(program).write(certificates)
    configuration = {
        "apiVersion": f"{group}/v1alpha1",
        "kind": "Configuration",
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
        "health": {"healthProbeBindAddress": "0"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"host": "127.0.0.1", "port": port, "certDir": str(certificates)},
    }
    file = folder / f"{program}.yaml"
    file.write_text(yaml.safe_dump(configuration), encoding="utf-8")
    command: list[str | Path] = [binary, f"--config={file}", f"--kubeconfig={plane.kubeconfig()}"]
    with running(command, folder / f"{program}.log") as process, ExitStack() as stack:
        for each in _configurations(binary, program, f"https://127.0.0.1:{port}", its_pods):
            for webhook in each["webhooks"]:
                wait_ready(process, webhook["clientConfig"]["url"])
            cluster.create(each)
            # Before the process: an API server that cannot reach it refuses the objects.
            stack.callback(partial(cluster.delete, each["kind"], program))
        yield process


def _configurations(binary: Path, program: str, url: str, its_pods: str) -> Iterator[Object]:
    """Those of its module, which have the API server call that URL, about its own pods alone."""
    file = binary.parent / "webhooks" / f"{binary.name}.yaml"
    for document in yaml.safe_load_all(file.read_text(encoding="utf-8")):
        document["metadata"]["name"] = program
        for webhook in document["webhooks"]:
            webhook["clientConfig"] = {
                "url": url + webhook["clientConfig"]["service"]["path"],
                "caBundle": base64.b64encode(pair(program).certificate).decode(),
            }
            if webhook["rules"][0]["resources"] == ["pods"]:
                labelled = {"key": its_pods, "operator": "Exists"}
                webhook["objectSelector"] = {"matchExpressions": [labelled]}
        yield document
