"""Which role of its group a pod plays: a hash over what matters for placing it.

By the rules `kueue` the same eight digits as Kueue's, byte for byte: Go's JSON has its keys sorted
where it writes a map, as declared where it writes a struct (which is how the API server sends
them), null for what is absent, and <, > and & escaped.

By the rules `kep` three more things tell roles apart: labels, images and the preemption policy. No
Kueue computes that one, so its keys are sorted throughout; it is cut to eight digits all the same,
since a whole sha256 is one digit too long for the name of a pod set.

Source: kueue pkg/util/pod/pod.go (v0.16; the resources of the whole pod, v0.17); KEP-976 "Groups of
Pods created beforehand".
"""

from __future__ import annotations

import hashlib

import msgspec

from app.dialects import corral
from app.dialects.kueue.annotations import PREFIX
from app.errors import DecodeError
from app.kube.decoding.decode import Json
from app.kube.decoding.requests import MARKERS
from app.settings import RoleRules

HASH_DIGITS = 8
_UNCOUNTED = (PREFIX, corral.PREFIX)  # labels of queues and gangs; the second are written by us
_GO_ESCAPES = (
    (b"<", b"\\u003c"),
    (b">", b"\\u003e"),
    (b"&", b"\\u0026"),
    ("\u2028".encode(), b"\\u2028"),
    ("\u2029".encode(), b"\\u2029"),
)


class _Resources(msgspec.Struct):
    requests: object = None


class _Container(msgspec.Struct):
    image: object = None
    resources: _Resources | None = None
    ports: object = None


class _Spec(msgspec.Struct, rename="camel"):
    """The fields that count, with their Go names."""

    affinity: object = None
    containers: list[_Container] | None = None
    init_containers: list[_Container] | None = None
    node_selector: object = None
    overhead: object = None
    preemption_policy: object = None
    priority: object = None
    resource_claims: object = None
    resources: _Resources | None = None
    runtime_class_name: object = None
    tolerations: object = None
    topology_spread_constraints: object = None


class _Metadata(msgspec.Struct):
    labels: dict[str, object] | None = None


class _Pod(msgspec.Struct):
    metadata: _Metadata | None = None
    spec: _Spec | None = None


_POD = msgspec.json.Decoder(_Pod)


def role_hash(raw: Json, rules: RoleRules = "kueue") -> str:
    """The role hash of a pod. Raises: DecodeError."""
    try:
        pod = _POD.decode(raw)
        written = _as_kueue(pod) if rules == "kueue" else _as_kep(pod)
    except (ValueError, RecursionError) as error:
        raise DecodeError(f"Pod: {error}") from error
    return hashlib.sha256(written).hexdigest()[:HASH_DIGITS]


def _as_kueue(pod: _Pod) -> bytes:
    """What Kueue hashes."""
    written = msgspec.json.encode({"spec": _shape(pod.spec or _Spec())})
    for plain, escaped in _GO_ESCAPES:
        written = written.replace(plain, escaped)
    return written


def _as_kep(pod: _Pod) -> bytes:
    """What the KEP lists."""
    spec = pod.spec or _Spec()
    labels = (pod.metadata and pod.metadata.labels) or {}
    counted = {key: labels[key] for key in labels if not key.startswith(_UNCOUNTED)}
    more = {
        "images": _images(spec.containers),
        "initImages": _images(spec.init_containers),
        "preemptionPolicy": spec.preemption_policy,
    }
    shape = {"metadata": {"labels": counted}, "spec": {**_shape(spec), **more}}
    return msgspec.json.encode(shape, order="deterministic")


def _images(containers: list[_Container] | None) -> list[object]:
    return [container.image for container in containers or ()]


def _shape(spec: _Spec) -> dict[str, object]:
    """Order: by key, as Go writes a map."""
    own = {} if spec.resources is None else {"resources": spec.resources.requests}
    return {
        "affinity": spec.affinity,
        "containers": _containers(spec.containers),
        "initContainers": _containers(spec.init_containers),
        "nodeSelector": spec.node_selector,
        "overhead": spec.overhead,
        "priority": spec.priority,
        "resourceClaims": spec.resource_claims,
        **own,
        "runtimeClassName": spec.runtime_class_name,
        "tolerations": spec.tolerations,
        "topologySpreadConstraints": spec.topology_spread_constraints,
    }


def _containers(containers: list[_Container] | None) -> list[dict[str, object]] | None:
    if not containers:
        return None
    return [
        {
            "ports": container.ports,
            "resources": {"requests": _counted(container.resources)},
        }
        for container in containers
    ]


def _counted(resources: _Resources | None) -> object:
    """What a container requests itself: the webhook may have added the markers already."""
    requests = resources and resources.requests
    if not isinstance(requests, dict) or requests.keys().isdisjoint(MARKERS):
        return requests
    return {name: requests[name] for name in requests if name not in MARKERS} or None
