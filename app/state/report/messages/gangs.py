"""Sentences about a gang, from its first pod on, and about a pod that is none of it."""

from __future__ import annotations

from collections.abc import Sequence

from app.dialects import autoscalers
from app.dialects.spec import GangKey, GangSpec, Said
from app.kube.core.objects import PodRecord
from app.state.gang.members import minimum
from app.state.plan.verdict import absent

MOST_KEYS_SHOWN = 2  # a key may have 317 characters, and an answer to /filter 512 bytes


def not_ready() -> str:
    """A pod of a gang is at /filter before every list is in."""
    return "Corral is not ready: it has not read the whole cluster yet"


def taking_over(key: GangKey) -> str:
    """A pod of a gang is at /filter of a Corral that does not lead yet."""
    return f"gang {key} waits until this Corral has read what the one that led before it has done"


def node_not_shown() -> str:
    """A candidate is unknown: kube-scheduler may be ahead of the watch, or a simulator asks."""
    return (
        "a candidate node is not in Corral's watch yet; a simulator marks nodes that do not exist"
        f" with the label {autoscalers.TEMPLATE_NODE}"
    )


def not_waiting(namespace: str, name: str, scheduler: str) -> str:
    """A pod at /bind is unknown, another scheduler's, or gated."""
    of = f" with schedulerName {scheduler.replace(',', ' or ')}" if scheduler else ""
    return f"the watch shows no pod {namespace}/{name}{of} that waits for a node without gates"


def still_gated(namespace: str, name: str) -> str:
    """A pod is at /filter, and for a while the watch has shown it with gates."""
    return f"the watch still shows pod {namespace}/{name} with scheduling gates"


def another_pod(namespace: str, name: str) -> str:
    """The uid in a request is that of another pod."""
    return f"the uid in the request is not that of pod {namespace}/{name}"


def gathering(key: GangKey, pods: int | None, awaited: str) -> str:
    """Members are missing or gated, or what the gang is is not known: `awaited` says why."""
    if pods is None:
        return f"gang {key} waits until {awaited}"
    if pods == 1:
        return f"gang {key} waits until its pod is ungated"
    return f"gang {key} waits until all {pods} of its pods are there and ungated"


def being_bound(pod: str) -> str:
    """What a gang awaits: a pod of it is being bound that was none when that began."""
    return f"the binding of pod {pod} has ended"


def gathering_least(key: GangKey, pods: int) -> str:
    """Members are missing or gated that the gang does not start without."""
    return f"gang {key} waits until the {pods} pods that it needs are there and ungated"


def gathering_first(key: GangKey, pods: int) -> str:
    """Members are missing or gated that the gang starts with; 0: it starts with any."""
    return f"gang {key} waits until {_first_are_there(pods)}"


def _first_are_there(pods: int) -> str:
    if not pods:
        return "those of its pods that are there are ungated"
    if pods == 1:
        return "the pod that it starts with is there and ungated"
    return f"the {pods} pods that it starts with are there and ungated"


def part_gathering(key: GangKey, leaf: str) -> str:
    """The gang can do without the pods of a leaf, and these are not complete."""
    return f"gang {key} waits with {leaf or 'this pod'} until all that belong to it are there"


def not_needed(key: GangKey) -> str:
    """The gang starts without some of its pods, which have no place now."""
    return f"gang {key} starts without this pod, which cannot be placed now"


def unread(key: GangKey) -> str:
    """An object names a label that tells the pods apart, and they were read without it."""
    return f"gang {key} waits until the labels of its pods have been read again"


def keys_refused(keys: Sequence[str]) -> str:
    """Objects name more labels than there is room for."""
    return (
        f"its objects name the label keys {', '.join(keys[:MOST_KEYS_SHOWN])}, which Corral does"
        " not read: there are too many"
    )


def incomplete(key: GangKey, members: int, spec: GangSpec, first: int | None = None) -> str:
    """Members have been missing for a while; `first`: as in `gathering_first`, None: all count."""
    if first is not None:
        return (
            f"gang {key} has {members} of the {spec.pods} pods that {spec.where} declares;"
            f" it starts when {_first_are_there(first)}"
        )
    if spec.is_elastic:
        return (
            f"gang {key} has {members} of the {spec.pods} pods that {spec.where} declares;"
            f" it starts when the {minimum.least_pods(spec)} that it needs are there and ungated"
        )
    return (
        f"gang {key} has {members} of the {spec.pods} pods that {spec.where} declares;"
        " it starts when all are there and ungated"
    )


def not_repaired(key: GangKey, missing: int, why: str) -> str:
    """Part of the gang runs, and there is no place for the rest."""
    return f"gang {key} runs without {missing} of its pods, which cannot be placed: {why}"


def places_given_up(key: GangKey, pods: int) -> str:
    """Pods that the gang declares have not come in time; it runs."""
    whose = "a pod that has" if pods == 1 else f"{pods} pods that have"
    return f"gang {key} runs, and no place is held any more for {whose} not come"


def given_up(key: GangKey, why: str) -> str:
    """The gang is evicted: a member is lost and cannot be replaced."""
    return f"gang {key} is evicted, as a lost pod cannot be replaced: {why}"


def not_evicted(key: GangKey) -> str:
    """The gang is not evicted though a member is lost: its owner would not make the pods again."""
    return (
        f"gang {key} lacks a lost pod, and the others are not evicted: its owner would count them"
        " as failed and give up (backoffLimit, restartPolicy, policies); a podFailurePolicy of a"
        " Job whose first rule ignores the condition DisruptionTarget allows it"
    )


def eviction_refused(key: GangKey, pod: PodRecord, seconds: float) -> str:
    """A pod of a gang that is evicted stays: a budget or a policy forbids its eviction."""
    return (
        f"gang {key} is evicted, but its pod {pod.name} is not evicted, as a PodDisruptionBudget or"
        f" the API server forbids it; that is asked again every {seconds:.0f} s until the gang has"
        " ended or is whole again"
    )


def ends_whole(key: GangKey, preempted: PodRecord) -> str:
    """The gang is evicted: a member goes for another pod, and the gang ends as a whole."""
    return (
        f"gang {key} is evicted, as its pod {preempted.name} goes for a pod of higher priority and"
        " the gang's disruption is all; it starts again as a whole when its last pod has ended"
    )


def mismatched(key: GangKey, pod: PodRecord, said: Said, spec: GangSpec) -> str:
    """A newcomer says another size than the members that run."""
    return (
        f"pod {pod.namespace}/{pod.name} says {said.pods} in {said.where}, and gang {key} runs"
        f" with {spec.pods}; it is not scheduled"
    )


def over(key: GangKey, pod: PodRecord) -> str:
    """The group has ended: a member that may not be retried has."""
    return (
        f"pod {pod.namespace}/{pod.name} comes after the end of gang {key}, of which a pod that"
        " is not retriable has ended; it is not scheduled"
    )


def no_place(key: GangKey, why: str) -> str:
    """The gang is complete and does not fit."""
    return f"gang {key} cannot be placed: {why}"


def places_held(whose: str, pods: int) -> str:
    """Places that the gang could use are held for pods of another one, in words."""
    return f"places are held for {absent(pods, f' of {whose}')}"


def mistaken(key: GangKey, problem: str) -> str:
    """What the gang's pods or objects say is not valid, or contradicts itself."""
    return f"gang {key} is invalid: {problem}"


def in_excess(key: GangKey, pod: PodRecord, spec: GangSpec) -> str:
    """The gang has all its members without this pod."""
    return (
        f"pod {pod.namespace}/{pod.name} is one more than the {spec.pods} pods that"
        f" {spec.where} declares for gang {key}; it is not scheduled"
    )


def planned_elsewhere(key: GangKey) -> str:
    """The one node kube-scheduler asks about is not this member's."""
    return f"gang {key} has another node planned for this pod"


def sampled(key: GangKey, *, is_wanted: bool) -> str:
    """kube-scheduler offers only a sample of its nodes, and the planned one is not in it.

    `is_wanted`: the pod would be nominated for it, but the API server forbids that.
    """
    right = " let Corral patch pods/status as rbac.yaml and policy.yaml do, or" if is_wanted else ""
    return (
        f"gang {key} has a node planned that kube-scheduler did not offer:{right} set"
        " percentageOfNodesToScore: 100 in its profile"
    )


def still_arriving(key: GangKey) -> str:
    """The pod's own request to bind it was held for long enough; it keeps its node."""
    return f"gang {key} waits for its other pods to reach their binding; this pod keeps its node"


def plan_lost(key: GangKey, why: str) -> str:
    """The plan no longer holds."""
    return f"gang {key} lost its plan: {why}"


def ranks_not_used(key: GangKey, pod_set: str, why: str) -> str:
    """Pods are numbered, and got their nodes in another order."""
    whose = f"pod set {pod_set} of gang {key}" if pod_set else f"gang {key}"
    return f"{whose} is not placed by rank: {why}"


def placed(key: GangKey, pods: int, left: int = 0, to_come: int = 0) -> str:
    """A gang that had been reported as stuck fits now, with so many that do not exist yet."""
    others = f", and for {to_come} to come" if to_come else ""
    if left:
        return f"gang {key}: nodes are planned for {pods} of its {pods + left} waiting pods{others}"
    if not pods:
        return f"gang {key}: nodes are planned for {to_come} of its pods that are to come"
    whose = "a node is planned for its waiting pod"
    if pods > 1:
        whose = f"nodes are planned for all its {pods} waiting pods"
    return f"gang {key}: {whose}{others}"
