"""Nodes as a simulation sees them: may this pod stand there? Pod by pod, without racks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tests.autoscaling.reading.pods import Amounts, amounts_of, request_of, required_terms
from tests.cluster import HOSTNAME, Object

CLOSED = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
TO_BE_DELETED = "ToBeDeletedByClusterAutoscaler"  # taint of a node that is given up
# Taints of a node on its way, which a simulation expects to vanish.
STARTUP_PREFIXES = (
    "startup-taint.cluster-autoscaler.kubernetes.io/",
    "node.kubernetes.io/",
    "node.cloudprovider.kubernetes.io/",
)


@dataclass
class Room:
    """A node, or one that may come; `packed` are the pods that this simulation has put there."""

    name: str
    labels: Mapping[str, str]
    taints: Sequence[Object]
    free: Amounts
    packed: list[Object] = field(default_factory=list)

    def lacks(self, pod: Object, *, reads_fields: bool = True) -> str:
        """Why the pod may not stand here, or "". Without `reads_fields` matchFields are ignored."""
        selector = pod["spec"].get("nodeSelector") or {}
        if any(self.labels.get(key) != value for key, value in selector.items()):
            return "node selector"
        terms = required_terms(pod)
        if not reads_fields:
            # Karpenter goes as far as the first term's expressions.
            terms = [{"matchExpressions": each.get("matchExpressions") or []} for each in terms[:1]]
            terms = [each for each in terms if each["matchExpressions"]]
        if terms and not any(self._holds(each) for each in terms):
            return "node affinity"
        tolerations = pod["spec"].get("tolerations") or []
        for taint in self.taints:
            if taint["effect"] != "PreferNoSchedule" and not is_tolerated(taint, tolerations):
                return f"taint {taint['key']}"
        short = [name for name, asked in request_of(pod).items() if asked > self.free[name]]
        return f"insufficient {short[0]}" if short else ""

    def copy(self) -> Room:
        """The same, for a simulation that is thrown away."""
        return Room(self.name, self.labels, self.taints, Amounts(self.free), list(self.packed))

    def put(self, pod: Object) -> None:
        """Have the pod stand here."""
        self.free.subtract(request_of(pod))
        self.packed.append(pod)

    def take(self, pods: Iterable[Object]) -> None:
        """Count pods that are here already."""
        for each in pods:
            self.free.subtract(request_of(each))

    def _holds(self, term: Object) -> bool:
        expressions = term.get("matchExpressions") or []
        fields = term.get("matchFields") or []
        if not expressions and not fields:
            return False
        names = {"metadata.name": self.name}
        return all(_matches(each, self.labels) for each in expressions) and all(
            _matches(each, names) for each in fields
        )


def _matches(wanted: Object, labels: Mapping[str, str]) -> bool:
    value = labels.get(wanted["key"])
    values = wanted.get("values") or []
    match wanted["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt":
            return value is not None and int(value) > int(values[0])
        case "Lt":
            return value is not None and int(value) < int(values[0])
    raise ValueError(f"unknown operator {wanted['operator']!r} of a node selector")


def is_tolerated(taint: Object, tolerations: Iterable[Object]) -> bool:
    """Whether one of the tolerations is for this taint."""
    return any(
        each.get("effect") in (None, "", taint["effect"])
        and (not each.get("key") or each["key"] == taint["key"])
        and (
            each.get("operator") == "Exists"
            or (each.get("value") or "") == (taint.get("value") or "")
        )
        for each in tolerations
    )


def room_of(node: Object) -> Room:
    """A node as it is, empty."""
    spec = node.get("spec") or {}
    taints = list(spec.get("taints") or [])
    if spec.get("unschedulable") and CLOSED["key"] not in {each["key"] for each in taints}:
        taints.append(CLOSED)
    name = node["metadata"]["name"]
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    return Room(name, node["metadata"].get("labels") or {}, taints, amounts_of(allocatable))


def template_room(
    name: str, labels: Mapping[str, str], taints: Sequence[Object], free: Amounts
) -> Room:
    """A node that may come, with a name and a hostname of its own."""
    kept = [each for each in taints if not each["key"].startswith(STARTUP_PREFIXES)]
    return Room(name, {**labels, HOSTNAME: name}, kept, Amounts(free))


def pack(pods: Iterable[Object], rooms: Sequence[Room]) -> list[Object]:
    """Put each pod into the first room that takes it; returns those that none takes."""
    left: list[Object] = []
    for pod in pods:
        room = next((each for each in rooms if not each.lacks(pod)), None)
        if room is None:
            left.append(pod)
        else:
            room.put(pod)
    return left
