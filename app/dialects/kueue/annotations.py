"""Kueue's topology annotations: their keys, and what valid ones mean.

`rules.py` says which are valid.

Source: KEP-2724 "User-facing API"; kueue pkg/controller/jobframework/tas_validation.go (v0.16).
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from app.dialects.corral import WORKLOAD, WORKLOAD_PREFERRED, WORKLOAD_REQUIRED
from app.dialects.rules import boolean, whole_number
from topology.model.request import Constraint, Slice

PREFIX = "kueue.x-k8s.io/"
REQUIRED = PREFIX + "podset-required-topology"
PREFERRED = PREFIX + "podset-preferred-topology"
UNCONSTRAINED = PREFIX + "podset-unconstrained-topology"
MODES = (REQUIRED, PREFERRED, UNCONSTRAINED)
SLICE_LEVEL = PREFIX + "podset-slice-required-topology"
SLICE_SIZE = PREFIX + "podset-slice-size"
SLICE_LAYERS = PREFIX + "podset-slice-required-topology-constraints"
SLICES = (SLICE_LEVEL, SLICE_SIZE, SLICE_LAYERS)
POD_SET_GROUP = PREFIX + "podset-group-name"
INDEX_OFFSET = PREFIX + "pod-index-offset"
ROLE_HASH = PREFIX + "role-hash"
LONGEST_NAME = 253  # of an RFC 1123 subdomain; annotations may be a thousand times as long
KEPT = (*MODES, *SLICES, POD_SET_GROUP, INDEX_OFFSET, ROLE_HASH)

MOST_LAYERS = 3
MOST_LAYERS_TEXT = 4_096  # characters; three label keys of 317, their sizes and blanks are 1,200
MOST_NAME = 256  # characters of a pod set group's name

_OF_WORKLOAD = frozenset(WORKLOAD)

Strings = Mapping[str, str]


class Layer(msgspec.Struct, frozen=True):
    """One entry of the annotation with several layers."""

    topology: str = ""
    size: int = 0


LAYERS = msgspec.json.Decoder(list[Layer])


def asks_for_topology(annotations: Strings) -> bool:
    """Whether there is a topology annotation that requests something, valid or not."""
    return asking(annotations) != ""


def asking(annotations: Strings) -> str:
    """The first topology annotation that requests something, valid or not; "": there is none."""
    for key in (REQUIRED, PREFERRED, *SLICES, POD_SET_GROUP, *WORKLOAD):
        if key in annotations:
            return key
    return "" if boolean(annotations.get(UNCONSTRAINED, "false")) is False else UNCONSTRAINED


def constraint(annotations: Strings) -> Constraint:
    """What valid annotations request; without any of them: anywhere."""
    return Constraint(required=annotations.get(REQUIRED), preferred=annotations.get(PREFERRED))


def together(annotations: Strings) -> Constraint:
    """What valid annotations request for all pods of the workload; without any: anywhere.

    Source: KEP-2724 "Story 3", which leaves the words open.
    """
    return Constraint(
        required=annotations.get(WORKLOAD_REQUIRED), preferred=annotations.get(WORKLOAD_PREFERRED)
    )


def asks_together(annotations: Strings) -> bool:
    """Whether something is requested for all pods of the workload together, valid or not."""
    return not _OF_WORKLOAD.isdisjoint(annotations)


def slices(annotations: Strings) -> tuple[Slice, ...]:
    """The slices of valid annotations, coarsest layer first."""
    if SLICE_LAYERS in annotations:
        layers = LAYERS.decode(annotations[SLICE_LAYERS])
        return tuple(Slice(layer.size, layer.topology) for layer in layers)
    level, size = annotations.get(SLICE_LEVEL), annotations.get(SLICE_SIZE)
    return (Slice(int(size), level),) if level is not None and size is not None else ()


def index_offset(annotations: Strings) -> int:
    """The number of the pod set's first pod."""
    return whole_number(annotations.get(INDEX_OFFSET)) or 0
