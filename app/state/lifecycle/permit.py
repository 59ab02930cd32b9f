"""The permit at /bind: planned members wait there until each of them has arrived once.

    /bind ──▶ held ──────────────── all have arrived ──▶ posted: Bind
               └──time is up──▶ refused ──▶ back-off, /filter, /bind again ──▶ held, or posted

An arrival is remembered for as long as the member's reservation stands. A large gang may take
longer to pass kube-scheduler than that waits for an answer: then its members are never all at /bind
at one moment. So a request whose time is up is refused alone, and the plan stays. Once every
member has arrived, or is needed no more, the gang starts: those that are held are bound at once,
each of the others when it comes again. A part of a gang that begins as a whole after that is held
likewise until enough of it has arrived. A pod refused at /bind waits in kube-scheduler's back-off
for errors, which no update of the pod cuts short, so it is not requeued: it comes back by itself
after 10 s at most.

A plan is given up when it makes no progress: for `hold_seconds` no member came to /filter or /bind
for the first time. It takes less time where refused members came to /bind again while a member
without gates never came to /filter: kube-scheduler tries the pods that wait longest first, so its
own filters found no node for that one, because of a volume for example. A gang that may start
without those that did not come loses their places alone, and starts once the others have arrived.
Of a gang that has started only members that never came to /filter lose their places: the others
run, or are about to.

Until a member has arrived, a lost requeue or patch would keep it away: both are sent again.
Source: kubernetes v1.36 pkg/scheduler/backend/queue/scheduling_queue.go, `Update`, and
pkg/scheduler/framework/plugins/queuesort/priority_sort.go.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import takewhile

from app.dialects import autoscalers, corral
from app.state.effects import Bind, RejectBind, UngateFailed
from app.state.gang.gang import Gang
from app.state.gang.gangs import Gangs
from app.state.lifecycle.roll_call import RollCalls
from app.state.queueing import ungating
from app.state.queueing.outbox import Outbox
from app.state.queueing.requeue import Requeues
from app.state.report.messages import gangs as messages
from app.state.reserve import binding
from app.state.reserve.plans import Plans
from app.state.reserve.reservations import Reservations
from app.state.settings import EngineSettings

OVERTAKEN_SECONDS = 10.0  # kube-scheduler's longest back-off: no pod waits longer to be tried
STUCK_LOSSES = 3  # losses that a plan without a start counts for


@dataclass(frozen=True, slots=True)
class Permit:
    """Brings planned members from their gates past /bind; `Gang.binding` has what it remembers."""

    settings: EngineSettings
    gangs: Gangs
    reservations: Reservations
    plans: Plans
    roll_calls: RollCalls
    requeues: Requeues
    outbox: Outbox

    def arrive(self, gang: Gang, uid: str, now: float) -> None:
        """Hold a planned member at /bind; when the last one arrives, bind all."""
        if not binding.arrive(gang, uid, now):
            self._bind(gang, uid)
        elif (gang.has_started or gang.has_arrived) and not gang.is_first_of_more(uid):
            self._commit(gang, now)

    def _commit(self, gang: Gang, now: float) -> None:
        """Bind all that are held at /bind; the gang has started from here on.

        But for those whose part of it is to begin as a whole, and is not there yet.
        """
        apart = frozenset(gang.arrived_in_part())
        due = [uid for uid in gang.binding.at_bind if uid not in apart]
        if not due:
            return
        if not gang.has_started or gang.binding.started_with is None:
            binding.start_with(gang, started_with(gang), _started_after(gang))
        for uid in due:
            self._bind(gang, uid)
        had_started = gang.has_started
        binding.post(gang, due)
        if not had_started:
            self.plans.move(gang, now)

    def _bind(self, gang: Gang, uid: str) -> None:
        pod = gang.members[uid].pod
        self.reservations.books.keep(uid)
        annotations = [(corral.GANG, str(gang.key)), (corral.DOMAIN, gang.plan.domains[uid])]
        if gang.binding.started_with:
            annotations.append((corral.POD_SETS, gang.binding.started_with))
        if gang.binding.started_after:
            annotations.append((corral.AFTER, gang.binding.started_after))
        if self.settings.protect_running:
            annotations.extend(autoscalers.protection(pod.annotations))
        self.outbox.add(
            Bind(pod.namespace, pod.name, uid, gang.plan.nodes[uid], tuple(annotations))
        )

    def bind_failed(self, gang: Gang, uid: str, *, is_gone: bool, now: float) -> None:
        """Take a failed binding: the reservation stays where the pod may still be bound."""
        is_outdated = binding.fail(gang, uid)
        if uid in gang.plan.nodes and (is_gone or is_outdated or self._is_void(gang, uid)):
            self.reservations.end(gang, uid, "")
        elif gang.has(uid):
            self.reservations.books.yield_again(uid, gang.priority_of(uid))
        self.gangs.owe_review(gang)
        if not gang.has_started:  # only then: many bindings of a large gang may fail
            self.roll_calls.review(gang, now)

    def _is_void(self, gang: Gang, uid: str) -> bool:
        return self.reservations.is_void(gang.plan.nodes[uid], gang.members[uid].shape)

    def ungate_failed(self, gang: Gang, uid: str, failure: UngateFailed, now: float) -> None:
        """Take a failed ungating: it is tried again, without narrowing if that is forbidden."""
        if failure.is_gone:
            if not gang.has_started:
                self.plans.lose(gang, "a member has gone", now)
            elif uid in gang.plan.nodes:
                self.reservations.end(gang, uid, "")
                self.roll_calls.review(gang, now)
            return
        was_bare = uid in gang.ungating.unnarrowed
        ungating.has_failed(gang, uid, is_forbidden=failure.is_forbidden)
        if failure.is_forbidden and not was_bare:  # else it is due again with the next push
            self.requeues.ungate(gang, now, (uid,))

    def refuse_arrived(self, sentence: str) -> None:
        """Answer every held /bind with an error; the plans stay."""
        for key in self.gangs.planned:
            gang = self.gangs.by_key[key]
            self._refuse(gang, list(gang.binding.at_bind), sentence)

    def expire(self, now: float) -> None:
        """End waits that took too long; send again what kube-scheduler may have missed."""
        for key in list(self.gangs.planned):
            gang = self.gangs.by_key[key]
            if not (gang.plan.nodes or gang.binding.at_bind):
                continue  # it runs, and none of its pods that wait has a place
            if gang.binding.at_bind and self._has_opened(gang, now):
                self._commit(gang, now)
            self._end_holds(gang, now)
            if not gang.has_started and self._is_stuck(gang, now):
                self._lose_stuck(gang, now)
            elif gang.has_started and (awaited := self._stuck_of_rest(gang, now)):
                self.plans.lose_rest(gang, awaited, now)
                self._await(gang, awaited, now)
            else:
                self._push(gang, now)

    def _has_opened(self, gang: Gang, now: float) -> bool:
        """Whether members may be bound though no other has arrived since they did.

        Another leader's Corral has started the gang, or no other is needed any more.
        """
        if not gang.has_started and gang.has_arrived:
            self.roll_calls.review_now(gang, now)
        return gang.has_started or gang.has_arrived

    def _end_holds(self, gang: Gang, now: float) -> None:
        """Refuse the requests held for long enough; reservations, plan and arrivals stay."""
        over = now - self.settings.gang_bind_seconds
        at_bind = gang.binding.at_bind
        ended = list(takewhile(lambda uid: at_bind[uid] <= over, at_bind))
        self._refuse(gang, ended, messages.still_arriving(gang.key))

    def _refuse(self, gang: Gang, uids: list[str], sentence: str) -> None:
        binding.release(gang, uids)
        self.outbox.extend(RejectBind(uid, sentence) for uid in uids)

    def _is_stuck(self, gang: Gang, now: float) -> bool:
        """Whether kube-scheduler is unlikely to bring every member of the plan to /bind."""
        if now >= gang.binding.moved_at + self.settings.hold_seconds:
            return True
        is_overtaken = (
            gang.binding.again_at > gang.binding.moved_at
            and now >= gang.binding.moved_at + OVERTAKEN_SECONDS
            and ungating.is_push_due(gang, now)
        )
        # A member that /filter rejected waits for our requeue.
        return is_overtaken and bool(_never_filtered(gang) - gang.rejections.sentences.keys())

    def _lose_stuck(self, gang: Gang, now: float) -> None:
        """Give the plan up, and hold no nodes again before every member has come to /filter.

        kube-scheduler's own filters may reject a member that never came, because of a volume for
        example. Those that /filter rejected itself are requeued.
        """
        if late := self._spared(gang, now):
            self.plans.lose_rest(gang, late, now)
            binding.progress(gang, now)
            return
        awaited = _never_filtered(gang)
        self.plans.lose(gang, self.plans.why_stuck(gang), now, losses=STUCK_LOSSES)
        if awaited and gang.needs(awaited):
            self._await(gang, awaited, now)

    def _spared(self, gang: Gang, now: float) -> set[str]:
        """The members that keep a gang from its start, if it may start without them; else none."""
        if now >= gang.binding.moved_at + self.settings.hold_seconds:
            late = gang.plan.nodes.keys() & gang.members.keys() - gang.binding.arrived
        else:
            late = _never_filtered(gang) - gang.rejections.sentences.keys()
        return late if gang.may_start_without(late) else set()

    def _stuck_of_rest(self, gang: Gang, now: float) -> set[str]:
        """Planned members of a gang that runs which kube-scheduler is unlikely to ask about.

        One that it asked about may wait for a volume for longer.
        """
        if now < gang.binding.moved_at + self.settings.hold_seconds:
            return set()
        return _never_filtered(gang) - gang.binding.posted

    def _await(self, gang: Gang, awaited: set[str], now: float) -> None:
        self.plans.wait_for(gang, awaited, now)
        self.requeues.requeue_rejected(gang, awaited)

    def _push(self, gang: Gang, now: float) -> None:
        """Requeue and ungate again where a requeue or a patch may have been lost."""
        if (
            gang.rejections.sentences
            and now >= gang.rejections.requeued_at + self.settings.rewake_seconds
        ):
            self.requeues.requeue_lost(gang, now)
        if ungating.is_push_due(gang, now):
            ungating.push(gang, now)
            self.requeues.ungate(gang, now)


def started_with(gang: Gang) -> str:
    """How many pods of each pod set a group starts with, as written on its pods.

    Once a failed pod is gone, only this tells its replacement from a pod in excess. "" where
    objects declare the pod sets, or where all pods are alike.
    """
    status = gang.membership
    if status.spec is None or not status.spec.is_said:
        return ""
    known = next((each.started_with for each in status.bound if each.started_with), ())
    pods = dict(known) or Counter(each.pod_set for each in (*status.bound, *status.joining))
    return corral.pod_sets_text(pods) if len(pods) > 1 else ""


def _started_after(gang: Gang) -> str:
    """When the last pod began to end that the gang ended for before it starts; "" if none did.

    Its pods may have been made before: only this tells that they were bound since.
    """
    told = (each.pod.annotations.get(corral.AFTER, "") for each in gang.membership.bound)
    if gang.has_started:
        return max(told, default="")
    ending = (each.pod for each in gang.members.values() if each.pod.is_preempted)
    return max((pod.preempted_at for pod in ending if pod.node), default="")


def _never_filtered(gang: Gang) -> set[str]:
    """Planned members without gates that have not come to /filter.

    One whose binding failed has come, though /filter may answer it anew.
    """
    came = gang.binding.answered | gang.binding.arrived
    waiting = gang.plan.nodes.keys() & gang.members.keys() - came
    return {uid for uid in waiting if not gang.members[uid].pod.gates}
