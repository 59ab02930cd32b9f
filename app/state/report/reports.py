"""Events about gangs, and the sentence that /filter rejects their pods with.

    EmitEvent  about the gang, on its owner, or about one pod: each sentence once, and again while
               it is true where it was not written; why a gang waits, as long as it waits
    Delete     pods in excess of what they say themselves, where the settings say so

A verdict on a gang that runs is reported only after a moment: nodes that fail together are seen
to fail one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from app.dialects.owners import makes_again
from app.dialects.spec import GangKey
from app.kube.core.objects import PodRecord
from app.state.effects import (
    DELETE,
    STATUS,
    Delete,
    EmitEvent,
    ObjectRef,
    RoomAnswer,
)
from app.state.gang.gang import PLANNABLE, Gang, Phase
from app.state.gang.members import minimum
from app.state.gang.parts import Attempt
from app.state.gang.reasons import Reason
from app.state.plan.verdict import CLAIMS_NOT_COUNTED, NoPlan
from app.state.queueing.outbox import Outbox
from app.state.queueing.requeue import Requeues
from app.state.report import events, sentences
from app.state.report.again.lost import LostWrite, LostWrites
from app.state.report.again.said_again import SaidAgain
from app.state.report.decisions import Decisions, What
from app.state.report.messages import gangs as messages
from app.state.report.messages import preemption
from app.state.report.naming import Naming
from app.state.report.statuses import Statuses
from app.state.settings import EngineSettings

SENTENCE_SECONDS = 60.0  # how long a verdict's numbers stand before they are updated
SETTLE_SECONDS = 1.0  # before a verdict on a gang that runs, or is searched for, is reported
MOST_REPEATED_PER_TICK = 1  # lost writes: 10 a second; two events a second are written

# What a gang that enters a phase has become; one that waits again has lost its plan, or a part.
_BECAME: Mapping[Phase, What] = {
    Phase.GATHERING: "gathering",
    Phase.WAITING: "complete",
    Phase.PLACED: "placed",
    Phase.BINDING: "binding",
    Phase.RUNNING: "running",
    Phase.REPAIRING: "repairing",
    Phase.DONE: "done",
}


@dataclass(slots=True)
class Reports:
    """What is to be reported later, beside what each gang remembers of its own reports."""

    settings: EngineSettings
    outbox: Outbox
    requeues: Requeues
    statuses: Statuses
    naming: Naming
    lost: LostWrites = field(default_factory=LostWrites)
    decisions: Decisions = field(default_factory=Decisions)
    _gathering: dict[GangKey, float] = field(default_factory=dict)  # since when, until reported
    _verdicts: dict[GangKey, tuple[float, str]] = field(default_factory=dict)
    """Verdicts not reported yet: when to, and the event's reason."""
    said_again: SaidAgain = field(default_factory=SaidAgain)

    def report(self, gang: Gang, reason: str, sentence: str, *, warn: bool = True) -> None:
        """Emit an event about the gang on its owner, unless the last one said the same."""
        if gang.reporting.problem == sentence or not gang.members:
            return
        gang.reporting.problem, gang.reporting.problem_reason = sentence, reason
        if reason in events.WHY_WAITING:
            self.said_again.note(gang.key, reason)
        self._emit(gang, reason, sentence, warn=warn)

    def _emit(self, gang: Gang, reason: str, sentence: str, *, warn: bool = True) -> None:
        self.outbox.add(
            EmitEvent(gang.key, events.owner_of(gang), reason, sentence, is_warning=warn)
        )

    def _report_once(self, gang: Gang, reason: str, sentence: str, *, warn: bool = True) -> None:
        """Emit an event that is no problem of the gang's own, once until it is forgotten."""
        if reason not in gang.reporting.once:
            gang.reporting.once[reason] = sentence
            self._emit(gang, reason, sentence, warn=warn)

    def _report_pod(self, gang: Gang, pod: PodRecord, sentence: str) -> bool:
        """Emit an event about one pod, unless the last one said the same; True if it did not."""
        if gang.reporting.pods.get(pod.uid) == sentence:
            return False
        gang.reporting.pods[pod.uid] = sentence
        self._emit_about(gang, pod, sentence)
        return True

    def _emit_about(self, gang: Gang, pod: PodRecord, sentence: str) -> None:
        self.outbox.add(
            EmitEvent(
                gang.key, events.itself(pod), events.POD_NOT_IN_GANG, sentence, is_warning=True
            )
        )

    # -- members that are missing, contradict each other or don't belong ------------------------

    def note_new(self, key: GangKey, now: float) -> None:
        """Note that a gang has its first member and waits for the others."""
        self._gathering[key] = now

    def note_phase(self, gang: Gang, was: Phase, now: float) -> None:
        """Note that a gang has changed its phase."""
        self.statuses.note(gang.key)
        if not (gang.phase is Phase.WAITING and was is not Phase.GATHERING):  # has told of its loss
            plan = gang.plan
            places = ((node, plan.domains.get(uid, "")) for uid, node in plan.nodes.items())
            self.decisions.note(gang.key, _BECAME[gang.phase], now, places=places)
        if was is Phase.GATHERING:
            self._gathering.pop(gang.key, None)
        if gang.phase is Phase.GATHERING:
            self._gathering[gang.key] = now

    def note_health(self, key: GangKey) -> None:
        """Note that a pod of a gang has become ready, or is not any more."""
        if self.statuses.dialects.of(key).reads_health:
            self.statuses.note(key)

    def note_object(self, key: GangKey) -> None:
        """Note that an object has changed what it declares of a gang."""
        self.statuses.note(key)

    def forget(self, key: GangKey) -> None:
        """Forget a gang that has no pods any more; its objects may still tell of them."""
        self._gathering.pop(key, None)
        self.said_again.forget(key)
        self.statuses.note(key)

    def roll_call(self, gang: Gang) -> None:
        """Report what the last roll call found wrong."""
        membership = gang.membership
        if membership.problem:
            gang.reporting.sentence = messages.mistaken(gang.key, membership.problem)
            self.report(gang, events.MISTAKEN, gang.reporting.sentence)
            self.requeues.note_sentence(gang, gang.members.values(), gang.reporting.sentence)
        elif membership.is_unread:
            gang.reporting.sentence = messages.unread(gang.key)
            gang.reporting.sentence_at, gang.reporting.problem = None, ""
        elif gang.phase is Phase.GATHERING:
            gang.reporting.sentence = self._why_gathering(gang)
            gang.reporting.sentence_at, gang.reporting.problem = None, ""
            ready = (*membership.unbound, *membership.apart)
            self.requeues.note_sentence(gang, ready, gang.reporting.sentence)
        gang.reporting.outside = {}
        for member in gang.members.values() if not membership.problem else ():
            if member.flaw and member.is_live and not member.pod.node:
                gang.reporting.outside[member.pod.uid] = member.flaw, False
                self._report_pod(gang, member.pod, member.flaw)
        for member in membership.apart if membership.is_complete or membership.bound else ():
            sentence = messages.part_gathering(gang.key, member.leaf)
            self.requeues.note_sentence(gang, (member,), sentence)
        self._report_outside(gang)
        for uid in gang.reporting.pods.keys() - gang.reporting.outside.keys():
            del gang.reporting.pods[uid]
        self.statuses.note(gang.key)

    def _why_gathering(self, gang: Gang) -> str:
        spec = gang.membership.spec
        if spec is not None and spec.awaits and not gang.membership.bound:
            return messages.gathering(gang.key, None, spec.awaits)
        if (first := sentences.first_pods(gang)) is not None:
            return messages.gathering_first(gang.key, first)
        spec = gang.elastic_spec
        if spec is not None:
            return messages.gathering_least(gang.key, minimum.least_pods(spec))
        return self.gathering(gang.key, gang.membership.pods)

    def gathering(self, key: GangKey, pods: int | None) -> str:
        """Why a gang of so many pods waits for pods; None: how many it has is not known."""
        return messages.gathering(key, pods, self.statuses.awaited(key))

    def _report_outside(self, gang: Gang) -> None:
        """Report live pods that are not part of the gang, and delete those in excess if so set."""
        membership = gang.membership
        for members, is_excess in ((membership.excess, True), (membership.mismatched, False)):
            for member in members:
                pod, sentence = member.pod, sentences.not_joining(gang, member, is_excess=is_excess)
                gang.reporting.outside[pod.uid] = sentence, is_excess
                is_first = self._report_pod(gang, pod, sentence)
                self.requeues.note_sentence(gang, (member,), sentence)
                if is_first and is_excess:
                    self._delete(gang, pod, sentence)

    def forget_outside(self, gang: Gang) -> None:
        """Have the next roll call report such pods again, and delete those in excess."""
        for uid in gang.reporting.outside:
            gang.reporting.pods.pop(uid, None)

    def _delete(self, gang: Gang, pod: PodRecord, sentence: str) -> None:
        """Delete a pod in excess that no controller makes anew.

        A controller removes pods of its own that are too many, and a pod that is deleted has failed
        to it. What its object declares may also be known later than the pods are.
        """
        spec = gang.membership.spec
        is_left = spec is not None and spec.is_said and not makes_again(pod.owner)
        if self.settings.delete_excess_pods and is_left:
            self.outbox.add(Delete(gang.key, pod.namespace, pod.name, pod.uid, sentence))

    def gives_way(self, gang: Gang, sentence: str) -> None:
        """Report that members go for a pod of higher priority."""
        self._emit(gang, events.PREEMPTED, sentence)

    def preemption_stopped(self, pod: PodRecord) -> None:
        """Report that a pod may preempt no others for a while."""
        key = GangKey(pod.namespace, pod.name, "pod", pod.uid)
        sentence = preemption.preemption_stopped(f"{pod.namespace}/{pod.name}")
        event = EmitEvent(
            key, events.itself(pod), events.PREEMPTION_STOPPED, sentence, is_warning=True
        )
        self.outbox.add(event)

    def room(
        self, gang: Gang, answer: RoomAnswer, why_none: str, *, has_claims: bool = False
    ) -> None:
        """Report who has to go so that a gang that waits has room.

        `why_none`: why none of them is evicted; "": they are. `has_claims`: claims of its pods are
        not counted.
        """
        if not (answer.pods or answer.ending or answer.left_alone):
            return  # no pod may go, or it fits already
        if answer.is_cut_short and not answer.is_found:
            return  # it is not known
        reason = events.NO_ROOM
        if answer.is_found:
            reason = events.ROOM if why_none else events.MAKES_ROOM
        priority = gang.membership.lowest_priority
        answer = self.naming.answer(answer, gang.key.namespace)
        if answer.is_found:
            sentence = preemption.room(gang.key, priority, answer, why_none)
        else:
            sentence = preemption.no_room(gang.key, priority, answer)
        if has_claims:
            sentence = f"{sentence}; {CLAIMS_NOT_COUNTED}"
        self._tell_of_room(gang, reason, sentence)

    def awaits_room(self, gang: Gang, sentence: str) -> None:
        """Report how many pods still end for a gang that waits."""
        self._tell_of_room(gang, events.MAKES_ROOM, sentence)

    def room_not_made(self, gang: Gang, sentence: str) -> None:
        """Report that the pods of a gang's place do not go, or not for it."""
        self._tell_of_room(gang, events.ROOM_NOT_MADE, sentence)

    def room_withdrawn(self, gang: Gang) -> None:
        """Note that none go any more for a gang that needed its place no longer: no event."""
        gang.reporting.once.pop(events.MAKES_ROOM, None)

    def _tell_of_room(self, gang: Gang, reason: str, sentence: str) -> None:
        """Emit an event that stands until there is another about the same, unless it stands."""
        if gang.reporting.once.get(reason) == sentence:
            return
        for other in events.ABOUT_ROOM:
            gang.reporting.once.pop(other, None)
        gang.reporting.once[reason] = sentence
        self._emit(gang, reason, sentence, warn=False)

    def needs_nodes(self, gang: Gang, sentence: str) -> None:
        """Report that node autoscalers are asked for nodes."""
        self._report_once(gang, events.NEEDS_NODES, sentence, warn=False)

    def no_nodes_come(self, gang: Gang, sentence: str) -> None:
        """Report why they make none."""
        self._report_once(gang, events.NO_NODES_COME, sentence)

    def new_nodes_released(self, gang: Gang, sentence: str) -> None:
        """Report that nodes which came for it, too few, are anybody's now."""
        self._report_once(gang, events.NODES_RELEASED, sentence)

    def not_provided(self, gang: Gang, sentence: str) -> None:
        """Report that a request for nodes has ended, or was withdrawn, and what follows."""
        self._report_anew(gang, events.NOT_PROVIDED, sentence)

    def not_requested(self, gang: Gang, sentence: str) -> None:
        """Report why a gang does not ask by a request, although it should."""
        self._report_anew(gang, events.NOT_REQUESTED, sentence)

    def _report_anew(self, gang: Gang, reason: str, sentence: str) -> None:
        """Emit an event that stands until there is another with its reason, unless it stands."""
        if gang.reporting.once.get(reason) != sentence:
            gang.reporting.once[reason] = sentence
            self._emit(gang, reason, sentence)

    def places_given_up(self, gang: Gang, pods: int) -> None:
        """Report that no place is held any more for pods that have not come."""
        sentence = messages.places_given_up(gang.key, pods)
        self._report_once(gang, events.PLACES_GIVEN_UP, sentence)

    # -- plans and verdicts --------------------------------------------------------------------

    def placed(self, gang: Gang, fallback: Iterable[tuple[str, str]]) -> None:
        """Report that a plan is held; `fallback`: (pod set, why) of those not placed by rank."""
        if gang.reporting.problem:
            self.report(gang, events.PLACED, sentences.placed(gang), warn=False)
            gang.reporting.problem = ""
        for reason in events.OVER_WITH_A_PLACE:
            gang.reporting.once.pop(reason, None)
        told = [messages.ranks_not_used(gang.key, pod_set, why) for pod_set, why in fallback]
        if told:
            self._report_anew(gang, events.RANKS_NOT_USED, "; ".join(told))
        gang.reporting.sentence, gang.reporting.sentence_at = (
            messages.planned_elsewhere(gang.key),
            None,
        )

    def plan_lost(self, gang: Gang, sentence: str, now: float) -> None:
        """Reject the gang's pods with this sentence until the next search."""
        gang.reporting.sentence, gang.reporting.sentence_at = sentence, None
        _note_attempt(gang, Reason.BACKING_OFF, now)
        self.decisions.note(gang.key, "plan-lost", now, sentence)

    def knows_verdict(self, gang: Gang, now: float) -> bool:
        """Whether the gang's sentence is a verdict whose numbers are recent enough."""
        return (
            gang.reporting.sentence_at is not None
            and not gang.reporting.is_pending
            and now < gang.reporting.sentence_at + SENTENCE_SECONDS
        )

    def no_place(self, gang: Gang, verdict: NoPlan, now: float) -> None:
        """Report why there is no plan."""
        gang.reporting.reason, gang.reporting.is_narrowed_apart = (
            verdict.reason,
            verdict.is_narrowed_apart,
        )
        missing = len(gang.unplanned()) if gang.membership.bound else ""
        kind = f"{missing} {verdict.kind}"
        # The numbers in a verdict follow the cluster; a text that changed would requeue every pod.
        is_known = gang.reporting.sentence_at is not None and kind == gang.reporting.verdict
        if not is_known or not self.knows_verdict(gang, now):
            gang.reporting.sentence = sentences.verdict_of(gang, verdict)
            gang.reporting.sentence_at = now
        _note_attempt(gang, verdict.reason, now)
        if not is_known:  # other numbers are no news, another verdict is
            self.requeues.note_sentence(gang, gang.membership.unbound, gang.reporting.sentence)
            gang.reporting.verdict = kind
            self.decisions.note(gang.key, "no-place", now, gang.reporting.sentence)
            may_change = gang.membership.bound or verdict.is_pending
            due = now + (SETTLE_SECONDS if may_change else 0.0)
            reason = events.MISTAKEN if verdict.is_mistake else events.NOT_PLACED
            self._verdicts[gang.key] = (due, reason)
        self._report_verdict(gang, now)
        self.statuses.note(gang.key)

    def _report_verdict(self, gang: Gang, now: float) -> None:
        """Report the last verdict if it is time to, and the gang still has no place."""
        due, reason = self._verdicts.get(gang.key, (math.inf, ""))
        if now < due:
            return
        del self._verdicts[gang.key]
        if gang.phase in PLANNABLE:
            self.report(gang, reason, gang.reporting.sentence)

    def evicted(self, gang: Gang, sentence: str, now: float) -> None:
        """Report that the running pods of a gang are evicted."""
        self.decisions.note(gang.key, "evicted", now, sentence)
        self.report(gang, events.EVICTED, sentence)
        gang.reporting.once[events.EVICTED] = sentence  # its verdict is reported after it

    def ends_whole(self, gang: Gang) -> None:
        """Reject pods of a gang with the reason why the others end."""
        gang.reporting.sentence, gang.reporting.sentence_at = gang.ending, None

    def eviction_refused(self, gang: Gang, sentence: str) -> None:
        """Report, once, that a pod of a gang that is evicted stays."""
        self._report_once(gang, events.EVICTION_REFUSED, sentence)

    def gives_way_whole(self, gang: Gang, sentence: str) -> None:
        """Report that all pods of a gang are evicted for a gang of higher priority."""
        gang.reporting.sentence, gang.reporting.sentence_at = sentence, None
        self._emit(gang, events.GIVES_WAY, sentence)

    def goes_for(self, namespace: str, name: str, uid: str, sentence: str) -> None:
        """Report that a pod is evicted for a gang of higher priority."""
        about = ObjectRef("v1", "Pod", namespace, name, uid)
        itself = GangKey(namespace, name, "pod", uid)
        self.outbox.add(EmitEvent(itself, about, events.GIVES_WAY, sentence, is_warning=True))

    def not_evicted(self, gang: Gang) -> None:
        """Report that the rest of a gang keeps running, since its owner would not start again."""
        self._report_once(gang, events.NOT_EVICTED, messages.not_evicted(gang.key))

    def giving_back(self, gang: Gang, sentence: str) -> EmitEvent:
        """The event for when pods of a gang that waits are evicted, so that it starts elsewhere."""
        return EmitEvent(
            gang.key, events.owner_of(gang), events.GIVEN_BACK, sentence, is_warning=True
        )

    def given_back(self, gang: Gang | None, event: EmitEvent, now: float) -> None:
        """Report that they are. `gang`: None if the last of its pods has gone with that."""
        if gang is not None:
            gang.reporting.sentence, gang.reporting.sentence_at = event.sentence, None
            gang.reporting.problem = event.sentence
            gang.reporting.problem_reason = events.GIVEN_BACK
            _note_attempt(gang, gang.reporting.reason, now)
        self.outbox.add(event)

    def not_given_back(self, gang: Gang, sentence: str) -> None:
        """Report why they are not, or why one is not."""
        self._report_anew(gang, events.NOT_GIVEN_BACK, sentence)

    # -- time ----------------------------------------------------------------------------------

    def report_due(self, gangs: Mapping[GangKey, Gang], now: float) -> None:
        """Report members that are still missing, what still is so, and what was lost."""
        self._report_incomplete(gangs, now)
        if (said := self.said_again.due(gangs, now)) is not None:
            key, reason = said
            self.lost.add(LostWrite(key, reason, ""))
        self._repeat_lost(gangs)

    def report_verdicts(self, gangs: Mapping[GangKey, Gang], now: float) -> None:
        """Report the verdicts that stand, once they have stood for a moment."""
        for key in list(self._verdicts):
            if key in gangs:
                self._report_verdict(gangs[key], now)
            else:
                del self._verdicts[key]

    def _report_incomplete(self, gangs: Mapping[GangKey, Gang], now: float) -> None:
        for key, since in list(self._gathering.items()):
            if now < since + self.settings.gather_seconds:
                return  # in the order of time
            if not gangs[key].roll_calls:
                continue  # it is not known yet what the gang lacks
            del self._gathering[key]
            if sentence := sentences.incomplete(gangs[key]):
                self.report(gangs[key], events.INCOMPLETE, sentence)

    # -- what was lost on its way to the API server ----------------------------------------------

    def note_lost(self, gang: Gang, what: str, uid: str) -> None:
        """Note that an event, status or deletion was not written."""
        self.lost.add(LostWrite(gang.key, what, uid))

    def _repeat_lost(self, gangs: Mapping[GangKey, Gang]) -> None:
        """Repeat the next few lost writes, those that are still true."""
        for _ in range(MOST_REPEATED_PER_TICK):
            lost = self.lost.take()
            gang = None if lost is None else gangs.get(lost.gang)
            if lost is not None and gang is not None:
                self._repeat(gang, lost.what, lost.uid)

    def _has_verdict(self, gang: Gang) -> bool:
        return gang.phase in PLANNABLE and gang.reporting.sentence_at is not None

    def _repeat(self, gang: Gang, what: str, uid: str) -> None:
        said = gang.reporting
        if what == STATUS:
            self.statuses.repeat_lost(gang.key)
        elif not gang.members:
            return  # its first pod is being created: it has no owner to tell yet
        elif uid in said.outside and uid in gang.members:
            sentence, is_excess = said.outside[uid]
            if what == events.POD_NOT_IN_GANG:
                self._emit_about(gang, gang.members[uid].pod, sentence)
            elif what == DELETE and is_excess:
                self._delete(gang, gang.members[uid].pod, sentence)
        elif what in events.ABOUT_ROOM and gang.phase is not Phase.WAITING:
            said.once.pop(what, None)
        elif what in said.once:
            self._emit(gang, what, said.once[what], warn=what not in events.NO_WARNINGS)
        elif what == events.PLACED and gang.phase is Phase.PLACED:
            self._emit(gang, what, sentences.placed(gang), warn=False)
        elif what == events.INCOMPLETE and (sentence := sentences.incomplete(gang)):
            self._emit(gang, what, sentence)
        elif what == said.problem_reason and said.problem:
            if what == events.NOT_PLACED and self._has_verdict(gang):
                said.problem = said.sentence  # with the numbers of now
            self._emit(gang, what, said.problem)


def _note_attempt(gang: Gang, reason: Reason, now: float) -> None:
    """Remember that no place was found, or that one was lost, with the sentence that stands."""
    attempts, sentence = gang.reporting.attempts, gang.reporting.sentence
    last = attempts[-1] if attempts else None
    if last is not None and (last.reason, last.sentence) == (reason, sentence):
        attempts[-1] = replace(last, last_at=now, times=last.times + 1)
    else:
        attempts.append(Attempt(reason, sentence, now, now))
