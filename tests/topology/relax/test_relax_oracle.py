"""Every relaxation made by hand and searched again; small ones held against all there are."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from tests.hash_seeds import patient, printed
from tests.topology.random_clusters import LEVELS, random_cluster
from topology import (
    NODE_LEVEL,
    Capacity,
    Constraint,
    FewerMembers,
    FewerPods,
    Gang,
    Group,
    Leader,
    Leeway,
    Mask,
    Never,
    NodesBack,
    NoFit,
    Options,
    Placement,
    PodSet,
    Relaxation,
    Relaxations,
    Slice,
    Tree,
    WiderLevel,
    find,
    invariants,
    relaxations,
)
from topology.errors import InvalidRequest

pytestmark = pytest.mark.slow

CASES, SEEDS = 50, 8


@dataclass(frozen=True)
class Question:
    """One random gang on one random cluster, and what may change there."""

    tree: Tree
    capacity: Capacity
    gang: Gang
    masks: Mapping[Hashable, Mask]
    leeway: Leeway
    options: Options

    def fits(self, **changed: Any) -> bool:
        """Whether the search finds a place with something else than was asked; it is checked."""
        one = replace(self, **changed)
        try:
            answer = find(one.tree, one.capacity, one.gang, one.masks, one.options)
        except InvalidRequest:
            return False
        if isinstance(answer, Placement):
            invariants.check(
                one.tree, one.capacity, gang=one.gang, placement=answer, masks=one.masks
            )
        return isinstance(answer, Placement)

    def asked(self) -> Relaxations:
        return relaxations(
            self.tree, self.capacity, self.gang, self.masks, self.options, self.leeway
        )


def random_question(chance: random.Random, gang: Gang) -> Question:
    tree, capacity = random_cluster(
        chance, nodes_max=7, pods=[3, 4, 9], amount_max=6, open_share=0.45
    )
    away = {
        slot: chance.choice(["cordoned", "gone"])
        for slot in range(len(tree.nodes))
        if chance.random() < (0.2 if capacity.is_open[slot] else 0.8)
    }
    masks, back = (
        {shape: np.array([chance.random() < 0.85 for _ in tree.nodes]) for shape in "AB"}
        for _ in range(2)
    )
    take_room(chance, capacity)
    leeway = Leeway(
        chance.choice([away, None]),
        chance.choice([back, None]),
        budget=2000,
    )
    return Question(tree, capacity, gang, masks, leeway, Options(tries=100))


def take_room(chance: random.Random, capacity: Capacity) -> None:
    """Pods that run or are planned."""
    for _ in range(chance.randint(0, 12)):
        book = chance.choice([capacity.use, capacity.hold])
        book(chance.randrange(len(capacity.tree.nodes)), (1, chance.randint(0, 3)))


def random_constraint(chance: random.Random) -> Constraint:
    required = chance.randint(0, 2)
    level, narrower = LEVELS[required], LEVELS[chance.randint(required, 2)]
    return chance.choice(
        [
            Constraint(),
            Constraint(required=level),
            Constraint(required=level),
            Constraint(preferred=level),
            Constraint(required=level, preferred=narrower),
        ]
    )


def one_pod_set(chance: random.Random) -> Gang:
    request = (1, chance.randint(0, 3))
    alone = PodSet("w", chance.randint(1, 9), request, chance.choice("ABC"))
    return Gang("ns/gang", Group("root", (replace(alone, constraint=random_constraint(chance)),)))


def with_slices_or_leader(chance: random.Random) -> Gang:
    constraint = random_constraint(chance)
    named = constraint.preferred or constraint.required
    widest = 0 if named is None else LEVELS.index(named)
    layers = [Slice(2, LEVELS[chance.randint(widest, 2)])]
    if layers[0].level != NODE_LEVEL and chance.random() < 0.4:
        layers.append(Slice(1, NODE_LEVEL))
    pod_set = PodSet(
        "w",
        2 * chance.randint(1, 4),
        (1, chance.randint(0, 2)),
        chance.choice("ABC"),
        constraint,
        slices=tuple(layers) if chance.random() < 0.7 else (),
        leader=Leader("boss", (1, 1), chance.choice("ABC")) if chance.random() < 0.5 else None,
    )
    return Gang("ns/gang", Group("root", (pod_set,)))


def of_groups(chance: random.Random) -> Gang:
    names = iter(range(99))

    def pod_set() -> PodSet:
        pods = chance.randint(1, 3)
        return PodSet(
            f"p{next(names)}",
            pods,
            (1, chance.randint(0, 3)),
            chance.choice("ABC"),
            random_constraint(chance),
            needed=chance.randint(0, pods) if chance.random() < 0.2 else None,
        )

    def group(depth: int) -> Group:
        is_of_groups = depth < 2 and chance.random() < 0.4
        members: list[Group | PodSet] = [
            group(depth + 1) if is_of_groups else pod_set() for _ in range(chance.randint(1, 3))
        ]
        return Group(
            f"g{next(names)}",
            tuple(members),
            random_constraint(chance),
            needed=chance.randint(0, len(members)) if chance.random() < 0.2 else None,
        )

    return Gang("ns/gang", group(0))


# Each relaxation once more, made without the code that found it


def edited(gang: Gang, edit: Callable[[Any], Any]) -> Gang:
    """The gang with every group and pod set of it edited."""

    def inside(member: Any) -> Any:
        if isinstance(member, Group):
            member = replace(member, members=tuple(inside(one) for one in member.members))
        return edit(member)

    return replace(gang, root=inside(gang.root))


def in_wider(gang: Gang, names: Sequence[str], level: int) -> Gang:
    def edit(member: Any) -> Any:
        asked = member.constraint
        if member.name not in names or LEVELS.index(asked.required) <= level:
            return member
        near = asked.preferred or asked.required
        key = LEVELS[level] if level >= 0 else None
        wider = replace(asked, required=key, preferred=asked.preferred if key else near)
        return replace(member, constraint=wider)

    return edited(gang, edit)


def in_wider_slices(gang: Gang, names: Sequence[str], level: int) -> Gang:
    def edit(member: Any) -> Any:
        if member.name not in names:
            return member
        layers: dict[int, int] = {}
        for layer in member.slices if level >= 0 else ():
            layers.setdefault(min(level, LEVELS.index(layer.level)), layer.pods)
        slices = tuple(Slice(pods, LEVELS[index]) for index, pods in layers.items())
        return replace(member, slices=slices)

    return edited(gang, edit)


def with_fewer(gang: Gang, name: str, **fields: int | None) -> Gang:
    return edited(gang, lambda member: replace(member, **fields) if member.name == name else member)


def with_back(question: Question, slots: Sequence[int]) -> dict[str, Any]:
    """Books and masks with some nodes back."""
    books = question.capacity.move(question.tree)
    masks = {shape: mask.copy() for shape, mask in question.masks.items()}
    was_open = question.capacity.is_open
    for slot in slots:
        books.set_node(slot, books.allocatable[:, slot].tolist(), is_open=True)
        for shape, mask in (question.leeway.masks_back or {}).items():
            masks[shape][slot] = mask[slot] or (was_open[slot] and masks[shape][slot])
    return {"capacity": books, "masks": masks}


def away(question: Question) -> list[int]:
    if question.leeway.away is None:
        return np.flatnonzero(~question.capacity.is_open).tolist()
    return sorted(question.leeway.away)


def fits_empty(question: Question) -> bool:
    changed = with_back(question, away(question))
    empty = Capacity(question.capacity.axis, question.tree)
    for slot in range(len(question.tree.nodes)):
        empty.set_node(slot, question.capacity.allocatable[:, slot].tolist(), is_open=True)
    return question.fits(**changed | {"capacity": empty})


def made(question: Question, one: Relaxation) -> dict[str, Any]:
    """What is changed by a relaxation."""
    match one:
        case WiderLevel():
            level = LEVELS.index(one.level) if one.level else -1
            wider = in_wider_slices if one.of_slices else in_wider
            return {"gang": wider(question.gang, one.names, level)}
        case FewerPods():
            return {"gang": with_fewer(question.gang, one.pod_set, pods=one.pods, needed=None)}
        case FewerMembers():
            return {"gang": with_fewer(question.gang, one.group, needed=one.members)}
        case NodesBack():
            return with_back(question, [slot for slot, _, _ in one.nodes])
    raise AssertionError(one)


def snapshot(capacity: Capacity) -> list[bytes]:
    books = [capacity.allocatable, capacity.used, capacity.held, capacity.free_now]
    return [one.tobytes() for one in (*books, capacity.is_open, *capacity.free_by_domain)]


# What is true of every answer


def check(question: Question) -> Counter[type]:
    """Holds one answer against the search; which kinds of relaxations there were."""
    before = snapshot(question.capacity)
    masks = {shape: mask.copy() for shape, mask in question.masks.items()}
    answer = question.asked()
    assert snapshot(question.capacity) == before
    assert all(np.array_equal(mask, question.masks[shape]) for shape, mask in masks.items())
    assert answer == question.asked()
    assert not answer.is_cut_short
    if question.fits():
        assert answer == Relaxations((), searches=1)
        return Counter()
    for one in answer.found:
        assert str(one)
        if not isinstance(one, Never):
            assert question.fits(**made(question, one)), f"{question.gang}: {one}"
    check_nothing_was_missed(question, answer)
    check_nothing_is_nearer(question, answer)
    return Counter(type(one) for one in answer.found)


def check_nothing_was_missed(question: Question, answer: Relaxations) -> None:
    """Where a kind is not told, not even its largest change helps."""
    kinds = {type(one) for one in answer.found}
    gang = question.gang
    assert (Never in kinds) == (not fits_empty(question))
    told = {one.of_slices for one in answer.found if isinstance(one, WiderLevel)}
    if False not in told and (names := required_names(gang)):
        assert not question.fits(gang=in_wider(gang, names, -1))
    sliced = [one.name for one in gang.pod_sets() if one.slices]
    if True not in told and sliced:
        assert not question.fits(gang=in_wider_slices(gang, sliced, -1))
    fewer = {one.pod_set for one in answer.found if isinstance(one, FewerPods)}
    for pod_set in gang.pod_sets():
        size, needed = slice_and_need(pod_set)
        if pod_set.name not in fewer and needed > size:
            assert not question.fits(gang=with_fewer(gang, pod_set.name, pods=size, needed=None))
    if Never in kinds:
        return
    if NodesBack not in kinds:
        assert not question.fits(**with_back(question, away(question)))


def check_nothing_is_nearer(question: Question, answer: Relaxations) -> None:
    gang = question.gang
    for one in answer.found:
        match one:
            case WiderLevel():
                level = LEVELS.index(one.level) if one.level else -1
                wider = in_wider_slices if one.of_slices else in_wider
                sliced = [each.name for each in gang.pod_sets() if each.slices]
                names = sliced if one.of_slices else required_names(gang)
                for narrower in range(level + 1, 2):
                    assert not question.fits(gang=wider(gang, names, narrower)), one
            case FewerPods():
                [pod_set] = [each for each in gang.pod_sets() if each.name == one.pod_set]
                size, needed = slice_and_need(pod_set)
                assert one.needed == needed
                for pods in range(one.pods + size, needed, size):
                    changed = with_fewer(gang, one.pod_set, pods=pods, needed=None)
                    assert not question.fits(gang=changed), one
            case FewerMembers():
                for members in range(one.members + 1, one.needed):
                    assert not question.fits(gang=with_fewer(gang, one.group, needed=members))
            case NodesBack():
                assert {slot for slot, _, _ in one.nodes} <= set(away(question))


def required_names(gang: Gang) -> list[str]:
    names: list[str] = []

    def note(member: Any) -> Any:
        if member.constraint.required is not None:
            names.append(member.name)
        return member

    edited(gang, note)
    return names


def slice_and_need(pod_set: PodSet) -> tuple[int, int]:
    size = pod_set.slices[0].pods if pod_set.slices else 1
    return size, pod_set.pods if pod_set.needed is None else pod_set.needed


def each_left_out(one: Relaxation) -> list[Relaxation]:
    """The same with one change less."""
    match one:
        case WiderLevel():
            parts, field = one.names, "names"
        case NodesBack():
            parts, field = one.nodes, "nodes"
        case _:
            return []
    if len(parts) < 2:
        return []
    return [replace(one, **{field: few}) for few in combinations(parts, len(parts) - 1)]


KINDS = frozenset((WiderLevel, FewerPods, NodesBack, Never))


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("gang", [one_pod_set, with_slices_or_leader, of_groups])
def test_each_relaxation_fits_and_none_is_missed_or_nearer(
    seed: int, gang: Callable[[random.Random], Gang]
) -> None:
    chance = random.Random(seed)
    kinds: Counter[type] = Counter()
    for _ in range(CASES):
        kinds += check(random_question(chance, gang(chance)))
    assert len(KINDS & kinds.keys()) >= 3, kinds
    assert kinds[FewerMembers] > 0 or gang is not of_groups


@pytest.mark.parametrize("gang", [one_pod_set, with_slices_or_leader, of_groups])
def test_the_questions_lead_to_every_kind_of_relaxation(
    gang: Callable[[random.Random], Gang],
) -> None:
    missing = set(KINDS)
    for seed in range(SEEDS):
        chance = random.Random(seed)
        for _ in range(CASES if missing else 0):
            missing -= {type(one) for one in random_question(chance, gang(chance)).asked().found}
    assert not missing


@pytest.mark.parametrize("seed", range(SEEDS // 4))
@pytest.mark.parametrize("gang", [one_pod_set, with_slices_or_leader, of_groups])
def test_no_change_is_told_that_is_not_needed(
    seed: int, gang: Callable[[random.Random], Gang]
) -> None:
    chance = random.Random(70 + seed)
    tried = 0
    for _ in range(CASES * 4):
        question = random_question(chance, gang(chance))
        for one in question.asked().found:
            for smaller in each_left_out(one):
                assert not question.fits(**made(question, smaller)), f"{question}: {one}"
                tried += 1
    assert tried > CASES // 10


# All there are: one pod set of identical pods


def room(question: Question, capacity: Capacity, masks: Mapping[Hashable, Mask]) -> int:
    """How many pods the best domain takes, counted node by node."""
    [pod_set] = question.gang.pod_sets()
    free = capacity.free()
    takes: Counter[int] = Counter()
    for slot in range(len(question.tree.nodes)):
        asked = [(amount, int(free[row, slot])) for row, amount in enumerate(pod_set.request)]
        pods = min(max(0, has) // amount for amount, has in asked if amount)
        mask = masks.get(pod_set.shape)
        if capacity.is_open[slot] and (mask is None or mask[slot]):
            required = pod_set.constraint.required
            level = None if required is None else LEVELS.index(required)
            takes[0 if level is None else int(question.tree.domain_of[level][slot])] += pods
    return max(takes.values(), default=0)


def fewest_by_trying(items: Sequence[Any], is_enough: Callable[[Sequence[Any]], bool]) -> int:
    """How many of them are enough at least; -1: all of them are not."""
    for size in range(len(items) + 1):
        if any(is_enough(some) for some in combinations(items, size)):
            return size
    return -1


@pytest.mark.parametrize("seed", range(SEEDS // 2))
def test_of_identical_pods_the_numbers_are_those_of_trying_everything(seed: int) -> None:
    chance = random.Random(110 + seed)
    told, more_than_needed = 0, 0
    for _ in range(CASES * 3):
        question = random_question(chance, one_pod_set(chance))
        [pod_set] = question.gang.pod_sets()
        now = room(question, question.capacity, question.masks)
        found = {type(one): one for one in question.asked().found}
        if now >= pod_set.pods:
            assert not found
            continue
        fewer = found.get(FewerPods)
        assert (fewer.pods if isinstance(fewer, FewerPods) else 0) == now

        def is_enough_back(some: Sequence[int], question: Question = question) -> bool:
            return room(question, **with_back(question, some)) >= pods_of(question)

        back = found.get(NodesBack)
        said = len(back.nodes) if isinstance(back, NodesBack) else -1
        least = fewest_by_trying(away(question), is_enough_back)
        assert (said < 0) == (least < 0), question
        assert said >= least
        told += least > 0
        more_than_needed += said > least
    assert told > CASES // 5
    # A few changes are chosen greedily; of small clusters nearly always as few as can be.
    assert more_than_needed <= told // 20


def pods_of(question: Question) -> int:
    return next(question.gang.pod_sets()).pods


SCRIPT = """
import random
from tests.topology.relax.test_relax_oracle import of_groups, one_pod_set, random_question
for seed in range(40):
    chance = random.Random(seed)
    print(random_question(chance, (of_groups, one_pod_set)[seed % 2](chance)).asked())
"""


@patient
def test_equal_questions_get_equal_answers_whatever_the_hash_seed() -> None:
    answers = printed(SCRIPT)
    assert answers[0] == answers[1]
    assert answers[0].count("NodesBack(") > 3


def test_nofit_in_never_is_that_of_the_empty_cluster() -> None:
    chance = random.Random(13)
    seen = 0
    for _ in range(CASES * 4):
        question = random_question(chance, one_pod_set(chance))
        for one in question.asked().found:
            if isinstance(one, Never):
                assert isinstance(one.why, NoFit)
                assert one.why.nodes == len(question.tree.nodes)
                assert one.why.available < one.why.needed == pods_of(question)
                seen += 1
    assert seen > CASES // 20
