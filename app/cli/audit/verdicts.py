"""What is found out about one constraint of one gang, as data: `rendering.py` writes it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from app.dialects.spec import GangKey

Answer = Literal["MATCH", "UNOBSERVABLE", "VIOLATION"]
ANSWERS: tuple[Answer, ...] = ("MATCH", "UNOBSERVABLE", "VIOLATION")
"""The worst last."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """One line of the output."""

    gang: GangKey
    constraint: str
    """What of the gang it is about: "gang", "group workers", "slices of 4"."""
    answer: Answer
    text: str
    """A sentence without a full stop."""
    level: str = ""
    """That the pods have to be in one domain of; "": it is about something else."""
    pod: str = ""
    """The pod that the sentence is about, and its node."""
    node: str = ""
    values: tuple[str, ...] = ()
    """Of a violation: the domain of that pod, and the one where it would have to be."""


@dataclass(frozen=True, slots=True)
class Unread:
    """Objects that could not be read, so that what they say is not known."""

    kind: str
    why: str

    def __str__(self) -> str:
        return f"{self.kind} objects could not be read: {self.why}"


@dataclass(frozen=True, slots=True)
class Audited:
    """All that was found out."""

    verdicts: tuple[Verdict, ...]
    unread: tuple[Unread, ...] = ()
    notes: tuple[str, ...] = ()
    """Sentences about the reading as a whole."""
    waiting: int = 0
    """Gangs of which no pod runs: there is nothing to be judged."""
    pods: int = 0
    """All that were read."""
    nodes: int = 0


def worst(verdicts: Iterable[Verdict]) -> Answer:
    """The worst answer of them; MATCH of none."""
    return max((each.answer for each in verdicts), key=ANSWERS.index, default="MATCH")
