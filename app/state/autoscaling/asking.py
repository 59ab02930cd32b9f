"""What a gang asks for by a request: of which class, for which pods, off which nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from app.dialects.provisioning import keys
from app.state.autoscaling.useless_nodes import KeptOff
from app.state.cache.eligibility.node_refusals import Shaped
from app.state.effects import AskedPods, ObjectRef
from app.state.gang.gang import Gang
from app.state.gang.members.member import Member

MOST_OWNERS = 100  # of one request

Kinds = Sequence[tuple[Member, int]]


def class_of(gang: Gang, default: str, uid: str) -> tuple[str, str]:
    """The class in which a gang asks, "" for none, and why it cannot, "" if it can.

    `default`: as the setting says; `uid`: the gang's, in labels.
    """
    waiting = _waiting(gang)
    names = sorted(_classes(waiting, default, uid))
    if len(names) > 1:
        said = ", ".join(name or "none" for name in names)
        return "", f"its pods do not agree on {keys.CLASS}: {said}"
    (name,) = names or [""]
    if not name:
        return "", ""
    if not keys.is_class(name):
        return "", f"{keys.CLASS} is {name!r}, which is no name of a class"
    if not all(each.is_gated for each in waiting):
        return "", "pods of it have no scheduling gate, so kube-scheduler marks them itself"
    number, most = len(kinds_of(gang)), keys.most_pod_sets(name)
    if number > most:
        sets = "1 pod set" if most == 1 else f"{most} pod sets"
        return "", f"its pods are of {number} kinds, and a request of {name} has {sets} at most"
    return name, ""


def wants_none(gang: Gang, default: str, uid: str) -> bool:
    """Whether its pods, all that need a node, ask in no class; not if there are none at the time.

    They may have been made anew since the gang asked, or the setting be another one.
    """
    return _classes(_waiting(gang), default, uid) == {""}


def kinds_of(gang: Gang) -> Kinds:
    """The first pod of each kind that needs a node, and how many there are of it."""
    found: dict[tuple[object, ...], tuple[Member, int]] = {}
    for each in sorted(_waiting(gang), key=lambda member: member.seniority):
        kind = (each.pod.request, each.shape, each.pod.priority)
        first, pods = found.get(kind, (each, 0))
        found[kind] = first, pods + 1
    return tuple(found.values())


def asked_pods(gang: Gang, off: Mapping[Shaped, KeptOff]) -> tuple[AskedPods, ...]:
    """The same as they are asked for. `off`: what each kind is kept off."""
    found = []
    for like, pods in kinds_of(gang):
        kept = off.get((like.pod.request, like.shape), KeptOff())
        pod = like.pod
        found.append(AskedPods(pod.name, pod.uid, pods, kept.nodes, kept.level, kept.domains))
    return tuple(found)


def owners_of(gang: Gang) -> tuple[ObjectRef, ...]:
    """What a request ends with: the controllers of the gang's pods, or the pods without one."""
    found: dict[str, ObjectRef] = {}
    for each in sorted(gang.members.values(), key=lambda member: member.pod.name):
        pod, owner = each.pod, each.pod.owner
        if owner is None:
            ref = ObjectRef("v1", "Pod", pod.namespace, pod.name, pod.uid)
        else:
            ref = ObjectRef(owner.api_version, owner.kind, pod.namespace, owner.name, owner.uid)
        found.setdefault(ref.uid, ref)
        if len(found) == MOST_OWNERS:
            break
    return tuple(found.values())


def _classes(waiting: Iterable[Member], default: str, uid: str) -> set[str]:
    return {keys.class_of(each.pod.annotations, default, uid) for each in waiting}


def _waiting(gang: Gang) -> tuple[Member, ...]:
    """The pods that need a node: no placeholders, for a template is made of a pod."""
    return tuple(each for each in gang.unplanned() if each.pod.uid in gang.members)
