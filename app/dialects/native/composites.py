"""CompositePodGroups of scheduling.k8s.io: groups of PodGroups, and of one another.

    PodGroup ──parentCompositePodGroupName──▶ CompositePodGroup ──the same──▶ CompositePodGroup

Each names the one that it is inside: none has a list of what is in it, and they come in any order.
An API server of 1.37 has them in v1alpha3, with the feature gate of their name; those before have
none. What is not read decides nothing here, as in `pod_groups.py`. Annotations say what it has no
field for, as they do on a PodGroup, but for slices: these are cut from the pods of one PodGroup.
Source: kubernetes staging/src/k8s.io/api/scheduling/v1alpha3/types.go (v1.37); KEP-6012.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from app.dialects.flaw import Flaw
from app.dialects.kueue.annotations import POD_SET_GROUP, SLICES, Strings
from app.dialects.kueue.claims import read_annotations
from app.dialects.native import scheduling
from app.dialects.native.scheduling import GROUP, LONGEST_NAME
from app.dialects.native.stored import Spec, read
from app.dialects.rules import of_spec
from app.dialects.spec import ANYWHERE, NOTHING_SAID
from app.kube.core.objects import ObjectRecord
from app.kube.decoding.decode import Json, Keep, kept
from app.kube.watch.resource import Resource
from topology.model.request import Constraint

KIND = "CompositePodGroup"
PATH = f"/apis/{GROUP}/v1alpha3/compositepodgroups"
_SLICED = "slices are of the pods of a PodGroup: set it on those inside, or on their pods"
_REFUSED = {
    **dict.fromkeys(SLICES, _SLICED),
    POD_SET_GROUP: f"a {KIND} has no leader that is placed with its workers",
}
MOST_GROUPS = 256  # in one, at any depth; of pods there are at most 64 kinds


class CompositeRecord(ObjectRecord, frozen=True, gc=False):
    """One CompositePodGroup, with the conditions in its status."""

    generation: int = 0
    """How often its spec has changed."""
    is_basic: bool = True
    least: int = 1
    """How many groups it takes to start."""
    level: str = ""
    """The key of the node label that all pods in it have one value of; "": none."""
    ends_together: bool | None = None
    """Whether all groups in it are evicted when one is preempted; None: it does not say."""
    constraint: Constraint = ANYWHERE
    """What its annotations request for all pods in it, inside the domain of its level."""
    together: Constraint = ANYWHERE
    """What they request for all pods of its gang."""
    parent: str = ""
    """The name of the one that it is inside; "": of none."""
    flaw: str = ""
    """What of it cannot be kept; "" if all of it can."""
    conditions: tuple[dict[str, Any], ...] = ()


def decode_composite(raw: Json, *, keep: Keep) -> CompositeRecord:
    """Return the record of a CompositePodGroup; of one with a flaw that, and its parent.

    Raises: DecodeError naming the CompositePodGroup and the field.
    """
    found, metadata, spec = read(raw, KIND)
    annotations = kept(metadata.annotations, keep)
    flaw = next(_flaws(spec, annotations), None)
    said = NOTHING_SAID if flaw else read_annotations(annotations)[0]
    return CompositeRecord(
        kind=KIND,
        namespace=metadata.namespace or "",
        name=metadata.name or "",
        uid=metadata.uid or "",
        version=metadata.resource_version or "",
        generation=metadata.generation or 0,
        is_basic=scheduling.is_basic(spec),
        least=1 if flaw else _least(spec) or 1,
        level="" if flaw else scheduling.level_of(spec),
        ends_together=scheduling.ends_together(spec.disruption_mode),
        constraint=said.constraint,
        together=said.together,
        parent=(spec.parent_composite_pod_group_name or "")[:LONGEST_NAME],
        flaw=f"{KIND} {metadata.namespace}/{metadata.name}: {flaw}" if flaw else "",
        conditions=found.conditions,
    )


def flaws_of(raw: Json) -> Iterator[Flaw]:
    """What of a CompositePodGroup cannot be kept, by itself.

    Raises: DecodeError naming the CompositePodGroup and the field.
    """
    _, metadata, spec = read(raw, KIND)
    return _flaws(spec, kept(metadata.annotations, lambda _key: True))


def _flaws(spec: Spec, annotations: Strings) -> Iterator[Flaw]:
    yield from scheduling.annotation_flaws(annotations, _REFUSED)
    policy = spec.scheduling_policy
    yield from of_spec(scheduling.policy_flaws(policy, _least(spec), "minGroupCount", MOST_GROUPS))
    yield from of_spec(scheduling.other_flaws(spec))


def _least(spec: Spec) -> int | None:
    policy = spec.scheduling_policy
    gang = None if policy is None else policy.gang
    return None if gang is None else gang.min_group_count


def resource(keep: Keep) -> Resource:
    """All CompositePodGroups; of their annotations those that `keep` says."""
    decode = partial(decode_composite, keep=keep)
    return Resource(KIND, PATH, CompositeRecord, decode, is_optional=True)
