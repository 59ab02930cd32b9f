"""Every sentence a pod's owner may read, written once.

They go into FailedScheduling events and conditions through kube-scheduler, which retries a pod
whenever its text changes: no times, no attempt counters, the same words for all members.
"""

from __future__ import annotations

from app.dialects.membership import Declared, GangKey
from app.kube.objects import PodRecord


def gathering(key: GangKey, declared: Declared | None) -> str:
    """Members are missing or gated."""
    if declared is None:
        return f"gang {key} waits until its Job is known"
    return f"gang {key} waits until all {declared.members} of its pods are there and ungated"


def no_place(key: GangKey, why: str) -> str:
    """The gang is complete and does not fit."""
    return f"gang {key} cannot be placed: {why}"


def mistaken(key: GangKey, problem: str) -> str:
    """The gang's own claims contradict themselves."""
    return f"gang {key} cannot be meant: {problem}"


def in_excess(key: GangKey, pod: PodRecord, declared: Declared) -> str:
    """The gang has all its members without this pod."""
    return (
        f"pod {pod.namespace}/{pod.name} is one more than the {declared.members} pods that"
        f" {declared.where} declares for gang {key}; it is not scheduled"
    )


def planned_elsewhere(key: GangKey) -> str:
    """The one node kube-scheduler asks about is not this member's."""
    return f"gang {key} has another node planned for this pod"


def sampled(key: GangKey) -> str:
    """kube-scheduler offers only a sample of its nodes, and the planned one is not in it."""
    return (
        f"gang {key} has a node planned that kube-scheduler did not offer: set"
        " percentageOfNodesToScore: 100 in its profile"
    )


def plan_lost(key: GangKey, why: str) -> str:
    """The plan no longer holds."""
    return f"gang {key} lost its plan: {why}"


def placed(key: GangKey, pods: int) -> str:
    """A gang that had been reported as stuck fits now."""
    return f"gang {key}: nodes are planned for all its {pods} waiting pods"
