"""/preempt: on one of kube-scheduler's nodes its own victims, or no node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from app.kube.core.objects import PodRecord
from app.state.effects import Effect
from app.state.filter_result import Victims
from app.state.inputs import Inputs


def choose_victims(
    inputs: Inputs,
    feed: Callable[[Iterable[Effect]], None],
    pod: PodRecord,
    offered: Mapping[str, Victims],
    now: float,
) -> Mapping[str, Victims]:
    """The node and the victims kube-scheduler may have; the effects are fed on at once."""
    answer, effects = inputs.preempt(pod, offered, now)
    feed(effects)
    return answer
