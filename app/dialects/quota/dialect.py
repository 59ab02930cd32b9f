"""ResourceQuota objects, as far as they bound what pods request.

Read are `pods`, `count/pods`, `requests.NAME` and its short forms for cpu, memory and
ephemeral-storage. A quota with scopes is not read: which pods it counts depends on more than their
requests. Source: kubernetes v1.36 pkg/quota/v1/evaluator/core/pods.go, `podComputeUsageHelper`.
"""

from __future__ import annotations

import msgspec

from app.dialects.declared import Allowance
from app.dialects.dialect import Dialect
from app.kube.core.objects import Amounts, ObjectRecord
from app.kube.core.quantity import InvalidQuantity, amount
from app.kube.decoding import wire
from app.kube.decoding.decode import Json, Keep, decoded, part
from app.kube.watch.resource import Resource

KIND = "ResourceQuota"
REQUESTS = "requests."
SHORT = ("cpu", "memory", "ephemeral-storage", "pods")
PODS = ("pods", "count/pods")
MOST_READ = 1_000  # resources of one quota


class QuotaRecord(ObjectRecord, frozen=True, gc=False):
    """One ResourceQuota: (resource, most, used) in the units of a pod's request."""

    lines: tuple[tuple[str, int, int], ...] = ()


class _Spec(wire.Wire):
    scopes: msgspec.Raw = msgspec.Raw(b"null")  # only whether there is one
    scope_selector: msgspec.Raw = msgspec.Raw(b"null")


class _Status(wire.Wire):
    hard: msgspec.Raw = msgspec.Raw(b"null")
    used: msgspec.Raw = msgspec.Raw(b"null")


class _Quota(wire.Wire):
    metadata: wire.Metadata | None = None
    spec: _Spec | None = None
    status: _Status | None = None


_QUOTA = msgspec.json.Decoder(_Quota)
_QUANTITIES: msgspec.json.Decoder[wire.Quantities] = msgspec.json.Decoder(wire.Quantities)
_NONE = (b"null", b"[]", b"{}")


def decode_quota(raw: Json) -> QuotaRecord:
    """Return the record of a ResourceQuota; amounts that are no quantities are left out.

    Raises: DecodeError naming the quota and the field.
    """
    quota = decoded(_QUOTA, raw, KIND)
    metadata = quota.metadata or wire.Metadata()
    spec, status = quota.spec or _Spec(), quota.status or _Status()
    is_scoped = _is_set(spec.scopes) or _is_set(spec.scope_selector)
    hard = () if is_scoped else _amounts(status.hard, "status.hard", metadata)
    used = dict(_amounts(status.used, "status.used", metadata)) if hard else {}
    return QuotaRecord(
        kind=KIND,
        namespace=metadata.namespace or "",
        name=metadata.name or "",
        uid=metadata.uid or "",
        version=metadata.resource_version or "",
        lines=tuple((resource, most, used.get(resource, 0)) for resource, most in hard),
    )


def _is_set(raw: msgspec.Raw) -> bool:
    """Whether a list or an object has something in it."""
    return bytes(memoryview(raw)[:64]).translate(None, b" \t\r\n") not in _NONE


def _amounts(raw: msgspec.Raw, field: str, metadata: wire.Metadata) -> Amounts:
    """What a quota says of a pod's requests, by the names that pods use; the least of each."""
    quantities = part(_QUANTITIES, raw, field, KIND, metadata)
    found: dict[str, int] = {}
    for key, quantity in list((quantities or {}).items())[:MOST_READ]:
        resource = "pods" if key in PODS else key.removeprefix(REQUESTS)
        if resource == key and key not in SHORT:
            continue
        try:
            value = amount(resource, quantity, rounding="down")
        except InvalidQuantity:
            continue
        found[resource] = min(found.get(resource, value), value)
    return tuple(found.items())


class QuotaDialect(Dialect):
    """What namespaces may have at all."""

    def resources(self, keep: Keep) -> tuple[Resource, ...]:
        return (Resource(KIND, "/api/v1/resourcequotas", QuotaRecord, decode_quota),)

    def allowance(self, record: ObjectRecord) -> Allowance | None:
        if not isinstance(record, QuotaRecord) or not record.lines:
            return None
        where = f"{KIND} {record.namespace}/{record.name}"
        return Allowance(record.namespace, where, record.lines)
