"""Which waiting pods are marked, so that node autoscalers make nodes for them; and unmarked.

An autoscaler counts pods whose condition PodScheduled says Unschedulable, which kube-scheduler
writes on pods that it has tried. A member behind our gate is never tried. So a gang that lacks
nothing but capacity is marked by us: its condition says the same, and its gate stays.

    verdict: proven, capacity alone ──a while, or at once if it never fits──▶ a Mark for each member
    fits but for something else, is not complete any more ──▶ a Mark that takes it back
    placed ──▶ nothing: the gate goes, and a binding ends the condition

The condition is the state. It is read back from the watch, also after a restart and if another
client wrote it, and written only where it differs from what holds: once per pod and change. What
another client changes back is written again, ever later for as long as that goes on. Members
without a gate are kube-scheduler's to mark. A gang that asks by a request (`requests.py`) has no
marks.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from app.dialects.spec import GangKey
from app.fair_queue import FairQueue
from app.kube.core.objects import Amounts
from app.state.autoscaling import otherwise
from app.state.autoscaling.requests import REQUEST, Requests
from app.state.effects import Mark
from app.state.gang.gang import PLANNABLE, Gang, Phase
from app.state.gang.gangs import Gangs
from app.state.gang.members.member import Member
from app.state.gang.parts import SentMark, Version
from app.state.isolation import confined
from app.state.plan.planner import Planner
from app.state.plan.verdict import NoPlan
from app.state.queueing.outbox import Outbox
from app.state.report.events import MAKES_ROOM
from app.state.report.messages import autoscaling as messages
from app.state.report.reports import Reports
from app.state.settings import EngineSettings
from app.state.turns.later import Later
from topology.model.answer import NoFit

UNSEEN_SECONDS, MOST_UNSEEN_SECONDS = 10.0, 60.0  # until a mark that does not show is sent again
# Until what another client has changed back is written again; from the last time that it was.
UNDONE_SECONDS, MOST_UNDONE_SECONDS = 2.0, 300.0
AGAIN_SECONDS = 30.0  # between two looks at what would fit otherwise
MOST_SEARCHES = 4  # in one tick
MOST_MARKS = 256  # in one tick: 1.5 us each
MOST_LOOKED_AT = 256  # gangs in one tick: 2 us each
NEVER, BUSY, FRAGMENTED, GRADUAL = "never", "busy", "fragmented", "gradual"
REASONS = (NEVER, BUSY, FRAGMENTED, GRADUAL)


@dataclass(frozen=True, slots=True)
class Needs:
    """What gangs ask for. Units: seconds; resources as in a request."""

    gangs: Mapping[str, int]
    """How many, by why they need nodes."""
    pods: int
    resources: Mapping[str, int]
    """What these pods request together."""
    oldest_seconds: float
    """For how long the first of them has asked."""


@dataclass(slots=True)
class Marks:
    """Marks the members of gangs that need nodes.

    `open` are the gangs that are marked, or about to be, the oldest first: a set that keeps its
    order. Namespaces take turns.
    """

    settings: EngineSettings
    gangs: Gangs
    planner: Planner
    reports: Reports
    requests: Requests
    outbox: Outbox
    open: dict[GangKey, None] = field(default_factory=dict)
    _due: FairQueue[GangKey, None] = field(default_factory=FairQueue)
    _later: Later[GangKey] = field(default_factory=Later)
    _counted: dict[GangKey, tuple[Version, Counter[Amounts]]] = field(default_factory=dict)
    """The requests of a gang's pods, as of the last time figures were wanted."""
    _searches: int = 0  # left in this tick
    _nodes_at: float = 0.0  # when a node was last made

    # -- what happens ----------------------------------------------------------------------------

    def note_verdict(self, gang: Gang, verdict: NoPlan, now: float) -> None:
        """Take the outcome of a search that found no place."""
        need = gang.need
        need.lack = _lack(verdict)
        if need.is_unknown:
            need.is_unknown = False
            self.note(gang)
        if (need.since is None) is not (need.lack is None):
            need.since = None if need.lack is None else now
            self.note(gang)
        elif need.lack is None and not need.is_open and self._has_asked(gang):
            self.note(gang)  # an earlier Corral asked, for another reason

    def note(self, gang: Gang) -> None:
        """Look at a gang again that may have to be marked, or not any more."""
        if self.settings.needs_nodes != "off":
            self._due.put(gang.key.namespace, gang.key, None)

    def note_change(self, gang: Gang) -> None:
        """The same after a roll call or a change of its phase, which mostly mean nothing here."""
        need = gang.need
        if need.since is not None or need.is_open or need.sent or need.marked or gang.ask.request:
            self.note(gang)

    def note_request(self, key: GangKey | None) -> None:
        """Look at a gang of whose request the watch shows something new."""
        gang = None if key is None else self.gangs.by_key.get(key)
        if gang is not None:
            self.note(gang)

    def note_seen(self, gang: Gang, uid: str, *, is_marked: bool) -> None:
        """Take what the watch shows of a member that was or is marked."""
        need = gang.need
        (need.marked.add if is_marked else need.marked.discard)(uid)
        sent = need.sent.get(uid)
        if sent is not None and sent.is_marked == is_marked:
            need.shown[uid] = need.sent.pop(uid)
            if is_marked == need.is_open:
                return
        self.note(gang)  # a restart, a mark by others, or not wanted any more

    def note_new_node(self, now: float) -> None:
        """Note that there is a node which was not there before."""
        self._nodes_at = now

    # -- time ------------------------------------------------------------------------------------

    def review(self, now: float) -> None:
        """Mark and unmark what is due."""
        for key in self._later.taken(now):
            self._due.put(key.namespace, key, None)
        if not self.planner.is_ready:
            return
        self._searches, marks = MOST_SEARCHES, MOST_MARKS
        for _ in range(min(len(self._due), MOST_LOOKED_AT)):
            if marks <= 0:
                return
            _, key, _ = self._due.take()
            gang = self.gangs.by_key.get(key)
            if gang is None:
                self.open.pop(key, None)
                continue
            if key in self.gangs.unreviewed:
                self.note(gang)
                continue
            with confined(self.planner.on_fault, "marks of gang {}", key):
                marks -= self._review(gang, now, marks)

    def _review(self, gang: Gang, now: float, most: int) -> int:
        """Look at one gang; how many marks were sent."""
        if not gang.need.is_open:
            self.open.pop(gang.key, None)  # of one that was made again under its name
        wanted = self._wanted(gang, now)
        if wanted is not None:
            self._set_open(gang, wanted, now)
        if gang.phase not in PLANNABLE:
            gang.need.since = None
            if gang.phase is Phase.RUNNING:
                self._set_open(gang, False, now)
                gang.need.shown.clear()
        standing = self.requests.review(gang, wanted, now)
        if standing.again_at < math.inf:
            self._later.look(gang.key, standing.again_at)
        if standing.by_request and wanted:
            wanted = False  # what a request asks for would count twice
        marks = list(self._marks(gang, wanted, now, most))
        self.outbox.extend(marks)
        if len(marks) == most:
            self.note(gang)
        if gang.need.sent:
            self._later.look(gang.key, now + UNSEEN_SECONDS)
        return len(marks)

    # -- whether ---------------------------------------------------------------------------------

    def _wanted(self, gang: Gang, now: float) -> bool | None:
        """Whether the members of a gang are to be marked; None: as they are."""
        if gang.phase in (Phase.GATHERING, Phase.DONE) or gang.is_being_born:
            return False
        if gang.phase not in PLANNABLE:
            return None
        if MAKES_ROOM in gang.reporting.once:
            self._later.look(gang.key, now + AGAIN_SECONDS)  # it may have been in vain by then
            return None
        need = gang.need
        need.is_unknown = gang.reporting.sentence_at is None
        if need.is_unknown:
            return None  # till the next verdict: nothing was searched yet, or a plan was lost
        if need.since is None or not _has_who_waits(gang):
            return False
        if _names_its_nodes(gang):
            if self._is_due(gang, now):
                self.reports.no_nodes_come(gang, messages.no_nodes_for_narrowed(gang.key))
            return False
        if need.is_open:
            self._look_into(gang, now)
            return True
        if not (self._has_asked(gang) or self._is_due(gang, now)):
            return False
        return self._is_capacity_alone(gang, now)

    def _has_asked(self, gang: Gang) -> bool:
        """Whether the watch shows that it asks for nodes, by Corral's mark or another one."""
        return self.requests.has(gang) or any(each.pod.is_marked for each in gang.members.values())

    def _is_due(self, gang: Gang, now: float) -> bool:
        """Whether a gang that lacks capacity has waited for long enough, or will not fit anyway."""
        need, lack = gang.need, gang.need.lack
        if need.since is None or lack is None:
            return False
        is_certain = lack.is_proven and not lack.is_cut_short
        if self.settings.needs_nodes == "never":
            due = math.inf
        elif is_certain:
            due = need.since + self.settings.needs_nodes_seconds
        else:
            due = need.since + self.settings.needs_nodes_stall_seconds
        if now >= due or (is_certain and self._is_never(gang, now)):
            return True
        self._later.look(gang.key, min(due, now + AGAIN_SECONDS))
        return False

    def _is_capacity_alone(self, gang: Gang, now: float) -> bool | None:
        """Whether nodes that others are to have would not do, either; None: not looked at yet."""
        if not self.planner.is_kept_off(gang):
            return True
        if not self._may_search():
            self.note(gang)
            return None
        if otherwise.fits_unreserved(self.planner, gang):
            self._later.look(gang.key, now + AGAIN_SECONDS)
            return False
        return True

    def _is_never(self, gang: Gang, now: float) -> bool:
        """Whether it would not fit if no pod ran, as far as that has been looked at."""
        need = gang.need
        if now >= need.never_at + AGAIN_SECONDS:
            if not self._may_search():
                self.note(gang)
                return False
            need.never_at = now
            need.is_never = not otherwise.fits_empty(self.planner, gang)
        return need.is_never

    def _may_search(self) -> bool:
        """Whether there is work left for a search in this tick; then it counts as made.

        Half of what a tick may do is for finding places.
        """
        if self._searches <= 0 or self.planner.budget.is_half_spent:
            return False
        self._searches -= 1
        return True

    def _set_open(self, gang: Gang, wanted: bool, now: float) -> None:
        need = gang.need
        if wanted == need.is_open:
            return
        need.is_open = wanted
        if wanted:
            need.opened_at, need.why = now, NEVER if self._is_never(gang, now) else BUSY
            self.open[gang.key] = None
            self.reports.needs_nodes(gang, self._sentence(gang))
            self._later.look(gang.key, now + self.settings.needs_nodes_stall_seconds)
        else:
            need.why = ""
            self.open.pop(gang.key, None)

    def _look_into(self, gang: Gang, now: float) -> None:
        """Find out why no node has come for long: its pods may fit, but not together.

        Or those of them fit that exist, and no others come before these run.
        """
        need, patience = gang.need, self.settings.needs_nodes_stall_seconds
        if need.why == FRAGMENTED or need.lack is None:
            return
        absent = sum(each.pod.uid not in gang.members for each in gang.unplanned())
        if need.why == GRADUAL and not absent:
            need.why, need.looked_at = BUSY, now  # they have come, and autoscalers see them
        if need.why == GRADUAL or not (absent or need.lack.level):
            return
        if gang.ask.how == REQUEST:
            return  # it says more than that pods need nodes
        pause = max(patience, need.looked_at - need.opened_at)  # twice as long each time
        due = max(need.opened_at + patience, self._nodes_at + patience, need.looked_at + pause)
        if now < due:
            self._later.look(gang.key, due)
            return
        if not self._may_search():
            self.note(gang)
            return
        need.looked_at = now
        if absent and otherwise.existing_fit(self.planner, gang):
            need.why = GRADUAL
            self.reports.no_nodes_come(gang, messages.others_come_later(gang.key, absent))
        elif need.lack.level and otherwise.fits_anywhere(self.planner, gang):
            need.why = FRAGMENTED
            self.reports.no_nodes_come(gang, messages.fragmented(gang.key, need.lack.level))
        else:
            self._later.look(gang.key, now + max(patience, now - need.opened_at))

    # -- the marks -------------------------------------------------------------------------------

    def _marks(self, gang: Gang, wanted: bool | None, now: float, most: int) -> Iterator[Mark]:
        """A Mark for each member whose condition is another one than it should be."""
        sent, shown, sentence = gang.need.sent, gang.need.shown, self._sentence(gang)
        for known in (sent, shown):
            for uid in known.keys() - gang.members.keys():
                del known[uid]
        gang.need.marked = {
            uid
            for uid in gang.need.marked
            if (member := gang.members.get(uid)) is not None and member.pod.is_marked
        }
        waiting = {each.pod.uid for each in gang.unplanned()}
        for uid, member in gang.members.items():
            if most <= 0:
                return
            if not _is_ours(member):
                sent.pop(uid, None)
                continue
            if wanted is None or uid in gang.plan.nodes:
                continue
            is_marked = wanted and uid in waiting
            last = sent.get(uid)
            if member.pod.is_marked == is_marked:
                if last is not None and last.is_marked == is_marked:
                    shown[uid] = sent.pop(uid)
                elif last is not None:  # it is undone once it shows; lost, it was of another need
                    sent[uid] = replace(last, again_after=UNSEEN_SECONDS)
                continue
            if last is not None and last.is_marked == is_marked:
                due, pause = last.at + last.again_after, last.pause
                again_after = min(2 * last.again_after, MOST_UNSEEN_SECONDS)
            else:
                due, pause = _undone(shown.get(uid), is_marked, now)
                again_after = UNSEEN_SECONDS
            if now < due:
                self._later.look(gang.key, due)
                continue
            sent[uid] = SentMark(is_marked, now, again_after, pause)
            pod, said = member.pod, sentence if is_marked else ""
            most -= 1
            yield Mark(pod.namespace, pod.name, uid, pod.version, said)

    def _sentence(self, gang: Gang) -> str:
        return messages.needs_nodes(gang.key, gang.need.lack)

    # -- figures ---------------------------------------------------------------------------------

    def asking(self) -> Iterator[Gang]:
        """The gangs that ask for nodes."""
        for key in self.open:
            gang = self.gangs.by_key.get(key)
            if gang is not None and gang.need.is_open and gang.phase in PLANNABLE:
                yield gang

    def needs(self, now: float) -> Needs:
        """What all gangs that are marked ask for together."""
        gangs, pods, resources = dict.fromkeys(REASONS, 0), 0, Counter[str]()
        oldest, counted = 0.0, self._counted
        self._counted = {}
        for gang in self.asking():
            key = gang.key
            gangs[gang.need.why] += 1
            oldest = max(oldest, now - gang.need.opened_at)
            known = counted.get(key)
            if known is None or known[0] != gang.version:
                known = gang.version, Counter(each.pod.request for each in gang.unplanned())
            self._counted[key] = known
            for request, number in known[1].items():
                pods += number
                resources.update({resource: amount * number for resource, amount in request})
        return Needs(gangs, pods, resources, oldest)


def _lack(verdict: NoPlan) -> NoFit | None:
    """The verdict, if it says that the cluster is too small or too full."""
    if isinstance(verdict.why, NoFit) and not verdict.is_narrowed_apart:
        return verdict.why
    return None


def _undone(last: SentMark | None, is_marked: bool, now: float) -> tuple[float, float]:
    """When a condition is to be written of which `last` was shown, and the pause after that."""
    if last is None or last.is_marked != is_marked:
        return -math.inf, UNDONE_SECONDS  # the first time that this holds
    stood = now >= last.at + 2 * last.pause
    pause = UNDONE_SECONDS if stood else min(2 * last.pause, MOST_UNDONE_SECONDS)
    return last.at + last.pause, pause


def _has_who_waits(gang: Gang) -> bool:
    """Whether some pod without a node exists, or did and is to come again.

    Nodes that come would be kept for no pod, for as long as its controller makes no pod.
    """
    return any(
        each.pod.uid in gang.members or not gang.placeholders[each.pod.uid].is_to_come
        for each in gang.unplanned()
    )


def _names_its_nodes(gang: Gang) -> bool:
    """Whether all its waiting pods are without a gate, and some may go to nodes by name alone.

    No autoscaler makes a node for such a pod, and none that comes is one of these.
    """
    waiting = [each for each in gang.unplanned() if each.pod.uid in gang.members]
    is_named = any(each.allowed is not None for each in waiting)
    return is_named and not any(map(_is_ours, waiting))


def _is_ours(member: Member) -> bool:
    """Whether we mark a member: it is behind our gate, and alive."""
    return member.is_gated and member.is_live and not member.pod.node
