"""What a JobSet makes of a Job that fails: it fails with it, or makes its Jobs anew.

Its first rule that is of such a Job counts; without one it restarts as often as it may. What a rule
says of the message of a failure is not read: such a rule may be of a Job, or not.
Source: jobset v0.12 pkg/controllers/failure_policy.go, executeFailurePolicy.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import msgspec

from app.dialects.workloads.record import FailureRule, Outcome
from app.kube.decoding import wire

_OUTCOMES: dict[str, Outcome] = {
    "FailJobSet": "fails",
    "RestartJobSet": "restarts",
    "RestartJob": "restarts",
    "RestartJobSetAndIgnoreMaxRestarts": "restarts_always",
    "RestartJobAndIgnoreMaxRestarts": "restarts_always",
}
# All are looked at for each change of each Job. Where there are more, it is taken to fail.
MOST_RULES = 64
_FAILS = FailureRule("fails")


class _Rule(wire.Wire):
    action: wire.Text = None
    on_job_failure_reasons: wire.Texts = None
    on_job_failure_message_patterns: wire.Texts = None
    target_replicated_jobs: wire.Texts = None


Rules = list[_Rule | None] | None
RULES: msgspec.json.Decoder[Rules] = msgspec.json.Decoder(Rules)


def rules_of(
    written: Rules, parts: Collection[str], reasons: Collection[str]
) -> tuple[FailureRule, ...]:
    """The rules that may be of a Job of these replicated Jobs that fails for one of these reasons.

    A rule for others is left out, and so are those that say the same again.
    """
    found = tuple(dict.fromkeys(_read(written or (), parts, reasons)))
    return found if len(found) <= MOST_RULES else (*found[: MOST_RULES - 1], _FAILS)


def ignores_maximum(written: Rules) -> bool:
    """Whether there are restarts that do not count."""
    actions = (each.action or "" for each in written or () if each is not None)
    return any(_OUTCOMES.get(action) == "restarts_always" for action in actions)


def _read(
    written: Sequence[_Rule | None], parts: Collection[str], reasons: Collection[str]
) -> Iterator[FailureRule]:
    for each in written:
        if each is None:
            continue
        its_reasons = frozenset(reasons).intersection(each.on_job_failure_reasons or reasons)
        its_parts = frozenset(parts).intersection(each.target_replicated_jobs or parts)
        if its_reasons and (its_parts or not each.target_replicated_jobs):
            yield FailureRule(
                _OUTCOMES.get(each.action or "", "fails"),
                tuple(sorted(its_reasons)) if each.on_job_failure_reasons else (),
                tuple(sorted(its_parts)) if each.target_replicated_jobs else (),
                is_certain=not each.on_job_failure_message_patterns,
            )
