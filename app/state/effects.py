"""What must be written to the cluster, as values; `app/controllers` carries them out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from app.dialects.spec import GangKey
from topology.model.answer import NoFit

STATUS = "status"  # what was lost: a WriteStatus; an event is named by its reason
DELETE = "delete"  # a Delete


@dataclass(frozen=True, slots=True)
class ObjectRef:
    """The object that an event is about: its `involvedObject`."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Requeue:
    """Change a rejected pod, so that kube-scheduler tries it again at once and not in minutes."""

    namespace: str
    name: str
    uid: str
    nominated: str | None = None
    """The node that the same write nominates it for; "": for none any more; None: it says nothing
    of that."""


@dataclass(frozen=True, slots=True)
class Annotate:
    """Write annotations of ours on a pod; all others stay."""

    namespace: str
    name: str
    uid: str
    annotations: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Ungate:
    """Remove our scheduling gate from a pod and narrow it, in one patch.

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
class Mark:
    """Say in the condition of a pod behind a gate that it needs a node, which autoscalers read.

    The gate stays. No `sentence`: the condition says again that the pod is behind a gate.
    """

    namespace: str
    name: str
    uid: str
    version: str
    """Of the pod: written only if it has not changed since, so that it has its gate still."""
    sentence: str = ""


@dataclass(frozen=True, slots=True)
class ProtectNode:
    """Annotate a node that gangs have places on, so that node autoscalers keep it, or undo that.

    None removes an annotation; all others stay.
    """

    node: str
    uid: str
    version: str
    """Of the node: written only if it has not changed since, so that no other write is lost."""
    is_held: bool
    annotations: tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True)
class AskedPods:
    """Pods of one kind in an AskNodes: so many like this one."""

    name: str
    uid: str
    pods: int
    off_nodes: tuple[str, ...] = ()
    """They are kept off these nodes, …"""
    off_level: str = ""
    off_domains: tuple[str, ...] = ()
    """… and off those that have one of these values for this label."""


@dataclass(frozen=True, slots=True)
class AskNodes:
    """Have a ProvisioningRequest made, and the PodTemplates it names; what is there already stays.

    They end with the last of the `owners`.
    """

    gang: GangKey
    name: str
    gang_uid: str
    class_name: str
    owners: tuple[ObjectRef, ...]
    pod_sets: tuple[AskedPods, ...]


@dataclass(frozen=True, slots=True)
class EndAsk:
    """Delete a ProvisioningRequest and then these of its PodTemplates, (name, uid) each.

    No `uid`: only these.
    """

    namespace: str
    name: str
    uid: str
    templates: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Evict:
    """Evict a pod through the Eviction API, where a policy says so; the sentence says why."""

    namespace: str
    name: str
    uid: str
    sentence: str
    is_given_back: bool = False
    """It waits, so that its controller makes another one of it; not once it has a node."""


@dataclass(frozen=True, slots=True)
class Suspend:
    """Suspend a workload, so that its controller deletes all its pods; or have it go on."""

    path: str
    """Of all such objects of its namespace."""
    namespace: str
    name: str
    uid: str
    version: str
    """Of the workload: written only if it has not changed since, as its user may suspend it."""
    sentence: str
    ends: bool = False
    """It goes on."""


@dataclass(frozen=True, slots=True)
class TryEviction:
    """Ask the API server whether it would evict a pod now, and evict none."""

    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete a pod that is in excess of what its gang declares, where the settings say so."""

    gang: GangKey
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
    """Answer a held /bind request with an error; kube-scheduler tries the pod again."""

    uid: str
    sentence: str


@dataclass(frozen=True, slots=True)
class EmitEvent:
    """Emit an event with one sentence about an object: the owner of a gang, or a pod of it."""

    gang: GangKey
    about: ObjectRef
    reason: str
    sentence: str
    is_warning: bool


@dataclass(frozen=True, slots=True)
class WriteStatus:
    """Write this into the status of an object of a vocabulary, as a merge patch at this path."""

    gang: GangKey
    path: str
    uid: str
    status: Mapping[str, object]
    version: str = ""
    """Of the object; "": whatever it is. A list in a status is written whole, and may have been
    changed by others since."""


@dataclass(frozen=True, slots=True)
class ReadAgain:
    """List the objects of a kind once more: their records are to keep what they lacked before."""

    kind: str


@dataclass(frozen=True, slots=True)
class SeekRoom:
    """Have it found out who would have to go so that a waiting gang has room; none is evicted."""

    gang: GangKey


@dataclass(frozen=True, slots=True)
class SeekPlace:
    """Have a search for a gang gone on with that took too long between two answers."""

    gang: GangKey


Effect = (
    Requeue
    | Annotate
    | Ungate
    | Mark
    | ProtectNode
    | AskNodes
    | EndAsk
    | Evict
    | Suspend
    | TryEviction
    | Delete
    | Bind
    | RejectBind
    | EmitEvent
    | WriteStatus
    | ReadAgain
    | SeekRoom
    | SeekPlace
)


@dataclass(frozen=True, slots=True)
class Bound:
    """Outcome of a Bind: the API server confirmed this pod on this node."""


@dataclass(frozen=True, slots=True)
class BindFailed:
    """Outcome of a Bind: it failed. `is_gone`: the pod no longer exists."""

    sentence: str
    is_gone: bool = False


BindOutcome = Bound | BindFailed


@dataclass(frozen=True, slots=True)
class Ungated:
    """Outcome of an Ungate: the API server has written it."""


@dataclass(frozen=True, slots=True)
class UngateFailed:
    """Outcome of an Ungate: it failed, or its outcome is not known. `is_gone`: the pod is gone.

    `is_forbidden`: the API server rejects this change of the pod, however often it is sent.
    """

    sentence: str
    is_gone: bool = False
    is_forbidden: bool = False


UngateOutcome = Ungated | UngateFailed

# Of an Evict or a TryEviction. gone: there is no such pod any more; refused: it will not be evicted
# however often that is asked; failed: a disruption budget or a fault kept it, each time it was
# tried; dropped: it was not tried, since too many others wait. The same of a Suspend; gone: the
# workload is, or it has changed.
EvictOutcome = Literal["done", "gone", "refused", "failed", "dropped"]


@dataclass(frozen=True, slots=True)
class PlaceAnswer:
    """Outcome of a SeekPlace: where the gang fits on the books as they were, or why nowhere."""

    topology: str | None
    """That it was searched on, which may be that of all nodes; None: several at once."""
    places: tuple[tuple[str, int, tuple[tuple[str, int], ...]], ...] = ()
    """(pod set, index of the level of its domains, its (node, pods)); () if it fits nowhere."""
    why: NoFit | None = None
    number: int = 0
    """Of the question: an answer that comes when another one was asked is not to that."""


@dataclass(frozen=True, slots=True)
class RoomVictim:
    """What goes as one for a waiting gang: the running pods of a gang, or one pod."""

    priority: int
    uids: tuple[str, ...]
    gang: GangKey | None = None
    is_protected: bool = False
    """Some disruption budget counts pods of it."""
    ends_for_good: bool = False
    """Its owner will not start it again."""


@dataclass(frozen=True, slots=True)
class RoomAnswer:
    """Outcome of a SeekRoom: where a gang would have room, and who would have to go."""

    is_found: bool
    domain: str = ""
    """`label=value/…` of the narrowest domain that all its pods would be in; "": there is none."""
    named: tuple[tuple[str, int], ...] = ()
    """(name, priority) of the first of them."""
    units: int = 0
    """How many would go, gangs and single pods …"""
    gangs: int = 0
    """… how many of them are gangs …"""
    pods: int = 0
    """… and how many pods they have. Where no room is found: those that may go at all."""
    budgets: tuple[str, ...] = ()
    """Disruption budgets without which there would be room."""
    is_cut_short: bool = False
    """Not everything was tried."""
    ending: int = 0
    """How many pods end already, which count as gone."""
    left_alone: int = 0
    """Where no room is found: pods of lower priority that do not go for now."""
    ends_for_good: int = 0
    """How many of those gangs their owners would not start again."""
    victims: tuple[RoomVictim, ...] = ()
    """All of those who would have to go, …"""
    places: tuple[tuple[int, str, int], ...] = ()
    """… and where the gang would be: (pod set, node, pods). Both only if they may be evicted."""
