"""What the engine answers to a verb, in our own words; `extender/encode.py` turns it into JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


class Candidates(Protocol):
    """The nodes kube-scheduler offers for one pod; decoding them all is only done on demand."""

    def __contains__(self, name: object) -> bool: ...

    def __len__(self) -> int: ...

    def names(self) -> Sequence[str]: ...


@dataclass(frozen=True, slots=True)
class Passed:
    """Not our business: every candidate stays, but for these (they would eat held capacity)."""

    without: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Pinned:
    """A planned member: this node and no other."""

    node: str


@dataclass(frozen=True, slots=True)
class Rejected:
    """No node now, for this reason. The sentence is stable: a changed text would wake the pod."""

    sentence: str


@dataclass(frozen=True, slots=True)
class Failed:
    """No answer is possible now (lists not in yet, or our bug): kube-scheduler backs off."""

    sentence: str


FilterAnswer = Passed | Pinned | Rejected | Failed
