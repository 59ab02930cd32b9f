"""What one pod says about its gang, in our own words; every dialect translates into these."""

from __future__ import annotations

from dataclasses import dataclass

from topology.request import Constraint, Slice


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


@dataclass(frozen=True, slots=True)
class Membership:
    """One pod's place in a gang.

    `declared` is None where the owning Job decides (`dialects.jobs.members`). `rank` is the pod's
    index in its gang where the workload numbers its pods.
    """

    gang: GangKey
    declared: Declared | None
    constraint: Constraint
    slices: tuple[Slice, ...] = ()
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class Mistake:
    """The pod belongs to this gang, but what it says about it cannot be meant."""

    gang: GangKey
    sentence: str
