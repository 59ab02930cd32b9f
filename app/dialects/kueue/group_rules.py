"""What the labels and annotations of pod groups must say: rules, and nothing else.

    flaws(labels, annotations)   the group a pod names, its size, the pod's number in it
    change(before, after)        what may not change any more

Source: kueue pkg/controller/jobs/pod/pod_webhook.go (v0.16).
"""

from __future__ import annotations

from collections.abc import Iterator

from app.dialects import corral
from app.dialects.flaw import Flaw
from app.dialects.kueue.annotations import LONGEST_NAME, PREFIX, Strings, asks_for_topology
from app.dialects.kueue.driver_sets import SETS
from app.dialects.kueue.in_charge import MANAGED
from app.dialects.kueue.pod_groups import (
    ABSENT_SECONDS,
    FLAGS,
    GROUP_NAME,
    MOST_ABSENT_SECONDS,
    MOST_SPARES,
    POD_INDEX,
    RETRIABLE,
    ROLE,
    SPARES,
    TOTAL_COUNT,
)
from app.dialects.kueue.rules import size_flaws, whole
from app.dialects.rules import (
    annotation,
    boolean,
    forbidden,
    invalid,
    label,
    required,
    whole_number,
)
from app.kube.core.objects import PodRecord
from app.labels import is_subdomain

PREBUILT = PREFIX + "prebuilt-workload-name"


def flaws(labels: Strings, annotations: Strings) -> Iterator[Flaw]:
    """The rules of one pod: the group it names, the group's size, its number in it."""
    if labels.get(MANAGED, "true") != "true":
        text = "managed label value can only be 'true'"
        yield forbidden(label(MANAGED), text, is_fatal=False)
    if labels.get(corral.MANAGED, "true") not in ("true", "false"):
        text = "must be 'true' or 'false'"
        yield invalid(label(corral.MANAGED), labels[corral.MANAGED], text, is_fatal=False)
    named = {
        where(GROUP_NAME): strings[GROUP_NAME]
        for where, strings in ((annotation, annotations), (label, labels))
        if GROUP_NAME in strings
    }
    total = annotations.get(TOTAL_COUNT)
    yield from _names(named)
    yield from _both_or_none(named, total, labels, annotations)
    total_pods = None if total is None else whole(total)
    if total is not None:
        field = annotation(TOTAL_COUNT)
        yield from size_flaws(field, total, total_pods)
    yield from _index(labels, total_pods)
    for where, strings in ((label, labels), (annotation, annotations)):
        prebuilt = strings.get(PREBUILT)
        if prebuilt is not None and named and prebuilt not in named.values():
            text = "must be equal to the name of the pod group"
            yield invalid(where(PREBUILT), prebuilt, text, is_fatal=False)
    if named or asks_for_topology(annotations):
        yield from _life(annotations)


def change(before: PodRecord, after: PodRecord) -> Iterator[Flaw]:
    """The rules of one pod that is changed: its group and whether it may be retried stay."""
    earlier, name = (
        each.annotations.get(GROUP_NAME, each.labels.get(GROUP_NAME, ""))
        for each in (before, after)
    )
    if earlier and earlier != name:
        was_label = GROUP_NAME in before.labels and GROUP_NAME not in before.annotations
        yield invalid((label if was_label else annotation)(GROUP_NAME), name, "field is immutable")
    was_last, is_last = (
        boolean(each.annotations.get(RETRIABLE, "true")) is False for each in (before, after)
    )
    if name and was_last and not is_last:
        text = "unretriable pod group can't be converted to retriable"
        yield forbidden(annotation(RETRIABLE), text)


def _names(named: Strings) -> Iterator[Flaw]:
    for field, name in named.items():
        is_long = len(name) > LONGEST_NAME
        if is_long or not is_subdomain(name):
            text = "must be a lowercase RFC 1123 subdomain, such as training-1.team"
            yield invalid(field, name, text, is_fatal=not name or is_long)
    if len(set(named.values())) > 1:
        first, second = named.values()
        yield invalid(label(GROUP_NAME), second, f'must be equal to the annotation "{first}"')


def _both_or_none(
    named: Strings, total: str | None, labels: Strings, annotations: Strings
) -> Iterator[Flaw]:
    text = f"both the '{TOTAL_COUNT}' annotation and the '{GROUP_NAME}' label should be set"
    if total is not None and not named:
        yield required(label(GROUP_NAME), text)
    # A driver declares its workers, and they leave the size to it (KEP-976, story 3).
    counts_elsewhere = SETS in annotations or ROLE in labels or ROLE in annotations
    if named and total is None and not counts_elsewhere:
        yield required(annotation(TOTAL_COUNT), text)


def _index(labels: Strings, total: int | None) -> Iterator[Flaw]:
    text = labels.get(POD_INDEX)
    if text is None:
        return
    field = label(POD_INDEX)
    index = int(text) if text.isascii() and text.isdecimal() and len(text) <= 20 else None
    if index is None or index >= 2**64:
        yield invalid(field, text, "must be an unsigned integer", is_fatal=False)
    elif total is not None and index >= total > 0:
        problem = f"must be less than {total}, the size of the pod group"
        yield invalid(field, text, problem, is_fatal=False)


def _life(annotations: Strings) -> Iterator[Flaw]:
    """The rules of what a pod says of the time when pods of its group end."""
    ends = annotations.get(corral.DISRUPTION, corral.SINGLE)
    if ends not in (corral.SINGLE, corral.ALL):
        yield invalid(annotation(corral.DISRUPTION), ends, "must be 'single' or 'all'")
    for key in FLAGS:
        if key in annotations and boolean(annotations[key]) is None:
            yield invalid(annotation(key), annotations[key], "must be a boolean value")
    for key, most in ((SPARES, MOST_SPARES), (ABSENT_SECONDS, MOST_ABSENT_SECONDS)):
        text = annotations.get(key)
        number = whole_number(text)
        if text is not None and (number is None or number > most):
            yield invalid(annotation(key), text, f"must be a whole number from 0 to {most}")
