"""Which role of its group a pod plays: a hash over what matters for placing it.

The same eight digits as Kueue's, byte for byte: Go's JSON has its keys sorted where it writes a
map, as declared where it writes a struct (which is how the API server sends them), null for what is
absent, and <, > and & escaped.

Source: kueue pkg/util/pod/pod.go (v0.16).
"""

from __future__ import annotations

import hashlib

import msgspec

from app.errors import DecodeError
from app.kube.core.decode import Json

HASH_DIGITS = 8
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
    resources: _Resources | None = None
    ports: object = None


class _Spec(msgspec.Struct, rename="camel"):
    """The fields that count, with their Go names."""

    affinity: object = None
    containers: list[_Container] | None = None
    init_containers: list[_Container] | None = None
    node_selector: object = None
    overhead: object = None
    priority: object = None
    resource_claims: object = None
    resources: _Resources | None = None
    runtime_class_name: object = None
    tolerations: object = None
    topology_spread_constraints: object = None


class _Pod(msgspec.Struct):
    spec: _Spec | None = None


_POD = msgspec.json.Decoder(_Pod)


def role_hash(raw: Json) -> str:
    """The role hash of a pod. Raises: DecodeError."""
    try:
        spec = _POD.decode(raw).spec or _Spec()
        written = msgspec.json.encode({"spec": _shape(spec)})
    except (ValueError, RecursionError) as error:
        raise DecodeError(f"Pod: {error}") from error
    for plain, escaped in _GO_ESCAPES:
        written = written.replace(plain, escaped)
    return hashlib.sha256(written).hexdigest()[:HASH_DIGITS]


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
            "resources": {"requests": container.resources and container.resources.requests},
        }
        for container in containers
    ]
