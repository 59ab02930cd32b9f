"""How the cases of a file come out: judged one by one, counted by what became of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pytest

from topology import TopologyError

SHARED = Path(__file__).parents[2] / ".." / "shared" / "conformance"


@dataclass(frozen=True, slots=True)
class Equal:
    """The peer's answer. `note`: what has to be said of it all the same."""

    note: str = ""


@dataclass(frozen=True, slots=True)
class OutOfReach:
    """No user can ask for this, for this reason."""

    reason: str


@dataclass(frozen=True, slots=True)
class OnPurpose:
    """Another answer, for the reason that a table gives under this name."""

    name: str


@dataclass(frozen=True, slots=True)
class Unexplained:
    """Another answer, and nothing says why."""

    difference: str


Judgement = Equal | OutOfReach | OnPurpose | Unexplained


class Case(Protocol):
    """One recorded case of a peer's."""

    @property
    def name(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Peer:
    """How to read a peer's cases, and to judge one."""

    read: Callable[[Path], Iterator[Any]]
    core: Callable[[Any], Judgement]
    product: Callable[[Any], Judgement]
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Name of a difference on purpose -> why; without an entry the name says it."""


@dataclass(slots=True)
class Figure:
    """Cases asked in one way; lists and the values of dicts are names of cases."""

    equal: int = 0
    notes: dict[str, list[str]] = field(default_factory=dict)
    out_of_reach: dict[str, list[str]] = field(default_factory=dict)
    on_purpose: dict[str, list[str]] = field(default_factory=dict)
    unexplained: list[tuple[str, str]] = field(default_factory=list)
    """Case, and the difference."""

    def add(self, name: str, judgement: Judgement) -> None:
        match judgement:
            case Equal(note):
                self.equal += 1
                if note:
                    self.notes.setdefault(note, []).append(name)
            case OutOfReach(reason):
                self.out_of_reach.setdefault(reason, []).append(name)
            case OnPurpose(entry):
                self.on_purpose.setdefault(entry, []).append(name)
            case Unexplained(difference):
                self.unexplained.append((name, difference))


@dataclass(slots=True)
class Tally:
    """Both figures of one file."""

    cases: int = 0
    core: Figure = field(default_factory=Figure)
    product: Figure = field(default_factory=Figure)


def judged(difference: Callable[[], str], left_out: str | None) -> Judgement:
    """What becomes of an answer of the core's; `left_out`: why another one is no fault."""
    try:
        wrong = difference()
    except (TopologyError, AssertionError, KeyError) as error:
        wrong = f"{type(error).__name__}: {error}"
    if not wrong:
        return Equal()
    return OnPurpose(left_out) if left_out else Unexplained(wrong)


def tally(peer: Peer, path: Path) -> Tally:
    """Every case of one file."""
    result = Tally()
    for case in peer.read(path):
        result.cases += 1
        result.core.add(case.name, peer.core(case))
        result.product.add(case.name, peer.product(case))
    return result


def recorded(peer: str, name: str, cases: int) -> Path:
    """A file of recorded cases; the test that asks for it is skipped where there is none."""
    path = SHARED / peer / name
    if not path.exists():
        pytest.skip(f"{cases} cases not run: {name} is not at ../shared/conformance/{peer}")
    return path
