"""The far end of the wire, as kube-scheduler knows it; `corral.py` offers it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from app.kube.core.objects import PodRecord
from app.state.filter_result import Failed, FilterAnswer, Passed, Pinned, Victims


class Unavailable(Exception):
    """Nobody listens at the extender's port, or the answer says that it failed."""


class Extender(Protocol):
    """Its verbs. Each raises Unavailable."""

    paused_until: float

    def filter(self, pod: PodRecord, names: Sequence[str]) -> FilterAnswer: ...

    def prioritize(self, pod: PodRecord, names: Sequence[str]) -> Sequence[int]: ...

    def preempt(self, pod: PodRecord, offered: Mapping[str, Victims]) -> Mapping[str, Victims]: ...

    def bind(
        self, namespace: str, name: str, uid: str, node: str, answer: Callable[[str], None]
    ) -> None: ...


def in_words(answer: FilterAnswer) -> str:
    """An answer to /filter for the history."""
    text = str(getattr(answer, "node", "") or getattr(answer, "sentence", ""))
    without = getattr(answer, "without", None)
    return f"{type(answer).__name__} {text}" + (f" without {len(without)}" if without else "")


def left_of(names: Sequence[str], answer: FilterAnswer) -> tuple[list[str], str]:
    """The nodes that an answer leaves, and why if none.

    Raises: Unavailable.
    """
    match answer:
        case Pinned(node):
            return [node], ""
        case Passed(without):
            return [name for name in names if name not in without], "held for gangs"
        case Failed():
            raise Unavailable
        case _:
            return [], answer.sentence
