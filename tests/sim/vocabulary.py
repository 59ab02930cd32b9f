"""What a vocabulary adds to a world: objects, workloads, what may happen to them, and checks.

All random numbers are of its own: the seeds without it are the histories that they were.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Any, Protocol

from app.kube.core.objects import PodRecord
from app.kube.watch.events import Kind
from app.state.effects import Effect
from app.state.gang.gang import Gang

if TYPE_CHECKING:
    from tests.sim.corral import Corral
    from tests.sim.isolation import Subject
    from tests.sim.kinds import Workload
    from tests.sim.life import Life
    from tests.sim.oracle import Cluster, Taken


class VocabularyChecks(Protocol):
    """What must hold after every step, as `observer.py` has it. All raise Violation."""

    def taken(self, corral: Corral, subject: Subject, effects: Sequence[Effect], /) -> None: ...

    def decided(self, corral: Corral, effects: Sequence[Effect], /) -> None: ...

    def took(self, life: Life, /) -> None: ...


class Vocabulary(Protocol):
    """All of a vocabulary in one world."""

    @property
    def source(self) -> str:
        """Of the keys of its gangs."""

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """What is watched of it."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """Of the engines, that it needs."""

    @property
    def checks(self) -> VocabularyChecks: ...

    def create(self) -> None:
        """Make what is there before all workloads."""

    def begin(self) -> None:
        """Have workloads come, and things change, from now on."""

    def heal(self) -> None:
        """Nothing changes any more."""

    def waits_in_vain(self, name: str, members: Collection[PodRecord], taken: Taken) -> str:
        """Where the waiting pods of a gang have a place; "" if they have none for certain."""

    def judge(self) -> None:
        """What its objects say when all is quiet. Raises: Violation."""

    def fresh(self) -> Workload:
        """A workload that runs within seconds where nobody else is, whatever it takes."""


class ContestedChecks(VocabularyChecks, Protocol):
    """What must hold besides where pods are evicted for its gangs."""

    def together(self, life: Life, gang: Gang, places: Mapping[str, str], /) -> None:
        """P3: the pods that have these nodes, by uid, are where they have to be together."""


class Contested(Vocabulary, Protocol):
    """One that is also in worlds where pods are evicted for gangs, and its gangs for others."""

    @property
    def checks(self) -> ContestedChecks: ...

    def drawn(self, rng: Random, most_pods: int) -> Workload:
        """A new workload of at most so many pods, without a name."""

    def waits_in_vain(
        self,
        name: str,
        members: Collection[PodRecord],
        taken: Taken,
        among: Cluster | None = None,
    ) -> str:
        """As of any. `among`: the nodes, and the pods that count; None: all."""
