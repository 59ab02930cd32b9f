"""Why a pod found no node: one verdict per node, and the sentence made of them.

A node without a verdict was not filtered, or an extender left it out without a reason; both count
as unresolvable and add nothing to the sentence (framework/interface.go, NodeToStatus).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from app.sandbox.scheduler.cycle.filters import Outcome, Verdict
from app.sandbox.scheduler.facts.pod_facts import PodFacts

EXTENDER = "Extender"  # the rejector of pods that an extender rejected
_NOTE_LENGTH = 1024  # bytes of an event's text


class SchedulingFailure(Exception):
    """A cycle that ended without a node.

    is_rejection: the nodes were judged and none is good (Unschedulable); else an error.
    rejectors: the plugins that judged so; they decide which event brings the pod back.
    nominates, victims: the outcome of a preemption.
    """

    def __init__(
        self,
        message: str,
        *,
        rejectors: Iterable[str] = (),
        clears_nomination: bool = True,
        nominates: str = "",
        victims: Iterable[PodFacts] = (),
        is_rejection: bool = False,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.rejectors = frozenset(rejectors)
        self.is_rejection = is_rejection
        self.clears_nomination = clears_nomination
        self.nominates = nominates
        self.victims = tuple(victims)


@dataclass(slots=True)
class Diagnosis:
    """Collected along one cycle. `absent`: the reason of nodes PreFilter left out, if it did."""

    all_nodes: int
    rejectors: set[str] = field(default_factory=set)
    absent: str = ""
    _explicit: dict[str, Verdict] = field(default_factory=dict)
    _outcomes: list[Outcome] = field(default_factory=list)

    def add_outcome(self, outcome: Outcome) -> None:
        """Add the in-tree verdicts; they become one per node on first use."""
        self._outcomes.append(outcome)
        self.rejectors |= outcome.rejectors()

    def set(self, node: str, verdict: Verdict) -> None:
        self.verdicts()[node] = verdict

    @property
    def nodes_judged(self) -> int:
        """How many nodes have failed so far; what the sampling window moves on by, in part."""
        return len(self._explicit) + sum(each.failed_nodes for each in self._outcomes)

    def verdicts(self) -> dict[str, Verdict]:
        for outcome in self._outcomes:
            self._explicit.update(outcome.verdicts())
        self._outcomes.clear()
        return self._explicit

    def sentence(self, post_filter: str = "") -> str:
        """`0/5 nodes are available: 3 Insufficient cpu, 2 node(s) were unschedulable. …`"""
        verdicts = self.verdicts()
        counts = Counter(reason for each in verdicts.values() for reason in each.reasons)
        if self.absent and len(verdicts) < self.all_nodes:
            counts[self.absent] += self.all_nodes - len(verdicts)
        text = f"0/{self.all_nodes} nodes are available:"
        if counts:
            text += f" {', '.join(sorted(f'{n} {reason}' for reason, n in counts.items()))}."
        return f"{text} {post_filter}" if post_filter else text


def event_text(message: str) -> str:
    """The message cut to what an event may carry; the condition keeps all of it."""
    raw = message.encode()
    if len(raw) <= _NOTE_LENGTH:
        return message
    return raw[: _NOTE_LENGTH - 4].decode(errors="ignore") + " ..."
