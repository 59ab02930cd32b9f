"""What must be written to the cluster, as values; `app/controllers` carries them out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ObjectRef:
    """The object a report is about, as an event's `involvedObject` names it."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Requeue:
    """Touch a pod we rejected and that fits now: kube-scheduler alone would let it sit."""

    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Annotate:
    """Write annotations of ours on a pod; all others stay."""

    namespace: str
    name: str
    uid: str
    annotations: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Ungate:
    """Take our scheduling gate off a pod and narrow it, in one patch.

    Foreign gates stay. `nodes` become one required term each, `selector` is merged into the pod's
    node selector; a pod gets one of the two, or neither.
    """

    namespace: str
    name: str
    uid: str
    gate: str
    nodes: tuple[str, ...] = ()
    selector: tuple[tuple[str, str], ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Evict:
    """Have a pod go through the Eviction API: a policy says so, and the sentence why."""

    namespace: str
    name: str
    uid: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete a pod that is one more than its gang declares, where the settings allow it."""

    namespace: str
    name: str
    uid: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Bind:
    """Bind this pod to the node kube-scheduler named; the annotations travel in the Binding."""

    namespace: str
    name: str
    uid: str
    node: str
    annotations: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class RejectBind:
    """Answer a /bind that is held with an error: its gang will not start from this plan."""

    uid: str
    sentence: str


@dataclass(frozen=True, slots=True)
class EmitEvent:
    """Tell the owner, once, in one sentence."""

    about: ObjectRef
    reason: str
    sentence: str
    is_warning: bool


@dataclass(frozen=True, slots=True)
class WriteStatus:
    """Write this into the status of an object of a vocabulary, as a merge patch."""

    path: str
    uid: str
    status: Mapping[str, object]


Effect = Requeue | Annotate | Ungate | Evict | Delete | Bind | RejectBind | EmitEvent | WriteStatus


@dataclass(frozen=True, slots=True)
class Bound:
    """Outcome of a Bind: the API server confirmed this pod on this node."""


@dataclass(frozen=True, slots=True)
class BindFailed:
    """Outcome of a Bind: it did not happen. `is_gone`: the pod no longer exists."""

    sentence: str
    is_gone: bool = False


BindOutcome = Bound | BindFailed


@dataclass(frozen=True, slots=True)
class Ungated:
    """Outcome of an Ungate: the API server has written it."""


@dataclass(frozen=True, slots=True)
class UngateFailed:
    """Outcome of an Ungate: it did not happen, or nobody knows. `is_gone`: no such pod any more.

    `is_forbidden`: the API server will not take this change of the pod, however often it is sent.
    """

    sentence: str
    is_gone: bool = False
    is_forbidden: bool = False


UngateOutcome = Ungated | UngateFailed
