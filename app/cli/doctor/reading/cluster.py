"""The parts of an installation that the API server has; each alone, so that one may be missing.

Lists are asked for page by page, and of pods only those that say they are in a gang are kept.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Mapping
from email.utils import parsedate_to_datetime
from typing import TypeVar
from urllib.parse import quote

import msgspec

from app.cli.common.api_server import listed, records
from app.cli.doctor import installed
from app.cli.doctor.reading import rights
from app.cli.doctor.seen import (
    MUTATING,
    POLICY_KINDS,
    VALIDATING,
    Canary,
    Members,
    Object,
    Policies,
    Readiness,
    Right,
    Topology,
    TopologyObject,
    Unread,
    Webhooks,
    WebhookService,
)
from app.dialects import corral
from app.dialects.kueue import pod_groups
from app.dialects.registry import DIALECTS
from app.errors import ApiError, DecodeError, NotFound, Unreachable
from app.kube.client.transport import Transport
from app.kube.core.objects import NodeRecord, ObjectRecord, PodRecord, Record
from app.settings import Settings
from app.state.domains.explicit import ExplicitTopology
from topology.errors import InvalidTopology
from topology.model.levels import levels_of

_T = TypeVar("_T")

APPS, ADMISSION = "/apis/apps/v1", "/apis/admissionregistration.k8s.io/v1"
SLICES, SERVICE_LABEL = "/apis/discovery.k8s.io/v1", "kubernetes.io/service-name"
DENY = "Deny"  # what a binding of the second kind does, unless it only warns or writes it down
TOPOLOGY_KINDS = ("Topology", "HyperNode")  # part of the kind of every object that declares one
MOST_MEMBERS = 10_000  # pods of gangs that are looked at
MOST_ADDRESSES = 8  # kept of one Service
PROBE_SECONDS = 10.0
LONGEST_READYZ = 2**16  # bytes
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


async def part(what: str, reading: Awaitable[_T]) -> _T | Unread:
    """A part, or why it could not be read."""
    try:
        return await reading
    except (ApiError, DecodeError) as wrong:
        return Unread(f"{what}: {wrong}")


async def skew(transport: Transport) -> float:
    """By how much the API server's clock is ahead of this machine's. Units: seconds.

    The header has whole seconds, and the answer was on its way: it is right to a second or so.
    Raises: ApiError.
    """
    before = time.time()
    date = await transport.date_of("/version", timeout=PROBE_SECONDS)
    here = (before + time.time()) / 2
    return parsedate_to_datetime(date).timestamp() + 0.5 - here if date else 0.0


async def version(transport: Transport) -> str:
    """The API server's version, such as v1.36.3. Raises: ApiError."""
    return str((await _get(transport, "/version")).get("gitVersion", ""))


async def deployment(transport: Transport, namespace: str) -> Object | Unread:
    """Corral's Deployment, known by its label. Raises: ApiError, DecodeError."""
    selector = "=".join(corral.INSTALLED)
    path = f"{APPS}/namespaces/{_word(namespace)}/deployments"
    async for raw in listed(transport, path, {"labelSelector": selector}):
        return _object(raw)
    return Unread(f"namespace {namespace} has no Deployment with the label {selector}")


async def config_map(transport: Transport, namespace: str, name: str) -> Mapping[str, str]:
    """The entries of a ConfigMap. Raises: ApiError."""
    path = f"/api/v1/namespaces/{_word(namespace)}/configmaps/{_word(name)}"
    return (await _get(transport, path)).get("data") or {}


async def pods_of(transport: Transport, deployment: Object) -> tuple[Object, ...]:
    """The pods of a Deployment that have not ended. Raises: ApiError, DecodeError."""
    labels = deployment["spec"]["selector"].get("matchLabels") or {}
    selector = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
    path = f"/api/v1/namespaces/{_word(deployment['metadata']['namespace'])}/pods"
    found = [_object(raw) async for raw in listed(transport, path, {"labelSelector": selector})]
    ended = ("Succeeded", "Failed")
    return tuple(each for each in found if (each.get("status") or {}).get("phase") not in ended)


async def denied(
    transport: Transport, deployment: Object, settings: Settings, lease: str | None
) -> tuple[Right, ...]:
    """What Corral and kube-scheduler need and may not do. Raises: ApiError.

    `lease`: the one that kube-scheduler's configuration names, if that was read.
    """
    accounts = {
        rights.CORRAL: installed.account(deployment),
        rights.SCHEDULER: installed.pod_account(deployment),
    }
    if not installed.scheduler_container(deployment):
        del accounts[rights.SCHEDULER]
    home = deployment["metadata"]["namespace"]
    every = rights.needed(rights.documents(), settings, accounts, home)
    wanted = []
    for right in every:
        named = settings.neighbour_lease if right.role == rights.CORRAL else lease
        if right.resource != rights.LEASES:
            wanted.append(right)
        elif named:
            wanted.append(rights.of_lease(right, named))
    wanted += rights.leading(settings, accounts[rights.CORRAL])
    return await rights.denied(transport, wanted)


async def topology(transport: Transport, settings: Settings) -> Topology:
    """Nodes, and the objects that divide them. Raises: ApiError, DecodeError."""
    known = DIALECTS.configured(settings).resources()
    (nodes_resource,) = [each for each in known if each.kind == "Node"]
    nodes: dict[str, NodeRecord] = {}
    async for record in records(transport, nodes_resource):
        if isinstance(record, DecodeError):
            raise record
        assert isinstance(record, NodeRecord)
        nodes[record.name] = record
    objects: list[TopologyObject] = []
    explicit = ExplicitTopology()
    for resource in known:
        if any(word in resource.kind for word in TOPOLOGY_KINDS):
            async for each in records(transport, resource):
                _add_topology(resource.kind, each, objects, explicit)
    explicit.put_all(list(explicit.specs.values()), nodes)
    for record_of in nodes.values():
        explicit.place(record_of)
    for name in explicit.specs:
        flaws = tuple(f"{flaw.reason}: {flaw.text}" for flaw in explicit.view(name).flaws)
        objects.append(TopologyObject(f"HyperNode {name}", flaws))
    return Topology(nodes, tuple(objects))


def _add_topology(
    kind: str,
    record: Record | DecodeError,
    objects: list[TopologyObject],
    all_of: ExplicitTopology,
) -> None:
    if isinstance(record, DecodeError):
        objects.append(TopologyObject(kind, (str(record),)))
        return
    assert isinstance(record, ObjectRecord)
    for spec in DIALECTS.topologies(record):
        if spec.domain is not None:
            all_of.put(spec.domain, {})
            continue
        try:
            levels, flaws = levels_of(spec.levels)[:-1], ()
        except InvalidTopology as wrong:
            objects.append(TopologyObject(f"{kind} {record.name}", (str(wrong),)))
            continue
        objects.append(TopologyObject(f"{kind} {record.name}", flaws, levels))


async def members(transport: Transport, settings: Settings) -> Members:
    """The pods that say they are in a gang and have not ended. Raises: ApiError, DecodeError."""
    dialects = DIALECTS.configured(settings)
    (pods_resource,) = [each for each in dialects.resources() if each.kind == "Pod"]
    found: list[PodRecord] = []
    left_out = 0
    async for record in records(transport, pods_resource):
        if isinstance(record, DecodeError):
            raise record
        assert isinstance(record, PodRecord)
        if record.is_finished or record.is_terminating or dialects.claim(record) is None:
            continue
        if len(found) < MOST_MEMBERS:
            found.append(record)
        else:
            left_out += 1
    return Members(tuple(found), left_out)


async def webhooks(transport: Transport) -> Webhooks:
    """Every webhook configuration, and what is behind Corral's. Raises: ApiError, DecodeError."""
    both = []
    for kind in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"):
        found = [_object(raw) async for raw in listed(transport, f"{ADMISSION}/{kind}")]
        both.append(tuple(found))
    ours = [each for one in both for each in one if installed.is_corrals(each)]
    called = {
        f"{service['namespace']}/{service['name']}"
        for each in ours
        for webhook in each.get("webhooks") or []
        if (service := webhook["clientConfig"].get("service"))
    }
    services = {
        name: await part(f"Service {name}", _service(transport, *name.split("/", 1)))
        for name in sorted(called)
    }
    return Webhooks(both[0], both[1], services)


async def policies(transport: Transport) -> Policies:
    """Corral's admission policies; none of a kind that is not served.

    Raises: ApiError, DecodeError.
    """
    ours = dict[str, tuple[Object, ...]]()
    bound = set[tuple[str, str]]()
    for kind in POLICY_KINDS:
        named = [each async for each in _served(transport, f"{kind.lower()[:-1]}ies")]
        ours[kind] = tuple(
            {**each, "kind": kind}  # the objects of a list do not say it
            for each in named
            if str(each["metadata"]["name"]).endswith(corral.WEBHOOKS)
        )
        async for each in _served(transport, f"{kind.lower()}bindings"):
            if kind != VALIDATING or DENY in (each["spec"].get("validationActions") or ()):
                bound.add((kind, str(each["spec"].get("policyName", ""))))
    return Policies(ours[MUTATING], ours[VALIDATING], frozenset(bound))


async def _served(transport: Transport, plural: str) -> AsyncIterator[Object]:
    """The objects of a kind of admission; none if it is not served. Raises as `listed`."""
    try:
        async for raw in listed(transport, f"{ADMISSION}/{plural}"):
            yield _object(raw)
    except NotFound:
        return


async def _service(transport: Transport, namespace: str, name: str) -> WebhookService:
    """Raises: ApiError, DecodeError."""
    home = f"namespaces/{_word(namespace)}"
    try:
        service = await _get(transport, f"/api/v1/{home}/services/{_word(name)}")
    except NotFound:
        return WebhookService(exists=False)
    ready, addresses = 0, list[tuple[str, int]]()
    chosen = {"labelSelector": f"{SERVICE_LABEL}={name}"}
    async for raw in listed(transport, f"{SLICES}/{home}/endpointslices", chosen):
        found = _object(raw)
        behind = [each["port"] for each in found.get("ports") or [] if each.get("port")]
        for each in found.get("endpoints") or []:
            # A condition that is not known counts as met.
            if (each.get("conditions") or {}).get("ready") is not False:
                its = [str(address) for address in each.get("addresses") or []]
                ready += len(its)
                addresses += [(address, int(port)) for address in its for port in behind]
    ports = tuple(int(each["port"]) for each in service["spec"].get("ports") or [])
    return WebhookService(True, ready, ports, tuple(addresses[:MOST_ADDRESSES]))


async def readiness(
    transport: Transport, pods: tuple[Object, ...], settings: Settings
) -> tuple[Readiness, ...] | Unread:
    """What /readyz says of each pod, through the API server's proxy of pods."""
    port = probe_port(settings)
    if port is None:
        return Unread(
            "/readyz is on the loopback of Corral's pod alone: api_listen or the webhook's port"
            " would answer it outside; whether containers are ready is in the check pods-ready"
        )
    return tuple([await _readyz(transport, pod, port) for pod in pods])


def probe_port(settings: Settings) -> str | None:
    """The port that answers /readyz beyond the pod, as the proxy names it; None: none does."""
    listens = [("https:" if settings.api_cert else "", settings.api_listen)]
    if settings.admission_client_ca is None:
        listens.append(("https:", settings.admission_listen))
    for scheme, address in listens:
        if address is not None and address.host not in _LOOPBACK:
            return f"{scheme}{{}}:{address.port}"
    return None


async def _readyz(transport: Transport, pod: Object, port: str) -> Readiness:
    name = str(pod["metadata"]["name"])
    home = f"/api/v1/namespaces/{_word(pod['metadata']['namespace'])}"
    path = f"{home}/pods/{port.format(_word(name))}/proxy/readyz"
    try:
        await transport.request("GET", path, timeout=PROBE_SECONDS, most_bytes=LONGEST_READYZ)
    except Unreachable as wrong:
        return Readiness(name, "unreachable", wrong.message)
    except ApiError as wrong:
        # The API server's own refusals are a Status; what Corral says is text.
        is_corrals = wrong.status == 503 and "error trying to reach" not in wrong.message
        return Readiness(name, "not ready" if is_corrals else "unreachable", wrong.message)
    return Readiness(name, "ready", "ok")


async def canary(transport: Transport, namespace: str, scheduler: str) -> Canary:
    """A pod of a gang of two, tried and not stored. Raises: Unreachable."""
    path = f"/api/v1/namespaces/{_word(namespace)}/pods"
    try:
        body = await transport.request(
            "POST", path, params={"dryRun": "All"}, body=canary_pod(namespace, scheduler)
        )
    except Unreachable:
        raise
    except ApiError as wrong:
        return Canary(namespace, None, str(wrong))
    return Canary(namespace, _object(body))


def canary_pod(namespace: str, scheduler: str) -> Object:
    """A pod that the webhook takes in, and that the restricted Pod Security Standard allows."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": "corral-doctor-",
            "namespace": namespace,
            "annotations": {
                pod_groups.GROUP_NAME: "corral-doctor",
                pod_groups.TOTAL_COUNT: "2",
            },
        },
        "spec": {
            "schedulerName": scheduler,
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 65532,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [
                {
                    "name": "canary",
                    "image": "canary",
                    "resources": {
                        "requests": {"cpu": "10m", "memory": "16Mi"},
                        "limits": {"cpu": "10m", "memory": "16Mi"},
                    },
                    "securityContext": {
                        "allowPrivilegeEscalation": False,
                        "capabilities": {"drop": ["ALL"]},
                    },
                }
            ],
        },
    }


async def _get(transport: Transport, path: str) -> Object:
    return _object(await transport.request("GET", path))


def _object(raw: bytes | msgspec.Raw) -> Object:
    """Raises: DecodeError."""
    try:
        found = msgspec.json.decode(raw)
    except ValueError as wrong:
        raise DecodeError(f"the API server's answer: {wrong}") from wrong
    if not isinstance(found, dict):
        raise DecodeError("the API server's answer is no object")
    return found


def _word(text: str) -> str:
    """A name as part of a path."""
    return quote(text, safe="")
