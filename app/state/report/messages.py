"""Every sentence a pod's owner may read, written once.

They go into FailedScheduling events and conditions through kube-scheduler, which retries a pod
whenever its text changes: no times, no attempt counters, the same words for all members.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from app.dialects import autoscalers
from app.dialects.provisioning import keys
from app.dialects.spec import GangKey, GangSpec, Said
from app.kube.core.objects import PodRecord
from app.state.effects import RoomAnswer, RoomVictim
from app.state.gang.members import minimum
from topology.model.answer import NoFit

MOST_VICTIMS_SHOWN = 3  # names of up to 317 characters; an event has 1,024
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


def of_priority(namespace: str, name: str, priority: int) -> str:
    """A pod that others give way to."""
    return f"pod {namespace}/{name} of priority {priority}"


def gives_way(member: str, members: int, to: str, node: str, kept: int, running: int) -> str:
    """Members of a gang go for a pod of higher priority."""
    others = f" and {members - 1} more" if members > 1 else ""
    return (
        f"member {member}{others} gives way to {to} on node {node};"
        f" the gang keeps {kept} of {running} running"
    )


def room(key: GangKey, priority: int, answer: RoomAnswer, why_none: str) -> str:
    """The gang would have room if some pods went; "" as `why_none`: they are evicted."""
    where = f" in {answer.domain}" if answer.domain else ""
    whose = f"gang {key} (priority {priority})"
    if not answer.pods:
        return f"{whose} has room{where} once the pods that end now have ended"
    pods = "1 pod" if answer.pods == 1 else f"{answer.pods} pods"
    gangs = {0: "", 1: " of 1 gang"}.get(answer.gangs, f" of {answer.gangs} gangs")
    if answer.gangs and answer.gangs < answer.units:
        gangs = f", those{gangs} among them,"
    named = f"{victims(answer)}{_gives_up(answer)}"
    if not why_none:
        return f"{whose} makes room{where}: evicts {pods}{gangs.rstrip(',')}: {named}"
    fewer = " or fewer" if answer.is_cut_short else ""
    return (
        f"{whose} could start{where} if {pods}{gangs} went{fewer}, and none is evicted, as"
        f" {why_none}: {named}"
    )


def victims(answer: RoomAnswer) -> str:
    """Who would have to go: the most important few by name."""
    shown = answer.named[:MOST_VICTIMS_SHOWN]
    names = ", ".join(f"{name} (priority {its})" for name, its in shown)
    others = answer.units - len(shown)
    return f"{names} and {others} more" if others else names


def _gives_up(answer: RoomAnswer) -> str:
    """So many of those that would go would not be started again."""
    ends = answer.ends_for_good
    if not ends:
        return ""
    owners, whose, plural = ("owner", "its", "") if ends == 1 else ("owners", "their", "s")
    whom, what = f"{ends} of these", f"{whose} pods"
    if not answer.gangs:
        whom, what = f"{ends} pod{plural}", "it" if ends == 1 else "them"
    elif answer.gangs == answer.units:
        whom = f"{ends} gang{plural}"
    return f"; the {owners} of {whom} would count {what} as failed and give up"


def gives_way_whole(key: GangKey, victim: RoomVictim, to: GangKey, priority: int) -> str:
    """A gang goes for a waiting one."""
    pods = len(victim.uids)
    all_pods = "its pod is" if pods == 1 else f"its {pods} pods are"
    end = ", and its owner gives up" if victim.ends_for_good else ""
    return (
        f"gang {key} (priority {victim.priority}) gives way to gang {to} (priority {priority}):"
        f" {all_pods} evicted{end}"
    )


def goes_for(namespace: str, name: str, victim: RoomVictim, to: GangKey, priority: int) -> str:
    """A pod goes for a waiting gang."""
    end = ", and its owner gives up" if victim.ends_for_good else ""
    return (
        f"pod {namespace}/{name} (priority {victim.priority}) gives way to gang {to} (priority"
        f" {priority}): it is evicted{end}"
    )


def awaits_room(key: GangKey, where: str, ending: int, awaited: int, seconds: float) -> str:
    """Pods still end for a waiting gang."""
    domain = f" in {where}" if where else ""
    return (
        f"gang {key} waits for {ending} of {awaited} pods{domain} to end, {seconds:.0f} s more at"
        " most"
    )


_NOT_MADE = {
    "refused": "{who} may not be evicted",
    "unanswered": "the API server does not say whether the pods may be evicted",
    "changed": "the place, or those who would have had to go, have changed",
    "other_pods": "its pods, or what they require, have changed",
    "stuck": "{who} does not end in time",
    "taken": "{who} took what was freed",
    "lost": "what was freed is not enough any more",
}


OFTEN_IN_VAIN = "others went for it three times within an hour, and it has not started"


def stuck_twice(pods: Sequence[str]) -> str:
    """Pods of two places that were made for a gang do not end."""
    named = " and ".join(f"pod {each}" for each in pods)
    return (
        f"others went for it from two places where pods do not end: it waits until one of {named}"
        " has ended"
    )


def room_not_made(key: GangKey, result: str, who: str, stopped: str = "") -> str:
    """A gang that made room does so no more, and has no place.

    `stopped`: why no others go for it for now; "": they may.
    """
    why = _NOT_MADE[result].format(who=f"pod {who}" if who else "a pod")
    whole = f"gang {key} makes no room any more: {why}"
    return f"{whole}; no others are evicted for now, as {stopped}" if stopped else whole


def no_room(key: GangKey, priority: int, answer: RoomAnswer) -> str:
    """The gang would have no room, whichever pods went."""
    whose = f"gang {key} (priority {priority})"
    if answer.budgets:
        shown = answer.budgets[:MOST_VICTIMS_SHOWN]
        more = ", …" if len(answer.budgets) > len(shown) else ""
        return (
            f"{whose} could start only if pods went that disruption budgets keep:"
            f" {', '.join(shown)}{more}"
        )
    pods = "the pod" if answer.pods == 1 else f"the {answer.pods} pods"
    left = answer.left_alone
    alone = f"{left} pod is" if left == 1 else f"{left} pods are"
    others = f"; {alone} left alone for now" if left else ""
    if not answer.pods:
        return f"{whose} has no room: no pod of lower priority may go{others}"
    return f"{whose} has no room even without {pods} of lower priority that may go{others}"


def preemption_stopped(pod: str) -> str:
    """Pods ended for this one several times, and it did not come to run."""
    return (
        f"pod {pod} preempts no pods for some minutes: three times others ended for it, and it"
        " could not be bound to their node then"
    )


def incomplete(key: GangKey, members: int, spec: GangSpec) -> str:
    """Members have been missing for a while."""
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
        " as failed and give up (backoffLimit); a podFailurePolicy that ignores the condition"
        " DisruptionTarget allows it"
    )


def given_back(why: str, pods: int, *, is_suspended: bool) -> str:
    """Pods end that are narrowed to where their gang has no place; `why`: its verdict."""
    its = "1 of its pods, which was" if pods == 1 else f"{pods} of its pods, which were"
    verb = "is" if pods == 1 else "are"
    how = "its Job is suspended until they are gone" if is_suspended else "evicted"
    return (
        f"{why}; {its} narrowed to these nodes, {verb} given back to the controller ({how}),"
        " because the gang has a place elsewhere"
    )


def goes_on() -> str:
    """A workload was suspended until its pods were gone."""
    return "its pods are made anew, as the gang has a place elsewhere"


GIVEN_BACK_ONCE = "others were, once, and it has not run since; delete them to have them made again"
NOT_MADE_AGAIN = "no controller is known to make them again; delete them and create them anew"
OWNER_GIVES_UP = (
    "their owner would count them as failed and give up (backoffLimit); a podFailurePolicy that"
    " ignores the condition DisruptionTarget allows it"
)
SET_BORN_GIVEN_BACK = "the setting born_pods_given_back is off; delete them to have them made again"
SET_NARROWED_GIVEN_BACK = (
    "the setting narrowed_pods_given_back is off; delete them to have them made again"
)


def not_given_back(key: GangKey, why: str) -> str:
    """The same, but they stay."""
    return (
        f"gang {key} could start elsewhere, but its pods are narrowed to nodes where it has no"
        f" place any more, and are not given back (evicted): {why}"
    )


def keeps_narrowed(key: GangKey, pod: PodRecord | None, *, is_forbidden: bool) -> str:
    """A pod that is given back stays: the API server forbids that, or does not answer.

    None: all pods of its Job do.
    """
    role = "corral-suspend" if pod is None else "corral-evict"
    why = (
        f"forbids it: ClusterRole {role}, or a policy of the cluster"
        if is_forbidden
        else "does not answer, or not now"
    )
    if pod is None:
        what = "pods, narrowed to other nodes, are not given back (their Job is not suspended)"
    else:
        what = f"pod {pod.name}, narrowed to other nodes, is not given back (evicted)"
    return f"gang {key} could start elsewhere, but its {what}, as the API server {why}"


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


def needs_nodes(key: GangKey, lack: NoFit | None) -> str:
    """The gang lacks nothing but capacity: what the condition of its pods says to autoscalers."""
    if lack is None:
        return f"gang {key} needs nodes"
    return f"gang {key} needs nodes: {replace(lack, excluded=(), leader='', beside=())}"


def fragmented(key: GangKey, level: str) -> str:
    """The gang asks for nodes, and none will come."""
    return (
        f"gang {key} gets no new nodes: its pods would fit if they need not be in one {level}, and"
        " node autoscalers see no more than that; a node group or NodePool for each domain of that"
        " level lets them add what is missing"
    )


def no_nodes_for_narrowed(key: GangKey) -> str:
    """The gang needs nodes, and none would be made for its pods, nor serve them."""
    return (
        f"gang {key} gets no new nodes: its pods are narrowed to nodes where it has no place any"
        " more, and node autoscalers make no others for such pods; it starts there once there is"
        " room again; else delete them and create them anew"
    )


def new_nodes_released(key: GangKey, nodes: int, level: str = "", unplaced: int = 0) -> str:
    """Too few nodes have come for a gang that asked for some; so many are in no domain of a level.

    Then it is the node group that lacks a label.
    """
    came, are, have = ("node", "is", "has") if nodes == 1 else (f"{nodes} nodes", "are", "have")
    if unplaced == nodes:
        what = f"that came {have} no {level} and {are}"
    elif unplaced:
        what = f"that came, {unplaced} of them without {level}, {are} too few and"
    else:
        what = f"that came {are} too few and"
    return f"gang {key} needs more nodes: the {came} {what} kept for it no longer"


def not_accepted(key: GangKey, name: str, class_name: str, seconds: float) -> str:
    """No controller serves the class of a gang's request."""
    return (
        f"ProvisioningRequest {name} of gang {key} was not accepted in {seconds:.0f} s, so no"
        f" controller serves class {class_name}: its pods are marked for node autoscalers instead"
    )


def not_requested(key: GangKey, why: str) -> str:
    """The gang cannot ask by a request."""
    return (
        f"gang {key} makes no ProvisioningRequest: {why}; its pods are marked for node"
        " autoscalers instead"
    )


def not_provisioned(key: GangKey, name: str, why: str) -> str:
    """A gang's request has brought no nodes for long, and is not over."""
    return (
        f"ProvisioningRequest {name} of gang {key} has no nodes yet: {why}; who serves it tries"
        " again; a request is for nodes of one node group, and where none may have so many, pods"
        f" with an empty annotation {keys.CLASS} are marked instead"
    )


def request_ended(key: GangKey, name: str, why: str, *, is_last: bool) -> str:
    """A gang's request brings no nodes any more."""
    next_step = "delete it to have another one made" if is_last else "another one is made"
    return f"ProvisioningRequest {name} of gang {key} brings no nodes: {why}; {next_step}"


def capacity_revoked(key: GangKey, name: str, why: str) -> str:
    """The nodes of a gang's request may be taken away; its pods that run are not moved."""
    return f"the nodes of ProvisioningRequest {name} of gang {key} are withdrawn: {why}"


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


def placed(key: GangKey, pods: int, left: int = 0) -> str:
    """A gang that had been reported as stuck fits now."""
    if left:
        return f"gang {key}: nodes are planned for {pods} of its {pods + left} waiting pods"
    return f"gang {key}: nodes are planned for all its {pods} waiting pods"
