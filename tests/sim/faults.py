"""What is counted: faults, those of one number being of one kind, and kinds of workloads.

A fault counts when it hits something: a repeated event that was delivered, a call that failed, a
crash that lost a process. `FLOOR` of each in as many seeds as CI plays is what makes a clean run
worth something.
"""

from __future__ import annotations

from collections import Counter

from tests.sim.mode import Mode

FLOOR_SEEDS = 250
FLOOR = 25  # hits of each fault in so many seeds
# Of those for which several things have to meet: a gang born in place, which one seed in five has,
# and then two more mishaps; an eviction, and a pod that does not end, a budget that closes after
# it was planned, a call that fails or a crash at that stage; a CompositePodGroup, which one seed in
# twelve has, that starts with fewer groups than it has.
FLOOR_OF = {
    "W composite of some": 4,
    "F21 stuck": 12,
    "F21 budget": 12,
    "F21 dropped": 10,
    "F21 crash checking": 12,
    "F21 crash evicting": 10,
    "F21 crash draining": 10,
    "F22 not whole": 12,
    "W given back": 5,
    "W given back later": 5,
    "W suspended": 5,
    "W resumed": 5,
    "F22 crash suspended": 1,
}

FAULTS: dict[str, str] = {
    "F3 pods lag": "the pod watch is seconds late while a verb is answered",
    "F3 nodes lag": "the node watch is seconds late while a verb is answered",
    "F3 scheduler lags": "kube-scheduler's own cache is seconds late",
    "F4 repeated": "a watch event is heard twice",
    "F4 reordered": "an event of one kind is heard before an older one of another kind",
    "F4 relisted": "events are lost and a list takes their place (410)",
    "F4 same name": "a pod is deleted and created again under its name",
    "F4 bound early": "the watch shows a binding before its own answer does",
    "F5 before effects": "we crash between a decision and its first effect",
    "F5 between effects": "we crash after some effects of one decision",
    "F5 binding": "we crash with bindings under way",
    "F5 holding": "we crash while /bind requests are held",
    "F5 rebuilding": "we crash before the first lists are all in",
    "F5 any time": "we crash between two inputs",
    "F5 drained": "we are stopped in an orderly way",
    "F6 both act": "one Corral answers while another still holds bindings",
    "F7 403": "a call is forbidden",
    "F7 404": "a call is about a pod that is gone",
    "F7 409": "a call conflicts",
    "F7 429": "a call is put off",
    "F7 500": "a call fails",
    "F7 lost": "a call never arrives",
    "F7 unanswered": "a call succeeds and its answer is lost",
    "F7 partial": "a gang has members bound while a binding of another one fails",
    "F9 pause": "our process sleeps for up to 30 s",
    "F9 wall clock": "the API server's wall clock jumps up to an hour either way",
    "F10 restart": "kube-scheduler restarts and lists anew",
    "F10 unasked": "a member has no node for kube-scheduler itself, which never asks",
    "F10 stalled": "kube-scheduler's loop hangs for up to 70 s while pods wait",
    "F10 old binds": "a binding of the former leader arrives after the new one began",
    "F10 asked twice": "/filter is asked twice for one attempt",
    "F10 unheard": "kube-scheduler gives up on a /filter that was answered",
    "F10 unscored": "/prioritize is skipped",
    "F10 probe": "/filter is asked about the nominated node alone",
    "F11 not ready": "a node is not ready for a while",
    "F11 flap": "a node goes and comes back within seconds",
    "F11 cordon": "a node is cordoned",
    "F11 taint": "a node is tainted",
    "F11 deleted": "a node is deleted and comes back",
    "F11 shrink": "a node loses capacity",
    "F11 label": "a node moves to another rack",
    "F12 deleted": "a member is deleted",
    "F12 failed": "a running member fails",
    "F12 completed": "a gang runs to its end",
    "F12 resized": "a Job's parallelism changes",
    "F12 same gang": "a gang is deleted and created again under its name",
    "F12 excess": "a group has more pods than it declares",
    "F12 foreign": "another scheduler takes a node's capacity",
    "F7 ungate failed": "a pod is not ungated at the first try",
    "F7 mark failed": "a pod is not marked for autoscalers at the first try",
    "F13 HyperNode deleted": "a HyperNode is deleted and made again",
    "F13 HyperNode changed": "a node goes from one HyperNode to another",
    "F13 PodGroup deleted": "a vcjob's PodGroup is deleted and made again",
    "F13 queue changed": "a Queue's capability changes",
    "F13 PodGang deleted": "a PodGang is deleted and made again",
    "F13 PodGang scaled": "pods or PodGangs of a PodCliqueSet become more or fewer",
    "F13 PodGang rewritten": "Grove's operator writes the status of a PodGang anew",
    "F13 ClusterTopology changed": "a ClusterTopology goes, or has other levels, for a while",
    "F13 native deleted": "a native PodGroup is deleted and made again, maybe another one",
    "F13 native changed": "minCount of a native PodGroup changes",
    "F13 composite deleted": "a CompositePodGroup or a PodGroup in one is deleted and made again",
    "F13 composite changed": "what a CompositePodGroup or a PodGroup in one takes changes",
    "F13 kai deleted": "a PodGroup of KAI's is deleted and made again, maybe another one",
    "F13 kai changed": "minMember of a PodGroup of KAI's changes",
    "F18 report dropped": "an event is not written, and may be true still",
    "F18 status dropped": "a status is not written, and is to be",
    "F12 gated deleted": "a gated member is deleted",
    "F20 preempted": "kube-scheduler ends pods for one of higher priority",
    "F20 none": "/preempt is answered with no node",
    "F20 unheard": "the answer to /preempt is lost",
    "F20 slow victim": "a pod that is preempted takes its time to end",
    "F20 not nominated": "a nominated node is not written",
    "F20 given up": "a pod is deleted while others end for it",
    "F20 not deleted": "a victim is not deleted",
    "F20 budget": "a budget protects a pod that would be preempted",
    "F20 never": "a pod of high priority finds no node and may not preempt",
    "F21 asked": "the API server is asked whether it would evict a pod for a gang",
    "F21 evicted": "a pod is evicted for a gang",
    "F21 budget": "a budget forbids an eviction",
    "F21 budget changed": "a budget is changed or deleted",
    "F21 given up": "a gang is deleted while room is made for it",
    "F21 dropped": "an eviction is not tried",
    "F21 withdrawn": "an eviction is wanted no more when its turn comes",
    "F21 late": "a pod that is evicted takes longer than it may",
    "F21 stuck": "a pod that is evicted does not end",
    "F21 crash checking": "we crash while it is asked whether pods would be evicted",
    "F21 crash evicting": "we crash with some pods of a gang's place evicted",
    "F21 crash draining": "we crash while pods end for a gang",
    "F22 quota": "a quota refuses a pod that the webhook has answered about",
    "F22 dry run": "the webhook narrows a pod that is not to be created",
    "F22 twice": "the webhook is called again about a pod that it has narrowed",
    "F22 late": "a pod is created seconds after the webhook's answer",
    "F22 never": "a pod is not created after the webhook's answer, nor soon after",
    "F22 fewer": "a controller does not make all the pods that it said",
    "F22 unanswered": "the webhook's answer is lost: the pod is created without it",
    "F22 down": "the webhook does not answer: the pod is created as it is",
    "F22 not leading": "the webhook of a Corral that does not lead is asked",
    "F22 other webhook": "another webhook changes a pod after ours has narrowed it",
    "F22 node lost": "a node is lost that a pod has just been narrowed to",
    "F22 crash": "we crash between an answer and the event of the pod",
    "F22 crash suspended": "we crash while a Job is suspended so that its pods are made anew",
    "F22 not whole": "a gang is born of which not all pods come in time",
    "F23 gone": "a gang is gone, or made again, when an answer about its place comes",
    "I10 failed": "our own search for one gang raises",
}

WORKLOADS: dict[str, str] = {
    "W group": "a pod group",
    "W fast": "a pod group that is planned from its first pod on",
    "W driver": "a driver that declares its workers and makes them when it runs",
    "W job": "a Job",
    "W jobset": "a JobSet",
    "W lws": "a LeaderWorkerSet",
    "W led": "a leader and its workers in one pod set group",
    "W statefulset": "a StatefulSet",
    "W plain": "ordinary pods",
    "W vcjob": "a job of Volcano's",
    "W podgroup": "pods and a PodGroup of Volcano's that a user makes",
    "W vcpods": "plain pods whose PodGroup Volcano's controller makes",
    "W partitions": "a PodGroup with sub-groups",
    "W foreign vcjob": "a job of Volcano's for another scheduler",
    "W queue full": "a PodGroup that its queue has no room for",
    "W in one HyperNode": "a gang starts in one HyperNode, because it has to",
    "W PodGroup at rest": "the status of a PodGroup is judged when all is quiet",
    "W podcliqueset": "pods of one or several PodGangs of Grove's",
    "W PodGang initialized": "a PodGang has all of its pods",
    "W marked": "a pod behind a gate is marked for autoscalers",
    "W unmarked": "such a mark is taken back",
    "W ungated early": "a gate is lifted before its PodGang has the pods that it needs",
    "W scaled gang": "a pod of a PodGang that waits for another one",
    "W by reference": "a gate is lifted of a pod that only the PodGang names",
    "W no minimum": "a PodGang has all of its pods, and some pod group needs none of them",
    "W packed": "a PodGang starts whose pods have to be in one domain",
    "W packed twice": "a PodGang starts that requires levels inside one another",
    "W PodGang at rest": "the status of a PodGang is judged when all is quiet",
    "W nativegroup": "pods of a native PodGroup",
    "W PodGroup after pods": "a native PodGroup comes after pods of it",
    "W basic": "a native PodGroup of which any pod may start",
    "W native in one domain": "the gang of a native PodGroup starts in one domain",
    "W composite": "pods of PodGroups inside a CompositePodGroup",
    "W composite after groups": "a CompositePodGroup comes after a PodGroup that is inside it",
    "W composite in one domain": "the gang of a CompositePodGroup starts in one domain",
    "W composite of some": "such a gang starts with fewer groups than it has",
    "W composite at rest": "the condition of a CompositePodGroup is judged when all is quiet",
    "W kaigroup": "pods of a PodGroup of KAI's",
    "W kai in one domain": "the gang of a PodGroup of KAI's starts in one domain",
    "W kaiparts": "pods of a PodGroup of KAI's whose sub-groups are on different Topologies",
    "W kai in parts": "such a gang starts, each part on its own Topology",
    "W kai in parts of a block": "such a gang starts, and all of it has to be in one block",
    "W kai in some parts": "such a gang starts without pods of some leaf",
    "W kai part again": "pods of such a gang get nodes while others of it run",
    "W native at rest": "the condition of a native PodGroup is judged when all is quiet",
    "W preemptor": "ordinary pods of high priority that come when the cluster is full",
    "W high gang": "a gang of high priority that comes when the cluster is full",
    "W made room": "others go for a gang that waits",
    "W made room in words": "others go for a gang of a native PodGroup, of KAI's or of Grove's",
    "W gave way": "a gang of a native PodGroup, of KAI's or of Grove's goes for another",
    "W place sought": "a search for a gang is too long for the loop and goes on elsewhere",
    "W room sought": "it is found out who would have to go for a gang that waits",
    "W birth": "places are held for all pods of a gang before the first exists",
    "W born": "a pod is stored where its gang belongs, without a gate",
    "W born whole": "all pods come of a gang that was born",
    "W given back": "a pod that is narrowed to where its gang cannot start is given back",
    "W given back later": "such a pod was narrowed as its gate was taken off",
    "W suspended": "a Job is suspended so that all its pods are made anew",
    "W resumed": "such a Job goes on",
    "W slices": "a gang with slices",
    "W spares": "a gang with hot spares",
    "W in waves": "a gang starts though its members were never all at /bind at a time",
    "W expected": "a gang starts before all its pods exist, with places held for the rest",
    "L3 earmarked": "nodes are kept for a gang that starves",
    "L3 crowded": "small workloads would keep a large gang waiting for ever",
    "W spare held": "a place beside those of the members is held",
}
# Of worlds that grow: least hits in `GROWN_SEEDS` of them.
GROWN: dict[str, str] = {
    "F24 out of stock": "a machine is ordered that never comes",
    "F24 replica": "another replica of the autoscaler takes over",
    "F24 crash asking": "we crash while a gang asks for nodes, or has some kept",
    "F24 node lost": "a node goes before a pod was on it",
    "F24 node taken": "another scheduler takes a node before a pod was on it",
    "W no nodes": "a world begins without a node",
    "W Karpenter": "nodes are made and moved by Karpenter",
    "W names a group": "a gang whose pods name one node group",
    "W node made": "an autoscaler makes a node",
    "W node kept on": "a node that was given up stays after all",
    "W node removed": "an autoscaler removes a node",
    "W moved": "an autoscaler evicts a pod so as to remove its node",
    "W grown for": "a pod that was marked starts on a node that was made",
    "W new nodes kept": "nodes that have come are kept for the gang that asked for them",
}
GROWN_SEEDS = 50
GROWN_FLOOR = 10
# A quarter of the seeds has Karpenter; nodes are drained, and needed again, where usage allows.
GROWN_FLOOR_OF = {"W Karpenter": 5, "W node kept on": 3, "W moved": 3}
COUNTED = {**FAULTS, **WORKLOADS, **GROWN}
# Worlds where others are evicted for gangs have no workloads of Volcano's, and no composites
# (`world.CONTESTED`).
NOT_CONTESTED = frozenset(
    {
        "F13 composite deleted",
        "F13 composite changed",
        "W composite",
        "W composite after groups",
        "W composite in one domain",
        "W composite of some",
        "W composite at rest",
        "F13 HyperNode deleted",
        "F13 HyperNode changed",
        "F13 PodGroup deleted",
        "F13 queue changed",
        "W vcjob",
        "W podgroup",
        "W vcpods",
        "W partitions",
        "W foreign vcjob",
        "W queue full",
        "W in one HyperNode",
        "W PodGroup at rest",
    }
)


def least_hits(counted: str, seeds: int, mode: Mode) -> int:
    """How often this has to be hit in so many histories: 0 in a short run, or where it cannot be.

    A run in which clusters grow answers for that alone: the others have runs of their own.
    """
    if (counted in GROWN) is not mode.growing:
        return 0
    if mode.growing:
        return seeds // GROWN_SEEDS * GROWN_FLOOR_OF.get(counted, GROWN_FLOOR)
    if mode.preempting and counted in NOT_CONTESTED:
        return 0
    return seeds // FLOOR_SEEDS * FLOOR_OF.get(counted, FLOOR)


class Hits:
    """Counts faults; an unknown name is a typing error of the simulator."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def hit(self, fault: str) -> None:
        """One more of this fault."""
        if fault not in COUNTED:
            raise KeyError(fault)
        self.counts[fault] += 1
