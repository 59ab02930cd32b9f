"""A small synchronous client of the Kubernetes API, and the objects the tests put there.

It speaks to anything that answers like an API server: the real one (`tests/controlplane/plane.py`)
and the sandbox. It knows nothing of `app`; what a test reads here is what a user would see.

    with Cluster(url, token, ca) as cluster:
        cluster.create_all(grid(blocks=2, racks=4, nodes=8, gpus=8))
        cluster.create(pod("trainer-0", requests={"nvidia.com/gpu": 8}))
        cluster.wait(lambda: cluster.bound().get("trainer-0"), seconds=10)
"""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

Object = dict[str, Any]
Objects = list[Object]
Found = TypeVar("Found")

BLOCK = "cloud.provider.com/topology-block"
RACK = "cloud.provider.com/topology-rack"
HOSTNAME = "kubernetes.io/hostname"
GPU = "nvidia.com/gpu"

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"

# Where a kind lives when only its name is given; an object says it itself. Of several kinds of one
# name, all but Kubernetes' own are named with their group.
API_VERSIONS = {
    "AppWrapper": "workload.codeflare.dev/v1beta2",
    "ClusterRole": "rbac.authorization.k8s.io/v1",
    "ClusterRoleBinding": "rbac.authorization.k8s.io/v1",
    "ClusterTopology": "grove.io/v1alpha1",
    "ClusterTopologyBinding": "grove.io/v1alpha1",
    "ConfigMap": "v1",
    "CustomResourceDefinition": "apiextensions.k8s.io/v1",
    "Deployment": "apps/v1",
    "EndpointSlice": "discovery.k8s.io/v1",
    "Event": "v1",
    "HyperNode": "topology.volcano.sh/v1alpha1",
    "Job": "batch/v1",
    "Job.batch.volcano.sh": "batch.volcano.sh/v1alpha1",
    "JobSet": "jobset.x-k8s.io/v1alpha2",
    "KWOKNodeClass": "karpenter.kwok.sh/v1alpha1",
    "Lease": "coordination.k8s.io/v1",
    "MPIJob": "kubeflow.org/v2beta1",
    "MutatingAdmissionPolicy": "admissionregistration.k8s.io/v1",
    "MutatingAdmissionPolicyBinding": "admissionregistration.k8s.io/v1",
    "MutatingWebhookConfiguration": "admissionregistration.k8s.io/v1",
    "Namespace": "v1",
    "NetworkPolicy": "networking.k8s.io/v1",
    "Node": "v1",
    "NodeClaim": "karpenter.sh/v1",
    "NodePool": "karpenter.sh/v1",
    "Pod": "v1",
    "PersistentVolume": "v1",
    "PersistentVolumeClaim": "v1",
    "PodClique": "grove.io/v1alpha1",
    "PodCliqueScalingGroup": "grove.io/v1alpha1",
    "PodCliqueSet": "grove.io/v1alpha1",
    "PodDisruptionBudget": "policy/v1",
    "PodGang": "scheduler.grove.io/v1alpha1",
    "PodGroup.scheduling.k8s.io": "scheduling.k8s.io/v1alpha2",
    "PodGroup.scheduling.run.ai": "scheduling.run.ai/v2alpha2",
    "PodGroup.scheduling.volcano.sh": "scheduling.volcano.sh/v1beta1",
    "PodTemplate": "v1",
    "PriorityClass": "scheduling.k8s.io/v1",
    "ProvisioningRequest": "autoscaling.x-k8s.io/v1",
    "PyTorchJob": "kubeflow.org/v1",
    "Queue.scheduling.run.ai": "scheduling.run.ai/v2",
    "Queue.scheduling.volcano.sh": "scheduling.volcano.sh/v1beta1",
    "RayCluster": "ray.io/v1",
    "RayJob": "ray.io/v1",
    "ResourceClaim": "resource.k8s.io/v1",
    "ResourceQuota": "v1",
    "Role": "rbac.authorization.k8s.io/v1",
    "RoleBinding": "rbac.authorization.k8s.io/v1",
    "Secret": "v1",
    "SelfSubjectAccessReview": "authorization.k8s.io/v1",
    "Service": "v1",
    "ServiceAccount": "v1",
    "Topology": "kueue.x-k8s.io/v1beta2",
    "Topology.kai.scheduler": "kai.scheduler/v1alpha1",
    "ValidatingAdmissionPolicy": "admissionregistration.k8s.io/v1",
    "ValidatingAdmissionPolicyBinding": "admissionregistration.k8s.io/v1",
    "ValidatingWebhookConfiguration": "admissionregistration.k8s.io/v1",
}
CLUSTER_SCOPED = frozenset(
    {
        "ClusterRole",
        "ClusterRoleBinding",
        "ClusterTopology",
        "ClusterTopologyBinding",
        "CustomResourceDefinition",
        "HyperNode",
        "KWOKNodeClass",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
        "MutatingWebhookConfiguration",
        "Namespace",
        "Node",
        "NodeClaim",
        "NodePool",
        "PersistentVolume",
        "PriorityClass",
        "Queue.scheduling.volcano.sh",
        "SelfSubjectAccessReview",
        "Topology",
        "Topology.kai.scheduler",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "ValidatingWebhookConfiguration",
    }
)
STRICT = {"fieldValidation": "Strict"}  # a misspelt field is an error, not a warning
PAGE = 500  # objects per page of a list, kubectl's own figure
POLL_SECONDS = 0.02


class Refused(Exception):
    """The API server answered, and the answer was not a success."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message


class Cluster:
    """One API server, as one user; any thread may ask it.

    Threads share no connection pool: in httpcore 1.0 one thread may find a connection readable, and
    close it, that another has just taken and gets its answer on ("Bad file descriptor").
    Every call raises `Refused` for an answer that is not 2xx, and httpx's own errors where there
    is no answer.
    """

    def __init__(
        self, url: str, token: str = "", ca: Path | None = None, *, connections: int = 16
    ) -> None:
        self.url = url.rstrip("/")
        self._connections = connections
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._verify = ssl.create_default_context(cafile=ca) if ca else True
        self._clients: list[httpx.Client] = []
        self._idle: list[httpx.Client] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        for client in self._clients:
            client.close()

    @contextmanager
    def _client(self) -> Iterator[httpx.Client]:
        """A client that no other thread has meanwhile."""
        try:
            client = self._idle.pop()
        except IndexError:
            client = httpx.Client(
                base_url=self.url,
                headers=self._headers,
                verify=self._verify,
                timeout=httpx.Timeout(30.0),
                trust_env=False,  # a proxy of this machine has no business between us and loopback
            )
            self._clients.append(client)
        try:
            yield client
        finally:
            self._idle.append(client)

    def request(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        content_type: str = "application/json",
        params: Mapping[str, str | int] | None = None,
    ) -> httpx.Response:
        """The answer to one request; raises `Refused` when it is not a success."""
        with self._client() as client:
            answer = client.request(
                method,
                path,
                content=None if body is None else json.dumps(body),
                headers={} if body is None else {"Content-Type": content_type},
                params=params,
            )
        if not answer.is_success:
            raise _refused(answer)
        return answer

    def create(self, thing: Object) -> Object:
        """The object as the server stored it."""
        return _object(self.request("POST", _home(thing), body=thing, params=STRICT))

    def create_all(self, things: Iterable[Object]) -> Objects:
        """Every object as stored, in the order given; created over many connections at once."""
        with ThreadPoolExecutor(self._connections) as pool:
            return list(pool.map(self.create, things))

    def apply(self, thing: Object) -> Object:
        """The object as stored: created, or replaced where that name exists already."""
        try:
            return self.create(thing)
        except Refused as refused:
            if refused.reason != "AlreadyExists":
                raise
        path = f"{_home(thing)}/{thing['metadata']['name']}"
        return _object(self.request("PUT", path, body=thing, params=STRICT))

    def get(self, kind: str, name: str, namespace: str = "default") -> Object | None:
        """The object, or None where there is none of that name."""
        try:
            return _object(self.request("GET", f"{collection(kind, namespace)}/{name}"))
        except Refused as refused:
            if refused.status == 404:
                return None
            raise

    def list(self, kind: str, namespace: str | None = None, **params: str | int) -> Objects:
        """All objects of a kind, of every namespace when none is named; read page by page."""
        path = collection(kind, namespace)
        found: Objects = []
        token = ""
        while True:
            answer = _object(
                self.request("GET", path, params={"limit": PAGE, "continue": token, **params})
            )
            found += answer["items"] or []
            token = answer.get("metadata", {}).get("continue", "")
            if not token:
                return found

    def patch(
        self,
        kind: str,
        name: str,
        change: object,
        namespace: str = "default",
        *,
        content_type: str = MERGE,
    ) -> Object:
        path = f"{collection(kind, namespace)}/{name}"
        return _object(self.request("PATCH", path, body=change, content_type=content_type))

    def delete(self, kind: str, name: str, namespace: str = "default") -> None:
        self.request("DELETE", f"{collection(kind, namespace)}/{name}")

    def delete_all(self, kind: str, namespace: str = "default") -> None:
        """Deletes every object of the kind in one namespace (or of a cluster-scoped kind)."""
        self.request("DELETE", collection(kind, namespace))

    def clear(self, kind: str, seconds: float = 20.0) -> None:
        """Deletes them and waits until no object of the kind is left. Raises: TimeoutError."""
        self.delete_all(kind)
        self.wait(lambda: not self.list(kind), seconds, f"no {kind} left")

    def bind(self, name: str, node: str, *, uid: str = "", namespace: str = "default") -> None:
        """Binds one pod as a scheduler would; with a uid, only the pod that has it."""
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name, "namespace": namespace} | ({"uid": uid} if uid else {}),
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        self.request("POST", f"{collection('Pod', namespace)}/{name}/binding", body=binding)

    def bound(self, namespace: str = "default") -> dict[str, str]:
        """Pod name -> node, for the pods of one namespace that have one."""
        return {
            pod["metadata"]["name"]: pod["spec"]["nodeName"]
            for pod in self.list("Pod", namespace)
            if pod["spec"].get("nodeName")
        }

    def events(self, about: Object) -> Objects:
        """The core/v1 Events about one object, oldest first."""
        metadata = about["metadata"]
        found = self.list(
            "Event",
            metadata.get("namespace", "default"),
            fieldSelector=f"involvedObject.uid={metadata['uid']}",
        )
        return sorted(found, key=lambda event: int(event["metadata"]["resourceVersion"]))

    def watch(
        self, kind: str, seconds: float, namespace: str | None = None, **params: str | int
    ) -> Iterator[Object]:
        """Watch events as they come, for at most that long; then simply no more."""
        deadline = time.monotonic() + seconds
        query = {"watch": "true", "timeoutSeconds": max(1, round(seconds)), **params}
        with (
            self._client() as client,
            client.stream(
                "GET", collection(kind, namespace), params=query, timeout=seconds
            ) as answer,
        ):
            if not answer.is_success:
                answer.read()
                raise _refused(answer)
            try:
                for line in answer.iter_lines():
                    yield json.loads(line)
                    if time.monotonic() >= deadline:
                        return
            except httpx.ReadTimeout:
                return

    def wait(
        self, condition: Callable[[], Found], seconds: float, what: str = "the condition"
    ) -> Found:
        """The first truthy answer of the condition; TimeoutError after that many seconds."""
        deadline = time.monotonic() + seconds
        while True:
            answer = condition()
            if answer:
                return answer
            if time.monotonic() >= deadline:
                raise TimeoutError(f"{what} did not come about in {seconds:g} s (last: {answer!r})")
            time.sleep(POLL_SECONDS)


def collection(kind: str, namespace: str | None = None, api_version: str | None = None) -> str:
    """The path of all objects of a kind, in one namespace when one is named."""
    version = api_version or API_VERSIONS[kind]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    name = kind.partition(".")[0]
    plural = name.lower()
    if plural.endswith("s"):
        plural += "es"
    elif plural.endswith("y"):
        plural = plural[:-1] + "ies"
    else:
        plural += "s"
    names = {kind, f"{name}.{version.partition('/')[0]}"}
    if namespace is None or not names.isdisjoint(CLUSTER_SCOPED):
        return f"{root}/{plural}"
    return f"{root}/namespaces/{namespace}/{plural}"


def node(
    name: str,
    *,
    labels: Mapping[str, str] | None = None,
    gpus: int = 0,
    cpu: str = "64",
    memory: str = "512Gi",
    pods: int = 110,
    is_ready: bool = True,
    is_unschedulable: bool = False,
    taints: Sequence[Object] = (),
) -> Object:
    """A node as its kubelet would have reported it."""
    amounts = {"cpu": cpu, "memory": memory, "pods": str(pods)}
    if gpus:
        amounts[GPU] = str(gpus)
    spec: Object = {"taints": list(taints)} if taints else {}
    if is_unschedulable:
        spec["unschedulable"] = True
    ready = {"type": "Ready", "status": "True" if is_ready else "False", "reason": "Test"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {HOSTNAME: name, **(labels or {})}},
        "spec": spec,
        "status": {"capacity": amounts, "allocatable": amounts, "conditions": [ready]},
    }


def grid(*, blocks: int = 1, racks: int, nodes: int, **fields: Any) -> Objects:
    """`blocks` x `racks` x `nodes` equal nodes named b0-r0-n0 and so on, with both labels.

    A rack's label value is unique in the cluster, so the levels nest without a path.
    """
    return [
        node(
            f"b{block}-r{rack}-n{place}",
            labels={BLOCK: f"b{block}", RACK: f"b{block}-r{rack}"},
            **fields,
        )
        for block in range(blocks)
        for rack in range(racks)
        for place in range(nodes)
    ]


def pod(
    name: str,
    *,
    namespace: str = "default",
    scheduler: str = "corral",
    requests: Mapping[str, str | int] | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    gates: Sequence[str] = (),
    **spec: Any,
) -> Object:
    """A pod that does nothing; further keywords go into its spec as they are."""
    template = _template(scheduler, requests, labels, annotations, spec)
    if gates:
        template["spec"]["schedulingGates"] = [{"name": gate} for gate in gates]
    template["metadata"] |= {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Pod", **template}


def job(
    name: str,
    *,
    pods: int,
    namespace: str = "default",
    scheduler: str = "corral",
    requests: Mapping[str, str | int] | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    is_suspended: bool = False,
    **spec: Any,
) -> Object:
    """An Indexed Job whose pods all run at once; labels and annotations are those of its pods."""
    template = _template(
        scheduler, requests, labels, annotations, {"restartPolicy": "Never", **spec}
    )
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "parallelism": pods,
            "completions": pods,
            "completionMode": "Indexed",
            "suspend": is_suspended,
            "template": template,
        },
    }


def _template(
    scheduler: str,
    requests: Mapping[str, str | int] | None,
    labels: Mapping[str, str] | None,
    annotations: Mapping[str, str] | None,
    spec: Mapping[str, Any],
) -> Object:
    # Extended resources need equal limits; for cpu and memory equal limits do no harm here.
    amounts = {resource: str(amount) for resource, amount in (requests or {"cpu": "100m"}).items()}
    return {
        "metadata": {"labels": dict(labels or {}), "annotations": dict(annotations or {})},
        "spec": {
            "schedulerName": scheduler,
            # No kubelet confirms a deletion here; without grace a bound pod is gone at once.
            "terminationGracePeriodSeconds": 0,
            "containers": [
                {
                    "name": "work",
                    "image": "example.invalid/work",
                    "resources": {"requests": amounts, "limits": amounts},
                }
            ],
            **spec,
        },
    }


def _home(thing: Object) -> str:
    namespace = thing.get("metadata", {}).get("namespace", "default")
    return collection(thing["kind"], namespace, thing.get("apiVersion"))


def _object(answer: httpx.Response) -> Object:
    thing: Object = answer.json()
    return thing


def _refused(answer: httpx.Response) -> Refused:
    try:
        status = answer.json()
    except ValueError:
        status = {}
    if not isinstance(status, dict):
        status = {}
    return Refused(
        answer.status_code, status.get("reason", ""), status.get("message", answer.text[:500])
    )
