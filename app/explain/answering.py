"""The searches of an explanation, on a copy: pure, and run in a thread.

what was asked ──search──▶ fits now, or the verdict
               ──relax───▶ what would fit instead
               ──victims─▶ without which pods
the verdict ──────────────▶ the best domain, what is short there, and who has it
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from app.explain.advice import (
    ADVICE,
    ANOTHER_ONE,
    NEVER_FITS,
    NO_CHANGE_KNOWN,
    NO_LABELS,
    NO_NODES,
)
from app.explain.asking import Asking
from app.explain.view import Best, Blocker, Excluded, Explanation, Relaxation, Shortage
from app.kube.core.turns import turn
from app.state.effects import RoomAnswer
from app.state.gang.reasons import Reason
from app.state.plan.elsewhere.long_search import at_length
from app.state.plan.exclusions import EARMARKED, ELSEWHERE, REFUSED, UNLABELLED, Told, named
from app.state.plan.question.group_tree import UNIT
from app.state.plan.question.parts import Unplaced
from app.state.plan.question.request import SearchRequest, search
from app.state.preempt.standing import Standing
from app.state.report.messages import preemption as messages
from app.state.report.naming import namespace_in
from topology.errors import InvalidRequest
from topology.fit.fit import NOT_OPEN, pods_per_node
from topology.model import answer as answers
from topology.model.answer import NoFit, Placement
from topology.model.changed.capacity import emptied
from topology.model.request import Group, PodSet
from topology.model.resources import Counts, Mask
from topology.relax.relax import Leeway, relaxations

MOST_SEARCHES = 200
MOST_EXAMPLES = 2
MOST_BLOCKERS = 5
MOST_NODES = 8  # named in a relaxation

HELD_BACK = (
    Reason.BACKING_OFF,
    Reason.REFUSED_BY_SCHEDULER,
    Reason.NAMESPACE_BUDGET,
    Reason.QUOTA,
)
"""What it waits for is not a place."""
NEVER = "Never"  # the kind of a relaxation that is none
OTHERS = "other namespaces"
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
        runs_on=asking.runs_on,
        awaited=asking.awaited,
        attempts=asking.attempts,
    )
    try:
        told, verdict = _searched(asking)
    except InvalidRequest:
        return explanation
    if told is None:
        return explanation
    if verdict is not None:
        return explanation.model_copy(update=_why_not(asking, told, verdict))
    found_one: dict[str, object] = {"fits_now": True, "topology": told.topology}
    if asking.gang.reason not in HELD_BACK:
        found_one["advice"] = ADVICE[Reason.QUEUED].to_do
    return explanation.model_copy(update=found_one)


def _searched(asking: Asking) -> tuple[Told | None, NoFit | None]:
    """The search that finds a place, or the first one and why it finds none.

    Of a gang in parts that of the part without a place, beside the others as far as these have one.
    Raises: InvalidRequest.
    """
    if asking.parts is not None:
        placed = asking.parts.mapped(at_length).answer()
        if not isinstance(placed, Unplaced):
            return asking.searches[0], None
        told = asking.searches[placed.part]
        return replace(told, request=placed.as_if_there), placed.why
    verdict: NoFit | None = None
    for told in asking.searches:
        found = search(told.request)
        if isinstance(found, Placement):
            return told, None
        verdict = verdict or found
    return next(iter(asking.searches), None), verdict


def _why_not(asking: Asking, told: Told, verdict: NoFit) -> dict[str, object]:
    where = _Where.of(told, verdict)
    # Of no nodes it would be said that they are open and empty.
    away = asking.away()
    changes = tuple(_relaxations(asking, told, away)) if told.request.tree.nodes else ()
    return {
        "topology": told.topology,
        "finds_now": _finds_now(asking, told, verdict),
        "best": where.best(),
        "excluded": tuple(_excluded(asking, where, away)),
        "blockers": tuple(_blockers(asking, where)),
        "relaxations": changes,
        "advice": _advice(asking, told, changes),
    }


def _advice(asking: Asking, told: Told, changes: tuple[Relaxation, ...]) -> str:
    """What to do; changes that would let the gang fit are advised only if there are some."""
    if asking.gang.reason is not Reason.DOES_NOT_FIT:
        return ADVICE[asking.gang.reason].to_do
    if not told.request.tree.nodes:
        return NO_LABELS if asking.nodes else NO_NODES
    if not changes:
        return NO_CHANGE_KNOWN
    kinds = {each.kind for each in changes}
    if NEVER not in kinds:
        return ADVICE[Reason.DOES_NOT_FIT].to_do
    return ANOTHER_ONE if kinds - {NEVER} else NEVER_FITS


def _finds_now(asking: Asking, told: Told, verdict: NoFit) -> str:
    """The verdict in words, unless the gang's message has just these."""
    words = str(told.verdict(verdict))
    is_told = asking.gang.reason is not Reason.DOES_NOT_FIT or words in asking.gang.message
    return "" if is_told else words


# -- the best domain -------------------------------------------------------------------------------


class _Where:
    """The domain that could take most of the pods that do not fit."""

    def __init__(self, told: Told, verdict: NoFit, pod_set: PodSet, level: int) -> None:
        self.told, self.verdict, self.pod_set = told, verdict, pod_set
        request, capacity = told.request, told.request.capacity
        asked = np.zeros(len(capacity.free_now), dtype=np.int64)
        asked[: len(pod_set.request)] = pod_set.request[: len(asked)]
        self.asked: Counts = asked
        self.amounts = told.amounts[int(verdict.pod_set)]
        self.open: Mask = capacity.is_open & request.attempts[-1][verdict.pod_set]
        takes = self.open & (not pod_set.lacking)  # what no node offers closes all of them
        self.pods = np.where(takes, pods_per_node(capacity.free_now, asked.tolist()), 0)
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
            more_nodes=self._more_nodes(needed),
            short=tuple(self._short(needed)),
        )

    def _more_nodes(self, needed: int) -> int | None:
        """How many empty nodes the rest of so many pods would take; None: none takes a pod."""
        allocatable = self.told.request.capacity.allocatable
        most = pods_per_node(allocatable, self.asked.tolist())[self.open]
        per_node = 0 if self.pod_set.lacking else int(most.max(initial=0))
        missing = max(0, needed - int(self.pods[self.slots].sum()))
        return -(-missing // per_node) if per_node else None

    def short_of(self, pods: int) -> Iterator[tuple[int, int, int]]:
        """(row, free, requested) of each resource of which too little is free for so many pods."""
        free = self.told.request.capacity.free_now[:, self.slots][:, self.open[self.slots]]
        for row in np.flatnonzero(self.asked).tolist():
            has, wanted = int(np.clip(free[row], 0, None).sum()), int(self.asked[row]) * pods
            if has < wanted:
                yield row, has, wanted

    def scarce(self) -> set[str]:
        """The resources of which too little is free; else those that are requested."""
        axis = self.told.request.capacity.axis
        names, of_devices = axis.names, axis.of_devices
        rows = [row for row, _, _ in self.short_of(self.pod_set.pods)]
        every = rows or np.flatnonzero(self.asked).tolist()
        return {of_devices.get(row, names[row]) for row in every}

    def _short(self, needed: int) -> Iterator[Shortage]:
        for row, has, wanted in self.short_of(needed):
            name = self.told.request.capacity.axis.names[row]
            unit = _UNITS.get(name, 1)
            yield Shortage(resource=name, free=has / unit, requested=wanted / unit)
        lacking = self.pod_set.lacking
        wanted = sum(its for name, its in self.amounts if name == lacking) * needed
        if wanted:
            yield Shortage(resource=lacking, free=0, requested=wanted)


def _blockers(asking: Asking, where: _Where) -> Iterator[Blocker]:
    """Who has most of what is short in the best domain."""
    if asking.room is None:
        return
    standing, tree = asking.room.standing, where.told.request.tree
    short, gang_of = where.scarce() - {"pods"}, asking.gang_of()
    taken, pods = Counter[tuple[str, bool]](), Counter[tuple[str, bool]]()
    for is_reserved, bookings in ((False, standing.bound), (True, standing.held)):
        for uid, booking in bookings.items():
            turn()
            slot = tree.slot_of.get(booking.node)
            if slot is None or not where.slots.start <= slot < where.slots.stop:
                continue
            amount = sum(its for resource, its in booking.request if resource in short)
            if amount:
                gang = gang_of.get(uid)
                who = f"gang {gang}" if gang else f"pod {_pod_name(standing, uid)}"
                if not _is_named(asking, who):
                    who = OTHERS
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


def _excluded(asking: Asking, where: _Where, away: Mapping[str, str]) -> Iterator[Excluded]:
    for reason, nodes in where.told.verdict(where.verdict).excluded:
        if reason != NOT_OPEN:
            yield Excluded(reason=reason, nodes=nodes, examples=_examples(asking, where, reason))
    for why, nodes in sorted(Counter(away.values()).items()):
        examples = tuple(sorted(node for node, its in away.items() if its == why))
        yield Excluded(reason=why, nodes=nodes, examples=examples[:MOST_EXAMPLES])


def _examples(asking: Asking, where: _Where, reason: str) -> tuple[str, ...]:
    """Two nodes that are excluded for this reason, by name."""
    request, closed = where.told.request, where.told.closed[int(where.verdict.pod_set)]
    capacity, names = request.capacity, request.capacity.axis.names
    if reason.startswith(INSUFFICIENT):
        name = reason.removeprefix(INSUFFICIENT)
        row = names.index(name) if name in names else len(where.asked)
        if row < min(len(where.asked), len(where.pod_set.request)):
            found = where.open & (capacity.free_now[row] < where.asked[row])
        else:
            found = capacity.is_open  # no node has it
    elif reason == UNLABELLED:
        return asking.unlabelled(where.told)[:MOST_EXAMPLES]
    elif reason in closed.reasons:
        is_closed = closed.code == closed.reasons.index(reason)
        found = capacity.is_open & ~where.open & is_closed
    else:
        return ()
    nodes = request.tree.nodes
    return tuple(nodes[slot] for slot in np.flatnonzero(found)[:MOST_EXAMPLES].tolist())


# -- what would fit instead ------------------------------------------------------------------------


def _relaxations(asking: Asking, told: Told, away: Mapping[str, str]) -> Iterator[Relaxation]:
    request = told.request
    slots_away = {
        slot: away.get(request.tree.nodes[slot], NOT_OPEN)
        for slot in np.flatnonzero(~request.capacity.is_open).tolist()
    }
    found = relaxations(
        request.tree,
        request.capacity,
        request.gang,
        request.attempts[-1],
        request.options,
        Leeway(away=slots_away, budget=MOST_SEARCHES),
    )
    anew, never = _pods_anew(told), False
    for each in found.found:
        is_never = isinstance(each, answers.Never)
        if is_never and _fits_later(told):
            continue
        never |= is_never
        # What is said of nodes that are all open and empty is said of those it was narrowed to.
        if anew is None or not is_never:
            yield _relaxation(told, each)
    if anew is not None:
        yield anew
    if asking.room is not None and not never:
        room = asking.room.answer()
        if room.is_found and room.pods:
            yield _pods_gone(asking, room)


def _relaxation(told: Told, found: answers.Relaxation) -> Relaxation:
    said = _named(told, found)
    more: dict[str, object] = {}
    match said:
        case answers.WiderLevel():
            more = {"pod_sets": said.names, "level": said.level}
        case answers.FewerPods():
            more = {"pod_sets": (said.pod_set,), "pods": said.pods}
        case answers.FewerMembers():
            more = {"pod_sets": (said.group,), "pods": said.members}
        case answers.NodesBack():
            more = {"nodes": tuple(name for _, name, _ in said.nodes[:MOST_NODES])}
    if not isinstance(said, answers.Never):
        more["is_cut_short"] = said.is_cut_short
    return Relaxation.model_validate({"kind": type(found).__name__, "text": str(said), **more})


def _named(told: Told, found: answers.Relaxation) -> answers.Relaxation:
    """The relaxation with pod sets as users name them."""

    def name(each: str) -> str:
        return told.names[int(each)] if each.isdecimal() and int(each) < len(told.names) else each

    def names(group: str) -> Iterator[str]:
        """Of a unit, which only the search knows by a name, those of its pod sets."""
        for each in _pod_sets_in(told.request.gang.root, group) or (group,):
            yield name(each)

    match found:
        case answers.WiderLevel():
            every = (each for group in found.names for each in names(group))
            return replace(found, names=tuple(dict.fromkeys(every)))
        case answers.FewerPods():
            return replace(found, pod_set=name(found.pod_set))
        case answers.Never():
            return replace(found, why=named(found.why, told.request, told.names))
        case _:
            return found


def _pod_sets_in(group: Group, unit: str, *, is_inside: bool = False) -> list[str]:
    """The pod sets inside the group that is this unit."""
    found = []
    for each in group.members:
        if isinstance(each, Group):
            inside = is_inside or (each.name == unit and unit.startswith(UNIT))
            found += _pod_sets_in(each, unit, is_inside=inside)
        elif is_inside:
            found.append(each.name)
    return found


def _pods_anew(told: Told) -> Relaxation | None:
    """Whether the gang would fit if its pods had not been narrowed; None: it would not, or is not.

    A pod cannot be narrowed to other nodes: its owner has to create it once more.
    """
    opened = _opened(told, ELSEWHERE)
    if opened is None or not isinstance(search(opened), Placement):
        return None
    return Relaxation(
        kind="PodsAnew",
        text="would fit if its waiting pods were created anew: they are bound to nodes that cannot"
        " serve the gang any more",
    )


def _fits_later(told: Told) -> bool:
    """Whether it would fit if all nodes were open and empty, and none were closed for a while.

    What is kept for other gangs, or was refused by kube-scheduler, is a place again soon.
    """
    opened = _opened(told, EARMARKED, REFUSED)
    if opened is None:
        return False
    capacity = told.request.capacity
    books = emptied(capacity, np.ones_like(capacity.is_open))
    return isinstance(search(replace(opened, capacity=books)), Placement)


def _opened(told: Told, *reasons: str) -> SearchRequest | None:
    """The search with nodes that are closed for these reasons alone; None: there are none."""
    masks, has_any = dict(told.request.attempts[-1]), False
    for pod_set, mask in masks.items():
        closed = told.closed[int(str(pod_set))]
        codes = [closed.reasons.index(each) for each in reasons if each in closed.reasons]
        those = np.isin(closed.code, codes)
        has_any |= bool(those.any())
        masks[pod_set] = mask | those
    return replace(told.request, attempts=(masks,), roomy=None) if has_any else None


def _is_named(asking: Asking, who: str) -> bool:
    """Whether the client sees the namespace of `gang NAMESPACE/NAME` or `pod NAMESPACE/NAME`."""
    return asking.names_in in ("", namespace_in(who))


def _pods_gone(asking: Asking, room: RoomAnswer) -> Relaxation:
    named = tuple(each for each in room.named if _is_named(asking, each[0]))
    names = f": {messages.victims(replace(room, named=named))}" if named else ""
    pods = "1 pod" if room.pods == 1 else f"{room.pods} pods"
    where = f" in {room.domain}" if room.domain else ""
    return Relaxation(
        kind="PodsGone",
        text=f"would fit{where} without {pods} of lower priority{names}",
        pods=room.pods,
        is_cut_short=room.is_cut_short,
    )
