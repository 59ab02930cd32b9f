"""What is said of gangs that this Corral does not place: it does not lead, or serves no such pods.

the Lease is another's           NotLeading, of gangs that would have or get a place here
schedulerName is another's       OtherScheduler, of pods that Corral keeps no record of
"""

from __future__ import annotations

from collections.abc import Iterable

from app.dialects.spec import Claim
from app.explain.advice import ADVICE
from app.explain.view import Explanation, GangView, Pods
from app.kube.core.objects import PodRecord
from app.state.engine import Engine
from app.state.gang.gang import Phase
from app.state.gang.reasons import Reason

LED = (Phase.WAITING, Phase.REPAIRING, Phase.PLACED, Phase.BINDING)
"""Phases in which the Corral that leads knows better."""
NO_PHASE = "elsewhere"


def of_follower(shown: GangView, whose: str) -> GangView:
    """A gang as a Corral shows it that does not lead; `whose`: the Lease, in words."""
    if not whose or Phase(shown.phase) not in LED:
        return shown
    text = f"gang {shown.namespace}/{shown.name} is not placed by this Corral: {whose}"
    return shown.model_copy(update={"reason": Reason.NOT_LEADING, "message": text})


def unsearched(shown: GangView) -> Explanation:
    """What is said of a gang without a search."""
    advice = ADVICE[shown.reason]
    return Explanation(
        gang=shown, fits_now=False, tries_again=advice.tries_again, advice=advice.to_do
    )


def of_other_scheduler(engine: Engine, pods: Iterable[PodRecord], name: str) -> Explanation | None:
    """Why the pods of this name, or of a gang or an owner of it, are not placed; None: no such."""
    claimed = [
        (pod, claim)
        for pod in pods
        if not engine.settings.is_ours(pod) and (claim := engine.dialects.claim(pod)) is not None
        if name in (pod.name, claim.gang.name) or (pod.owner is not None and pod.owner.name == name)
    ]
    return _told(engine, claimed) if claimed else None


def _told(engine: Engine, claimed: list[tuple[PodRecord, Claim]]) -> Explanation:
    pod, claim = claimed[0]
    key, ours = claim.gang, engine.settings.scheduler_name.replace(",", ", ")
    text = (
        f"gang {key} is not placed by Corral: pod {pod.namespace}/{pod.name} has the schedulerName"
        f" {pod.scheduler}, and Corral serves {ours}"
    )
    shown = GangView(
        namespace=key.namespace,
        name=key.name,
        source=key.source,
        phase=NO_PHASE,
        reason=Reason.OTHER_SCHEDULER,
        message=text,
        priority=pod.priority,
        pods=Pods(there=len(claimed), planned=0, bound=sum(bool(each.node) for each, _ in claimed)),
    )
    return unsearched(shown)
