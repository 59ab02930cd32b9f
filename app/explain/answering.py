"""The searches of an explanation, on a copy: pure, and run in a thread.

what was asked ──search──▶ fits now, or the verdict
               ──relax───▶ what would fit instead
               ──victims─▶ without which pods
the verdict ──────────────▶ the best domain, what is short there, and who has it
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from app.explain.advice import ADVICE
from app.explain.asking import Asking
from app.explain.view import Best, Blocker, Excluded, Explanation, Relaxation, Shortage
from app.state.cache.books import Booking
from app.state.effects import RoomAnswer
from app.state.gang.reasons import Reason
from app.state.plan.exclusions import Told
from app.state.plan.request import search
from app.state.preempt.standing import Standing
from topology.errors import InvalidRequest
from topology.fit.fit import NOT_OPEN, pods_per_node
from topology.model import answer as answers
from topology.model.answer import NoFit, Placement
from topology.model.request import PodSet
from topology.model.resources import Counts, Mask
from topology.relax.relax import Leeway, relaxations

MOST_SEARCHES = 200
MOST_EXAMPLES = 2
MOST_BLOCKERS = 5
MOST_NODES = 8  # named in a relaxation

INSUFFICIENT = "insufficient "
_UNITS = {"cpu": 1000}  # counted in thousandths


def answer(asking: Asking) -> Explanation:
    """What is to be said of the gang."""
    advice = ADVICE[asking.gang.reason]
    explanation = Explanation(
        gang=asking.gang,
        fits_now=False,
        tries_again=advice.tries_again,
        advice=advice.to_do,
        retry_seconds=asking.retry_seconds,
    )
    verdict: NoFit | None = None
    for told in asking.searches:
        try:
            found = search(told.request)
        except InvalidRequest:
            return explanation
        if isinstance(found, Placement):
            return explanation.model_copy(
                update={
                    "fits_now": True,
                    "topology": told.topology,
                    "advice": ADVICE[Reason.QUEUED].to_do,
                }
            )
        verdict = verdict or found
    if verdict is None:
        return explanation
    return explanation.model_copy(update=_why_not(asking, asking.searches[0], verdict))


def _why_not(asking: Asking, told: Told, verdict: NoFit) -> dict[str, object]:
    where = _Where.of(told, verdict)
    return {
        "topology": told.topology,
        "best": where.best(),
        "excluded": tuple(_excluded(asking, told, verdict)),
        "blockers": tuple(_blockers(asking, where)),
        "relaxations": tuple(_relaxations(asking, told)),
    }


# -- the best domain -------------------------------------------------------------------------------


class _Where:
    """The domain that could take most of the pods that do not fit."""

    def __init__(self, told: Told, verdict: NoFit, pod_set: PodSet, level: int) -> None:
        self.told, self.verdict, self.pod_set = told, verdict, pod_set
        request, capacity = told.request, told.request.capacity
        asked = np.zeros(len(capacity.free_now), dtype=np.int64)
        asked[: len(pod_set.request)] = pod_set.request[: len(asked)]
        self.asked: Counts = asked
        self.open: Mask = capacity.is_open & request.attempts[-1][verdict.pod_set]
        self.pods = np.where(self.open, pods_per_node(capacity.free_now, asked.tolist()), 0)
        tree = request.tree
        self.slots = slice(0, len(tree.nodes))
        self.domain = ""
        if level >= 0 and tree.nodes:
            by_domain = np.add.reduceat(self.pods, tree.starts[level])
            best = int(by_domain.argmax())
            self.slots = tree.slots(level, best)
            self.domain = f"{tree.levels[level]}={'/'.join(tree.path(level, best))}"

    @classmethod
    def of(cls, told: Told, verdict: NoFit) -> _Where:
        """The domain of the level that one domain of must take them all."""
        pod_sets = {each.name: each for each in told.request.gang.pod_sets()}
        levels = told.request.tree.levels
        level = levels.index(verdict.level) if verdict.level else -1
        return cls(told, verdict, pod_sets[verdict.pod_set], level)

    def best(self) -> Best:
        """The domain in words."""
        needed = self.pod_set.pods if self.pod_set.needed is None else self.pod_set.needed
        return Best(
            domain=self.domain,
            pods=min(int(self.pods[self.slots].sum()), self.pod_set.pods),
            needed=needed,
            short=tuple(self._short(needed)),
        )

    def short_rows(self) -> list[int]:
        """The resources of which too little is free; else those that are requested."""
        capacity = self.told.request.capacity
        free = np.clip(capacity.free_now[:, self.slots], 0, None)[:, self.open[self.slots]]
        requested = [int(row) for row in np.flatnonzero(self.asked)]
        total = free.sum(axis=1) if free.size else np.zeros(len(self.asked), dtype=np.int64)
        short = [row for row in requested if total[row] < self.asked[row] * self.pod_set.pods]
        return short or requested

    def _short(self, needed: int) -> Iterator[Shortage]:
        capacity = self.told.request.capacity
        free = np.clip(capacity.free_now[:, self.slots], 0, None)[:, self.open[self.slots]]
        for row in np.flatnonzero(self.asked).tolist():
            has, wanted = int(free[row].sum()), int(self.asked[row]) * needed
            if has < wanted:
                name = capacity.axis.names[row]
                unit = _UNITS.get(name, 1)
                yield Shortage(resource=name, free=has / unit, requested=wanted / unit)


def _blockers(asking: Asking, where: _Where) -> Iterator[Blocker]:
    """Who has most of what is short in the best domain."""
    if asking.room is None:
        return
    standing, tree = asking.room.standing, where.told.request.tree
    names = where.told.request.capacity.axis.names
    short = {names[row] for row in where.short_rows()} - {"pods"}
    taken, pods = Counter[tuple[str, bool]](), Counter[tuple[str, bool]]()
    books: tuple[tuple[bool, dict[str, Booking]], ...] = (
        (False, dict(standing.bound)),
        (True, dict(standing.held)),
    )
    for is_reserved, bookings in books:
        for uid, booking in bookings.items():
            slot = tree.slot_of.get(booking.node)
            if slot is None or not where.slots.start <= slot < where.slots.stop:
                continue
            amount = sum(its for resource, its in booking.request if resource in short)
            if amount:
                gang = asking.gang_of.get(uid)
                who = f"gang {gang}" if gang else f"pod {_pod_name(standing, uid)}"
                taken[who, is_reserved] += amount
                pods[who, is_reserved] += 1
    own = f"gang {asking.gang.namespace}/{asking.gang.name}"
    largest = sorted(taken, key=lambda each: (-taken[each], each))
    for who, is_reserved in [each for each in largest if each[0] != own][:MOST_BLOCKERS]:
        yield Blocker(who=who, pods=pods[who, is_reserved], is_reserved=is_reserved)


def _pod_name(standing: Standing, uid: str) -> str:
    occupant, name = standing.occupants.get(uid), standing.names.get(uid, uid)
    return name if occupant is None else f"{occupant.namespace}/{name}"


# -- nodes that take none --------------------------------------------------------------------------


def _excluded(asking: Asking, told: Told, verdict: NoFit) -> Iterator[Excluded]:
    for reason, nodes in told.verdict(verdict).excluded:
        if reason != NOT_OPEN:
            examples = _examples(told, verdict, reason)
            yield Excluded(reason=reason, nodes=nodes, examples=examples)
    for why, nodes in sorted(Counter(asking.away.values()).items()):
        examples = tuple(sorted(node for node, its in asking.away.items() if its == why))
        yield Excluded(reason=why, nodes=nodes, examples=examples[:MOST_EXAMPLES])


def _examples(told: Told, verdict: NoFit, reason: str) -> tuple[str, ...]:
    """Two nodes that are excluded for this reason, by name."""
    capacity, closed = told.request.capacity, told.closed[int(verdict.pod_set)]
    mask = told.request.attempts[-1][verdict.pod_set]
    if reason.startswith(INSUFFICIENT):
        name = reason.removeprefix(INSUFFICIENT)
        pod_set = next(e for e in told.request.gang.pod_sets() if e.name == verdict.pod_set)
        row = (
            capacity.axis.names.index(name)
            if name in capacity.axis.names
            else len(capacity.free_now)
        )
        if row >= min(len(capacity.free_now), len(pod_set.request)):
            where = capacity.is_open
        else:
            where = capacity.is_open & mask & (capacity.free_now[row] < pod_set.request[row])
    elif reason in closed.reasons:
        where = capacity.is_open & ~mask & (closed.code == closed.reasons.index(reason))
    else:
        return ()
    nodes = told.request.tree.nodes
    return tuple(nodes[slot] for slot in np.flatnonzero(where)[:MOST_EXAMPLES].tolist())


# -- what would fit instead ------------------------------------------------------------------------


def _relaxations(asking: Asking, told: Told) -> Iterator[Relaxation]:
    request = told.request
    away = {
        slot: asking.away.get(request.tree.nodes[slot], NOT_OPEN)
        for slot in np.flatnonzero(~request.capacity.is_open).tolist()
    }
    found = relaxations(
        request.tree,
        request.capacity,
        request.gang,
        request.attempts[-1],
        request.options,
        Leeway(away=away, budget=MOST_SEARCHES),
    )
    for each in found.found:
        yield _relaxation(told, each)
    if asking.room is not None and not any(isinstance(e, answers.Never) for e in found.found):
        room = asking.room.answer()
        if room.is_found and room.pods:
            yield _pods_gone(room)


def _relaxation(told: Told, found: answers.Relaxation) -> Relaxation:
    kind, said = type(found).__name__, _named(told, found)
    match said:
        case answers.WiderLevel():
            return Relaxation(
                kind=kind,
                text=str(said),
                pod_sets=said.names,
                level=said.level,
                is_cut_short=said.is_cut_short,
            )
        case answers.FewerPods():
            return Relaxation(
                kind=kind,
                text=str(said),
                pod_sets=(said.pod_set,),
                pods=said.pods,
                is_cut_short=said.is_cut_short,
            )
        case answers.FewerMembers():
            return Relaxation(
                kind=kind,
                text=str(said),
                pod_sets=(said.group,),
                pods=said.members,
                is_cut_short=said.is_cut_short,
            )
        case answers.NodesBack():
            nodes = tuple(name for _, name, _ in said.nodes[:MOST_NODES])
            return Relaxation(
                kind=kind, text=str(said), nodes=nodes, is_cut_short=said.is_cut_short
            )
        case answers.Never():
            return Relaxation(kind=kind, text=str(said))


def _named(told: Told, found: answers.Relaxation) -> answers.Relaxation:
    """The relaxation with pod sets as users name them."""

    def name(each: str) -> str:
        return told.names[int(each)] if each.isdecimal() and int(each) < len(told.names) else each

    match found:
        case answers.WiderLevel():
            return replace(found, names=tuple(dict.fromkeys(map(name, found.names))))
        case answers.FewerPods():
            return replace(found, pod_set=name(found.pod_set))
        case _:
            return found


def _pods_gone(room: RoomAnswer) -> Relaxation:
    shown = ", ".join(f"{name} (priority {priority})" for name, priority in room.named[:3])
    more = f" and {room.units - 3} more" if room.units > 3 else ""
    pods = "1 pod" if room.pods == 1 else f"{room.pods} pods"
    where = f" in {room.domain}" if room.domain else ""
    return Relaxation(
        kind="PodsGone",
        text=f"would fit{where} without {pods} of lower priority: {shown}{more}",
        pods=room.pods,
        is_cut_short=room.is_cut_short,
    )
