"""What events about gangs are called, and which object each is about. README says what follows."""

from __future__ import annotations

from app.kube.core.objects import PodRecord
from app.state.effects import ObjectRef
from app.state.gang.gang import Gang

# Members that are missing, or do not belong.
INCOMPLETE = "GangIncomplete"
MISTAKEN = "GangMistaken"
POD_NOT_IN_GANG = "PodNotInGang"

# Places.
PLACED = "GangPlaced"
NOT_PLACED = "GangNotPlaced"
RANKS_NOT_USED = "RanksNotUsed"
PLACES_GIVEN_UP = "PlacesGivenUp"

# Gangs that end as a whole, or start elsewhere.
EVICTED = "GangEvicted"
NOT_EVICTED = "GangNotEvicted"
EVICTION_REFUSED = "EvictionRefused"
GIVEN_BACK = "GangGivenBack"
NOT_GIVEN_BACK = "GangNotGivenBack"

# Pods that go for others.
PREEMPTED = "MemberPreempted"
GIVES_WAY = "Preempted"
PREEMPTION_STOPPED = "PreemptionStopped"

# Room for a gang that waits. These are no warnings. Each stands until there is another, for as long
# as the gang waits.
ROOM = "RoomByPreemption"
NO_ROOM = "NoRoomByPreemption"
MAKES_ROOM = "Preempting"
ROOM_NOT_MADE = "RoomNotMade"
ABOUT_ROOM = (ROOM, NO_ROOM, MAKES_ROOM, ROOM_NOT_MADE)

# Nodes that are to be made.
NEEDS_NODES = "NeedsNodes"
NO_NODES_COME = "NoNodesCome"
NODES_RELEASED = "NewNodesReleased"
NOT_PROVIDED = "NodesNotProvided"
NOT_REQUESTED = "NodesNotRequested"
ABOUT_NODES = (NEEDS_NODES, NO_NODES_COME, NODES_RELEASED, NOT_PROVIDED, NOT_REQUESTED)

# What is news again of a gang that has had a place since.
OVER_WITH_A_PLACE = (
    EVICTED,
    NOT_EVICTED,
    EVICTION_REFUSED,
    NOT_GIVEN_BACK,
    *ABOUT_ROOM,
    *ABOUT_NODES,
)

NO_WARNINGS = (*ABOUT_ROOM, NEEDS_NODES)

# Why a gang does not start: said again while that is so, since the API server forgets events.
WHY_WAITING = (INCOMPLETE, MISTAKEN, NOT_PLACED)
# What is not so any more once an event of this reason is written.
OPPOSITES = {PLACED: WHY_WAITING, **dict.fromkeys(WHY_WAITING, (PLACED,))}


def owner_of(gang: Gang) -> ObjectRef:
    """The object that a gang's events are about: the controller of its first pod, or that pod."""
    pod = min((member.pod for member in gang.members.values()), key=lambda pod: pod.name)
    owner = pod.owner
    if owner is None:
        return itself(pod)
    return ObjectRef(owner.api_version, owner.kind, pod.namespace, owner.name, owner.uid)


def itself(pod: PodRecord) -> ObjectRef:
    """The object that an event about a pod alone is about."""
    return ObjectRef("v1", "Pod", pod.namespace, pod.name, pod.uid)
