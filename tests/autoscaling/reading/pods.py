"""What an autoscaler reads in a pod."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from app.sandbox.apiserver.rules.quantity import amount
from tests.autoscaling.objects import CONSUME
from tests.cluster import Object

Amounts = Counter[str]  # by resource: millicores of cpu, base units of everything else

SCALE_UP_DELAY = "cluster-autoscaler.kubernetes.io/pod-scale-up-delay"
SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
EXPENDABLE_BELOW = -10  # priority of pods that no node is made for
MIRROR = "kubernetes.io/config.mirror"  # annotation of what a kubelet reads from its disk


def amounts_of(given: Mapping[str, Any]) -> Amounts:
    """The amounts of quantities by resource."""
    return Counter({name: amount(name, text) for name, text in given.items()})


def request_of(pod: Object) -> Amounts:
    """What the scheduler subtracts from a node for it, one pod included.

    Containers add up, init containers count one at a time, unless they run beside the others.
    """
    spec = pod["spec"]
    total = sum((_requested(each) for each in spec.get("containers") or []), Amounts())
    largest = beside = Amounts()
    for each in spec.get("initContainers") or []:
        if each.get("restartPolicy") == "Always":
            beside = beside + _requested(each)
            largest = largest | beside
        else:
            largest = largest | (beside + _requested(each))
    overhead = amounts_of(spec.get("overhead") or {})
    return ((total + beside) | largest) + overhead + Amounts({"pods": 1})


def _requested(container: Object) -> Amounts:
    resources = container.get("resources") or {}
    return amounts_of((resources.get("limits") or {}) | (resources.get("requests") or {}))


def key_of(pod: Object) -> str:
    """What tells a pod from all others: its uid."""
    return str(pod["metadata"]["uid"])


def annotations_of(thing: Object) -> Mapping[str, str]:
    return thing["metadata"].get("annotations") or {}


def condition_of(thing: Object, type_: str) -> Object | None:
    """A condition in the status of an object."""
    found = (thing.get("status") or {}).get("conditions") or []
    return next((each for each in found if each["type"] == type_), None)


def node_of(pod: Object) -> str:
    """The node the pod is bound to, or ""."""
    return pod["spec"].get("nodeName") or ""


def nominated_of(pod: Object) -> str:
    """The node that the pod is nominated for, or ""."""
    return (pod.get("status") or {}).get("nominatedNodeName") or ""


def is_finished(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def is_unschedulable(pod: Object) -> bool:
    """Whether a scheduler says that no node takes the pod; gates are not looked at."""
    if node_of(pod) or is_finished(pod) or "deletionTimestamp" in pod["metadata"]:
        return False
    said = condition_of(pod, "PodScheduled")
    return said is not None and (said["status"], said.get("reason")) == ("False", "Unschedulable")


def consumes(pod: Object) -> str:
    """The ProvisioningRequest whose nodes the pod is for, or "": no node is made for it else."""
    return annotations_of(pod).get(CONSUME, "")


def owner_of(pod: Object) -> Object | None:
    """The controller that made the pod."""
    owners = pod["metadata"].get("ownerReferences") or []
    return next((each for each in owners if each.get("controller")), None)


def is_of_node(pod: Object) -> bool:
    """Whether the pod comes and goes with its node: a DaemonSet's, or a mirror."""
    owner = owner_of(pod) or {}
    return owner.get("kind") in ("DaemonSet", "Node") or MIRROR in annotations_of(pod)


def required_terms(pod: Object) -> list[Object]:
    """The terms of the required node affinity, one of which must hold; none: no affinity."""
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    return required.get("nodeSelectorTerms") or []


def by_size(pods: list[Object]) -> list[Object]:
    """The largest first, the more important before that; equal ones in the order given."""

    def size(pod: Object) -> tuple[int, ...]:
        request = request_of(pod)
        extended = sum(most for name, most in request.items() if "/" in name)
        priority = pod["spec"].get("priority") or 0
        return (-priority, -extended, -request["cpu"], -request["memory"])

    return sorted(pods, key=size)
