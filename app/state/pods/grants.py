"""Room that a preemption frees, and whose it is.

    /preempt ──▶ grant: this preemptor, this node, these victims ──▶ the victims go ──▶ it is bound

From the answer on the node counts as the preemptor's, for plans of no higher priority: its
nominated node comes by the watch later, and the victims may be gone by then. While a grant lives
its preemptor is given no other node: nobody else dies for the same pod. After a restart there are
none; nominated nodes and the pods that terminate there say the same.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, field

from app.state.pods.nominations import Nomination, Nominations

UNHEARD_SECONDS = 10.0  # after the answer: then it was lost, if nothing has come of it
FREED_SECONDS = 60.0  # after the last victim is gone
COUNTED_SECONDS = 600.0  # for so long a grant that came to nothing counts
MOST_IN_VAIN = 3  # of them, and the pod gets none any more


@dataclass(slots=True)
class Grant:
    """What one preemptor was promised."""

    node: str
    victims: frozenset[str]  # uids
    made_at: float
    freed_at: float | None = None  # when the last victim was seen to be gone
    is_refused: bool = False  # what is held for others has kept the preemptor off its node since


@dataclass(slots=True)
class Grants:
    """The grants, by the uid of the preemptor; one for each at most."""

    nominations: Nominations
    of: dict[str, Grant] = field(default_factory=dict)
    _in_vain: dict[str, list[float]] = field(default_factory=dict)
    """By preemptor: when those were made that came to nothing."""

    def make(self, uid: str, nomination: Nomination, victims: frozenset[str], now: float) -> None:
        """Promise a node to a preemptor."""
        self.of[uid] = Grant(nomination.node, victims, now)
        self.nominations.expect(uid, nomination)

    def end(self, uid: str) -> str:
        """End a grant that came to nothing; returns its node, "" if there is none."""
        grant = self.of.pop(uid, None)
        if grant is None:
            return ""
        self.nominations.expect(uid, None)
        self._in_vain.setdefault(uid, []).append(grant.made_at)
        return grant.node

    def forget(self, uid: str) -> str:
        """Forget a preemptor that is bound or gone; returns the node of its grant, or ""."""
        self._in_vain.pop(uid, None)
        grant = self.of.pop(uid, None)
        if grant is None:
            return ""
        self.nominations.expect(uid, None)
        return grant.node

    def follow(self, uid: str, nominated_node: str) -> str:
        """Learn which node a preemptor is nominated for; another one ends its grant."""
        grant = self.of.get(uid)
        return self.end(uid) if grant and nominated_node not in ("", grant.node) else ""

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
        return len(made) >= MOST_IN_VAIN

    def is_victim(self, uid: str) -> bool:
        """Whether a pod goes for a grant that lives."""
        return any(uid in grant.victims for grant in self.of.values())

    def expire(
        self, now: float, is_there: Callable[[str], bool], is_open: Callable[[str], bool]
    ) -> Iterator[str]:
        """End what is over; yields the nodes that are free for others again.

        `is_there`: whether a pod is on its node still. `is_open`: whether a node takes pods.
        """
        for uid, grant in list(self.of.items()):
            if any(is_there(victim) for victim in grant.victims):
                grant.freed_at = None
                is_over = now >= grant.made_at + UNHEARD_SECONDS and not self.nominations.has(uid)
            else:
                grant.freed_at = now if grant.freed_at is None else grant.freed_at
                is_over = now >= grant.freed_at + FREED_SECONDS
            if is_over or not is_open(grant.node):
                yield self.end(uid)
