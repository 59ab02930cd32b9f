"""A pod about to be created -> what it is to be, and the JSON patch that makes it so.

A pod that a vocabulary takes for a member of a gang gets our gate, the managed label, its index
label and its role hash: whatever is there already is left as it is, so a second call adds nothing.
A pod that Kueue has taken in meanwhile is given back: of two gates, ours would never be taken off.
One whose operator takes every gate off gets none. Where the profile's extenders are for members
alone, each gets the resources by which kube-scheduler knows it.

Source: kueue pkg/controller/jobs/pod/pod_webhook.go (v0.16), KEP-976 "Gating Pod Scheduling".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from app.admission.mutating.markers import markers
from app.admission.mutating.role_hash import role_hash
from app.admission.operations import Operation, escaped
from app.admission.scope import Scope, has_opted_out
from app.dialects import corral
from app.dialects.kueue import pod_groups
from app.dialects.kueue.annotations import ROLE_HASH
from app.dialects.registry import Dialects, Reading
from app.errors import DecodeError
from app.kube.core.node_terms import REQUIRED, node_terms
from app.kube.core.objects import PodRecord
from app.kube.decoding.decode import Json, decode_pod
from app.settings import RoleRules

_TRUE = "true"
_GATES = "/spec/schedulingGates"


class Mutation(NamedTuple):
    """A pod as far as rules look at it, its labels and annotations changed; and every change."""

    pod: PodRecord
    operations: list[Operation]
    reading: Reading | None = None  # of a pod that is to have the gate


def mutate(
    raw: Json,
    namespace: str,
    scope: Scope,
    dialects: Dialects,
    roles: RoleRules = "kueue",
    *,
    marks: bool = False,
) -> Mutation:
    """What to change in this pod; nothing in a pod that is not ours.

    `roles`: whose rules tell the roles of a pod group apart. `marks`: whether it gets the markers.
    Raises: DecodeError naming the pod and the field.
    """
    pod = decode_pod(raw, _everything)
    is_ours = scope.covers(namespace, pod.scheduler, pod.labels)
    if pod.node or not is_ours or has_opted_out(pod.labels):
        return Mutation(pod, [])
    if dialects.is_managed(pod.labels, pod.annotations, pod.gates, pod.pod_group):
        return Mutation(pod, _withdrawal(pod))
    reading = dialects.read(pod)
    if reading.claim is None:
        return Mutation(pod, [])
    marked = [*markers(raw)] if marks else []
    if dialects.lifts_gates(pod):
        return Mutation(pod, marked)
    labels, annotations = _labels(pod), _annotations(pod, raw, roles)
    operations = [
        *_strings("labels", pod.labels, labels),
        *_strings("annotations", pod.annotations, annotations),
        *marked,
        *_gate(pod),
    ]
    changed = msgspec.structs.replace(
        pod, labels={**pod.labels, **labels}, annotations={**pod.annotations, **annotations}
    )
    return Mutation(changed, operations, reading)


def born(mutation: Mutation, raw: Json, nodes: tuple[str, ...]) -> list[Operation]:
    """What to change in a pod that goes to one of these nodes, without the gate; (): nothing more.

    Raises: DecodeError.
    """
    operations = [each for each in mutation.operations if not _is_gate(each)]
    if nodes:
        said = {corral.BORN: corral.NODES}
        operations += _strings("annotations", mutation.pod.annotations, said)
        operations.append(_affinity(raw, nodes))
    return operations


def unborn(mutation: Mutation) -> list[Operation]:
    """What to change in a pod that waits behind the gate, though an earlier call had it born.

    Another Corral has answered, or the plan is another one by now: behind the gate the pod is to be
    as free as all others.
    """
    return [*mutation.operations, *_widening(mutation.pod)]


def _widening(pod: PodRecord) -> list[Operation]:
    """Take back the nodes that a pod was narrowed to when it was born."""
    _, nodes = corral.own_shape(pod)
    if nodes is None or corral.BORN not in pod.annotations:
        return []
    place = f"/spec/affinity/nodeAffinity/{REQUIRED}"
    said = f"/metadata/annotations/{escaped(corral.BORN)}"
    return [Operation("remove", place), Operation("remove", said)]


def _affinity(raw: Json, nodes: tuple[str, ...]) -> Operation:
    """The addition to a pod without required node affinity; it may have other affinity."""
    try:
        spec = _AFFINITY.decode(raw).spec
    except (ValueError, RecursionError) as error:
        raise DecodeError(f"Pod: {error}") from error
    terms: object = node_terms(nodes)
    if spec.affinity is None:
        return Operation("add", "/spec/affinity", {"nodeAffinity": {REQUIRED: terms}})
    if spec.affinity.node_affinity is None:
        return Operation("add", "/spec/affinity/nodeAffinity", {REQUIRED: terms})
    return Operation("add", f"/spec/affinity/nodeAffinity/{REQUIRED}", terms)


class _Affinity(msgspec.Struct, rename="camel"):
    node_affinity: object = None


class _AffineSpec(msgspec.Struct):
    affinity: _Affinity | None = None


class _AffinePod(msgspec.Struct):
    spec: _AffineSpec


_AFFINITY = msgspec.json.Decoder(_AffinePod)


def adds_gate(operations: Sequence[Operation]) -> bool:
    """Whether the pod waits behind our gate because of this patch."""
    return any(map(_is_gate, operations))


def _is_gate(operation: Operation) -> bool:
    return operation.op == "add" and operation.path.startswith(_GATES)


def _labels(pod: PodRecord) -> dict[str, str]:
    wanted = {corral.MANAGED: _TRUE}
    source = pod.annotations.get(pod_groups.INDEX_LABEL)
    if source is not None:
        # A missing source gives an empty index, which validation refuses.
        wanted[pod_groups.POD_INDEX] = pod.labels.get(source, "")
    return wanted


def _annotations(pod: PodRecord, raw: Json, roles: RoleRules) -> dict[str, str]:
    is_grouped = any(pod_groups.GROUP_NAME in where for where in (pod.labels, pod.annotations))
    if not is_grouped or ROLE_HASH in pod.annotations:
        return {}
    return {ROLE_HASH: role_hash(raw, roles)}


def _strings(field: str, present: Mapping[str, str], wanted: Mapping[str, str]) -> list[Operation]:
    """Additions to metadata.labels or metadata.annotations, which may not exist yet."""
    missing = {key: value for key, value in wanted.items() if present.get(key) != value}
    if not missing:
        return []
    if not present:
        return [Operation("add", f"/metadata/{field}", missing)]
    return [
        Operation("add", f"/metadata/{field}/{escaped(key)}", value)
        for key, value in missing.items()
    ]


def _gate(pod: PodRecord) -> list[Operation]:
    if corral.GATE in pod.gates:
        return []
    gate = {"name": corral.GATE}
    if pod.gates:
        return [Operation("add", f"{_GATES}/-", gate)]
    return [Operation("add", _GATES, [gate])]


def _withdrawal(pod: PodRecord) -> list[Operation]:
    """Take back what we added when we were asked before Kueue was."""
    operations: list[Operation] = []
    if corral.GATE in pod.gates:
        place = f"{_GATES}/{pod.gates.index(corral.GATE)}"
        operations += [Operation("test", f"{place}/name", corral.GATE), Operation("remove", place)]
    elif corral.MANAGED in pod.labels:
        operations += _widening(pod)
    if operations and corral.MANAGED in pod.labels:
        operations.append(Operation("remove", f"/metadata/labels/{escaped(corral.MANAGED)}"))
    return operations


def _everything(_key: str) -> bool:
    return True
