"""What must hold between a tree, its capacity and a placement: each claim once, by name.

Called by tests after every step and by the debug page; never on the way to an answer. Every
function returns nothing, or raises BrokenInvariant naming what disagrees. Claims about pods and
their uids belong to the ledger that knows them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence

import numpy as np

from topology.errors import BrokenInvariant
from topology.model.answer import Placement, PodSetPlacement
from topology.model.capacity import Capacity
from topology.model.request import Constraint, Gang, Group, PodSet
from topology.model.resources import Counts, Mask
from topology.model.tree import Tree
from topology.pod_set.assign import assignment

Table = Iterable[tuple[int, Sequence[int]]]
"""(slot, request of one pod on it) for every pod that is counted."""

_INT64_MAX = 2**63 - 1
_MATRICES = ("allocatable", "used", "held", "free_now")


def check(
    tree: Tree,
    capacity: Capacity,
    *,
    bound: Table | None = None,
    reserved: Table | None = None,
    gang: Gang | None = None,
    placement: Placement | None = None,
    masks: Mapping[Hashable, Mask] | None = None,
) -> None:
    """Checks everything that follows from what is given.

    With `bound` and `reserved`, the tables that `used` and `held` were summed from. With `gang` and
    `placement`, an answer to that gang which is not held yet.
    Raises: BrokenInvariant.
    """
    check_tree(tree)
    check_capacity(tree, capacity)
    if bound is not None:
        check_books_equal_their_table(capacity, "used", bound)
    if reserved is not None:
        check_books_equal_their_table(capacity, "held", reserved)
    if gang is not None and placement is not None:
        check_placement_is_whole(tree, gang, placement)
        check_placement_fits(capacity, gang, placement, masks or {})
        check_required_level_is_one_domain(tree, gang, placement)
        check_slices_are_whole(tree, gang, placement)
        for placed in placement.pod_sets:
            check_ranks_are_dense(tree, placed)


def check_tree(tree: Tree) -> None:
    """Checks everything that follows from a tree alone."""
    check_slots_are_sorted(tree)
    check_starts_increase(tree)
    check_levels_nest(tree)


def check_capacity(tree: Tree, capacity: Capacity) -> None:
    """Checks everything that follows from a capacity over its tree, which holds together."""
    check_shapes_agree(tree, capacity)
    check_sums_fit_an_int64(capacity)
    check_books_are_not_negative(capacity)
    check_free_is_current(capacity)
    check_free_by_domain_is_current(capacity)
    check_every_level_has_the_same_total(capacity)


def _require(holds: bool, sentence: str) -> None:
    if not holds:
        raise BrokenInvariant(sentence)


def check_slots_are_sorted(tree: Tree) -> None:
    """Nodes are unique, `slot_of` is their inverse, slots follow the paths, then the names."""
    _require(len(set(tree.nodes)) == len(tree.nodes), "nodes: a name occurs twice")
    inverse = {name: slot for slot, name in enumerate(tree.nodes)}
    _require(dict(tree.slot_of) == inverse, "slot_of is not the inverse of nodes")
    keys = [(tree.path(tree.node_level, slot), name) for slot, name in enumerate(tree.nodes)]
    _require(keys == sorted(keys), "slots are not sorted by path, then name")


def check_starts_increase(tree: Tree) -> None:
    """Domains own non-empty, consecutive ranges that begin at slot 0."""
    for level, starts in enumerate(tree.starts):
        _require(starts.size == len(tree.names[level]), f"level {level}: names and starts differ")
        _require((starts.size == 0) == (not tree.nodes), f"level {level}: no domain for the nodes")
        if starts.size:
            _require(starts[0] == 0, f"level {level}: starts at slot {starts[0]}, not 0")
            _require(bool((np.diff(starts) > 0).all()), f"level {level}: a domain has no slot")
            _require(starts[-1] < len(tree.nodes), f"level {level}: a domain has no slot")
        ends = [*starts[1:].tolist(), *[len(tree.nodes)] * min(1, starts.size)]
        _require(tree.ends[level].tolist() == ends, f"level {level}: ends are not the next starts")


def check_levels_nest(tree: Tree) -> None:
    """Each domain lies inside its parent, and `domain_of` says the same as `starts`."""
    slots = np.arange(len(tree.nodes))
    for level, starts in enumerate(tree.starts):
        found = np.searchsorted(starts, slots, "right") - 1
        _require(np.array_equal(tree.domain_of[level], found), f"level {level}: domain_of is wrong")
        if level == 0:
            _require(not tree.parents[0].any(), "level 0: a domain has a parent")
            continue
        above = tree.starts[level - 1]
        _require(bool(np.isin(above, starts).all()), f"level {level}: a domain crosses its parent")
        parents = np.searchsorted(above, starts, "right") - 1
        _require(np.array_equal(tree.parents[level], parents), f"level {level}: parents are wrong")


def check_shapes_agree(tree: Tree, capacity: Capacity) -> None:
    """Tree and capacity are of one generation; every matrix is int64, C order, N or D wide."""
    _require(
        capacity.generation == tree.generation == capacity.tree.generation,
        f"capacity of generation {capacity.generation}, tree of generation {tree.generation}",
    )
    rows = capacity.allocatable.shape[0]
    matrices: list[tuple[str, Counts, int]] = [
        (name, getattr(capacity, name), len(tree.nodes)) for name in _MATRICES
    ]
    matrices += [
        (f"free_by_domain of level {level}", sums, starts.size)
        for level, (sums, starts) in enumerate(
            zip(capacity.free_by_domain, tree.starts, strict=True)
        )
    ]
    for name, matrix, width in matrices:
        if matrix.shape != (rows, width):
            raise BrokenInvariant(f"{name}: shape {matrix.shape}")
        if matrix.dtype != np.int64:
            raise BrokenInvariant(f"{name}: dtype {matrix.dtype}")
        if not matrix.flags.c_contiguous:
            raise BrokenInvariant(f"{name}: not in C order")
    _require(capacity.is_open.shape == (len(tree.nodes),), "is_open: not one claim per node")
    _require(rows <= len(capacity.axis), f"{rows} rows for {len(capacity.axis)} resources")


def check_sums_fit_an_int64(capacity: Capacity) -> None:
    """What a domain's nodes count for adds up inside an int64, whatever they have."""
    per_node = capacity.free_by_domain[-1]
    largest = int(per_node.max(initial=0))
    total = largest * per_node.shape[1]
    _require(total <= _INT64_MAX, f"a node counts for {largest}, the sum may reach {total}")


def check_books_are_not_negative(capacity: Capacity) -> None:
    """Nothing was taken back that was not added before."""
    for name, books in (("used", capacity.used), ("held", capacity.held)):
        for slot in np.flatnonzero((books < 0).any(axis=0)).tolist():
            raise BrokenInvariant(f"{name}: negative on node {capacity.tree.nodes[slot]}")


def check_books_equal_their_table(capacity: Capacity, name: str, table: Table) -> None:
    """`used` or `held` is the sum of the requests it was summed from."""
    books: Counts = getattr(capacity, name)
    expected = np.zeros_like(books)
    for slot, request in table:
        amounts = np.array(request[: books.shape[0]], dtype=np.int64)
        expected[: amounts.size, slot] += amounts
    for slot in np.flatnonzero((books != expected).any(axis=0)).tolist():
        raise BrokenInvariant(
            f"{name}: node {capacity.tree.nodes[slot]} has {books[:, slot].tolist()}, "
            f"its pods ask {expected[:, slot].tolist()}"
        )


def check_free_is_current(capacity: Capacity) -> None:
    """What is free, kept up to date by every change, equals what is computed anew."""
    for slot in np.flatnonzero((capacity.free_now != capacity.free()).any(axis=0)).tolist():
        raise BrokenInvariant(f"free_now: node {capacity.tree.nodes[slot]} is out of date")


def check_free_by_domain_is_current(capacity: Capacity) -> None:
    """The sums kept up to date by every change equal those computed anew."""
    for level, (kept, anew) in enumerate(
        zip(capacity.free_by_domain, capacity.counted_by_domain(), strict=True)
    ):
        for domain in np.flatnonzero((kept != anew).any(axis=0)).tolist():
            path = "/".join(capacity.tree.path(level, domain))
            raise BrokenInvariant(f"free_by_domain: level {level}, {path} is out of date")


def check_every_level_has_the_same_total(capacity: Capacity) -> None:
    """A node counts in exactly one domain of each level."""
    totals = [sums.sum(axis=1).tolist() for sums in capacity.free_by_domain]
    for level, total in enumerate(totals):
        _require(total == totals[-1], f"level {level} adds up to {total}, nodes to {totals[-1]}")


def check_placement_is_whole(tree: Tree, gang: Gang, placement: Placement) -> None:
    """Every pod of every pod set is placed once, in the domains the answer names."""
    _require(placement.gang == gang.key, f"placement of {placement.gang} for gang {gang.key}")
    _require(placement.generation == tree.generation, "placement of another generation")
    _require(
        [placed.pod_set for placed in placement.pod_sets] == list(gang.names()),
        "placement of other pod sets",
    )
    pods_of = {placed.pod_set: placed.pods for placed in placement.pod_sets}
    missing = [one.name for one in gang.pod_sets() if pods_of[one.name] < one.pods]
    _require(_is_enough(gang.root, pods_of), f"pod set {missing[:1]}: fewer placed than are needed")
    for asked, placed in _pairs(gang, placement):
        owner = f"pod set {asked.name}"
        _require(placed.pods <= asked.pods, f"{owner}: {placed.pods} of {asked.pods} placed")
        for entries in (placed.slots, placed.domains):
            indices = [index for index, _ in entries]
            _require(indices == sorted(set(indices)), f"{owner}: not in order, or named twice")
            _require(all(pods > 0 for _, pods in entries), f"{owner}: a place for no pods")
        by_domain: dict[int, int] = {}
        for slot, pods in placed.slots:
            domain = int(tree.domain_of[placed.level][slot])
            by_domain[domain] = by_domain.get(domain, 0) + pods
        _require(by_domain == dict(placed.domains), f"{owner}: domains disagree with slots")


def _is_enough(member: Group | PodSet, pods_of: Mapping[str, int]) -> bool:
    """Whether as many pods and members of it are placed as are needed."""
    if isinstance(member, PodSet):
        needed = member.pods if member.needed is None else member.needed
        return pods_of[member.name] >= needed
    placed = sum(_is_enough(one, pods_of) for one in member.members)
    return placed >= (len(member.members) if member.needed is None else member.needed)


def check_placement_fits(
    capacity: Capacity, gang: Gang, placement: Placement, masks: Mapping[Hashable, Mask]
) -> None:
    """No node gets more than it has, is closed, or is not allowed for the shape."""
    asked: dict[tuple[int, int], int] = {}
    for pod_set, placed in _pairs(gang, placement):
        mask = masks.get(pod_set.shape)
        for slot, pods in placed.slots:
            node = capacity.tree.nodes[slot]
            _require(bool(capacity.is_open[slot]), f"node {node} is closed")
            _require(mask is None or bool(mask[slot]), f"node {node} may not host {pod_set.name}")
            for row, amount in enumerate(pod_set.request):
                if amount:
                    asked[row, slot] = asked.get((row, slot), 0) + amount * pods
    for (row, slot), amount in asked.items():
        has = int(capacity.free([row])[0, slot])
        node, resource = capacity.tree.nodes[slot], capacity.axis.names[row]
        _require(amount <= has, f"node {node}: {amount} of {resource} placed, {has} free")


def check_required_level_is_one_domain(tree: Tree, gang: Gang, placement: Placement) -> None:
    """All that shares a required level, pod set or group, is in one domain of it."""
    slots_of = {placed.pod_set: placed.slots for placed in placement.pod_sets}
    for owner, constraint, names in _constrained(gang.root):
        if constraint.required is not None:
            level = tree.levels.index(constraint.required)
            slots = [slot for name in names for slot, _ in slots_of[name]]
            domains = {int(tree.domain_of[level][slot]) for slot in slots}
            _require(len(domains) < 2, f"{owner}: {len(domains)} domains of {constraint.required}")


def _constrained(group: Group) -> Iterable[tuple[str, Constraint, list[str]]]:
    """Everything with a constraint of its own, and the names of all that is under it."""
    under = list(Gang("any/gang", group).names())
    yield f"group {group.name}", group.constraint, under
    for member in group.members:
        if isinstance(member, Group):
            yield from _constrained(member)
        else:
            leader = [] if member.leader is None else [member.leader.name]
            yield f"pod set {member.name}", member.constraint, [member.name, *leader]


def check_slices_are_whole(tree: Tree, gang: Gang, placement: Placement) -> None:
    """Each domain of a slice layer holds whole slices of it, but for one smaller last slice."""
    slots_of = {placed.pod_set: placed.slots for placed in placement.pod_sets}
    for pod_set in gang.pod_sets():
        for layer in pod_set.slices:
            pods_in: Counter[int] = Counter()
            for slot, pods in slots_of[pod_set.name]:
                pods_in[int(tree.domain_of[tree.levels.index(layer.level)][slot])] += pods
            rests = sorted(pods % layer.pods for pods in pods_in.values() if pods % layer.pods)
            last = pod_set.pods % layer.pods
            _require(
                rests == ([last] if last else []),
                f"pod set {pod_set.name}: slices of {layer.pods} are cut at {layer.level}",
            )


def check_ranks_are_dense(tree: Tree, placed: PodSetPlacement) -> None:
    """Each rank has one slot, inside the domains of the placement."""
    slots = assignment(placed)
    _require(slots.size == placed.pods, f"{slots.size} ranks for {placed.pods} pods")
    domains = {domain for domain, _ in placed.domains}
    for rank, domain in enumerate(tree.domain_of[placed.level][slots].tolist()):
        _require(domain in domains, f"rank {rank} is outside the domains of its pod set")


def _pairs(gang: Gang, placement: Placement) -> Iterable[tuple[PodSet, PodSetPlacement]]:
    """Everything that gets a place of its own, a leader as a pod set of one pod."""
    asked: list[PodSet] = []
    for pod_set in gang.pod_sets():
        asked.append(pod_set)
        if pod_set.leader is not None:
            leader = pod_set.leader
            asked.append(PodSet(leader.name, 1, leader.request, leader.shape))
    return zip(asked, placement.pod_sets, strict=True)
