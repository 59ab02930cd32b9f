"""PodGroups and CompositePodGroups as the API server sends them: the fields that both have.

What their policies and levels mean is in `scheduling.py`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from app.dialects.gang_objects import read_status
from app.dialects.native.scheduling import Scheduling
from app.kube.decoding import wire
from app.kube.decoding.decode import Json, decoded, part

MOST_STATUS_BYTES = 8 * 1024  # kube-scheduler writes two conditions


class Spec(Scheduling):
    parent_composite_pod_group_name: wire.Text = None


class Metadata(wire.Metadata):
    generation: int | None = None


class _Status(wire.Wire):
    conditions: list[dict[str, Any] | None] | None = None


class Stored(wire.Wire):
    """One of them; what its status says is in `conditions`."""

    metadata: Metadata | None = None
    spec: msgspec.Raw = msgspec.Raw(b"null")
    status: msgspec.Raw = msgspec.Raw(b"null")  # if it cannot be read, the spec still is

    @property
    def conditions(self) -> tuple[dict[str, Any], ...]:
        """The conditions in its status; () if that cannot be read."""
        status = read_status(_STATUS, self.status, _Status(), MOST_STATUS_BYTES) or _Status()
        return tuple(each for each in status.conditions or () if each)


_STORED = msgspec.json.Decoder(Stored)
_SPEC: msgspec.json.Decoder[Spec | None] = msgspec.json.Decoder(Spec | None)
_STATUS: msgspec.json.Decoder[_Status | None] = msgspec.json.Decoder(_Status | None)


def read(raw: Json, kind: str) -> tuple[Stored, Metadata, Spec]:
    """The object, with its metadata and its spec.

    Raises: DecodeError naming the object and the field.
    """
    found = decoded(_STORED, raw, kind)
    spec = part(_SPEC, found.spec, "spec", kind, found.metadata) or Spec()
    return found, found.metadata or Metadata(), spec
