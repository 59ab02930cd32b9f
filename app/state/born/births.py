"""Whether a pod is born in place: stored where its gang belongs, without a gate.

    the first pod of a gang whose size is known    all its pods are planned; it is narrowed
    the others                                     narrowed alike, as long as places are left
    no place, or nothing known, or others first    None: it gets the gate, as ever
    a pod without a controller                     None, unless its group says fast admission

The pod has no uid and no name yet, and may never exist: a quota may refuse it, or another webhook.
So an answer takes nothing but a place for each pod, which ends `born_seconds` after the last
of the gang's pods has come. Who asks may name any namespace: of gangs none of whose pods has come,
those of all other namespaces together hold no more than one may. A gang that was not whole in time
is not born in place again for a while, nor is one that was given back (`giving_back.py`).
"""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from itertools import islice

import msgspec

from app.dialects.owners import makes_again
from app.dialects.spec import Claim, GangKey, GangSpec
from app.kube.core.objects import PodRecord
from app.state.claims.unseen import UnseenPods
from app.state.fairness.absent_pods import AbsentPods
from app.state.gang.gang import Gang
from app.state.gang.gangs import Gangs
from app.state.gang.members import minimum
from app.state.gang.members.member import Member, member_of
from app.state.gang.owners import Owners
from app.state.gang.parts import Birth, Narrowing
from app.state.lifecycle.roll_call import RollCalls
from app.state.plan.planner import Planner
from app.state.plan.single_nodes import SingleNodes
from app.state.plan.verdict import Plan
from app.state.queueing import ungating
from app.state.reserve import placeholders
from app.state.reserve.plans import Plans
from app.state.reserve.reservations import Reservations
from app.state.settings import EngineSettings
from app.state.turns.budget import GANG, POD
from app.state.turns.queue import Queue

FAILED_SECONDS = 300.0  # before a gang that was not whole in time may be born in place again
MOST_FAILED = 10_000  # gangs that are remembered so
AS_IT_IS: tuple[str, ...] = ()


@dataclass(slots=True)
class Births:
    """Plans gangs at the creation of their first pod; the only writer of `Gang.birth`.

    Invariant: every gang with a birth is in `_open`.
    """

    settings: EngineSettings
    gangs: Gangs
    planner: Planner
    single_nodes: SingleNodes
    queue: Queue
    absent_pods: AbsentPods
    reservations: Reservations
    plans: Plans
    roll_calls: RollCalls
    unseen: UnseenPods
    owners: Owners
    _open: dict[GangKey, None] = field(default_factory=dict)
    _failed: OrderedDict[GangKey, float] = field(default_factory=OrderedDict)  # until when

    def admit(self, pod: PodRecord, claim: Claim, now: float) -> tuple[str, ...] | None:
        """The nodes to narrow a pod to that is about to be created; None: it gets the gate.

        AS_IT_IS: it was narrowed by an earlier call.
        """
        if not self.settings.born_seconds or claim.flaw or pod.gates:
            return None
        if not (claim.said.reserves_all or makes_again(pod.owner)):
            return None  # no other one would be made that may go elsewhere
        newcomer = member_of(pod, claim)
        if newcomer.shape.terms:
            return None  # no term can be added to its own
        gang = self.gangs.by_key.get(claim.gang) or self._begun(newcomer, claim.gang, now)
        if gang is None or gang.birth is None:
            return None
        uid = placeholders.place_for(gang, newcomer)
        if uid not in gang.plan.nodes:
            return None
        if newcomer.allowed is not None:
            return AS_IT_IS if gang.plan.nodes[uid] in newcomer.allowed else None
        return self._narrowing(gang, gang.birth, uid).nodes or None

    def _narrowing(self, gang: Gang, birth: Birth, uid: str) -> Narrowing:
        """What the pod for this place is narrowed to, as all of its role."""
        member, plan = gang.member(uid), gang.plan
        known = birth.narrowings.get(member.role)
        if known is None or plan.domain_nodes[uid] not in known.domains:
            nodes = self._planned(gang, member)
            room = self.settings.narrow_nodes - len(nodes)
            more = islice((each for each in birth.beside if each not in nodes), room)
            its = (each for each in plan.nodes if gang.member(each).role == member.role)
            known = Narrowing(
                (*nodes, *more) if nodes else (),
                frozenset(plan.domain_nodes[each] for each in its),
            )
            birth.narrowings[member.role] = known
        return known

    def _planned(self, gang: Gang, member: Member) -> tuple[str, ...]:
        return ungating.nodes_of_role(gang, member, self.settings.narrow_nodes)

    def _begun(self, newcomer: Member, key: GangKey, now: float) -> Gang | None:
        """A new gang of which all pods have a place; None: it is not born in place."""
        if self._is_barred(key, now) or self.queue.is_busy(key.namespace):
            return None
        gang = self.gangs.foreseen(key, now)
        founder = replace(
            newcomer, pod=msgspec.structs.replace(newcomer.pod, uid=f"born/{gang.number}")
        )
        self.roll_calls.sort_out(gang, (founder,))
        spec, starts_whole = gang.membership.spec, not gang.membership.is_complete
        if spec is None or not (starts_whole or spec.reserves_all):
            return None  # of one pod, or it may start with any number of them
        if spec.is_elastic or spec.starts_with is not None:
            return None
        if spec.lifecycle.spares or spec.family is not None:
            return None
        gang.birth = Birth(now + self.settings.born_seconds, starts_whole)
        self.roll_calls.sort_out(gang, (founder,))
        if not gang.membership.is_complete:
            return None  # it is mistaken
        placeholders.foresee(gang, founder, now, self.reservations.most_absent(gang))
        self.queue.budget.spend(key.namespace, GANG + POD * len(gang.placeholders))
        if not _has_place_for_all(gang, spec):
            return None  # of some it is not known what they are like, or they are too many
        together = [founder] * spec.pods  # of one owner, as far as that is known
        is_kept = gang.suspension is None and self.owners.give_up(gang, together)
        if self.settings.born_pods_given_back and is_kept:
            return None  # its pods could not be given back where it finds no place any more
        if self.absent_pods.why_not(gang, list(gang.placeholders)) is not None:
            return None
        if not self.absent_pods.are_few(self._unseen_beside(key.namespace)):
            return None
        self.planner.refresh()
        members = tuple(each.member for each in gang.placeholders.values())
        found = self.planner.plan(gang, None, members)
        if not isinstance(found, Plan) or not self._may_narrow(gang, found):
            return None
        self.roll_calls.forget_founder(gang)
        self.gangs.adopt(gang)
        self._open[key] = None
        self.reservations.count_placeholders(gang)
        self.plans.use(gang, found, now)
        node = next(iter(found.nodes.values()))
        room = self.settings.narrow_nodes - len(self._planned(gang, founder))
        gang.birth.beside = self.single_nodes.beside(gang, founder, node, room)
        return gang

    def _unseen_beside(self, namespace: str) -> Collection[GangKey]:
        """The gangs of other namespaces of which the watch has shown no pod."""
        others = (self.gangs.by_key.get(key) for key in self._open if key.namespace != namespace)
        return {
            gang.key
            for gang in others
            if gang is not None and gang.birth is not None and not gang.birth.most_present
            if all(uid in self.unseen for uid in gang.members)
        }

    def _may_narrow(self, gang: Gang, found: Plan) -> bool:
        """Whether no pods that are alike have places on more nodes than a pod is narrowed to."""
        nodes_by_role: dict[tuple[object, ...], set[str]] = {}
        for uid, node in found.nodes.items():
            nodes_by_role.setdefault(gang.member(uid).role, set()).add(node)
        return all(len(each) <= self.settings.narrow_nodes for each in nodes_by_role.values())

    def expire(self, now: float) -> None:
        """End what is held for gangs of which not all pods have come in time."""
        for key in list(self._open):
            gang = self.gangs.by_key.get(key)
            if gang is None or gang.birth is None:
                del self._open[key]
                continue
            birth = gang.birth
            seen = sum(uid not in self.unseen for uid in gang.members)
            if seen > birth.most_present:
                birth.most_present = seen
                birth.ends_at = now + self.settings.born_seconds
            is_whole = not gang.placeholders and seen == len(gang.members)
            is_lost = not (gang.members or gang.plan.nodes)  # before its first pod was there
            if is_whole or is_lost or now >= gang.birth.ends_at:
                self._end(gang, now)

    def bar(self, key: GangKey, now: float) -> None:
        """Have a gang that was given back wait behind the gate for good.

        And a later one of its name for a while: its owner may have begun anew because of that.
        """
        if key.epoch:
            self._bar(key, math.inf)
        self._bar(replace(key, epoch=""), now + FAILED_SECONDS)

    def _is_barred(self, key: GangKey, now: float) -> bool:
        return any(now < self._failed.get(each, 0.0) for each in (key, replace(key, epoch="")))

    def _bar(self, key: GangKey, until: float) -> None:
        self._failed.pop(key, None)
        self._failed[key] = until
        if len(self._failed) > MOST_FAILED:
            self._failed.popitem(last=False)

    def _end(self, gang: Gang, now: float) -> None:
        """Go on with a gang as with any other one."""
        del self._open[gang.key]
        starts_whole = gang.birth is None or gang.birth.starts_whole
        gang.birth = None
        if gang.placeholders and (starts_whole or not gang.members):
            self._bar(gang.key, now + FAILED_SECONDS)
            placeholders.forget_to_come(gang)
            if gang.members:
                self.plans.lose(gang, "not all of its pods have come", now, losses=0)
        self.roll_calls.review(gang, now)


def _has_place_for_all(gang: Gang, spec: GangSpec) -> bool:
    """Whether there is a placeholder for each pod of each leaf: what its founder is like says
    nothing of the pods of other leaves.
    """
    names = minimum.names_of(spec)
    places = (each.member.leaf for each in gang.placeholders.values())
    known = Counter(minimum.leaf_of(names, leaf) for leaf in places)
    return known == Counter({leaf.name: leaf.pods for leaf in spec.leaves() if leaf.pods})
