"""Which gangs ask by a ProvisioningRequest, in its place of marks, and what becomes of it.

    need open ─▶ a turn ─▶ AskNodes ─▶ the watch shows it ─┬─ not accepted in time ─▶ marks, EndAsk
                   ▲                                       ├─ answered: wait for nodes
                   └── a pause, longer each time ◀─────────┴─ failed, or its booking is over
    all bound, need over, gang gone ─▶ EndAsk

A gang has either marks or a request, for else its need would count twice. What the watch shows is
the state: the attempt is in the name of the request, its gang in a label, and a gang whose pods are
marked while no request of it was ever accepted asks by marks. So whenever Corral is killed, the
next one goes on from there: the same name is made again, which is one object. What has to be
written is said again until the watch shows it, ever later.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import NamedTuple

from app.dialects.provisioning import keys
from app.dialects.provisioning.records import (
    BOOKING_EXPIRED,
    CAPACITY_REVOKED,
    FAILED,
    FOUND,
    PROVISIONED,
)
from app.dialects.spec import GangKey
from app.kube.core.objects import ObjectRecord
from app.state.autoscaling import otherwise
from app.state.autoscaling.asking import asked_pods, class_of, kinds_of, owners_of, wants_none
from app.state.autoscaling.request_turns import RequestTurns
from app.state.autoscaling.shown_requests import (
    MOST_UNSEEN_SECONDS,
    UNSEEN_SECONDS,
    Place,
    Shown,
    ShownRequests,
)
from app.state.autoscaling.useless_nodes import useless_nodes
from app.state.effects import AskNodes
from app.state.gang.gang import PLANNABLE, Gang, Phase
from app.state.gang.gangs import Gangs
from app.state.gang.parts import SentAsk
from app.state.pauses import doubled
from app.state.plan.planner import Planner
from app.state.queueing.outbox import Outbox
from app.state.report.messages import autoscaling as messages
from app.state.report.reports import Reports
from app.state.settings import EngineSettings

ACCEPT_SECONDS = 120.0  # until a request has to be accepted; cluster-autoscaler does it in one loop
RETRY_SECONDS, MOST_RETRY_SECONDS = 60.0, 1_800.0  # between two attempts, doubled each time
MOST_ATTEMPTS = 4  # three more after the first
LINGER_SECONDS = 30.0  # a request that is not warranted stays for so long: pods are made anew
MOST_MENDED = 5  # times a request is made again whose PodTemplates do not show as its own
LOOK_SECONDS = 30.0  # between two searches for why nodes that were found are of no use
AUDIT_SECONDS = 10.0  # between two looks for what belongs to no gang
REQUEST, MARK = "request", "mark"


class Standing(NamedTuple):
    """How a gang asks, and when it is to be looked at again."""

    by_request: bool
    again_at: float = math.inf


@dataclass(slots=True)
class Requests:
    """Decides for gangs that need nodes; `shown` is what there is."""

    settings: EngineSettings
    gangs: Gangs
    planner: Planner
    reports: Reports
    outbox: Outbox
    shown: ShownRequests = field(init=False)
    _gang_at: dict[Place, GangKey] = field(default_factory=dict)
    """Those that were looked up; some may be gone."""
    _turns: RequestTurns = field(init=False)
    _audit_at: float = 0.0
    _is_looking: bool = False  # a look for what belongs to no gang is under way

    def __post_init__(self) -> None:
        self.shown = ShownRequests(self.outbox)
        self._turns = RequestTurns(self.settings.provisioning_requests)

    @property
    def is_on(self) -> bool:
        """Whether any gang may ask so."""
        return bool(self.settings.provisioning_class) and self.settings.needs_nodes != "off"

    # -- the watch -----------------------------------------------------------------------------

    def put(self, record: ObjectRecord) -> GangKey | None:
        """Learn of an object; the gang that is to be looked at again, if it is one of ours."""
        return self._adopted(self.shown.put(record))

    def drop(self, uid: str) -> GangKey | None:
        """Forget an object that is gone; the same."""
        return self._adopted(self.shown.drop(uid))

    def begin(self) -> None:
        """Find the gangs of the requests that were there before us, of those not looked up yet."""
        namespaces = self.shown.namespaces
        for gang in self.gangs.by_key.values() if namespaces else ():
            if not gang.ask.gang_uid and gang.key.namespace in namespaces:
                self._adopted(self._place(gang))

    def has(self, gang: Gang) -> bool:
        """Whether a request of this gang is there."""
        return bool(self.shown) and bool(self.shown.at(self._place(gang)))

    def _place(self, gang: Gang) -> Place:
        if not gang.ask.gang_uid:
            gang.ask.gang_uid = keys.gang_uid(gang.key)
        place = (gang.key.namespace, gang.ask.gang_uid)
        self._gang_at[place] = gang.key
        return place

    def _adopted(self, place: Place | None) -> GangKey | None:
        """Have a gang know its request, for its pods are to say that they take its nodes."""
        key = None if place is None else self._gang_at.get(place)
        gang = None if key is None else self.gangs.by_key.get(key)
        if gang is None or place is None:
            return None
        requests = self.shown.at(place)
        last = requests[-1].record if requests else None
        gang.ask.request = "" if last is None or last.is_true(FAILED) else last.name
        gang.ask.class_name = "" if last is None else last.class_name
        gang.ask.shown = "" if last is None else last.shown
        return key

    # -- one gang ------------------------------------------------------------------------------

    def review(self, gang: Gang, wanted: bool | None, now: float) -> Standing:
        """Look at a gang. `wanted`: whether it is to ask for nodes at all; None: as it does."""
        if not self.is_on:
            return Standing(by_request=False)
        ask, place = gang.ask, self._place(gang)
        self._adopted(place)
        requests = self.shown.at(place)
        for each in requests:
            each.since = min(each.since, now)
        if wanted is None:
            if gang.phase not in PLANNABLE:
                self._wait_no_more(gang)
            if gang.phase is Phase.RUNNING:
                self._leave(gang, requests, now)
            return Standing(ask.how == REQUEST)
        if not wanted:
            return self._unwanted(gang, requests, now)
        ask.unwanted_at = None
        if not ask.how or (ask.how == REQUEST and self._wants_none(gang)):
            ask.how = self._how(gang, requests)
        if ask.how == MARK:
            return self._by_marks(gang, requests, now)
        return self._by_request(gang, requests, now)

    def _unwanted(self, gang: Gang, requests: list[Shown], now: float) -> Standing:
        """Withdraw the request of a gang that does not need nodes, if that lasts."""
        ask = gang.ask
        if ask.unwanted_at is None:
            ask.unwanted_at = now
        self._wait_no_more(gang)
        until = ask.unwanted_at + LINGER_SECONDS
        if now < until and gang.phase is not Phase.DONE and (requests or ask.sent):
            return Standing(by_request=False, again_at=until)
        self._leave(gang, requests, now)
        return Standing(by_request=False)

    def _leave(self, gang: Gang, requests: list[Shown], now: float) -> None:
        """End what it has, and begin anew the next time that it needs nodes."""
        gang.ask.how, gang.ask.sent, gang.ask.unwanted_at = "", None, None
        self._wait_no_more(gang)
        self.shown.end(requests, now)

    def _wait_no_more(self, gang: Gang) -> None:
        self._turns.end_wait(gang.key)
        self._turns.end(gang.key)

    def _how(self, gang: Gang, requests: list[Shown]) -> str:
        """How a gang asks from now on."""
        if any(each.record.is_accepted for each in requests) and not self._wants_none(gang):
            return REQUEST
        class_name, why_not = self._class_of(gang)
        if why_not:
            self.reports.not_requested(gang, messages.not_requested(gang.key, why_not))
        if not class_name or why_not:
            return MARK
        # An earlier Corral found no controller that serves it, if they are marked.
        return MARK if any(each.pod.is_marked for each in gang.members.values()) else REQUEST

    def _class_of(self, gang: Gang) -> tuple[str, str]:
        return class_of(gang, self.settings.provisioning_class, self._place(gang)[1])

    def _wants_none(self, gang: Gang) -> bool:
        return wants_none(gang, self.settings.provisioning_class, self._place(gang)[1])

    def _by_marks(self, gang: Gang, requests: list[Shown], now: float) -> Standing:
        """Withdraw a request that is not served; not before its pods are seen to be marked."""
        self._wait_no_more(gang)
        gang.ask.sent = None
        if any(each.pod.is_marked for each in gang.members.values()):
            self.shown.end(requests, now)
        return Standing(by_request=False)

    def _by_request(self, gang: Gang, requests: list[Shown], now: float) -> Standing:
        ask, last = gang.ask, requests[-1] if requests else None
        self.shown.end(requests[:-1], now)
        is_shown = ask.sent is not None and last is not None and last.attempt >= ask.sent.attempt
        if is_shown or not self.planner.leads:  # what we send while another one leads is not made
            ask.sent = None
        if ask.sent is not None:
            return self._unseen(gang, ask.sent, requests, now)
        if last is None:
            return self._in_turn(gang)
        if why := self._why_over(gang, last, now):
            return self._over(gang, last, why, now)
        self._turns.end_wait(gang.key)
        if last.record.is_accepted:
            again_at = self._accepted(gang, last, now)
        elif now >= (again_at := last.since + ACCEPT_SECONDS):
            return self._give_up(gang, last.record.name, last.record.class_name, requests, now)
        else:
            self._turns.begin(gang.key)
        return Standing(by_request=True, again_at=min(again_at, self._mended(gang, last, now)))

    def _accepted(self, gang: Gang, last: Shown, now: float) -> float:
        """Look at a request that is served; when to look again."""
        record, sentence = last.record, ""
        revoked, answer = record.condition(CAPACITY_REVOKED), record.condition(PROVISIONED)
        patience = last.since + self.settings.needs_nodes_stall_seconds
        is_provisioned = record.is_true(PROVISIONED)
        if revoked is not None and revoked.is_true:
            sentence = messages.capacity_revoked(gang.key, record.name, str(revoked))
        elif not is_provisioned and now >= patience:
            why = "it is accepted, and no more is said" if answer is None else answer.reason
            sentence = messages.not_provisioned(gang.key, record.name, why)
        if sentence:
            self.reports.not_provided(gang, sentence)
        if not is_provisioned and now < patience:
            self._turns.begin(gang.key)
            return patience
        self._turns.end(gang.key)
        return now + LOOK_SECONDS if answer is not None and answer.reason == FOUND else math.inf

    def _unseen(self, gang: Gang, sent: SentAsk, requests: list[Shown], now: float) -> Standing:
        """Make the same attempt again, for as long as it does not show."""
        due = sent.first_at + ACCEPT_SECONDS
        if now >= due:
            name = keys.request_name(gang.ask.gang_uid, sent.attempt)
            return self._give_up(gang, name, self._class_of(gang)[0], requests, now)
        if now >= sent.at + sent.again_after:
            sent = self._ask(gang, sent.attempt, now)
        return Standing(by_request=True, again_at=min(due, sent.at + sent.again_after))

    def _give_up(
        self, gang: Gang, name: str, class_name: str, requests: list[Shown], now: float
    ) -> Standing:
        sentence = messages.not_accepted(gang.key, name, class_name, ACCEPT_SECONDS)
        self.reports.not_requested(gang, sentence)
        gang.ask.how = MARK
        return self._by_marks(gang, requests, now)

    def _why_over(self, gang: Gang, last: Shown, now: float) -> str:
        """Why a request brings no nodes to a gang that still waits; "": it may."""
        for type_ in (FAILED, BOOKING_EXPIRED):
            said = last.record.condition(type_)
            if said is not None and said.is_true:
                return f"{type_}, {said}"
        pods = sum(number for _, number in kinds_of(gang))
        if last.record.pods < pods:
            return f"it is for {last.record.pods} pods, and {pods} need a node"
        answer, lack = last.record.condition(PROVISIONED), gang.need.lack
        is_found = answer is not None and answer.is_true and answer.reason == FOUND
        if not is_found or lack is None or not lack.level:
            return ""
        is_due = now >= last.looked_at + LOOK_SECONDS
        if is_due and not self.planner.budget.is_half_spent:
            last.looked_at = now
            last.is_apart = otherwise.fits_anywhere(self.planner, gang)
        return f"the nodes that it found are not in one {lack.level}" if last.is_apart else ""

    def _over(self, gang: Gang, last: Shown, why: str, now: float) -> Standing:
        """Make the next attempt after a pause, if there is one left."""
        self._turns.end(gang.key)
        record = last.record
        last.over_at = min(last.over_at, now)
        is_last = last.attempt >= MOST_ATTEMPTS
        sentence = messages.request_ended(gang.key, record.name, why, is_last=is_last)
        self.reports.not_provided(gang, sentence)
        # A booking has lasted for longer than the pause.
        begin = last.since if record.is_true(BOOKING_EXPIRED) else last.over_at
        due = begin + doubled(RETRY_SECONDS, last.attempt, MOST_RETRY_SECONDS)
        if is_last or now < due:
            self._turns.end_wait(gang.key)
            return Standing(by_request=True, again_at=math.inf if is_last else due)
        return self._in_turn(gang)

    def _in_turn(self, gang: Gang) -> Standing:
        self._turns.wait(gang.key)
        return Standing(by_request=True)

    # -- writes --------------------------------------------------------------------------------

    def hand_out(self, now: float) -> list[Gang]:
        """Have the first gangs of those that may make their requests, as far as others allow.

        None while another Corral leads.
        """
        if not self.planner.leads:
            return []
        first = self._turns.taken(self.gangs.by_key)
        for gang in first:
            requests = self.shown.at(self._place(gang))
            self._ask(gang, requests[-1].attempt + 1 if requests else 1, now)
        return first

    def _ask(self, gang: Gang, attempt: int, now: float) -> SentAsk:
        sent = gang.ask.sent
        if sent is None or sent.attempt != attempt:
            sent = SentAsk(attempt, now, now, UNSEEN_SECONDS)
        else:
            pause = doubled(UNSEEN_SECONDS, sent.times + 1, MOST_UNSEEN_SECONDS)
            sent = SentAsk(attempt, sent.first_at, now, pause, sent.times + 1)
        gang.ask.sent = sent
        self._turns.begin(gang.key)
        self.outbox.add(self._effect(gang, attempt))
        return sent

    def _mended(self, gang: Gang, last: Shown, now: float) -> float:
        """Have what is missing of a request made, if its making was cut off; when to look again."""
        if last.mended >= MOST_MENDED or self.shown.is_whole(last.record):
            return math.inf
        pause = doubled(UNSEEN_SECONDS, last.mended + 1, MOST_UNSEEN_SECONDS)
        due = max(last.since, last.mended_at) + pause
        if now < due:
            return due
        last.mended, last.mended_at = last.mended + 1, now
        self.outbox.add(self._effect(gang, last.attempt))
        return now + UNSEEN_SECONDS

    def _effect(self, gang: Gang, attempt: int) -> AskNodes:
        lack, requests = gang.need.lack, self.shown.at(self._place(gang))
        were_ordered = any(
            answer.is_true and answer.reason != FOUND
            for each in requests
            if each.attempt < attempt and (answer := each.record.condition(PROVISIONED)) is not None
        )
        level = "" if lack is None else lack.level
        off = useless_nodes(self.planner, gang, level, were_ordered=were_ordered)
        return AskNodes(
            gang.key,
            keys.request_name(gang.ask.gang_uid, attempt),
            gang.ask.gang_uid,
            gang.ask.class_name if requests else self._class_of(gang)[0],
            owners_of(gang),
            asked_pods(gang, off),
        )

    def audit(self, now: float) -> None:
        """Delete what is ours and belongs to no gang; send deletions again that do not show."""
        if not self._is_looking:
            if now < self._audit_at or not (self.shown or self._gang_at):
                return
            self._audit_at = now + AUDIT_SECONDS
            by_key = self.gangs.by_key
            if len(self._gang_at) > 2 * len(by_key):  # some milliseconds, if there are thousands
                self._gang_at = {at: key for at, key in self._gang_at.items() if key in by_key}
            self.begin()
            self.shown.begin_look()
        self._is_looking = self.shown.end_strays(self._kept, now)

    def _kept(self, place: Place) -> Collection[str] | None:
        """The request of a gang that is being made, if one is; None: the gang needs none."""
        key = self._gang_at.get(place)
        gang = None if key is None else self.gangs.by_key.get(key)
        if gang is None or gang.phase in (Phase.DONE, Phase.RUNNING):
            return None
        sent = gang.ask.sent
        return () if sent is None else (keys.request_name(gang.ask.gang_uid, sent.attempt),)
