"""What a search answers: a Placement, or NoFit and why.

Frozen values. `NoFit.__str__` is the only prose of this package that users read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SENTENCE_MAX = 300  # characters; kube-scheduler repeats the sentence for every pod of the gang
_NAME_MAX = 100  # of those, for one level key; a label key may have 317
_REASONS_MAX = 4


@dataclass(frozen=True, slots=True)
class PodSetPlacement:
    """Where the pods of one pod set go."""

    pod_set: str
    level: int
    """Index of the level the domains were chosen at; as narrow as the constraint allowed."""
    domains: tuple[tuple[int, int], ...]
    """(domain at `level`, pods in it), in domain order; pods >= 1."""
    slots: tuple[tuple[int, int], ...]
    """(slot, pods on it), in slot order; pods >= 1."""

    @property
    def pods(self) -> int:
        """How many pods are placed."""
        return sum(pods for _, pods in self.slots)


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a gang goes: valid for one generation of the tree."""

    gang: str
    generation: int
    pod_sets: tuple[PodSetPlacement, ...]


@dataclass(frozen=True, slots=True)
class NoFit:
    """Why a gang has no placement now: data first, prose last."""

    pod_set: str
    level: str
    """Level key of which one domain must take them all; empty: all nodes together did not."""
    needed: int
    available: int
    """How many fit the best domain of `level`, or all nodes together."""
    unit: Literal["pod", "slice", "leader"] = "pod"
    excluded: tuple[tuple[str, int], ...] = ()
    """(reason, nodes that take none for it), most frequent first, ties alphabetical."""
    nodes: int = 0
    """Nodes that were looked at: those that are open."""
    layers: tuple[tuple[str, int, int], ...] = ()
    """Of several slice layers: (level key, slices that fit, slices needed), outermost first."""
    is_proven: bool = True
    """Nothing fits, however it is placed. False: another place for what was placed or kept before
    it might leave room, and was not tried."""
    is_cut_short: bool = False
    """The search ended before it had tried everything it knows to try."""
    leader: str = ""
    """The leader, where it is what does not fit; the other numbers are its workers' alone."""

    def __str__(self) -> str:
        """One sentence of at most SENTENCE_MAX characters; the same data gives the same text."""
        place = f" in one {_shortened(self.level)}" if self.level else ""
        sentence = f"{self.available} of {self.needed} {self.unit}s fit{place}"
        if self.leader:
            sentence += f", but not with leader {_shortened(self.leader)}"
        for level, fit, needed in self.layers[1:]:
            sentence += f", {fit} of {needed} slices in {_shortened(level)}"
        if self.is_cut_short:
            sentence += ", not everything was tried"
        separator = "; excluded nodes: "
        for reason, nodes in self.excluded[:_REASONS_MAX]:
            longer = f"{sentence}{separator}{_shortened(reason)} {nodes}"
            if len(longer) > SENTENCE_MAX:
                break
            sentence, separator = longer, ", "
        return sentence


def _shortened(name: str) -> str:
    """The name, or both of its ends if it is too long for a sentence."""
    if len(name) <= _NAME_MAX:
        return name
    half = (_NAME_MAX - 3) // 2
    return f"{name[:half]}...{name[-half:]}"
