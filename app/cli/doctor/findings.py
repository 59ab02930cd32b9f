"""What a check finds, as data: prose is rendered last.

a check's function ──▶ Problem … | NotChecked ──▶ Finding, one line of the output
                       nothing                ──▶ Finding at level "ok"
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

Wrong = Literal["note", "warning", "error"]
Level = Literal["ok", "note", "not checked", "warning", "error"]
LEVELS: tuple[Level, ...] = ("ok", "note", "not checked", "warning", "error")
"""The least serious first."""
MOST_SHOWN = 100  # characters of a value in a message


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, or may be, and how it is mended."""

    level: Wrong
    thing: str
    """The object: "Node n1"."""
    field: str
    """In that object, as kubectl's -o jsonpath names it without braces; "": the object itself."""
    value: object
    """What stands there; None: nothing."""
    why: str
    """What comes of it: a clause that follows the value."""
    mend: str = ""
    """The command or the lines."""

    def __str__(self) -> str:
        if not self.field:
            return f"{self.thing}: {self.why}"
        value = "not set" if self.value is None else shown(self.value)
        return f"{self.thing}: {self.field} is {value}: {self.why}"


@dataclass(frozen=True, slots=True)
class NotChecked:
    """Why a check was not made, or not for all there is."""

    why: str


Found = Problem | NotChecked


@dataclass(frozen=True, slots=True)
class Check:
    """One check. `find` gets the parts of Seen that `needs` names, in that order."""

    name: str
    holds: str
    """What is true when it finds nothing."""
    needs: tuple[str, ...]
    find: Callable[..., Iterable[Found]]
    absent: Callable[..., str] = lambda *_: ""
    """Says what is not there that it would look at; "" if it is there. Gets what `find` gets."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the output."""

    level: Level
    check: str
    text: str
    mend: str = ""
    thing: str = ""
    field: str = ""
    value: object = None


def error(
    thing: str, why: str, mend: str = "", *, field: str = "", value: object = None
) -> Problem:
    """What does not work, or does not do what it is there for."""
    return Problem("error", thing, field, value, why, mend)


def warning(
    thing: str, why: str, mend: str = "", *, field: str = "", value: object = None
) -> Problem:
    """What works, and will not always."""
    return Problem("warning", thing, field, value, why, mend)


def note(thing: str, why: str, mend: str = "", *, field: str = "", value: object = None) -> Problem:
    """What is right if it is meant."""
    return Problem("note", thing, field, value, why, mend)


def finding(check: str, found: Found) -> Finding:
    """A line for what a check has found."""
    if isinstance(found, NotChecked):
        return Finding("not checked", check, found.why)
    return Finding(
        found.level, check, str(found), found.mend, found.thing, found.field, found.value
    )


def worst(findings: Iterable[Finding]) -> Level:
    """The most serious level of them; "ok" of none."""
    return max((each.level for each in findings), key=LEVELS.index, default="ok")


def shown(value: object) -> str:
    """A value as it stands in YAML, cut to what a sentence can hold."""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value)
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"


def named(names: Sequence[str], most: int = 5) -> str:
    """The first few names, and how many more there are."""
    listed = ", ".join(names[:most])
    return f"{listed} and {len(names) - most} more" if len(names) > most else listed


def lines(*each: str) -> str:
    """The lines of what mends something."""
    return "\n".join(each)


def only_problems(found: Iterable[Found]) -> Iterator[Problem]:
    """Without the reasons why something was not checked."""
    return (each for each in found if isinstance(each, Problem))
