"""Kueue's topology annotations on a pod -> Constraint and slices.

Source: KEP-2724, user-facing API; what Kueue accepts today is in its webhook validation
(`tas_validation.go`): one mode at most, label-name values, a boolean for unconstrained.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import pairwise

import msgspec

from app.kube.core.objects import PodRecord, Replicas
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
MOST_LAYERS = 3
MOST_NAME = 256  # characters
MOST_PODS = 100_000  # more pods than that are no gang but a typing error
POD_SET_GROUP = PREFIX + "podset-group-name"
INDEX_OFFSET = PREFIX + "pod-index-offset"
ROLE_HASH = PREFIX + "role-hash"
KEPT = (*MODES, *SLICES, POD_SET_GROUP, INDEX_OFFSET, ROLE_HASH)

_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", re.ASCII)
_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)
# The spellings Go's strconv.ParseBool takes, which is what Kueue reads with.
_BOOLEANS = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}


class WrongAnnotation(ValueError):
    """An annotation says something that cannot be meant; the text names it and its value."""


def asks_for_topology(annotations: Mapping[str, str]) -> bool:
    """Whether any topology annotation asks for something, well-formed or not."""
    if any(key in annotations for key in (REQUIRED, PREFERRED, *SLICES, POD_SET_GROUP)):
        return True
    return _BOOLEANS.get(annotations.get(UNCONSTRAINED, "false"), True)


def asking(replicas: Iterable[Replicas]) -> tuple[Replicas, ...]:
    """The templates whose pods are members: those that ask for topology.

    All of them where none does: then somebody adds the annotations to the pods themselves.
    """
    every = tuple(replicas)
    return tuple(each for each in every if asks_for_topology(each.annotations)) or every


def boolean(text: str) -> bool | None:
    """The truth value of an annotation, or None if it is neither."""
    return _BOOLEANS.get(text)


def constraint(pod: PodRecord) -> Constraint:
    """Translate the pod's topology annotations; none of them means anywhere.

    Raises: WrongAnnotation.
    """
    modes = [key for key in MODES if key in pod.annotations]
    if len(modes) > 1:
        raise WrongAnnotation(f"must not carry more than one of {', '.join(modes)}")
    required, preferred = (_level(pod, key) for key in (REQUIRED, PREFERRED))
    if UNCONSTRAINED in pod.annotations and pod.annotations[UNCONSTRAINED] not in _BOOLEANS:
        raise WrongAnnotation(
            f"annotation {UNCONSTRAINED}: must be a boolean, got {pod.annotations[UNCONSTRAINED]!r}"
        )
    return Constraint(required=required, preferred=preferred)


def slices(pod: PodRecord) -> tuple[Slice, ...]:
    """Translate the pod's slice annotations, coarsest layer first; none of them means no slices.

    Raises: WrongAnnotation.
    """
    if SLICE_LAYERS in pod.annotations:
        for key in (SLICE_LEVEL, SLICE_SIZE):
            if key in pod.annotations:
                raise WrongAnnotation(f"must not carry both {SLICE_LAYERS} and {key}")
        return _layers(pod.annotations[SLICE_LAYERS])
    level, size = _level(pod, SLICE_LEVEL), pod.annotations.get(SLICE_SIZE)
    if level is None and size is None:
        return ()
    if level is None or size is None:
        missing, present = (SLICE_SIZE, SLICE_LEVEL) if size is None else (SLICE_LEVEL, SLICE_SIZE)
        raise WrongAnnotation(f"annotation {missing}: must be set beside {present}")
    return (Slice(_size(SLICE_SIZE, int(size) if _is_number(size) else size), level),)


def pod_set_group(pod: PodRecord) -> str:
    """The name that a leader and its workers share, "" where there is none.

    Raises: WrongAnnotation; that there are two pod sets and one leader is seen later.
    Source: kueue.md 1.3.
    """
    name = pod.annotations.get(POD_SET_GROUP)
    if name is None:
        return ""
    problem = ""
    if not name or len(name) > MOST_NAME:
        problem = f"must have 1 to {MOST_NAME} characters, got {len(name)}"
    elif name.isascii() and name.isdecimal():
        problem = f"must not be a number, got {name!r}"
    elif any(key in pod.annotations for key in SLICES):
        problem = "may not be set beside slices"
    elif REQUIRED not in pod.annotations and PREFERRED not in pod.annotations:
        problem = f"may not be set without {REQUIRED} or {PREFERRED}"
    if problem:
        raise WrongAnnotation(f"annotation {POD_SET_GROUP}: {problem}")
    return name


def index_offset(pod: PodRecord) -> int:
    """The number of the pod set's first pod.

    Raises: WrongAnnotation.
    """
    text = pod.annotations.get(INDEX_OFFSET, "0")
    offset = whole_number(text)
    if offset is None:
        raise WrongAnnotation(
            f"annotation {INDEX_OFFSET}: must be a whole number from 0, got {text!r}"
        )
    return offset


def whole_number(text: str | None) -> int | None:
    """The number, or None for anything that is no small whole number in decimal digits."""
    return int(text) if text is not None and _is_number(text) else None


def _layers(text: str) -> tuple[Slice, ...]:
    """The layers of the JSON annotation, each dividing the one before it."""
    try:
        layers = msgspec.json.decode(text, type=list[_Layer])
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise WrongAnnotation(f"annotation {SLICE_LAYERS}: {error}, got {text[:80]!r}") from error
    if not 1 <= len(layers) <= MOST_LAYERS:
        raise WrongAnnotation(
            f"annotation {SLICE_LAYERS}: must have 1 to {MOST_LAYERS} layers, got {len(layers)}"
        )
    for above, below in pairwise(layers):
        if below.size and above.size % below.size:
            raise WrongAnnotation(
                f"annotation {SLICE_LAYERS}: size {below.size} does not divide {above.size}"
            )
    if len({layer.topology for layer in layers}) < len(layers):
        raise WrongAnnotation(f"annotation {SLICE_LAYERS}: a level is named twice, got {text!r}")
    for layer in layers:
        if not is_label_key(layer.topology):
            raise WrongAnnotation(
                f"annotation {SLICE_LAYERS}: must name keys of node labels, got {layer.topology!r}"
            )
    return tuple(Slice(_size(SLICE_LAYERS, layer.size), layer.topology) for layer in layers)


class _Layer(msgspec.Struct):
    topology: str
    size: int


def _size(key: str, size: object) -> int:
    if not isinstance(size, int) or not 1 <= size <= MOST_PODS:
        raise WrongAnnotation(
            f"annotation {key}: must be a whole number from 1 to {MOST_PODS}, got {size!r}"
        )
    return size


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 9


def _level(pod: PodRecord, key: str) -> str | None:
    value = pod.annotations.get(key)
    if value is not None and not is_label_key(value):
        raise WrongAnnotation(f"annotation {key}: must be the key of a node label, got {value!r}")
    return value


def is_label_key(text: str) -> bool:
    """Whether this is a qualified label key as the API server takes it."""
    prefix, slash, name = text.rpartition("/")
    if slash and not (len(prefix) <= 253 and _PREFIX.fullmatch(prefix)):
        return False
    return _NAME.fullmatch(name) is not None
