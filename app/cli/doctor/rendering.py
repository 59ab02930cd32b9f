"""Findings as people and machines read them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from textwrap import wrap
from typing import Any

from app.cli.common.columns import on_one_line
from app.cli.doctor.findings import LEVELS, Finding, worst

HEADER = ("LEVEL", "CHECK", "FINDING")
GAP = "   "
MEND = "  → "
QUIET = ("ok", "not checked")  # levels without anything that mends them
MANY_ALIKE = 3  # so many checks that say the same are one line
WIDTH = 80  # of the names of such checks
WRONG = ("warning", "error")
MANY = ("note", *WRONG)  # what has a plural


def names(findings: Iterable[Finding]) -> Iterator[str]:
    """The checks that have found something wrong, each once."""
    return iter(dict.fromkeys(each.check for each in findings if each.level in WRONG))


def table(findings: Iterable[Finding]) -> list[str]:
    """One line for each finding in the columns of kubectl, what mends it below.

    Checks that say the same are one line, with their names below.
    """
    findings = list(_together(findings))
    rows = [HEADER, *((each.level, each.check, on_one_line(each.text)) for each in findings)]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    mends = ["", *(each.mend for each in findings)]
    indent = " " * (sum(widths) + 2 * len(GAP))
    written = []
    for row, mend in zip(rows, mends, strict=True):
        written.append(GAP.join((row[0].ljust(widths[0]), row[1].ljust(widths[1]), row[2])))
        for at, line in enumerate(mend.splitlines()):
            arrow = MEND if at == 0 and row[0] not in QUIET else " " * len(MEND)
            written.append(f"{indent}{arrow}{on_one_line(line)}")
    return written


def _together(findings: Iterable[Finding]) -> Iterator[Finding]:
    """The findings, those alike that say that nothing is wrong, or why it is not known, as one."""
    listed = list(findings)
    checks: dict[tuple[str, str], list[str]] = {}
    for each in listed:
        if each.level in QUIET:
            checks.setdefault((each.level, each.text), []).append(each.check)
    for each in listed:
        names = checks.get((each.level, each.text), [])
        if len(names) < MANY_ALIKE:
            yield each
        elif names[0] == each.check:
            listing = "\n".join(wrap(", ".join(names), WIDTH, break_on_hyphens=False))
            yield replace(each, check=f"{len(names)} checks", mend=listing)


def summary(findings: Iterable[Finding]) -> str:
    """How many findings there are of each level, the most serious first."""
    counted = Counter(each.level for each in findings)
    return ", ".join(
        f"{counted[level]} {level}{'s' if level in MANY and counted[level] > 1 else ''}"
        for level in reversed(LEVELS)
        if counted[level]
    )


def as_data(findings: Sequence[Finding]) -> dict[str, Any]:
    """What -o json and -o yaml write; what does not apply to a finding is left out of it."""
    always = ("level", "check", "text")
    return {
        "worst": worst(findings),
        "findings": [
            {key: value for key, value in asdict(each).items() if key in always or value}
            | ({"value": each.value} if each.value is not None else {})
            for each in findings
        ],
    }
