"""One pod of a gang: what it says, and whether it lives, may start or has done its work."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b

from app.dialects import corral
from app.dialects.spec import ANYWHERE, NOTHING_SAID, Claim, Index, Said
from app.kube.core.cached import KIB, cached
from app.kube.core.objects import Amounts, PodRecord, Shape
from topology.model.request import Constraint, Slice

ANY_SHAPE = Shape()

Seniority = tuple[bool, int, int, str, str]


@dataclass(slots=True)
class Member:
    """One pod of a gang; `flaw` is what is wrong with its own claim, or ""."""

    pod: PodRecord
    said: Said = NOTHING_SAID
    leaf: str = ""  # its leaf in the gang's spec; "": request and shape tell leaves apart
    index: Index | None = None
    flaw: str = ""
    constraint: Constraint = ANYWHERE
    slices: tuple[Slice, ...] = ()
    allowed: frozenset[str] | None = None  # nodes we narrowed the pod to when ungating it
    narrowed_by: tuple[tuple[str, str], ...] = ()  # labels of these, where the pod names no nodes
    shape: Shape = ANY_SHAPE  # the pod's own, without what we narrowed
    started_with: tuple[tuple[str, int], ...] = ()  # pods per pod set, as the gang started
    like: str = ""  # the leaf of members of its kind, where it names none itself
    was_stopped: bool = False  # it was deleted, and needs a replacement however it has ended
    seniority: Seniority = field(init=False, repr=False, compare=False)
    """Order in which members join and get their nodes: as numbered, else by age."""
    _digest: str = field(default="", init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        part, index = (self.index.part, self.index.index) if self.index else (0, 0)
        self.seniority = (self.index is None, part, index, self.pod.created, self.pod.name)

    @property
    def is_live(self) -> bool:
        """Whether the pod still runs or may still start."""
        return not self.pod.is_finished and not self.pod.is_terminating

    @property
    def has_succeeded(self) -> bool:
        """Whether the pod has ended well, and was not to run for ever."""
        return self.pod.phase == "Succeeded" and not self.said.is_serving

    @property
    def is_done(self) -> bool:
        """Whether the pod has succeeded and no other need take its place."""
        return self.has_succeeded and not self.was_stopped

    @property
    def is_lost(self) -> bool:
        """Whether the pod has failed, or ends, and is still there."""
        return not (self.is_live or self.has_succeeded)

    @property
    def is_narrowed(self) -> bool:
        """Whether the pod can only go to some nodes that we chose."""
        return self.allowed is not None or bool(self.narrowed_by)

    @property
    def is_gated(self) -> bool:
        """Whether our gate keeps kube-scheduler from asking for the pod."""
        return corral.GATE in self.pod.gates

    @property
    def is_ready(self) -> bool:
        """Whether no gate but ours is left: a foreign one says that the pod may not start yet."""
        return all(gate == corral.GATE for gate in self.pod.gates)

    @property
    def pod_set_group(self) -> str:
        """The name that a leader and its workers share, "" where there is none."""
        return self.said.pod_set_group

    @property
    def role(self) -> tuple[object, ...]:
        """Members of one role are identical to the placement; each pod set group has its own."""
        return (self.named_leaf, *self.kind)

    @property
    def named_leaf(self) -> str:
        """Its leaf, or that of those like it; "": none of them names one."""
        return self.leaf or self.like

    @property
    def kind(self) -> tuple[object, ...]:
        """What tells it apart from members of which none names a leaf."""
        return (self.pod_set_group, self.pod.request, self.shape)

    @property
    def pod_set(self) -> str:
        """A name for its leaf, or for its request and shape where no leaf has a name."""
        return self.named_leaf or self.digest

    @property
    def digest(self) -> str:
        """A name for its request and shape."""
        if not self._digest:
            self._digest = _digest(self.pod.request, self.shape)
        return self._digest


def member_of(pod: PodRecord, claim: Claim) -> Member:
    """The record of a pod that claims to belong to a gang."""
    shape, allowed = corral.own_shape(pod)
    text = pod.annotations.get(corral.POD_SETS)
    started_with = corral.pod_sets_from_text(text) if text else ()
    if claim.flaw:
        return Member(pod, flaw=claim.flaw, shape=shape, started_with=started_with)
    return Member(
        pod,
        claim.said,
        claim.leaf,
        claim.index,
        constraint=claim.said.constraint,
        slices=claim.said.slices,
        allowed=allowed,
        narrowed_by=corral.narrowed_labels(pod),
        shape=shape,
        started_with=started_with,
    )


@cached(512, 4 * KIB)
def _digest(request: Amounts, shape: Shape) -> str:
    """Short, and the same in every process: it is written on pods and read back."""
    return blake2b(repr((request, shape)).encode(), digest_size=4).hexdigest()


def is_same_claim(before: Member, member: Member) -> bool:
    """Whether a member counts in its gang like before, but for its gates and its node.

    Most events of a pod are no news to its gang: conditions, annotations, phases.
    """
    was, pod = before.pod, member.pod
    return (
        was.is_terminating == pod.is_terminating
        and (was.phase == pod.phase or not (was.is_finished or pod.is_finished))
        and before.is_ready == member.is_ready
        and before.role == member.role
        and was.priority == pod.priority
        and (before.said is member.said or before.said == member.said)
        and before.index == member.index
        and before.flaw == member.flaw
    )
