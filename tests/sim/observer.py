"""Who looks on at a Corral: every input, every answer and every effect; `checks.py` does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from app.dialects.spec import GangKey
from app.kube.core.objects import PodRecord
from app.kube.watch.events import Event
from app.state.effects import Bind, BindOutcome, Effect, Evict, EvictOutcome, RoomAnswer, Suspend
from app.state.filter_result import FilterAnswer, Victims
from tests.sim.isolation import Subject

if TYPE_CHECKING:
    from tests.sim.corral import Corral


@dataclass(frozen=True, slots=True)
class PreemptCall:
    """A question at /preempt, and its answer: both by node."""

    pod: PodRecord
    offered: Mapping[str, Victims]
    answer: Mapping[str, Victims]


class Observer(Protocol):
    """In the order in which it is called for one input."""

    def takes(self, corral: Corral, subject: Subject) -> None:
        """The engine is about to take an input."""

    def taken(self, corral: Corral, subject: Subject, effects: Sequence[Effect]) -> None:
        """The engine has taken it, and nothing has followed yet."""

    def answered(
        self, corral: Corral, pod: PodRecord, names: Sequence[str], answer: FilterAnswer
    ) -> None:
        """/filter is about to be answered like this."""

    def admitted(self, corral: Corral, gang: GangKey, answer: tuple[str, ...] | None) -> None:
        """The webhook is about to answer so about a pod of this gang that is not created yet."""

    def chose(self, corral: Corral, asked: PreemptCall) -> None:
        """/preempt is about to be answered like this."""

    def preempted(self, corral: Corral, asked: PreemptCall) -> None:
        """The effects of /preempt have followed; the process may have died of them."""

    def arriving(self, corral: Corral, uid: str, node: str) -> None:
        """The engine is about to hear that a pod is at /bind, for this node."""

    def arrived(self, corral: Corral, uid: str, node: str) -> None:
        """The engine has heard it, and nothing has followed yet."""

    def decided(self, corral: Corral, effects: Sequence[Effect]) -> None:
        """These effects are about to be carried out."""

    def took(self, corral: Corral, text: str) -> None:
        """One input is done with; `text` says what it was."""

    def crash_after(self, corral: Corral, effects: Sequence[Effect]) -> int | None:
        """After how many of these effects the process dies; None: it does not."""

    def heard(self, corral: Corral, event: Event) -> None:
        """A watch event has been taken."""

    def posting(self, corral: Corral, bind: Bind) -> None:
        """This binding has reached the API server."""

    def found_room(self, corral: Corral, gang: GangKey, answer: RoomAnswer) -> None:
        """This has been found for a gang that waits, as the cluster is now."""

    def evicting(self, corral: Corral, effect: Evict) -> None:
        """This eviction is about to be sent."""

    def suspending(self, corral: Corral, effect: Suspend) -> None:
        """This is about to be sent."""

    def suspended(self, corral: Corral, effect: Suspend, outcome: EvictOutcome) -> None:
        """The engine has heard of this, if its process lives."""

    def eviction_ended(self, corral: Corral, take: Callable[[], list[Effect]]) -> None:
        """The outcome of an eviction has been taken; `take` gives it to the engine again."""

    def bind_ended(self, corral: Corral, bind: Bind, outcome: BindOutcome) -> None:
        """The engine is about to hear of this."""
