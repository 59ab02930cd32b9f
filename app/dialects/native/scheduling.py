"""The fields that PodGroups, CompositePodGroups and the `scheduling` of a Job have alike.

    schedulingPolicy       basic {} or gang {minCount, minGroupCount}
    schedulingConstraints  topology [key]: the label of nodes that all pods have one value of
    disruptionMode         v1alpha2: "Pod" or "PodGroup"; later: {single: {}} or {all: {}}

Source: kubernetes staging/src/k8s.io/api/scheduling/v1alpha2/types.go (v1.36), v1alpha3/types.go
and v1beta1/types.go (v1.37); KEP-5547 "Job API Changes".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from app.dialects.flaw import Flaw
from app.dialects.kueue.annotations import Strings
from app.dialects.kueue.claims import read_annotations
from app.dialects.rules import annotation, forbidden, invalid, required, too_many, too_small
from app.kube.decoding import wire
from app.labels import is_label_key

GROUP = "scheduling.k8s.io"
LONGEST_NAME = 253  # of an object; a request that is no pod's may have more
MOST_KEYS = 1  # of schedulingConstraints.topology
_SPLIT = {"Pod": False, "PodGroup": True}  # disruptionMode -> whether the pods end together
_KEY = "must be the key of a node label, such as topology.kubernetes.io/rack"


class Empty(wire.Wire):
    """An object without fields, where only its presence counts."""


class Gang(wire.Wire):
    min_count: int | None = None
    min_group_count: int | None = None


class Policy(wire.Wire):
    basic: Empty | None = None
    gang: Gang | None = None


class Topology(wire.Wire):
    key: wire.Text = None


class Constraints(wire.Wire):
    topology: list[Topology | None] | None = None


class Mode(wire.Wire):
    single: Empty | None = None
    all: Empty | None = None


class Scheduling(wire.Wire):
    """What is the same in a Job and in a PodGroup."""

    scheduling_policy: Policy | None = None
    scheduling_constraints: Constraints | None = None
    disruption_mode: str | Mode | None = None


def is_basic(said: Scheduling) -> bool:
    """Whether each part starts by itself, if no flaw of the policy says otherwise."""
    return said.scheduling_policy is None or said.scheduling_policy.gang is None


def level_of(said: Scheduling) -> str:
    """The key of the node label that all pods have one value of; "": none."""
    keys = (said.scheduling_constraints and said.scheduling_constraints.topology) or ()
    return next((each.key for each in keys if each is not None and each.key), "")


def ends_together(mode: str | Mode | None) -> bool | None:
    """Whether all parts are evicted when one is preempted; None: it does not say."""
    if isinstance(mode, Mode):
        return True if mode.all is not None else False if mode.single is not None else None
    return _SPLIT.get(mode or "")


def annotation_flaws(annotations: Strings, refused: Mapping[str, str]) -> Iterator[Flaw]:
    """What a group says by annotations that cannot be kept.

    `refused`: keys that it has no use for, and why.
    """
    for key, why in refused.items():
        if key in annotations:
            yield forbidden(annotation(key), why)
            return
    _, unclear = read_annotations(annotations)
    if unclear is not None:
        yield unclear


def policy_flaws(policy: Policy | None, least: int | None, field: str, most: int) -> Iterator[Flaw]:
    """What of a policy cannot be kept. `least`: what it says in this field of its gang."""
    policy = policy or Policy()
    if (policy.basic is None) == (policy.gang is None):
        yield required("schedulingPolicy", "must have either basic or gang")
    elif policy.gang is not None:
        yield from least_flaws(least or 0, f"schedulingPolicy.gang.{field}", most)


def least_flaws(least: int, where: str, most: int) -> Iterator[Flaw]:
    """What is wrong with the number of parts that start together."""
    if least < 1:
        yield too_small(where, least, 1)
    elif least > most:
        yield invalid(where, least, f"must be less than or equal to {most}")


def other_flaws(said: Scheduling) -> Iterator[Flaw]:
    """What of the constraints and of the mode cannot be kept; the fields are below these."""
    keys = (said.scheduling_constraints or Constraints()).topology or ()
    if len(keys) > MOST_KEYS:
        yield too_many("schedulingConstraints.topology", len(keys), MOST_KEYS)
    for at, each in enumerate(keys[:MOST_KEYS]):
        key = (each and each.key) or ""
        if not is_label_key(key):
            yield invalid(f"schedulingConstraints.topology[{at}].key", key, _KEY)
    mode = said.disruption_mode
    if mode and ends_together(mode) is None:
        shown = mode if isinstance(mode, str) else ""
        yield invalid("disruptionMode", shown, "must be Pod or PodGroup, or have single or all")
