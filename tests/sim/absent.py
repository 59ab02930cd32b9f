"""I13: what a namespace has held for pods that do not exist stays within its bound.

So many pods or that share of the cluster, whichever is more, whenever a place is added; nodes may
go afterwards. Counted here from what is booked, by the uids that the API server has given: a place
of any other uid is for a pod that does not exist. That of a lost member, one for each pod that ever
ran, is not counted: its gang had it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from app.dialects.spec import GangKey
from app.kube.core.objects import Amounts, NodeRecord
from app.state.settings import EngineSettings
from tests.sim.api import ApiServer
from tests.sim.life import Life
from tests.sim.violation import require

Places = dict[str, tuple[GangKey | None, Amounts]]
"""By the uid of the booking: whose it is, and what is held."""


@dataclass(slots=True)
class AbsentPlaces:
    """What is held for them, input by input. The world has one namespace."""

    api: ApiServer
    _existed: set[str] = field(default_factory=set)  # uids of all pods there ever were
    _ran: set[str] = field(default_factory=set)  # of those that had a node

    def __post_init__(self) -> None:
        self.api.subscribe("Pod", self._note)

    def _note(self) -> None:
        record: Any = self.api.changes["Pod"][-1].record
        self._existed.add(record.uid)
        if record.node:
            self._ran.add(record.uid)

    def took(self, life: Life) -> None:
        """Raises: Violation."""
        now = self.held(life)
        if now.keys() - life.absent:
            nodes: Any = life.streams["Node"].mirror.values()
            settings = life.engine.settings
            asked = [request for _, request in now.values()]
            require(
                may_hold(settings, nodes, asked),
                f"I13: places are held for {len(now)} pods that do not exist: {total_of(asked)};"
                f" a namespace may have {settings.absent_pods_per_namespace} or"
                f" {settings.absent_share_per_namespace:.0%} of {len(nodes)} nodes",
            )
        life.absent = frozenset(now)

    def held(self, life: Life) -> Places:
        """The places for pods that do not exist, but for those of lost members."""
        books = life.engine.books.held
        absent = [uid for uid in books if uid not in self._existed]
        if not absent:
            return {}
        lost = {
            uid: (gang.key, place.instead_of)
            for gang in life.engine.gangs.by_key.values()
            for uid, place in gang.placeholders.items()
        }
        found: Places = {}
        replaced: set[str] = set()
        for uid in absent:
            key, instead_of = lost.get(uid, (None, ""))
            if instead_of in self._ran and instead_of not in replaced:
                replaced.add(instead_of)
            else:
                found[uid] = key, books[uid].request
        return found

    def has_room(self, lives: Iterable[Life], key: GangKey, asked: Collection[Amounts]) -> bool:
        """Whether the gang may have these held too, beside what others have from any of these."""
        nodes = self.api.list("Node")
        return all(
            may_hold(
                life.engine.settings,
                nodes,
                [*asked, *(request for of, request in self.held(life).values() if of != key)],
            )
            for life in lives
        )


def may_hold(
    settings: EngineSettings, nodes: Collection[NodeRecord], asked: Collection[Amounts]
) -> bool:
    """Whether a namespace may have all of these held in a cluster of these nodes."""
    if len(asked) <= settings.absent_pods_per_namespace:
        return True
    share, there = settings.absent_share_per_namespace, total_of(n.allocatable for n in nodes)
    return share == 1.0 or all(
        amount <= share * there[resource] for resource, amount in total_of(asked).items()
    )


def total_of(amounts: Iterable[Amounts]) -> Counter[str]:
    """The sum of each resource."""
    found = Counter[str]()
    for each in amounts:
        found.update(dict(each))
    return found
