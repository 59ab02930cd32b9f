"""What goes out: events for people, requeues for kube-scheduler, and the list of all effects.

    EmitEvent  to the owner of a gang, or about one pod: every sentence once, verdicts when settled
    Requeue    for members that were told no and have a node now, or that were told what is outdated
    Ungate     for planned members that kube-scheduler does not know of yet (`ungating.py`)
    Evict      what runs of a gang that can't be repaired, and Delete of excess pods: if so set

Whoever changes a gang appends to `out` what else must be written; the engine takes all of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from app.dialects.spec import GangKey
from app.kube.core.objects import PodRecord
from app.state.effects import Delete, Effect, EmitEvent, Evict, ObjectRef, Requeue
from app.state.gang.gang import PLANNABLE, Gang, Phase
from app.state.gang.membership import Member
from app.state.plan.verdict import NoPlan
from app.state.report import messages, ungating
from app.state.settings import EngineSettings

SENTENCE_SECONDS = 60.0  # how long a verdict's numbers stand before they are updated
MOST_CORRECTED_PER_TICK = 4  # wakes only to say something else: 40 a second of the 200 there are
EVICT_AGAIN_SECONDS = 60.0  # a disruption budget may allow later what it refuses now
SETTLE_SECONDS = 1.0  # nodes that fail together are told of one after the other


@dataclass(slots=True)
class Voice:
    """What is to be said and to whom. Dicts of gangs to None are sets that keep their order."""

    settings: EngineSettings
    out: list[Effect] = field(default_factory=list)
    _gathering: dict[GangKey, float] = field(default_factory=dict)  # since when, until reported
    _unsaid: dict[GangKey, tuple[float, str]] = field(
        default_factory=dict
    )  # verdicts, and when to report them
    _misinformed: dict[GangKey, None] = field(default_factory=dict)  # gangs with such members

    def taken(self) -> list[Effect]:
        """Everything that has to go out, which the caller now has to see to."""
        effects, self.out = self.out, []
        return effects

    # -- to kube-scheduler ---------------------------------------------------------------------

    def call(self, gang: Gang, now: float) -> None:
        """Have kube-scheduler ask for every member that has a node now."""
        self.wake(gang, now)
        self.ungate(gang, now)

    def wake(self, gang: Gang, now: float) -> None:
        """Have kube-scheduler look again at rejected members that have a node now."""
        gang.woken_at = now
        for uid in sorted(gang.rejected.keys() & gang.plan.keys()):
            self._wake(gang.members[uid].pod)

    def call_back(self, gang: Gang, uids: Iterable[str]) -> None:
        """Have kube-scheduler ask again for members that we rejected, planned or not."""
        for uid in sorted(gang.rejected.keys() & set(uids)):
            self._wake(gang.members[uid].pod)

    def ungate(self, gang: Gang, now: float, uids: Iterable[str] | None = None) -> None:
        """Have our gate taken off every planned member, or of these, where that is due."""
        self.out.extend(ungating.ungate(gang, self.settings, now, uids))

    def wake_misinformed(self, gangs: Mapping[GangKey, Gang]) -> None:
        """Have kube-scheduler ask again for members that were told what holds no longer.

        Their owner would read it for as long as nothing else happens in the cluster.
        """
        budget = MOST_CORRECTED_PER_TICK
        for key in list(self._misinformed):
            gang = gangs.get(key)
            while budget and gang is not None and gang.misinformed:
                pod = gang.members[gang.misinformed.popitem()[0]].pod
                if pod.uid not in gang.plan and not pod.node:
                    self._wake(pod)
                    budget -= 1
            if not budget:
                return
            del self._misinformed[key]

    def _wake(self, pod: PodRecord) -> None:
        self.out.append(Requeue(pod.namespace, pod.name, pod.uid))

    def _note_misinformed(self, gang: Gang, members: Iterable[Member], sentence: str) -> None:
        for member in members:
            uid = member.pod.uid
            if gang.rejected.get(uid, "") not in ("", sentence):
                gang.misinformed[uid] = None
                self._misinformed[gang.key] = None

    # -- to people -----------------------------------------------------------------------------

    def tell(self, gang: Gang, reason: str, sentence: str, *, warn: bool = True) -> None:
        """Report about the gang to its owner, once per sentence."""
        if gang.told == sentence or not gang.members:
            return
        gang.told = sentence
        self.out.append(EmitEvent(_owner_of(gang), reason, sentence, is_warning=warn))

    def tell_once(self, gang: Gang, reason: str, sentence: str) -> None:
        """Report what is worth knowing and keeps nobody waiting, once in the gang's life."""
        if reason not in gang.told_once:
            gang.told_once.add(reason)
            self.out.append(EmitEvent(_owner_of(gang), reason, sentence, is_warning=True))

    def _tell_pod(self, gang: Gang, pod: PodRecord, sentence: str) -> bool:
        """Report about one pod, once; True if this is the time."""
        if pod.uid in gang.told_pods:
            return False
        gang.told_pods.add(pod.uid)
        self.out.append(EmitEvent(_itself(pod), "PodNotInGang", sentence, is_warning=True))
        return True

    # -- members that are missing, contradict each other or don't belong ------------------------

    def note_gathering(self, key: GangKey, now: float) -> None:
        """A gang waits for members from now on."""
        self._gathering[key] = now

    def forget_gathering(self, key: GangKey) -> None:
        """A gang waits for members no more."""
        self._gathering.pop(key, None)

    def tell_roll_call(self, gang: Gang) -> None:
        """Say what the last roll call found wrong."""
        membership = gang.membership
        if membership.problem:
            gang.sentence = messages.mistaken(gang.key, membership.problem)
            self.tell(gang, "GangMistaken", gang.sentence)
            self._note_misinformed(gang, gang.members.values(), gang.sentence)
        elif gang.phase is Phase.GATHERING:
            gang.sentence = messages.gathering(gang.key, membership.pods)
            gang.sentence_at, gang.told = None, ""
            self._note_misinformed(gang, membership.unbound, gang.sentence)
        for member in gang.members.values() if not membership.problem else ():
            if member.flaw and member.is_live and not member.pod.node:
                self._tell_pod(gang, member.pod, member.flaw)
        for members, is_excess in ((membership.excess, True), (membership.mismatched, False)):
            for member in members:
                pod, sentence = member.pod, not_joining(gang, member, is_excess=is_excess)
                is_first = self._tell_pod(gang, pod, sentence)
                self._note_misinformed(gang, (member,), sentence)
                if is_first and is_excess and self.settings.delete_excess_pods:
                    self.out.append(Delete(pod.namespace, pod.name, pod.uid, sentence))

    # -- plans and verdicts --------------------------------------------------------------------

    def tell_placed(self, gang: Gang, fallback: Iterable[tuple[str, str]]) -> None:
        """A plan is held; `fallback`: (pod set, why) of those not seated by rank."""
        if gang.told:
            self.tell(gang, "GangPlaced", messages.placed(gang.key, len(gang.plan)), warn=False)
            gang.told = ""
        for pod_set, why in fallback:
            self.tell_once(gang, "RanksNotUsed", messages.ranks_not_used(gang.key, pod_set, why))
        gang.sentence, gang.sentence_at = messages.planned_elsewhere(gang.key), None

    def knows_verdict(self, gang: Gang, now: float) -> bool:
        """Whether the gang was told lately why it has no place."""
        return gang.sentence_at is not None and now < gang.sentence_at + SENTENCE_SECONDS

    def tell_no_place(self, gang: Gang, verdict: NoPlan, now: float) -> None:
        """Say why there is no plan; with `fail_fast` a gang that runs in part has to go."""
        missing = len(gang.unplanned()) if gang.membership.bound else ""
        kind = f"{missing} {verdict.kind}"
        # The numbers in a verdict follow the cluster; a text that changed would wake every member.
        is_known = gang.sentence_at is not None and kind == gang.verdict
        if not is_known or not self.knows_verdict(gang, now):
            gang.sentence = _sentence(gang, verdict)
            gang.sentence_at = now
        if not is_known:  # other numbers are no news, another verdict is
            self._note_misinformed(gang, gang.membership.unbound, gang.sentence)
            gang.verdict = kind
            due = now + (SETTLE_SECONDS if gang.membership.bound else 0.0)
            reason = "GangMistaken" if verdict.is_mistake else "GangNotPlaced"
            self._unsaid[gang.key] = (due, reason)
        self._tell_verdict(gang, now)
        says_no = not (verdict.is_mistake or verdict.is_fault)
        if self.settings.fail_fast and gang.membership.bound and says_no:
            self._give_up(gang, str(verdict), now)

    def _tell_verdict(self, gang: Gang, now: float) -> None:
        """Report the last verdict; on a gang that runs only when no more members are being lost."""
        due, reason = self._unsaid.get(gang.key, (math.inf, ""))
        if now < due:
            return
        del self._unsaid[gang.key]
        if gang.phase in PLANNABLE:
            self.tell(gang, reason, gang.sentence)

    def _give_up(self, gang: Gang, why: str, now: float) -> None:
        """Have what runs of a gang evicted, so that its owner can start it again as a whole."""
        if now < gang.given_up_at + EVICT_AGAIN_SECONDS:
            return
        gang.given_up_at = now
        sentence = messages.given_up(gang.key, why)
        self.tell(gang, "GangEvicted", sentence)
        for member in gang.membership.bound:
            pod = member.pod
            self.out.append(Evict(pod.namespace, pod.name, pod.uid, sentence))

    # -- time ----------------------------------------------------------------------------------

    def tell_due(self, gangs: Mapping[GangKey, Gang], now: float) -> None:
        """Report what has waited long enough: members still missing, verdicts that stand."""
        self._tell_incomplete(gangs, now)
        for key in list(self._unsaid):
            if key in gangs:
                self._tell_verdict(gangs[key], now)
            else:
                del self._unsaid[key]

    def _tell_incomplete(self, gangs: Mapping[GangKey, Gang], now: float) -> None:
        for key, since in list(self._gathering.items()):
            if now < since + self.settings.gather_seconds:
                return  # in the order of time
            del self._gathering[key]
            membership = gangs[key].membership
            if membership.spec is not None and not membership.problem and not membership.bound:
                members = sum(member.is_ready for member in membership.joining)
                sentence = messages.incomplete(key, members, membership.spec)
                self.tell(gangs[key], "GangIncomplete", sentence)


def not_joining(gang: Gang, member: Member, *, is_excess: bool) -> str:
    """Why a live member is not part of its gang: it is in excess, or says another size."""
    membership = gang.membership
    assert membership.spec is not None  # no pod is in excess of nothing
    if membership.is_over:
        return messages.over(gang.key, member.pod)
    if is_excess:
        return messages.in_excess(gang.key, member.pod, membership.spec)
    return messages.mismatched(gang.key, member.pod, member.said, membership.spec)


def _sentence(gang: Gang, verdict: NoPlan) -> str:
    """A verdict as its members are told it."""
    if verdict.is_mistake:
        return messages.mistaken(gang.key, str(verdict))
    if gang.membership.bound:
        return messages.not_repaired(gang.key, len(gang.unplanned()), str(verdict))
    return messages.no_place(gang.key, str(verdict))


def _owner_of(gang: Gang) -> ObjectRef:
    """Whom to tell about a gang: the controller of its first pod, or the pod where it has none."""
    pod = min((member.pod for member in gang.members.values()), key=lambda pod: pod.name)
    owner = pod.owner
    if owner is None:
        return _itself(pod)
    return ObjectRef(owner.api_version, owner.kind, pod.namespace, owner.name, owner.uid)


def _itself(pod: PodRecord) -> ObjectRef:
    return ObjectRef("v1", "Pod", pod.namespace, pod.name, pod.uid)
