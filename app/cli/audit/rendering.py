"""Verdicts as people and programs read them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from app.cli.audit.verdicts import ANSWERS, Audited, Verdict, worst
from app.cli.common.columns import aligned, on_one_line

HEADER = ("NAMESPACE", "NAME", "SOURCE", "CONSTRAINT", "VERDICT", "DETAIL")
GAP = "   "


def table(verdicts: Iterable[Verdict]) -> Iterator[str]:
    """A line for each constraint of each gang, in the columns of kubectl."""
    rows = [tuple(map(on_one_line, _row(each))) for each in verdicts]
    return aligned([HEADER, *rows], GAP)


def _row(verdict: Verdict) -> tuple[str, ...]:
    key = verdict.gang
    place = (key.namespace, key.name, key.source)
    return (*place, verdict.constraint, verdict.answer, verdict.text)


def summary(audited: Audited) -> str:
    """How many gangs there are of each answer, the worst first."""
    by_gang: dict[Any, list[Verdict]] = {}
    for each in audited.verdicts:
        by_gang.setdefault(each.gang, []).append(each)
    counted = Counter(worst(each) for each in by_gang.values())
    answers = ", ".join(f"{counted[each]} {each}" for each in reversed(ANSWERS) if counted[each])
    waiting = f"; {audited.waiting} have no running pod" if audited.waiting else ""
    gangs = "1 gang runs" if len(by_gang) == 1 else f"{len(by_gang)} gangs run"
    return f"{gangs}{': ' if answers else ''}{answers}{waiting}"


def names(verdicts: Iterable[Verdict]) -> Iterator[str]:
    """The gangs with a violation, each once."""
    found = (on_one_line(str(each.gang)) for each in verdicts if each.answer == "VIOLATION")
    return iter(dict.fromkeys(found))


def as_data(audited: Audited) -> dict[str, Any]:
    """What -o json and -o yaml write; what does not apply to a verdict is left out of it."""
    return {
        "worst": worst(audited.verdicts),
        "verdicts": [_verdict(each) for each in audited.verdicts],
        "unread": [{"kind": each.kind, "why": each.why} for each in audited.unread],
        "notes": list(audited.notes),
        "waiting_gangs": audited.waiting,
        "pods": audited.pods,
        "nodes": audited.nodes,
    }


def _verdict(verdict: Verdict) -> dict[str, Any]:
    key = verdict.gang
    said = {
        "namespace": key.namespace,
        "name": key.name,
        "source": key.source,
        "constraint": verdict.constraint,
        "verdict": verdict.answer,
        "text": verdict.text,
    }
    more = {
        "level": verdict.level,
        "pod": verdict.pod,
        "node": verdict.node,
        "values": list(verdict.values),
    }
    return said | {name: value for name, value in more.items() if value}
