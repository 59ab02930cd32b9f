"""Which level, which domains: the second half of every search.

    pods per node ─▶ sums of one level ─▶ does one domain take all? ─yes─▶ down to its nodes
                            ▲                      │ no
                            └─── one level wider ──┤
                                                   └─ widest allowed: several domains, or NoFit

| constraint            | one domain is tried at           | several domains at  |
|-----------------------|----------------------------------|---------------------|
| required R            | R                                | never               |
| preferred P           | P, then each wider level up to 0 | level 0             |
| preferred P, required R | P, then each wider level up to R | never             |
| none                  | the node level                   | the node level      |

The one domain is the tightest that fits; several are the roomiest first, the last one the
tightest. Without a constraint it is the other way round: the smallest holes are filled
first (`order` has the rules and the ties). This is Kueue's algorithm, assignment for
assignment; step numbers below are those of kueue.md 2.6 and 2.7.

Several pod sets are placed in the order they are written, each as if the earlier ones were
there already. All fit, or the gang does not.

For a required level the sums of free amounts tell at once which domains cannot take the pod
set. The fit of the others alone decides, and where nothing fits all nodes are counted, for
the answer's sake.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from topology import assign, fit, order
from topology.answer import NoFit, Placement, PodSetPlacement
from topology.capacity import Capacity
from topology.errors import InvalidRequest
from topology.levels import index_of
from topology.request import Constraint, Gang, Group, PodSet
from topology.resources import Counts, Mask, Rows
from topology.tree import Tree


def find(
    tree: Tree, capacity: Capacity, gang: Gang, masks: Mapping[Hashable, Mask]
) -> Placement | NoFit:
    """A place for every pod of the gang, or why there is none; the books stay as they are.

    Shapes: masks, per pod shape (N,): which nodes may host it. A shape without a mask may
        be on every node. Closed nodes host nothing either way.
    Raises: InvalidRequest if the gang names an unknown level or asks for something that is
        not enforced; ValueError if tree and capacity are of different generations.
    """
    if capacity.generation != tree.generation:
        raise ValueError(
            f"tree of generation {tree.generation}, capacity of generation {capacity.generation}"
        )
    pod_sets = _enforced(gang)
    steps = [_steps(tree, pod_set) for pod_set in pod_sets]
    room = _Room(tree, capacity, masks)
    placed: list[PodSetPlacement] = []
    for pod_set, step in zip(pod_sets, steps, strict=True):
        answer = _place(room, pod_set, step)
        if isinstance(answer, NoFit):
            return answer
        placed.append(answer)
        if len(placed) < len(pod_sets):
            room.assume(pod_set, answer)
    return Placement(gang=gang.key, generation=tree.generation, pod_sets=tuple(placed))


def _enforced(gang: Gang) -> list[PodSet]:
    """The pod sets of a gang all of whose wishes are enforced.

    Raises: InvalidRequest naming the first that is not.
    """
    root, unconstrained = gang.root, Constraint()
    if root.constraint != unconstrained:
        raise InvalidRequest(f"group {root.name}: a group's constraint is not enforced yet")
    if root.needed not in (None, len(root.members)):
        raise InvalidRequest(f"group {root.name}: needed {root.needed} is not enforced yet")
    pod_sets: list[PodSet] = []
    for member in root.members:
        if isinstance(member, Group):
            raise InvalidRequest(f"group {member.name}: a group in a group is not enforced yet")
        owner = f"pod set {member.name}"
        if member.slices:
            raise InvalidRequest(f"{owner}: slices are not enforced yet")
        if member.leader is not None:
            raise InvalidRequest(f"{owner}: leader {member.leader.name} is not enforced yet")
        if member.constraint.balanced:
            raise InvalidRequest(f"{owner}: balanced placement is not enforced yet")
        if member.needed not in (None, member.pods):
            raise InvalidRequest(f"{owner}: needed {member.needed} is not enforced yet")
        pod_sets.append(member)
    return pod_sets


@dataclass(frozen=True, slots=True)
class _Steps:
    """The levels one pod set tries, from `first` widening to `last`, and what comes after."""

    first: int
    last: int
    spread: Callable[[Counts, int], Counts] | None
    """Takes several domains of `last` if no single one fits; None: they must not be several."""


def _steps(tree: Tree, pod_set: PodSet) -> _Steps:
    """The table of the module docstring. Raises: InvalidRequest for levels it cannot mean."""
    owner, constraint = f"pod set {pod_set.name}", pod_set.constraint
    required = preferred = None
    if constraint.required is not None:
        required = index_of(tree.levels, constraint.required, f"{owner}, required")
    if constraint.preferred is not None:
        preferred = index_of(tree.levels, constraint.preferred, f"{owner}, preferred")
    if required is None and preferred is None:
        return _Steps(tree.node_level, tree.node_level, order.least_free_first)
    if required is None:
        assert preferred is not None
        return _Steps(preferred, 0, order.most_free_first)
    if preferred is None:
        return _Steps(required, required, None)
    if preferred < required:
        raise InvalidRequest(
            f"{owner}: preferred level {constraint.preferred} is wider than "
            f"required level {constraint.required}"
        )
    return _Steps(preferred, required, None)


class _Room:
    """What one search may use: the books, less what its own earlier pod sets assume."""

    __slots__ = ("_assumed", "capacity", "masks", "tree")

    def __init__(self, tree: Tree, capacity: Capacity, masks: Mapping[Hashable, Mask]) -> None:
        self.tree = tree
        self.capacity = capacity
        self.masks = masks
        self._assumed: dict[int, Counts] = {}  # resource row -> (N,) amounts

    def assume(self, pod_set: PodSet, placed: PodSetPlacement) -> None:
        """Counts a pod set of this gang as being where it was just placed."""
        slots = np.array([slot for slot, _ in placed.slots], dtype=np.intp)
        pods = np.array([pods for _, pods in placed.slots], dtype=np.int64)
        for row in _asked(pod_set):
            if row not in self._assumed:
                self._assumed[row] = np.zeros(len(self.tree.nodes), dtype=np.int64)
            self._assumed[row][slots] += pods * pod_set.request[row]

    def free(self, rows: Sequence[int], slots: Rows | None = None) -> Counts:
        """What is left of some resources. Shapes: (len(rows), N) or (len(rows), len(slots))."""
        free = self.capacity.free(rows, slots)
        for index, row in enumerate(rows):
            if row in self._assumed:
                free[index] -= self._assumed[row] if slots is None else self._assumed[row][slots]
        return free

    def pods_per_node(self, pod_set: PodSet, slots: Rows | None = None) -> Counts:
        """How many pods of the set each node takes; 0 where they may not be.

        Shapes: (N,); with slots given, every other node counts as 0.
        """
        rows = _asked(pod_set)
        pods = fit.pods_per_node(self.free(rows, slots), [pod_set.request[row] for row in rows])
        if slots is not None:
            inside, pods = pods, np.zeros(len(self.tree.nodes), dtype=np.int64)
            pods[slots] = inside
        may_host = self.capacity.is_open
        if pod_set.shape in self.masks:
            may_host = may_host & self.masks[pod_set.shape]
        np.copyto(pods, 0, where=~may_host)
        return pods

    def no_fit(self, pod_set: PodSet, level: str, available: int) -> NoFit:
        """The answer for a pod set of which only `available` pods fit, with the nodes' reasons."""
        rows = _asked(pod_set)
        names = self.capacity.axis.names
        is_allowed = self.masks.get(pod_set.shape)
        return NoFit(
            pod_set=pod_set.name,
            level=level,
            needed=pod_set.pods,
            available=available,
            excluded=fit.exclusions(
                self.free(rows),
                [(names[row], pod_set.request[row]) for row in rows],
                self.capacity.is_open,
                np.ones_like(self.capacity.is_open) if is_allowed is None else is_allowed,
            ),
        )


def _asked(pod_set: PodSet) -> list[int]:
    """Resource rows a pod of the set asks something of."""
    return [row for row, amount in enumerate(pod_set.request) if amount]


def _place(room: _Room, pod_set: PodSet, steps: _Steps) -> PodSetPlacement | NoFit:
    """Places one pod set, or says why not."""
    tree = room.tree
    slots = _slots_worth_counting(room, pod_set, steps)
    pods_per_node = room.pods_per_node(pod_set, slots)
    by_domain = fit.sum_by_domain(tree, pods_per_node, steps.first)
    # 2.6, steps 1 to 3: one domain, the tightest, of the narrowest level that has one.
    for level in range(steps.first, steps.last - 1, -1):
        domain = order.tightest(by_domain, pod_set.pods)
        if domain is not None:
            domains = np.array([domain], dtype=np.intp)
            return _placed(room, pod_set, pods_per_node, level, domains)
        if level > steps.last:
            by_domain = fit.sum_of_children(tree, by_domain, level)
    # 2.6, step 4: several domains, or none.
    if steps.spread is None:
        if slots is not None:
            everywhere = room.pods_per_node(pod_set)
            by_domain = fit.sum_by_domain(tree, everywhere, steps.last)
        available = int(by_domain.max(initial=0))
        return room.no_fit(pod_set, tree.levels[steps.last], available)
    available = int(by_domain.sum())
    if available < pod_set.pods:
        return room.no_fit(pod_set, "", available)
    taken = steps.spread(by_domain, pod_set.pods)
    if steps.last == tree.node_level:
        slots = taken.nonzero()[0]
        return _placement(tree, pod_set, steps.last, slots, taken[slots])
    return _placed(room, pod_set, pods_per_node, steps.last, taken.nonzero()[0])


def _slots_worth_counting(room: _Room, pod_set: PodSet, steps: _Steps) -> Rows | None:
    """Slots of the domains of a required level that may take the pod set; None: all of them.

    Gathering columns costs more per node than reading them in order, so it has to pay.
    """
    if steps.spread is not None:
        return None
    demand = [amount * pod_set.pods for amount in pod_set.request]
    may_fit = room.capacity.may_cover(steps.last, demand).nonzero()[0]
    if may_fit.size * 4 > room.tree.starts[steps.last].size:
        return None
    return room.tree.slots_of(steps.last, may_fit)


def _placed(
    room: _Room, pod_set: PodSet, pods_per_node: Counts, level: int, domains: Rows
) -> PodSetPlacement:
    """The pod set spread over the nodes of domains that together take it."""
    slots, pods = assign.down(room.tree, pods_per_node, level, domains, pod_set.pods)
    return _placement(room.tree, pod_set, level, slots, pods)


def _placement(
    tree: Tree, pod_set: PodSet, level: int, slots: Rows, pods: Counts
) -> PodSetPlacement:
    """The answer, with what each domain of the chosen level holds in the end."""
    by_slot = by_domain = _pairs(slots, pods)
    if level < tree.node_level:
        domain_of = tree.domain_of[level][slots]  # ascending, since the slots are
        first = np.flatnonzero(np.diff(domain_of, prepend=-1))
        by_domain = _pairs(domain_of[first], np.add.reduceat(pods, first))
    return PodSetPlacement(pod_set=pod_set.name, level=level, domains=by_domain, slots=by_slot)


def _pairs(indices: Rows, pods: Counts) -> tuple[tuple[int, int], ...]:
    return tuple(zip(indices.tolist(), pods.tolist(), strict=True))
