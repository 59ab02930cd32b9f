"""Queues: what the PodGroups of one may have together, and those that have to be there.

Volcano's controllers make no pods for a vcjob whose queue does not exist. Its scheduler makes
`root` and `default` when it starts; where it does not run, Corral makes those that the operator
names. A PodGroup is let into its queue while the minResources of all that are in it are within the
queue's own capability: neither shares nor the queues above it count.
Source: volcano pkg/scheduler/cache/cache.go, `newDefaultAndRootQueue`; pkg/scheduler/plugins/
proportion/proportion.go, `AddJobEnqueueableFn` (v1.14). There, what is allocated beyond
minResources is taken off again, so what all have is the sum of these.
"""

from __future__ import annotations

import msgspec

from app.dialects.declared import Pool
from app.dialects.flaw import Flaw
from app.dialects.rules import too_long, too_many
from app.dialects.written import Prerequisite
from app.kube.core.objects import Amounts, ObjectRecord
from app.kube.core.quantity import InvalidQuantity, amount
from app.kube.decoding import wire
from app.kube.decoding.decode import Json, decoded
from app.kube.watch.resource import Resource

VERSION = "scheduling.volcano.sh/v1beta1"
KIND = "Queue.scheduling.volcano.sh"
PATH = f"/apis/{VERSION}/queues"
WEIGHT = 1  # a Queue must have one; nothing is shared out by it here
CLOSED = ("Closed", "Closing")  # states in which nothing is let in any more
MOST_BYTES = 16 * 1024  # of resources with their amounts, …
MOST_RESOURCES = 64  # … of which a PodGroup keeps each in memory
# Names that are no resources: what else a quota counts of the same pods.
_COUNTED = ("count/", "requests.", "limits.")


class QueueRecord(ObjectRecord, frozen=True, gc=False):
    """One Queue."""

    most: Amounts = ()
    """What its PodGroups may have in all; () for a capability that is not read."""
    is_open: bool = True


class _Spec(wire.Wire):
    capability: msgspec.Raw = msgspec.Raw(b"null")


class _Status(wire.Wire):
    state: wire.Text = None


class _Queue(wire.Wire):
    metadata: wire.Metadata | None = None
    spec: _Spec | None = None
    status: _Status | None = None


_QUEUE = msgspec.json.Decoder(_Queue)
_QUANTITIES: msgspec.json.Decoder[wire.Quantities] = msgspec.json.Decoder(wire.Quantities)


def decode_queue(raw: Json) -> QueueRecord:
    """Return the record of a Queue.

    Raises: DecodeError naming the Queue and the field.
    """
    found = decoded(_QUEUE, raw, "Queue")
    metadata, spec = found.metadata or wire.Metadata(), found.spec or _Spec()
    most, _ = amounts_of(spec.capability, "capability")
    return QueueRecord(
        kind=KIND,
        namespace="",
        name=metadata.name or "",
        uid=metadata.uid or "",
        version=metadata.resource_version or "",
        most=most,
        is_open=(found.status or _Status()).state not in CLOSED,
    )


def amounts_of(raw: msgspec.Raw, field: str) -> tuple[Amounts, Flaw | None]:
    """Amounts by resource, in the units of a pod's request, and why nothing of them is read.

    Left out is what is no quantity, and what only a quota counts: `requests.cpu`, `count/pods`.
    """
    if len(bytes(raw)) > MOST_BYTES:
        return (), too_long(field, MOST_BYTES)
    try:
        quantities = _QUANTITIES.decode(raw) or {}
    except (ValueError, RecursionError) as error:
        return (), Flaw(field, "Invalid value", str(error))
    if len(quantities) > MOST_RESOURCES:
        return (), too_many(field, len(quantities), MOST_RESOURCES)
    found: dict[str, int] = {}
    for resource, quantity in quantities.items():
        if not resource.startswith(_COUNTED):
            try:
                found[resource] = amount(resource, quantity, rounding="down")
            except InvalidQuantity:
                continue
    return tuple(sorted(found.items())), None


def pool_of(record: QueueRecord) -> Pool:
    """What the PodGroups of a queue may have together."""
    return Pool(pool_name(record.name), record.most, record.is_open)


def pool_name(queue: str) -> str:
    """The name of a queue's pool."""
    return f"Queue {queue}"


def queue(name: str) -> Prerequisite:
    """A Queue that is open, and limits nothing."""
    body = {
        "apiVersion": VERSION,
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"weight": WEIGHT},
    }
    return Prerequisite(PATH, name, body)


RESOURCE = Resource(KIND, PATH, QueueRecord, decode_queue, is_optional=True)
