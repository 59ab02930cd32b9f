"""Room that a preemption frees, and whose it is.

    /preempt ──▶ grant: this preemptor, this node, these victims ──▶ the victims go ──▶ it is bound

From the answer on the node counts as the preemptor's, for plans of no higher priority: its
nominated node comes by the watch later, and the victims may be gone by then. While a grant lives
its preemptor is given no other node: no other pod ends for the same one. It does not depend on the
nominated node, which kube-scheduler may clear while the victims end, or write and then fail to
delete them. After a restart there are none; nominated nodes and the pods that terminate there say
the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass, field

from app.state.pods.nominations import Nomination, Nominations

UNHEARD_SECONDS = 10.0  # after the answer: then it was lost, if none of the victims terminates
FREED_SECONDS = 60.0  # after the last victim is gone …
IDLE_SECONDS = 10.0  # … and by then its preemptor has been tried again, or kube-scheduler forgot it
COUNTED_SECONDS = 600.0  # for so long a grant that came to nothing counts
MOST_IN_VAIN = 3  # of them, and the pod gets none any more


@dataclass(slots=True)
class Grant:
    """What one preemptor was promised."""

    node: str
    victims: frozenset[str]  # uids
    made_at: float
    freed_at: float | None = None  # when the last victim was seen to be gone
    was_nominated_for: str = ""  # as the watch had it then: events may show that for a while
    is_woken: bool = False  # its preemptor was requeued
    is_refused: bool = False  # what is held for others has kept the preemptor off its node since


@dataclass(slots=True)
class Grants:
    """The grants, by the uid of the preemptor; one for each at most."""

    nominations: Nominations
    of: dict[str, Grant] = field(default_factory=dict)
    _victims: Counter[str] = field(default_factory=Counter)  # by uid: grants it goes for
    _in_vain: dict[str, list[float]] = field(default_factory=dict)
    """By preemptor: when those were made that came to nothing."""
    _told: set[str] = field(default_factory=set)  # preemptors that were told that they are stopped

    def make(self, uid: str, nomination: Nomination, victims: frozenset[str], now: float) -> None:
        """Promise a node to a preemptor; without victims, where what is held there gives way."""
        self._remove(uid)
        known = self.nominations.of(uid)
        grant = Grant(nomination.node, victims, now, was_nominated_for=known.node if known else "")
        self.of[uid] = grant
        self._victims.update(victims)
        self.nominations.expect(uid, nomination)

    def _remove(self, uid: str) -> Grant | None:
        grant = self.of.pop(uid, None)
        if grant is None:
            return None
        self.nominations.expect(uid, None)
        self._victims.subtract(grant.victims)
        for victim in grant.victims:
            if not self._victims[victim]:
                del self._victims[victim]
        return grant

    def end(self, uid: str) -> str:
        """End a grant that came to nothing; returns its node, "" if there is none."""
        grant = self._remove(uid)
        if grant is None:
            return ""
        self._in_vain.setdefault(uid, []).append(grant.made_at)
        return grant.node

    def forget(self, uid: str) -> str:
        """Forget a preemptor that is bound or gone; returns the node of its grant, or ""."""
        self._in_vain.pop(uid, None)
        self._told.discard(uid)
        grant = self._remove(uid)
        return grant.node if grant else ""

    def follow(self, uid: str, nominated_node: str) -> str:
        """Learn which node a preemptor is nominated for; another one ends its grant."""
        grant = self.of.get(uid)
        if grant is None or nominated_node in ("", grant.node, grant.was_nominated_for):
            return ""
        return self.end(uid)

    def refuse(self, uid: str, nodes: Container[str]) -> None:
        """Note that these nodes were refused to a pod."""
        grant = self.of.get(uid)
        if grant is not None and grant.node in nodes:
            grant.is_refused = True

    def is_stopped(self, uid: str, now: float) -> bool:
        """Whether so many grants came to nothing that the pod gets none for now."""
        made = [at for at in self._in_vain.get(uid, ()) if at > now - COUNTED_SECONDS]
        if not made:
            self._in_vain.pop(uid, None)
            self._told.discard(uid)
        return len(made) >= MOST_IN_VAIN

    def is_untold(self, uid: str) -> bool:
        """Whether it is the first time that this is asked since the pod was stopped."""
        is_first = uid not in self._told
        self._told.add(uid)
        return is_first

    def is_victim(self, uid: str) -> bool:
        """Whether a pod goes for a grant that lives."""
        return uid in self._victims

    def idle(self, now: float) -> Iterator[str]:
        """Preemptors to be requeued: their room is free, and they have not come for it; each once.

        kube-scheduler tries a preemptor again when a victim that had a node is gone. One that had
        not, for its binding was under way, goes without that event.
        Source: kubernetes v1.36 pkg/scheduler/eventhandlers.go, deletePodFromSchedulingQueue.
        """
        for uid, grant in self.of.items():
            is_free = grant.freed_at is not None and now >= grant.freed_at + IDLE_SECONDS
            if is_free and not grant.is_woken:
                grant.is_woken = True
                yield uid

    def expire(
        self,
        now: float,
        is_there: Callable[[str], bool],
        is_terminating: Callable[[Iterable[str]], bool],
        is_open: Callable[[str], bool],
    ) -> Iterator[str]:
        """End what is over; yields the nodes that are free for others again.

        `is_there`: whether a pod is on its node still. `is_terminating`: whether one of some pods
        is on its way out. `is_open`: whether a node takes pods.
        """
        for uid, grant in list(self.of.items()):
            if any(is_there(victim) for victim in grant.victims):
                grant.freed_at = None
                is_over = now >= grant.made_at + UNHEARD_SECONDS
                is_over = is_over and not is_terminating(grant.victims)
            else:
                grant.freed_at = now if grant.freed_at is None else grant.freed_at
                is_over = now >= grant.freed_at + FREED_SECONDS
            if is_over or not is_open(grant.node):
                yield self.end(uid)
