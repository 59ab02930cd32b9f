"""/filter: one node for a planned member, all for an ordinary pod, none for a member that waits."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from app.kube.core.objects import PodRecord
from app.state.effects import Effect
from app.state.filter_result import Candidates, FilterAnswer
from app.state.inputs import Inputs


def filter_nodes(
    inputs: Inputs,
    feed: Callable[[Iterable[Effect]], None],
    pod: PodRecord,
    candidates: Candidates,
    now: float,
) -> FilterAnswer:
    """Which candidates the pod may go to; the effects are fed on at once.

    Before the first lists are in, a gang's pod fails (kube-scheduler backs off) and an ordinary
    pod passes: a restart of Corral holds up no pod that is not of a gang.
    """
    answer, effects = inputs.filter(pod, candidates, now)
    feed(effects)
    return answer
