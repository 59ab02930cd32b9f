"""Which change in the cluster may make a rejected pod schedulable, and so requeues it.

A pod rejected by an extender is requeued on any event; a pod rejected by in-tree filters only is
requeued when the event may change the result of one of these filters (queueing hints).
Source: eventhandlers.go, framework/events.go and the plugins' EventsToRegister.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from app.sandbox.apiserver.rules.quantity import amount
from app.sandbox.apiserver.storage.kinds import Object
from app.sandbox.scheduler.cycle.claims import DEVICES, VOLUMES
from app.sandbox.scheduler.cycle.diagnosis import EXTENDER
from app.sandbox.scheduler.cycle.filters import FIT
from app.sandbox.scheduler.facts.node_match import matches_node, tolerates
from app.sandbox.scheduler.facts.pod_facts import PodFacts


class Happening(Enum):
    """What happened. OWN_*: to the waiting pod itself."""

    POD_BOUND = "AssignedPodAdd"
    POD_UPDATED = "AssignedPodUpdate"
    POD_REMOVED = "AssignedPodDelete"
    NODE_ADDED = "NodeAdd"
    NODE_ALLOCATABLE = "NodeAllocatableChange"
    NODE_LABELS = "NodeLabelChange"
    NODE_TAINTS = "NodeTaintChange"
    NODE_OTHER = "NodeConditionOrAnnotationChange"
    NODE_REMOVED = "NodeDelete"
    CLAIM_ADDED = "PersistentVolumeClaimAdd"  # or a ResourceClaim
    OWN_UPDATE = "UnscheduledPodUpdate"
    OWN_TOLERATIONS = "PodTolerationChange"
    OWN_GATES = "PodSchedulingGatesEliminated"
    TIMEOUT = "UnschedulableTimeout"


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    """node: its new state; pod: the bound pod that came, changed or went."""

    happening: Happening
    node: Object | None = None
    pod: PodFacts | None = None


def is_worth_a_try(facts: PodFacts, rejectors: frozenset[str], event: ClusterEvent) -> bool:
    """Whether the event may make this pod schedulable again."""
    if event.happening is Happening.TIMEOUT or not rejectors:
        return True
    return any(_helps(plugin, facts, event) for plugin in rejectors)


def _helps(plugin: str, facts: PodFacts, event: ClusterEvent) -> bool:
    happening, node = event.happening, event.node
    match plugin:
        case _ if plugin == EXTENDER:
            return True
        case "SchedulingGates":
            return happening is Happening.OWN_GATES
        case _ if plugin == FIT:
            return _helps_fit(facts, event)
        case _ if plugin in (VOLUMES, DEVICES):
            return happening is Happening.CLAIM_ADDED
        case "TaintToleration" if happening is Happening.OWN_TOLERATIONS:
            return True
    if node is None:
        return False
    spec = node.get("spec") or {}
    changes = {
        "NodeUnschedulable": Happening.NODE_TAINTS,
        "TaintToleration": Happening.NODE_TAINTS,
        "NodeAffinity": Happening.NODE_LABELS,
        "NodeName": Happening.NODE_ADDED,
    }
    if happening not in (Happening.NODE_ADDED, changes.get(plugin)):
        return False
    if plugin == "NodeUnschedulable":
        return not spec.get("unschedulable")
    if plugin == "TaintToleration":
        return tolerates(facts.tolerations, spec.get("taints") or [])
    return plugin != "NodeAffinity" or matches_node(facts, node)


def _helps_fit(facts: PodFacts, event: ClusterEvent) -> bool:
    if event.happening is Happening.POD_REMOVED and event.pod is not None:
        # It freed a pod slot at least, and something we want if it had any of it.
        return not facts.requests or bool(facts.requests.keys() & event.pod.requests.keys())
    if event.happening not in (Happening.NODE_ADDED, Happening.NODE_ALLOCATABLE):
        return False
    allocatable = ((event.node or {}).get("status") or {}).get("allocatable") or {}
    return all(
        amount(name, allocatable.get(name, 0)) >= wanted for name, wanted in facts.requests.items()
    )


def node_events(before: Object, after: Object) -> list[ClusterEvent]:
    """What an update of a node means for waiting pods; nothing for a heartbeat."""
    old, new = before.get("spec") or {}, after.get("spec") or {}
    old_meta, new_meta = before["metadata"], after["metadata"]
    found: list[Happening] = []
    opened = old.get("unschedulable") and not new.get("unschedulable")
    if opened or (old.get("taints") or []) != (new.get("taints") or []):
        found.append(Happening.NODE_TAINTS)
    if _status(before, "allocatable") != _status(after, "allocatable"):
        found.append(Happening.NODE_ALLOCATABLE)
    if (old_meta.get("labels") or {}) != (new_meta.get("labels") or {}):
        found.append(Happening.NODE_LABELS)
    if _conditions(before) != _conditions(after) or (old_meta.get("annotations") or {}) != (
        new_meta.get("annotations") or {}
    ):
        found.append(Happening.NODE_OTHER)
    return [ClusterEvent(happening, node=after) for happening in found]


def own_events(before: PodFacts, after: PodFacts) -> list[ClusterEvent]:
    """What an update of a waiting pod means for itself; any other change is a plain update."""
    found: list[Happening] = []
    if before.gates and not after.gates:
        found.append(Happening.OWN_GATES)
    if len(before.tolerations) != len(after.tolerations):
        found.append(Happening.OWN_TOLERATIONS)
    return [ClusterEvent(each) for each in found or [Happening.OWN_UPDATE]]


def _status(node: Object, name: str) -> Object:
    return (node.get("status") or {}).get(name) or {}


def _conditions(node: Object) -> dict[str, str]:
    conditions = (node.get("status") or {}).get("conditions") or []
    return {each["type"]: each["status"] for each in conditions}
