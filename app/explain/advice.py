"""What each reason means for those who have to act; README's table of reasons says the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from app.state.gang.reasons import Reason


@dataclass(frozen=True, slots=True)
class Advice:
    """`tries_again`: what has Corral look again. `to_do`: what helps; "": nothing is to be done."""

    tries_again: str
    to_do: str


_NOTHING = ""

ADVICE: Mapping[Reason, Advice] = {
    Reason.INCOMPLETE: Advice(
        "another pod of the gang is created",
        "see why the owner of its pods does not create them: its events, quota, admission",
    ),
    Reason.GATED: Advice(
        "the last gate that is not Corral's is removed",
        "see who put the gate on its pods: spec.schedulingGates names it",
    ),
    Reason.UNREAD: Advice(
        "what declares the gang has been read",
        "create the object that its pods name, or correct the name in its pods",
    ),
    Reason.INVALID: Advice(
        "its objects or pods change",
        "correct what the message names, and create the workload again",
    ),
    Reason.UNKNOWN_TOPOLOGY: Advice(
        "a topology gets that level, or nodes get its label",
        "correct the level in the annotation, or add it to Corral's levels or to a Topology",
    ),
    Reason.QUEUED: Advice("its turn comes", _NOTHING),
    Reason.BACKING_OFF: Advice(
        "the pause is over, or kube-scheduler brings the pods it awaits",
        "see the last events of the gang: what its plan was lost to",
    ),
    Reason.SEARCHING: Advice("the search has ended", _NOTHING),
    Reason.DOES_NOT_FIT: Advice(
        "capacity is freed, or a node is added or changes",
        "make one of the changes that would let it fit and create it again, free what is short,"
        " or add nodes",
    ),
    Reason.NARROWED_APART: Advice(
        "the nodes that its pods were narrowed to change",
        "delete its pods, so that their owner creates them without that node affinity",
    ),
    Reason.NAMESPACE_BUDGET: Advice(
        "other gangs of the namespace have their pods, or end",
        "wait for them, or raise absent_pods_per_namespace, or the namespace's own number in"
        " absent_pods_in",
    ),
    Reason.QUOTA: Advice(
        "the quota changes",
        "raise the ResourceQuota, or request less",
    ),
    Reason.SEARCH_FAILED: Advice(
        "anything in the cluster changes",
        "report this: Corral's log has the error",
    ),
    Reason.AWAITING_SCHEDULER: Advice(
        "it has a place already",
        "see why kube-scheduler does not bring the pods that are missing: their events",
    ),
    Reason.REFUSED_BY_SCHEDULER: Advice(
        "the pods that it awaits come to /filter",
        "see the events of the pods: kube-scheduler's own filters find no node for them, for a"
        " volume or a resource claim perhaps",
    ),
    Reason.STARTING: Advice("it has a place already", _NOTHING),
    Reason.RUNNING: Advice("it runs", _NOTHING),
    Reason.ENDED: Advice("it has ended", _NOTHING),
    Reason.OTHER_SCHEDULER: Advice(
        "its pods name a scheduler of Corral's",
        "set schedulerName in its pod template to the scheduler that the message names last, and"
        " create the workload again",
    ),
    Reason.NOT_LEADING: Advice(
        "the kube-scheduler beside this Corral leads",
        "ask the pod that the message names; if it names none, see why no kube-scheduler runs",
    ),
    Reason.NOT_READY: Advice(
        "it has read the cluster",
        "wait; if it takes long, see Corral's log: what it may not read, or cannot reach",
    ),
}

NO_CHANGE_KNOWN = "free what is short, or add nodes"
"""Of a gang that does not fit, where no single change of it was found that lets it fit."""
ANOTHER_ONE = "make one of the changes that would let it fit and create it again, or add nodes"
"""Where such changes were found, and freeing something would not be enough."""
NO_NODES = "add nodes"
NO_LABELS = (
    "give nodes the labels of the levels that it names: corral doctor says which nodes lack some"
)
"""Of one whose topology has no nodes, though the cluster has some."""
NEVER_FITS = (
    "correct what its pods request or which nodes they may use, and create it again, or add nodes"
    " that take such pods"
)
"""Of one that would not fit if all nodes were open and empty, where no such change was found."""
