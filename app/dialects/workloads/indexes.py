"""The numbers of an indexed Job's pods that are no more: they have succeeded, or failed for good.

    status.completedIndexes ─┐
                             ├─▶ gaps between the numbers of the pods that are left
    status.failedIndexes ────┴─▶ how many

Source: kubernetes v1.36 pkg/controller/job/indexed_job_utils.go, parseIndexesFromString and
firstPendingIndexes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from app.kube.core.turns import turn
from topology.pod_set.gaps import NO_GAPS, Gaps

# Of those that have ended one after the other; of a Job with more gaps than that, the numbers of
# its pods are not read.
MOST_SPANS = 512
MOST_READ = 100_000  # spans of one text: the API takes no Job of which more indexes may fail
AT_ONCE = 2_048  # spans, between two turns
LONGEST = 21  # characters of a span; a longer one is none
_SPAN = re.compile(r"([0-9]{1,10})(?:-([0-9]{1,10}))?")

Span = tuple[int, int]


def spans(text: str, completions: int) -> Iterator[Span]:
    """The first and last of the numbers in a text such as "1,3-5,7", below a number.

    What is none is left out, as the controller does, and what is not in order too.
    """
    end = -1
    for found in filter(None, map(_SPAN.fullmatch, _parts(text))):
        first, last = int(found[1]), int(found[2] or found[1])
        if first >= completions:
            return
        if end < first <= last:
            end = min(last, completions - 1)
            yield first, end


def _parts(text: str) -> Iterator[str]:
    """What stands between commas; of what is too long for a span, more than one has."""
    begin = 0
    for at in range(MOST_READ):
        if at % AT_ONCE == 0:
            turn()
        end = text.find(",", begin)
        yield text[begin : begin + LONGEST + 1 if end < 0 else min(end, begin + LONGEST + 1)]
        if end < 0:
            return
        begin = end + 1


def how_many(text: str, completions: int) -> int:
    """How many numbers such a text has."""
    return sum(last - first + 1 for first, last in spans(text, completions))


def gaps(texts: Iterable[str], completions: int) -> Gaps:
    """The numbers of these texts together; none of any if that is too much to remember."""
    found: list[Span] = []
    for text in texts:
        for first, last in spans(text, completions):
            if found and first == found[-1][1] + 1:
                found[-1] = found[-1][0], last
            else:
                found.append((first, last))
            if len(found) > MOST_SPANS:
                return NO_GAPS
    return Gaps.of(found)
