"""/prioritize: how well each candidate keeps whole domains free, 0 to 10.

A planned member never gets here: with one node left kube-scheduler scores nothing.
"""

from __future__ import annotations

from app.kube.core.objects import PodRecord
from app.state.filter_result import Candidates
from app.state.inputs import Inputs

WIDEST_SCORE = 10  # kube-scheduler's MaxExtenderPriority; it does not check, so we do


def score_nodes(inputs: Inputs, pod: PodRecord, candidates: Candidates, now: float) -> list[int]:
    """One score per candidate, in the order of `candidates.names()`."""
    scores = inputs.prioritize(pod, candidates, now)
    if min(scores, default=0) >= 0 and max(scores, default=0) <= WIDEST_SCORE:
        return scores
    return [min(max(score, 0), WIDEST_SCORE) for score in scores]
