"""What an autoscaler, and the cloud and the kubelets behind it, do to a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.cluster import Object


@dataclass(frozen=True)
class MakeNode:
    """A machine registers."""

    body: Object


@dataclass(frozen=True)
class ChangeNode:
    """Its kubelet, or a controller that labels nodes, says more of it."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    allocatable: Mapping[str, str] = field(default_factory=dict)
    is_ready: bool | None = None  # None: as it was


@dataclass(frozen=True)
class SetTaint:
    """The node has this taint from now on, or no longer."""

    name: str
    taint: Object
    is_set: bool = True


@dataclass(frozen=True)
class DeleteNode:
    """The machine is given back, and its Node goes."""

    name: str


@dataclass(frozen=True)
class EvictPod:
    """By the Eviction API; a refusal is asked again."""

    namespace: str
    name: str
    uid: str


@dataclass(frozen=True)
class PatchRequest:
    """The conditions of a ProvisioningRequest, all of them; a time that is missing is now."""

    namespace: str
    name: str
    conditions: tuple[Object, ...]


@dataclass(frozen=True)
class EmitEvent:
    """An event about an object."""

    about: Object
    type: str
    reason: str
    message: str


Action = MakeNode | ChangeNode | SetTaint | DeleteNode | EvictPod | PatchRequest | EmitEvent
