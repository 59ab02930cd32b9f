"""What the engine answers to a verb, in our own words; `extender/encode.py` turns it into JSON."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from app.kube.core.objects import NodeRecord


class Candidates(Protocol):
    """The candidate nodes of one /filter request; all of them are decoded only on demand."""

    def __contains__(self, name: object) -> bool: ...

    def __len__(self) -> int: ...

    def names(self) -> Sequence[str]: ...


class SentNodes(Candidates, Protocol):
    """The candidates with what else the request says of them."""

    @property
    def marked(self) -> Collection[str]:
        """Those that an autoscaler has marked as nodes that do not exist."""

    def sent(self, name: str) -> NodeRecord | None:
        """A candidate as the request describes it; None: only its name is there.

        Raises: app.errors.DecodeError.
        """


@dataclass(frozen=True, slots=True)
class Passed:
    """An ordinary pod: every candidate stays but these, where it would take held capacity."""

    without: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Pinned:
    """A planned member: this node and no other."""

    node: str


@dataclass(frozen=True, slots=True)
class Rejected:
    """No node now, and why. The sentence is stable: a changed text would requeue the pod."""

    sentence: str


@dataclass(frozen=True, slots=True)
class Failed:
    """No answer is possible now (the lists are not in yet): kube-scheduler tries the pod again."""

    sentence: str


@dataclass(frozen=True, slots=True)
class Possible:
    """For a simulator: the nodes on which the pod alone may stand, and why not on the others."""

    nodes: tuple[str, ...]
    why_not: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Victims:
    """The pods that would have to go from one node, by uid."""

    uids: tuple[str, ...]
    pdb_violations: int


FilterAnswer = Passed | Pinned | Rejected | Failed | Possible
