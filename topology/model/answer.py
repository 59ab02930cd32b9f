"""What a search answers: a Placement, or NoFit and why, and what would fit instead.

Frozen values, data first. Their `__str__` is the only prose of this package that users read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, overload

import numpy as np

from topology.model.resources import Counts, Rows

SENTENCE_MAX = 300  # characters; kube-scheduler repeats the sentence for every pod of the gang
_NAME_MAX = 100  # of those, for one level key; a label key may have 317
_REASONS_MAX = 4
_NAMES_MAX = 3  # of those that change; the rest are counted


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Pairs(Sequence[tuple[int, int]]):
    """(index, pods) of slots or domains, equal to the tuple of them and printed like it.

    A gang may take most nodes of a cluster, and a tuple for each of them takes longer to make than
    their place to find. So tuples are made only where pairs are read one by one.
    Shapes: (pairs,). The arrays given belong to the pairs, which close them to writing.
    """

    indices: Rows
    pods: Counts

    def __post_init__(self) -> None:
        self.indices.flags.writeable = False
        self.pods.flags.writeable = False

    @classmethod
    def of(cls, pairs: Collection[tuple[int, int]]) -> Pairs:
        """The same pairs in the same order."""
        return cls(
            np.array([index for index, _ in pairs], dtype=np.intp),
            np.array([pods for _, pods in pairs], dtype=np.int64),
        )

    def moved(self, by: int) -> Pairs:
        """The same pods at indices that many further on."""
        return Pairs(self.indices + by, self.pods)

    def __len__(self) -> int:
        return self.indices.size

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self.indices.tolist(), self.pods.tolist(), strict=True)

    @overload
    def __getitem__(self, position: int) -> tuple[int, int]: ...
    @overload
    def __getitem__(self, position: slice) -> Pairs: ...
    def __getitem__(self, position: int | slice) -> tuple[int, int] | Pairs:
        if isinstance(position, slice):
            return Pairs(self.indices[position], self.pods[position])
        return int(self.indices[position]), int(self.pods[position])

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Pairs):
            return np.array_equal(self.indices, other.indices) and np.array_equal(
                self.pods, other.pods
            )
        return tuple(self) == other

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))

    def __reduce__(self) -> tuple[type[Pairs], tuple[Rows, Counts]]:
        # Arrays come back from pickle writeable: only the constructor closes them.
        return Pairs, (self.indices, self.pods)


@dataclass(frozen=True, slots=True)
class PodSetPlacement:
    """Where the pods of one pod set go."""

    pod_set: str
    level: int
    """Index of the level the domains were chosen at; as narrow as the constraint allowed."""
    domains: Pairs
    """(domain at `level`, pods in it), in domain order; pods >= 1."""
    slots: Pairs
    """(slot, pods on it), in slot order; pods >= 1."""

    @property
    def pods(self) -> int:
        """How many pods are placed."""
        return int(self.slots.pods.sum())


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
    unit: Literal["pod", "slice"] = "pod"
    excluded: tuple[tuple[str, int], ...] = ()
    """(reason, nodes that take none for it), most frequent first, ties alphabetical."""
    nodes: int = 0
    """Nodes that were looked at: those that are open."""
    layers: tuple[tuple[str, int, int], ...] = ()
    """Of several slice layers: (level key, slices that fit, slices needed), outermost first."""
    is_proven: bool = True
    """Nothing fits, however it is placed. False: another place for what was placed or kept before
    it might leave a place, and was not tried."""
    is_cut_short: bool = False
    """The search ended before it had tried everything it knows to try."""
    is_unfinished: bool = False
    """It ended for want of its allowance (`fit.view.Options`): without one it may find a place."""
    leader: str = ""
    """The leader, where it is what does not fit; the other numbers are its workers' alone."""
    beside: tuple[str, ...] = ()
    """Other pod sets, where each fits and all do not; the other numbers are of one kind alone."""

    def __str__(self) -> str:
        """One sentence of at most SENTENCE_MAX characters; the same data gives the same text."""
        place = f" in one {_shortened(self.level)}" if self.level else ""
        sentence = f"{min(self.available, self.needed)} of {self.needed} {self.unit}s fit{place}"
        if self.leader:
            sentence += f", but not with leader {_shortened(self.leader)}"
        elif self.beside:
            sentence += f", but not beside {self._others()}"
        for level, fit, needed in self.layers[1:]:
            sentence += f", {min(fit, needed)} of {needed} slices in {_shortened(level)}"
        sentence = _clipped(sentence, ", not everything was tried" if self.is_cut_short else "")
        separator = "; excluded nodes: "
        for reason, nodes in self.excluded[:_REASONS_MAX]:
            longer = f"{sentence}{separator}{_shortened(reason)} {nodes}"
            if len(longer) > SENTENCE_MAX:
                break
            sentence, separator = longer, ", "
        return sentence

    def _others(self) -> str:
        if len(self.beside) == 1:
            return f"pod set {_shortened(self.beside[0])}"
        listed = f"pod sets {_listed(self.beside)}"
        return listed if len(listed) <= _NAME_MAX else f"{len(self.beside)} other pod sets"


@dataclass(frozen=True, slots=True)
class WiderLevel:
    """It fits if some of what must be together may lie in a wider domain."""

    names: tuple[str, ...]
    """Groups and pod sets, in the order they are written."""
    level: str
    """Level key that is required of them instead; empty: what was required is only preferred, or
    pods need not be in slices."""
    of_slices: bool = False
    """The level is that of each slice; layers of slices that would share it are one."""
    is_cut_short: bool = False
    """Perhaps not all of them need to be widened: the search ended before each was tried."""

    def __str__(self) -> str:
        who = _listed(self.names)
        where = f"in one {_shortened(self.level)}"
        if self.of_slices:
            end = f"each slice of {who} {where}" if self.level else f"{who} not in slices"
        else:
            end = f"{who} {where}" if self.level else f"{who} spread over several domains"
        return _would_fit(f"with {end}", self.is_cut_short)


@dataclass(frozen=True, slots=True)
class FewerPods:
    """It fits with fewer pods of one pod set, and all others as asked."""

    pod_set: str
    pods: int
    """The most that fit; whole slices."""
    needed: int
    is_cut_short: bool = False
    """More may fit: the search ended before that was tried."""

    def __str__(self) -> str:
        end = f"with {self.pods} of {self.needed} pods of {_shortened(self.pod_set)}"
        return _would_fit(end, self.is_cut_short)


@dataclass(frozen=True, slots=True)
class FewerMembers:
    """It fits with fewer of the groups inside a group, whichever they are."""

    group: str
    members: int
    """The most that fit."""
    needed: int
    is_cut_short: bool = False
    """More may fit: the search ended before that was tried."""

    def __str__(self) -> str:
        end = f"with {self.members} of {self.needed} groups of {_shortened(self.group)}"
        return _would_fit(end, self.is_cut_short)


@dataclass(frozen=True, slots=True)
class NodesBack:
    """It fits once some nodes are back."""

    nodes: tuple[tuple[int, str, str], ...]
    """(slot, name, why it is away), in slot order."""
    is_cut_short: bool = False
    """Perhaps not all of them are needed: the search ended before each was tried."""

    def __str__(self) -> str:
        nodes = [f"{_shortened(name)} ({_shortened(why)})" for _, name, why in self.nodes]
        return _would_fit(f"with nodes back: {_listed(nodes)}", self.is_cut_short)


@dataclass(frozen=True, slots=True)
class Never:
    """It does not fit, even if nothing else runs and every node is open."""

    why: NoFit
    """The answer then: how many would fit, and whether that is proven."""

    def __str__(self) -> str:
        says = "never fits as it is" if self.why.is_proven else "no place was found"
        return _clipped(f"{says}, even if all nodes are open and empty: {self.why}")


Relaxation = WiderLevel | FewerPods | FewerMembers | NodesBack | Never


def _would_fit(end: str, is_cut_short: bool) -> str:
    return _clipped(f"would fit {end}", ", not everything was tried" if is_cut_short else "")


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(_shortened(name) for name in names[:_NAMES_MAX])
    return shown if len(names) <= _NAMES_MAX else f"{shown} and {len(names) - _NAMES_MAX} more"


def _clipped(sentence: str, end: str = "") -> str:
    """The sentence and its end, cut before the end if both are too long."""
    most = SENTENCE_MAX - len(end)
    return (sentence if len(sentence) <= most else f"{sentence[: most - 3]}...") + end


def _shortened(name: str) -> str:
    """The name, or both of its ends if it is too long for a sentence."""
    if len(name) <= _NAME_MAX:
        return name
    half = (_NAME_MAX - 3) // 2
    return f"{name[:half]}...{name[-half:]}"
