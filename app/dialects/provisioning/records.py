"""What is kept of a ProvisioningRequest and of a PodTemplate: of those that are not ours, nothing.

Conditions are facts. Types that are not known here are not kept: other controllers have their own.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from app.dialects.provisioning import keys
from app.kube.core.objects import ObjectRecord
from app.kube.decoding import wire
from app.kube.decoding.decode import Json, decoded, part

ACCEPTED, PROVISIONED, FAILED = "Accepted", "Provisioned", "Failed"
BOOKING_EXPIRED, CAPACITY_REVOKED = "BookingExpired", "CapacityRevoked"
FOUND = "CapacityIsFound"  # the reason of Provisioned where nodes were there, and none was ordered
KNOWN = (ACCEPTED, PROVISIONED, FAILED, BOOKING_EXPIRED, CAPACITY_REVOKED)
LONGEST_MESSAGE = 256  # characters that are kept of one condition
MOST_SHOWN_SETS = 64  # of a request's pod sets that are read; its CRD allows 32


class Said(msgspec.Struct, frozen=True, gc=False):
    """One condition."""

    is_true: bool
    reason: str
    message: str

    def __str__(self) -> str:
        return f"{self.reason}: {self.message}" if self.message else self.reason


class RequestRecord(ObjectRecord, frozen=True, gc=False):
    """One ProvisioningRequest. `gang_uid` "": it is none of ours, and the rest is not read."""

    gang_uid: str = ""
    class_name: str = ""
    templates: tuple[str, ...] = ()
    pods: int = 0
    """How many it is for."""
    said: tuple[tuple[str, Said], ...] = ()

    @property
    def attempt(self) -> int:
        """The number in its name, from 1."""
        return keys.attempt_of(self.name, self.gang_uid)

    def condition(self, type_: str) -> Said | None:
        """What it says of this; None: nothing."""
        return dict(self.said).get(type_)

    def is_true(self, type_: str) -> bool:
        """Whether it has this condition."""
        said = self.condition(type_)
        return said is not None and said.is_true

    @property
    def is_accepted(self) -> bool:
        """Whether some controller serves its class."""
        return self.is_true(ACCEPTED) or self.is_answered or self.is_true(FAILED)

    @property
    def is_answered(self) -> bool:
        """Whether it has been tried, whatever became of it."""
        return self.condition(PROVISIONED) is not None

    @property
    def is_over(self) -> bool:
        """Whether it will bring no nodes any more, and keeps none."""
        return self.is_true(FAILED) or self.is_true(BOOKING_EXPIRED)

    @property
    def shown(self) -> str:
        """How far it is, in its controller's own words; "": it has said nothing."""
        for type_ in (CAPACITY_REVOKED, BOOKING_EXPIRED, FAILED, PROVISIONED, ACCEPTED):
            said = self.condition(type_)
            if said is not None and (said.is_true or type_ == PROVISIONED):
                return f"{type_}={said.is_true}, {said}"
        return ""


class TemplateRecord(ObjectRecord, frozen=True, gc=False):
    """One PodTemplate. `gang_uid` "": it is none of ours."""

    gang_uid: str = ""
    requests: tuple[str, ...] = ()
    """The uids of the ProvisioningRequests that own it."""


class _Condition(wire.Wire):
    type: wire.Text = None
    status: wire.Text = None
    reason: wire.Text = None
    message: wire.Text = None


class _TemplateRef(wire.Wire):
    name: wire.Text = None


class _PodSet(wire.Wire):
    count: wire.Int32 | None = None
    pod_template_ref: _TemplateRef | None = None


class _Spec(wire.Wire):
    provisioning_class_name: wire.Text = None
    pod_sets: list[_PodSet | None] | None = None


class _Status(wire.Wire):
    conditions: list[_Condition | None] | None = None


class _Request(wire.Wire):
    metadata: wire.Metadata | None = None
    spec: msgspec.Raw = msgspec.Raw(b"null")
    status: msgspec.Raw = msgspec.Raw(b"null")


class _Template(wire.Wire):
    metadata: wire.Metadata | None = None


_REQUEST = msgspec.json.Decoder(_Request)
_SPEC: msgspec.json.Decoder[_Spec | None] = msgspec.json.Decoder(_Spec | None)
_STATUS: msgspec.json.Decoder[_Status | None] = msgspec.json.Decoder(_Status | None)
_TEMPLATE = msgspec.json.Decoder(_Template)


def decode_request(raw: Json) -> RequestRecord:
    """Return the record of a ProvisioningRequest.

    Raises: DecodeError naming the request and the field.
    """
    found = decoded(_REQUEST, raw, keys.KIND)
    metadata = found.metadata or wire.Metadata()
    uid = _gang_uid(metadata)
    named = RequestRecord(
        kind=keys.KIND,
        namespace=metadata.namespace or "",
        name=metadata.name or "",
        uid=metadata.uid or "",
        version=metadata.resource_version or "",
    )
    if not keys.attempt_of(named.name, uid):
        return named
    spec = part(_SPEC, found.spec, "spec", keys.KIND, metadata) or _Spec()
    status = part(_STATUS, found.status, "status", keys.KIND, metadata) or _Status()
    pod_sets = [each for each in (spec.pod_sets or ())[:MOST_SHOWN_SETS] if each is not None]
    refs = [each.pod_template_ref for each in pod_sets]
    return msgspec.structs.replace(
        named,
        gang_uid=uid,
        class_name=spec.provisioning_class_name or "",
        templates=tuple(each.name or "" for each in refs if each is not None),
        pods=sum(each.count or 0 for each in pod_sets),
        said=tuple(_said(status.conditions or ())),
    )


def decode_template(raw: Json) -> TemplateRecord:
    """Return the record of a PodTemplate.

    Raises: DecodeError naming the template and the field.
    """
    metadata = decoded(_TEMPLATE, raw, keys.TEMPLATE_KIND).metadata or wire.Metadata()
    name, uid = metadata.name or "", _gang_uid(metadata)
    is_ours = keys.is_template(name, uid)
    owners = [each for each in metadata.owner_references or () if each is not None]
    return TemplateRecord(
        kind=keys.TEMPLATE_KIND,
        namespace=metadata.namespace or "",
        name=name,
        uid=metadata.uid or "",
        version=metadata.resource_version or "",
        gang_uid=uid if is_ours else "",
        requests=tuple(each.uid or "" for each in owners if is_ours and each.kind == keys.KIND),
    )


def _gang_uid(metadata: wire.Metadata) -> str:
    return (metadata.labels or {}).get(keys.GANG_UID) or ""


def _said(conditions: Iterable[_Condition | None]) -> Iterable[tuple[str, Said]]:
    """Those that are known, in one order; of two of a type the last."""
    found = {each.type: each for each in conditions if each is not None and each.type in KNOWN}
    for type_ in KNOWN:
        if (one := found.get(type_)) is not None:
            message = (one.message or "")[:LONGEST_MESSAGE]
            yield type_, Said(one.status == "True", one.reason or "", message)
