"""What is found in a journal that is judged: the promises, and where one was not kept."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

from app.dialects.spec import GangKey
from app.kube.core.objects import PodRecord

Promise = Literal["at most once", "within capacity", "whole", "in its domains"]


@dataclass(frozen=True, slots=True)
class Broken:
    """A promise that was not kept."""

    line: int
    """Of the journal, counted from 1, where it shows."""
    now: float
    promise: Promise
    about: str
    """The gang, or the pod."""
    text: str

    def __str__(self) -> str:
        return f"line {self.line} at {self.now!r}: not {self.promise}: {self.about}: {self.text}"


@dataclass(slots=True)
class Checked:
    """What was looked at, and what was found."""

    broken: list[Broken] = field(default_factory=list)
    pods_bound: int = 0
    """By Corral."""
    gangs_started: int = 0
    domains: int = 0
    """Groups of pods of which it was judged whether they are together."""
    unjudged: Counter[str] = field(default_factory=Counter)
    """Why something was not judged, and how often."""


@dataclass(slots=True)
class Findings:
    """Takes what is found, in the line that is read."""

    found: Checked = field(default_factory=Checked)
    line: int = 0
    now: float = 0.0
    _noted: set[tuple[str, str, str]] = field(default_factory=set)

    def of_pod(self, promise: Promise, pod: PodRecord, text: str) -> None:
        """A pod shows that a promise was not kept."""
        self._note(promise, f"pod {pod.namespace}/{pod.name}", text)

    def of_gang(self, promise: Promise, key: GangKey, text: str) -> None:
        """A gang does."""
        self._note(promise, f"gang {key}", text)

    def _note(self, promise: Promise, about: str, text: str) -> None:
        """Each thing once, where it shows first."""
        if (promise, about, text) not in self._noted:
            self._noted.add((promise, about, text))
            self.found.broken.append(Broken(self.line, self.now, promise, about, text))
