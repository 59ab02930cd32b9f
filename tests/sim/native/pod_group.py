"""PodGroups of scheduling.k8s.io: what a workload writes into its own, and what one says.

`Words` are what another vocabulary with such PodGroups says otherwise, see `tests/sim/kai`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from app.kube.core.objects import PodRecord
from app.kube.watch.events import Kind
from tests.sim.api import NATIVE_GROUP
from tests.sim.objects import Json

HOST = "kubernetes.io/hostname"
CONDITIONS = ("PodGroupScheduled", "PodGroupInitiallyScheduled")  # of v1alpha2 and of v1beta1


@dataclass(frozen=True, slots=True)
class Policy:
    """What a PodGroup requires. `least`: None: basic. `key`: the level of all its pods, or ""."""

    least: int | None
    key: str

    def spec(self) -> Json:
        """As the PodGroup has it."""
        policy: Json = {"basic": {}} if self.least is None else {"gang": {"minCount": self.least}}
        said: Json = {"schedulingPolicy": policy}
        if self.key:
            said["schedulingConstraints"] = {"topology": [{"key": self.key}]}
        return said


@dataclass(frozen=True, slots=True)
class NativeGroup:
    """What a PodGroup says."""

    name: str
    uid: str
    generation: int
    least: int
    key: str
    conditions: Mapping[str, Json]

    def said(self) -> Json:
        """Corral's condition; empty if it has none."""
        return next((self.conditions[each] for each in CONDITIONS if each in self.conditions), {})


def group_of(body: Json) -> NativeGroup:
    """What the JSON of a PodGroup says."""
    metadata, spec = body["metadata"], body["spec"]
    gang = spec["schedulingPolicy"].get("gang", {"minCount": 1})
    keys = spec.get("schedulingConstraints", {}).get("topology", [{"key": ""}])
    conditions = (body.get("status") or {}).get("conditions") or ()
    return NativeGroup(
        metadata["name"],
        metadata["uid"],
        metadata["generation"],
        gang["minCount"],
        keys[0]["key"],
        {each["type"]: each for each in conditions},
    )


def group_name_of(pod: PodRecord) -> str:
    """The PodGroup of a pod; "": none."""
    return pod.pod_group


@dataclass(frozen=True, slots=True)
class Words:
    """What a vocabulary calls these PodGroups, and how it writes them."""

    source: str
    """Of the keys of its gangs."""
    kind: Kind
    workload: str
    """The kind of the workloads."""
    path: str
    """What the paths begin with where a condition of a PodGroup is written."""
    spec: Callable[[Policy], Json]
    group_of: Callable[[Json], NativeGroup]
    group_name_of: Callable[[PodRecord], str]
    repairs_together: bool = False
    """Pods that a running gang lacks of what it needs get nodes all at once, or none."""


NATIVE_WORDS = Words(
    "native",
    NATIVE_GROUP,
    "nativegroup",
    "/apis/scheduling.k8s.io/",
    Policy.spec,
    group_of,
    group_name_of,
)
