"""Whether the webhook is sent the members of every vocabulary, where each needs its marker.

A condition is CEL, which is not evaluated here. One that looks for words of vocabularies, as those
of deploy/webhook.yaml do, is taken to leave out what says none of the words in it; one that says
`!('WORD' in` leaves out what says this word. A condition without any such word is not judged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from app.cli.doctor.checks.gating.webhook import GATING, each_of
from app.cli.doctor.findings import Check, Problem, error
from app.cli.doctor.seen import Object, OwnSettings, Webhooks
from app.dialects.registry import DIALECTS

_NOT_THOSE_WITH = re.compile(r"!\s*\(\s*'([^']+)' in\b")
Words = Mapping[str, Sequence[str]]


def sent(webhooks: Webhooks, settings: OwnSettings) -> Iterator[Problem]:
    """Whether every member comes to Corral when it is created, and gets its marker there."""
    if not settings.values.marker_resource:
        return
    words = DIALECTS.configured(settings.values).words()
    every = [word for each in words.values() for word in each]
    for where, webhook in each_of(webhooks):
        if webhook["name"] != GATING:
            continue
        for at, condition in enumerate(webhook.get("matchConditions") or []):
            if left_out := [*_left_out(condition, words, every)]:
                yield _unmarked(f"{where}: {webhook['name']}", at, condition, left_out)


def _left_out(condition: Object, words: Words, every: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The vocabularies, each with the word of its pods, that a condition keeps from Corral."""
    expression = str(condition.get("expression", ""))
    excluded = _NOT_THOSE_WITH.findall(expression)
    if not (excluded or any(_says(expression, word) for word in every)):
        return
    for name, its in words.items():
        for word in its:
            if word in excluded if excluded else not _says(expression, word):
                yield name, word


def _says(expression: str, word: str) -> bool:
    """Whether the word is there, and not the end of a longer key."""
    return re.search(rf"(?<![\w./-]){re.escape(word)}", expression) is not None


def _unmarked(
    thing: str, at: int, condition: Object, left_out: Sequence[tuple[str, str]]
) -> Problem:
    names = ", ".join(dict.fromkeys(name for name, _ in left_out))
    words = ", ".join(word for _, word in left_out)
    name, is_excluded = condition.get("name"), _NOT_THOSE_WITH.search(str(condition["expression"]))
    return error(
        thing,
        f"pods of {names} that say {words} are not sent and get no marker, and kube-scheduler"
        " starts them without Corral, one by one",
        f"leave the condition {name} out"
        if is_excluded
        else "the condition asks-for-something of deploy/webhook.yaml",
        field=f"matchConditions[{at}]",
        value=name,
    )


CHECKS = (
    Check(
        "webhook-members",
        "every member that needs a marker is sent",
        ("webhooks", "settings"),
        sent,
    ),
)
