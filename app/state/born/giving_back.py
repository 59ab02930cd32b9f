"""Narrowed pods are given back to their controller where they would wait in vain.

    no place on the nodes that the pods are narrowed to, but one elsewhere
        ──▶ evicted, or their Job is suspended ──▶ their controller makes them again
        ──▶ they wait behind the gate

Narrowing cannot be taken back from a pod without a gate, and a gang behind the gate would start
elsewhere. So a gang of which nothing has run is given back, once until it runs: the pods that are
made again are not born in place. After a restart it may happen once more, of a gang that was
narrowed again since.

A setting says so for pods that were born in place, and another one for those that were narrowed
as their gate was taken off. Where pods are not given back, their gang's owner is told.

A Job is suspended until its pods are gone (`suspended.py` has it go on): its controller counts them
as failed if they are evicted, even if they never had a node, and takes its time to make others.

Whether pods may be evicted, the API server says: the gang counts as given back from the first that
is. Where it forbids one, the others are not sent, and none is tried again for some minutes.

Kept are pods that no controller would make again, and those whose owner would count them as failed
and give up. Pods of the gang that are still behind the gate stay, unless they are a Job's: they may
go anywhere.
"""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from app.dialects import corral
from app.dialects.owners import makes_again
from app.dialects.spec import GangKey
from app.kube.core.objects import PodRecord
from app.state.born.births import FAILED_SECONDS, Births
from app.state.born.kept_places import KeptPlaces
from app.state.born.suspended import Suspended
from app.state.effects import EmitEvent, Evict, EvictOutcome
from app.state.gang.gang import Gang, Phase
from app.state.gang.gangs import Gangs
from app.state.gang.members.member import Member
from app.state.gang.owners import Owners
from app.state.gang.reasons import Reason
from app.state.isolation import confined
from app.state.plan.planner import Planner
from app.state.plan.verdict import Plan
from app.state.queueing.outbox import Outbox
from app.state.report.events import NOT_GIVEN_BACK
from app.state.report.evictions import EVICT_AGAIN_SECONDS
from app.state.report.messages import given_back as messages
from app.state.report.reports import Reports
from app.state.settings import EngineSettings
from app.state.turns.queue import Queue

SETTLE_SECONDS = 5.0  # without a place: a node may be back, and a recreation takes longer
MOST_LOOKED_AT = 8  # gangs per tick, two searches each; one where the tick's budget is spent
GONE_SECONDS = FAILED_SECONDS  # until a gang of the same name may be born in place again
MOST_GIVEN_BACK = 10_000  # gangs that are remembered
REFUSED_SECONDS = 600.0  # without a try for a gang, where the API server forbids the eviction
IN_VAIN = (Reason.DOES_NOT_FIT, Reason.NARROWED_APART)  # verdicts that other nodes may change


@dataclass(slots=True)
class _Look:
    """How long a gang has had no place, and which of its verdicts was looked into last."""

    number: int
    since: float
    tried_at: float | None = None


@dataclass(slots=True)
class _GivenBack:
    """The pods of a gang that are given back, and those of them that the API server has evicted."""

    uids: frozenset[str]
    not_before: float  # when it may be tried again
    event: EmitEvent
    owner: str = ""
    """The uid of their Job if it is suspended, and they are not evicted one by one."""
    evicted: set[str] = field(default_factory=set)
    is_refused: bool = False  # of the last try: the others are not sent
    gone_at: float = math.inf  # since when the gang has no pods


@dataclass(slots=True)
class GivingBack:
    """Has pods evicted that are narrowed to where their gang cannot start."""

    settings: EngineSettings
    gangs: Gangs
    planner: Planner
    queue: Queue
    births: Births
    kept_places: KeptPlaces
    suspended: Suspended
    outbox: Outbox
    reports: Reports
    owners: Owners
    is_making_room: Callable[[GangKey], bool]
    """Whether others are evicted for the gang: it has a place soon."""
    given: Counter[str] = field(default_factory=Counter)
    """How many gangs and pods were given back: "gang", "pod"."""
    _gone_looked_at: float = -math.inf
    _narrowed: dict[GangKey, None] = field(default_factory=dict)  # gangs with such pods, waiting
    _looks: dict[GangKey, _Look] = field(default_factory=dict)
    _given: OrderedDict[GangKey, _GivenBack] = field(default_factory=OrderedDict)
    _sent: set[str] = field(default_factory=set)  # uids of pods that are being evicted
    _key_of: dict[str, GangKey] = field(default_factory=dict)  # of all pods in `_given`

    # -- what the watch shows --------------------------------------------------------------------

    def note(self, pod: PodRecord, gang: GangKey) -> None:
        """Learn of a member, before its gang does."""
        self.kept_places.pass_on(pod, gang)
        if not pod.node and corral.is_narrowed(pod):
            self._narrowed[gang] = None

    def forget(self, uid: str) -> None:
        """Forget a pod that is gone."""
        self._sent.discard(uid)

    # -- time ----------------------------------------------------------------------------------

    def review(self, now: float) -> None:
        """Give pods back of gangs that wait in vain, a few gangs at a time, if we lead.

        They take turns, and so do namespaces: some may be looked at in vain again and again.
        """
        self.kept_places.review(now)
        self.suspended.review(now, leads=self.planner.leads)
        self._forget_gone(now)
        left = MOST_LOOKED_AT
        for key in list(self.queue.budget.in_turns(self._narrowed)):
            gang = self.gangs.by_key.get(key)
            if gang is None or gang.running:
                self._looks.pop(key, None)
                if gang is not None:
                    self._forget(key)
                if gang is None or not any(map(_is_narrowed, gang.membership.joining)):
                    del self._narrowed[key]  # else the watch may show nothing more of its pods
            elif left and self.planner.leads and self._is_due(gang, now):
                left = 0 if self.queue.budget.is_spent else left - 1
                del self._narrowed[key]  # its next turn is after that of the others
                self._narrowed[key] = None
                with confined(self.planner.on_fault, "pods of gang {} given back", key):
                    self._look(gang, now)

    def _forget_gone(self, now: float) -> None:
        """Forget gangs that have had no pods for so long that those of their name are others."""
        if now < self._gone_looked_at + GONE_SECONDS / 10:
            return
        self._gone_looked_at = now
        for key, given in list(self._given.items()):
            given.gone_at = math.inf if key in self.gangs.by_key else min(given.gone_at, now)
            if now >= given.gone_at + GONE_SECONDS:
                self._forget(key)

    def _is_due(self, gang: Gang, now: float) -> bool:
        """Whether a gang that has had no place for a while has a verdict that was not looked into.

        It has one for each of its turns: nothing has changed for it in between.
        """
        if not self._waits_in_vain(gang):
            self._looks.pop(gang.key, None)
            return False
        look = self._looks.get(gang.key)
        if look is None or look.number != gang.number:
            look = self._looks[gang.key] = _Look(gang.number, now)
        tried_at = gang.reporting.attempts[-1].last_at
        before = self._given.get(gang.key)
        is_early = before is not None and now < before.not_before
        if is_early or now < look.since + SETTLE_SECONDS or look.tried_at == tried_at:
            return False
        look.tried_at = tried_at
        return True

    def _waits_in_vain(self, gang: Gang) -> bool:
        said = gang.reporting
        return (
            gang.phase is Phase.WAITING
            and gang.birth is None
            and not (gang.plan.nodes or gang.has_started or gang.ungating.sent)
            and said.sentence_at is not None
            and said.reason in IN_VAIN
            and not self.is_making_room(gang.key)
        )

    def _look(self, gang: Gang, now: float) -> None:
        """Give back what is narrowed of a gang if it would start then, and may be given back."""
        narrowed = [member for member in gang.membership.unbound if _is_narrowed(member)]
        if not narrowed or any(member.pod.node for member in gang.members.values()):
            return
        if gang.suspension is not None and self.suspended.is_shown(gang.suspension):
            return
        going = self._going(gang, narrowed)
        why = self._why_kept(gang, going, narrowed)
        kept = messages.not_given_back(gang.key, why) if why else ""
        if kept and gang.reporting.once.get(NOT_GIVEN_BACK) == kept:
            return  # it is told already
        found = self._place_elsewhere(gang, going or narrowed)
        if found is None:
            return
        if kept:
            self.reports.not_given_back(gang, kept)
            return
        its = going if gang.suspension is None else gang.membership.unbound
        self.kept_places.keep(gang, found, {member.pod.uid for member in its}, now)
        self._give_back(gang, its, now)

    def _going(self, gang: Gang, narrowed: Sequence[Member]) -> list[Member]:
        """Those of them that are given back, as it is set; of a Job all, or none."""
        born, later = self.settings.born_pods_given_back, self.settings.narrowed_pods_given_back
        going = [each for each in narrowed if (born if _is_born(each) else later)]
        return list(narrowed) if going and gang.suspension is not None else going

    def _why_kept(self, gang: Gang, going: Sequence[Member], narrowed: Sequence[Member]) -> str:
        """Why they are not given back, "" if they are."""
        if not self._is_first(gang, narrowed):
            return messages.GIVEN_BACK_ONCE
        if not all(makes_again(member.pod.owner) for member in going or narrowed):
            return messages.NOT_MADE_AGAIN
        if not going:
            is_born = any(map(_is_born, narrowed))
            return messages.SET_BORN_GIVEN_BACK if is_born else messages.SET_NARROWED_GIVEN_BACK
        if gang.suspension is None and self.owners.give_up(gang, going):
            return messages.OWNER_GIVES_UP
        return ""

    def _is_first(self, gang: Gang, narrowed: Sequence[Member]) -> bool:
        """Whether the gang was not given back before, or these of its pods have stayed then."""
        before = self._given.get(gang.key)
        return before is None or before.uids.issuperset(member.pod.uid for member in narrowed)

    def _place_elsewhere(self, gang: Gang, going: Iterable[Member]) -> Plan | None:
        """A place for the gang on any nodes, if it has none on those that it is narrowed to."""
        self.planner.refresh()
        uids = {each.pod.uid for each in going}
        free = (
            replace(each, allowed=None, narrowed_by=()) if each.pod.uid in uids else each
            for each in gang.unplanned()
        )
        found = self.planner.plan(gang, None, tuple(free))
        if not isinstance(found, Plan):
            return None
        if isinstance(self.planner.plan(gang), Plan):
            self.queue.want_turn(gang)  # as there is room again
            return None
        return found

    def _give_back(self, gang: Gang, members: Sequence[Member], now: float) -> None:
        key, uids, suspension = (
            gang.key,
            frozenset(each.pod.uid for each in members),
            gang.suspension,
        )
        sentence = messages.given_back(
            gang.reporting.sentence, len(members), is_suspended=suspension is not None
        )
        before = self._given.pop(key, None)
        given = _GivenBack(
            uids, now + EVICT_AGAIN_SECONDS, self.reports.giving_back(gang, sentence)
        )
        if before is not None:
            given.uids, given.evicted = uids | before.uids, before.evicted
        self._given[key] = given
        self._key_of.update(dict.fromkeys(uids, key))
        if suspension is not None:
            given.owner = suspension.uid
            self._key_of[suspension.uid] = key
        if len(self._given) > MOST_GIVEN_BACK:
            self._forget(next(iter(self._given)))
        self.births.bar(key, now)
        if suspension is not None:
            self.outbox.add(self.suspended.begun(suspension, sentence))
            return
        for member in members:
            pod = member.pod
            self._sent.add(pod.uid)
            self.outbox.add(Evict(pod.namespace, pod.name, pod.uid, sentence, is_given_back=True))

    def _forget(self, key: GangKey) -> None:
        """Forget that a gang was given back."""
        given = self._given.pop(key, None)
        for uid in () if given is None else (*given.uids, given.owner):
            self._key_of.pop(uid, None)

    # -- outcomes ------------------------------------------------------------------------------

    def is_wanted(self, uid: str) -> bool:
        """Whether an eviction that has not been sent is still to be.

        Not of a pod that runs or ends, nor of one whose gang has a place by now, or another pod
        that may not be evicted.
        """
        gang = self.gangs.of_pod(uid)
        if gang is None or gang.plan.nodes or gang.has_started:
            return False
        given = self._given.get(gang.key)
        member = gang.members[uid]
        return member.is_live and not member.pod.node and not (given and given.is_refused)

    def is_suspension_wanted(self, uid: str) -> bool:
        """Whether a workload that has not been suspended is still to be: as for each of its pods.

        It is of none that has a node, whatever gang it is in by now.
        """
        key = self._key_of.get(uid)
        gang = None if key is None else self.gangs.by_key.get(key)
        if gang is None or gang.plan.nodes or gang.has_started or gang.suspension is None:
            return False
        if self.suspended.is_shown(gang.suspension):
            return False
        return not any(member.pod.node for member in gang.members.values())

    def evicted(self, uid: str, outcome: EvictOutcome, now: float) -> None:
        """Take what became of an eviction or a suspension.

        What stays may be given back later once more.
        """
        key = self._key_of.get(uid)
        given = None if key is None else self._given.get(key)
        if key is None or given is None:
            return
        if outcome == "done":
            for each in given.uids if uid == given.owner else (uid,):
                self._count(key, given, each, now)
        elif outcome == "gone" and uid == given.owner:
            given.not_before = now  # the workload has changed meanwhile
        if uid not in self._sent and uid != given.owner:
            return  # the watch has shown its end
        self._sent.discard(uid)
        gang = self.gangs.by_key.get(key) if uid == given.owner else self.gangs.of_pod(uid)
        if gang is not None and outcome in ("failed", "refused"):
            self.kept_places.end(gang.key)
            given.is_refused = outcome == "refused"
            if given.is_refused:
                given.not_before = now + REFUSED_SECONDS
            pod = None if uid == given.owner else gang.members[uid].pod
            sentence = messages.keeps_narrowed(gang.key, pod, is_forbidden=given.is_refused)
            self.reports.not_given_back(gang, sentence)

    def _count(self, key: GangKey, given: _GivenBack, uid: str, now: float) -> None:
        """Count a pod that the API server has evicted; the gang is told with the first of them."""
        if not given.evicted:
            self.given["gang"] += 1
            self.reports.given_back(self.gangs.by_key.get(key), given.event, now)
        if uid not in given.evicted:
            given.evicted.add(uid)
            self.given["pod"] += 1


def _is_narrowed(member: Member) -> bool:
    """Whether the pod can only go to nodes that we chose, and the watch shows as much."""
    return member.is_narrowed and corral.is_narrowed(member.pod)


def _is_born(member: Member) -> bool:
    """Whether it was narrowed at its creation, and not as its gate was taken off."""
    return corral.NARROWED not in member.pod.annotations
