"""What one pod says about its gang, in our own words; every dialect translates into these."""

from __future__ import annotations

from dataclasses import dataclass

from app.kube.core.objects import PodRecord
from topology.model.request import Constraint, Slice


@dataclass(frozen=True, slots=True)
class GangKey:
    """Names a gang. `epoch` tells a recreated owner of the same name from the earlier one."""

    namespace: str
    name: str
    source: str
    epoch: str = ""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Declared:
    """A number of members and where it was read, for messages."""

    members: int
    where: str
    needed: int | None = None
    """How many must be there before the first may start; None: all of them.

    Fewer are where the rest is only made once those run: then to wait for all is to wait for ever.
    """
    are_alike: bool = False
    """All are like the first one, which so is enough to take places for the rest as well."""


@dataclass(frozen=True, slots=True, order=True)
class Number:
    """How whoever made a pod numbered it; `topology.ranks.rank_of` makes a rank of it.

    Source: kueue.md 3, "Index labels".
    """

    index: int
    """The pod's own number, within its part where there are parts."""
    part: int = 0
    """The sub-group it is numbered in (of a JobSet: which of the replicated Jobs)."""
    parts: int = 0
    """How many such sub-groups there are; 0: the pods are numbered throughout."""
    offset: int = 0
    """The number of the pod set's first pod: workers may count on from their leader."""
    is_across: bool = False
    """The gang's pods are numbered together, whichever pod set they belong to."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a pod belongs by who made it."""

    gang: GangKey
    number: Number | None = None
    pod_set: str = ""
    declared: Declared | None = None


@dataclass(frozen=True, slots=True)
class PodTemplate:
    """Pods of a gang that a driver will make: how many, and what one of them will be like."""

    pod_set: str
    pods: int
    like: PodRecord
    constraint: Constraint
    slices: tuple[Slice, ...] = ()


@dataclass(frozen=True, slots=True)
class Life:
    """How a gang lives on when pods end; the defaults are a Job's."""

    is_retriable: bool = True  # False: this pod's end is the end of its group
    is_serving: bool = False  # pods that succeed are missing, not done
    is_fast: bool = False  # the first pod is enough to take places for all
    spares: int = 0  # places held beside those of the members
    templates: tuple[PodTemplate, ...] = ()  # every pod set, the driver's among them


ORDINARY_LIFE = Life()


@dataclass(frozen=True, slots=True)
class Membership:
    """One pod's place in a gang.

    `declared` is None where owning objects decide (`dialects.declared_by`). `pod_set` is what the
    workload itself calls the pod's part of the gang; "" where request and shape tell parts apart.
    Pod sets of one `pod_set_group` are a leader and its workers.
    """

    gang: GangKey
    declared: Declared | None
    constraint: Constraint
    slices: tuple[Slice, ...] = ()
    number: Number | None = None
    pod_set: str = ""
    pod_set_group: str = ""
    life: Life = ORDINARY_LIFE


@dataclass(frozen=True, slots=True)
class Mistake:
    """The pod belongs to this gang, but what it says about it cannot be meant."""

    gang: GangKey
    sentence: str
