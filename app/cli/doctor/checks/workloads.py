"""Pods that ask for a gang and do not get one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from app.cli.doctor.findings import Check, Found, NotChecked, Problem, named, warning
from app.cli.doctor.seen import Members, OwnSettings
from app.dialects import corral
from app.dialects.registry import DIALECTS, Dialects
from app.kube.core.objects import PodRecord
from app.settings import is_named

# The vocabularies of schedulers that Corral is not: their pods name those.
OTHERS_OWN = ("volcano", "kai", "grove", "native")


def schedulers(members: Members, settings: OwnSettings) -> Iterator[Found]:
    """Whether pods with Corral's words are of a scheduler that reads them."""
    dialects = DIALECTS.configured(settings.values)
    elsewhere = defaultdict[tuple[str, bool], list[str]](list)
    for pod in members.pods:
        if not is_named(pod.scheduler, settings.values.scheduler_name) and _asks(dialects, pod):
            is_gated = corral.GATE in pod.gates
            elsewhere[pod.scheduler, is_gated].append(f"{pod.namespace}/{pod.name}")
    for (scheduler, is_gated), names in sorted(elsewhere.items()):
        ours = settings.values.scheduler_name
        what = (
            f"the gate {corral.GATE} stays, and the pods wait"
            if is_gated
            else "the pods start one by one"
        )
        yield warning(
            f"{'Pod' if len(names) == 1 else 'Pods'} {named(names)}",
            f"annotations say that it is in a gang, and Corral plans for {ours} alone: {what}",
            f"scheduler_name: {ours},{scheduler}, or take the gate off as deploy/policy.yaml says"
            if is_gated
            else f"schedulerName: {settings.schedulers[0]}",
            field="spec.schedulerName",
            value=scheduler,
        )
    yield from _left_out(members)


def owners(members: Members, settings: OwnSettings) -> Iterator[Found]:
    """Whether what pods say can be kept."""
    dialects = DIALECTS.configured(settings.values)
    by_flaw: dict[str, PodRecord] = {}
    for pod in members.pods:
        claim = dialects.claim(pod)
        if pod.node or claim is None or not claim.flaw:
            continue
        if is_named(pod.scheduler, settings.values.scheduler_name):
            # The pods of one controller have the same mistake.
            key = f"{pod.owner.uid if pod.owner else pod.uid}"
            by_flaw.setdefault(key, pod)
            if by_flaw[key] is pod:
                yield _flawed(pod, claim.flaw)


def _flawed(pod: PodRecord, flaw: str) -> Problem:
    name = f"{pod.namespace}/{pod.name}"
    mend = f"kubectl -n {pod.namespace} describe pod {pod.name}"
    return warning(f"Pod {name}", flaw.removeprefix(f"pod {name}: "), mend)


def _asks(dialects: Dialects, pod: PodRecord) -> bool:
    """Whether the pod's words are for Corral, and not for another scheduler or for Kueue."""
    if dialects.is_managed(pod.labels, pod.annotations, pod.gates, pod.pod_group):
        return False
    claim = dialects.claim(pod)
    return claim is not None and dialects.of(claim.gang).name not in OTHERS_OWN


def _left_out(members: Members) -> Iterator[NotChecked]:
    if members.left_out:
        yield NotChecked(
            f"{members.left_out} more pods of gangs: {len(members.pods)} are looked at"
        )


_BOTH = ("members", "settings")
CHECKS = (
    Check("pod-schedulers", "pods of gangs name a scheduler with Corral", _BOTH, schedulers),
    Check("pod-owners", "what pods ask for can be kept", _BOTH, owners),
)
