"""Kueue's topology annotations on a pod -> Constraint.

Source: KEP-2724, user-facing API; what Kueue accepts today is in its webhook validation
(`tas_validation.go`): one mode at most, label-name values, a boolean for unconstrained.
"""

from __future__ import annotations

import re

from app.kube.objects import PodRecord
from topology.request import Constraint

PREFIX = "kueue.x-k8s.io/"
REQUIRED = PREFIX + "podset-required-topology"
PREFERRED = PREFIX + "podset-preferred-topology"
UNCONSTRAINED = PREFIX + "podset-unconstrained-topology"
MODES = (REQUIRED, PREFERRED, UNCONSTRAINED)
# Annotations whose promise Corral does not keep yet: saying so beats placing weaker than asked.
NOT_ENFORCED = (
    PREFIX + "podset-slice-required-topology",
    PREFIX + "podset-slice-size",
    PREFIX + "podset-slice-required-topology-constraints",
    PREFIX + "podset-group-name",
)

_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", re.ASCII)
_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)
# The spellings Go's strconv.ParseBool takes, which is what Kueue reads with.
_BOOLEANS = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}


class WrongAnnotation(ValueError):
    """An annotation says something that cannot be meant; the text names it and its value."""


def asks_for_topology(pod: PodRecord) -> bool:
    """Whether any topology annotation asks for something, well-formed or not."""
    if any(key in pod.annotations for key in (REQUIRED, PREFERRED, *NOT_ENFORCED)):
        return True
    return _BOOLEANS.get(pod.annotations.get(UNCONSTRAINED, "false"), True)


def constraint(pod: PodRecord) -> Constraint:
    """Translate the pod's topology annotations; none of them means anywhere.

    Raises: WrongAnnotation.
    """
    for key in NOT_ENFORCED:
        if key in pod.annotations:
            raise WrongAnnotation(f"annotation {key}: Corral does not enforce it yet")
    modes = [key for key in MODES if key in pod.annotations]
    if len(modes) > 1:
        raise WrongAnnotation(f"must not carry more than one of {', '.join(modes)}")
    required, preferred = (_level(pod, key) for key in (REQUIRED, PREFERRED))
    if UNCONSTRAINED in pod.annotations and pod.annotations[UNCONSTRAINED] not in _BOOLEANS:
        raise WrongAnnotation(
            f"annotation {UNCONSTRAINED}: must be a boolean, got {pod.annotations[UNCONSTRAINED]!r}"
        )
    return Constraint(required=required, preferred=preferred)


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
