"""Which level, which domains: the second half of every search.

    what nodes take ─▶ what one level takes ─▶ does one domain take all? ─yes─▶ down to its nodes
                            ▲                      │ no
                            └─── one level wider ──┤
                                                   └─ widest allowed: several domains, or NoFit

`unit` has the table of which levels are tried, `fit` the counts, `order` the ties, `assign` the
way down, `fewest` the one choice that is not Kueue's. Else this is Kueue's algorithm, assignment
for assignment, and phases have its numbers: 1 is `fit`, 2a chooses a level and domains, 2b is
`assign`.

Several units are placed in the order they are written, each as if the earlier ones were there
already. All fit, or the gang does not.

For a required level the sums of free amounts show at once which domains cannot take the pod
set. The fit of the others alone decides, and where nothing fits all nodes are counted, for
the answer's sake.
Source: kueue pkg/cache/scheduler/tas_flavor_snapshot.go (v0.16); KEP-2724
"Computing the assignment".
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from topology.errors import BrokenInvariant
from topology.fit import fit, order
from topology.fit.fill import Offers, fill, leader_first, tightest_of
from topology.fit.fit import LevelFit
from topology.fit.unit import Unit, units_of
from topology.fit.view import Options, View
from topology.model.answer import NoFit, Placement, PodSetPlacement
from topology.model.capacity import Capacity
from topology.model.request import DomainOrder, Gang, Strategy
from topology.model.resources import Mask, Rows
from topology.model.tree import Tree
from topology.pod_set import assign, balanced, fewest

_NO_OPTIONS = Options()


def find(
    tree: Tree,
    capacity: Capacity,
    gang: Gang,
    masks: Mapping[Hashable, Mask],
    options: Options = _NO_OPTIONS,
) -> Placement | NoFit:
    """A place for every pod of the gang, or why there is none; the books stay as they are.

    Shapes: masks, per pod shape (N,): which nodes may host it. A shape without a mask may
        be on every node. Closed nodes host nothing either way.
    Order: pod sets as `Gang.pod_sets`, a leader after its own pod set.
    Raises: InvalidRequest if the gang names an unknown level or something that is
        not enforced; ValueError if tree and capacity are of different generations.
    """
    check_generation(tree, capacity)
    units = units_of(tree, gang, options.unconstrained)
    view = View(tree, capacity, masks, options)
    placed: list[PodSetPlacement] = []
    for unit in units:
        answer = place(view, unit)
        if isinstance(answer, NoFit):
            return replace(answer, is_proven=not placed)
        placed += answer
        if unit is not units[-1]:
            assume(view, unit, answer)
    return Placement(gang=gang.key, generation=tree.generation, pod_sets=tuple(placed))


def check_generation(tree: Tree, capacity: Capacity) -> None:
    """Raises: ValueError if tree and capacity are of different generations."""
    if capacity.generation != tree.generation:
        raise ValueError(
            f"tree of generation {tree.generation}, capacity of generation {capacity.generation}"
        )


def assume(view: View, unit: Unit, placed: Sequence[PodSetPlacement], times: int = 1) -> None:
    """Counts a unit as being where it was just placed: Kueue's assumed usage; -1 undoes it."""
    requests = {one.name: one.request for one in unit.pod_sets}
    for pod_set in placed:
        view.assume(requests[pod_set.pod_set], pod_set.slots, times)


def place(view: View, unit: Unit) -> tuple[PodSetPlacement, ...] | NoFit:
    """Places one unit, or says why not."""
    tree = view.tree
    unit.check_remainder()
    if not tree.nodes:
        return _no_fit(view, unit, None, 0)
    slots = _slots_worth_counting(view, unit)
    if slots is not None and slots.size == 0:
        return _no_fit_in_one(view, unit, _fits(view, unit, None))
    fits = _fits(view, unit, slots)
    if unit.is_balanced:
        # Tried before the ordinary search, which is the fallback.
        share = balanced.place(view, fits, unit)
        if share is not None:
            return assign.placements(tree, unit, unit.first, share)
    for level in range(unit.first, unit.last - 1, -1):
        # Phase 2a: one domain, the tightest, of the narrowest level that has one.
        is_last_chance = level == unit.last and (
            not unit.may_spread or unit.strategy is Strategy.LEAST_FREE
        )
        domain = order.one_domain(fits[level], unit.slices, is_last_chance=is_last_chance)
        if domain is not None and level < unit.first and view.options.order is DomainOrder.FEWEST:
            domain = fewest.domain(tree, fits, unit, level, is_last_chance=is_last_chance)
        if domain is not None:
            return _placed(view, unit, fits, level, np.array([domain], dtype=np.intp))
    # Phase 2a, at the widest level: several domains, or none.
    if unit.may_spread:
        domains, missing = _several(fits[unit.last], unit)
        if domains is not None:
            return _placed(view, unit, fits, unit.last, domains)
        if unit.layers.remainder:
            missing = max(0, unit.slices - int(fits[unit.last].slices.sum()))
        return _no_fit(view, unit, fits, unit.slices - missing)
    return _no_fit_in_one(view, unit, fits if slots is None else _fits(view, unit, None))


def _fits(view: View, unit: Unit, slots: Rows | None) -> dict[int, LevelFit]:
    """The fit of every level from the nodes to the widest one tried."""
    tree = view.tree
    wanted = {level: tree.first_children(level) for level in range(unit.last, tree.node_level)}
    return fit.roll_up(view.node_fit(unit, slots), wanted, unit.layers, tree.node_level)


def _slots_worth_counting(view: View, unit: Unit) -> Rows | None:
    """Slots of the domains of a required level that may take the workers; None: all of them.

    Gathering columns costs more per node than reading them in order, so it has to pay. Where nodes
    are preferred and one domain of a narrower level is tried, the best of those may be in a domain
    that does not take the workers, and then it decides that none of them is chosen.
    """
    if unit.may_spread or (unit.first > unit.last and unit.workers.shape in view.options.scores):
        return None
    demand = [amount * unit.workers.pods for amount in unit.workers.request]
    may_fit = view.capacity.may_cover(unit.last, demand).nonzero()[0]
    if may_fit.size * 4 > view.tree.starts[unit.last].size:
        return None
    return view.tree.slots_of(unit.last, may_fit)


def _several(fits: LevelFit, unit: Unit) -> tuple[Rows | None, int]:
    """Domains of one level that together take a unit, in order; else None and what is missing.

    Source: findLevelWithFitDomains, where no single domain fits.
    """
    need, strategy, offers = unit.slices, unit.strategy, Offers.of(fits)
    domains = order.ranked_led(fits, strategy)
    chosen: list[int] = []
    if fits.may_lead is not None:
        # The domain of the leader first.
        domains = leader_first(offers, domains, need)
        leads = int(domains[0])
        if not fits.may_lead[leads]:
            return None, max(0, need - int(fits.slices.sum()))
        if strategy is Strategy.BEST_FIT and fits.slices_led[leads] >= need:
            leads = tightest_of(offers, domains, need, led=True)
        chosen, need = [leads], need - int(fits.slices_led[leads])
        if need <= 0:
            return np.array(chosen, dtype=np.intp), 0
        rest = np.sort(domains[1:])
        domains = rest[order.ranked(fits.at(rest), strategy)]
    # Then the domains of the other workers.
    taken = fill(offers.beside_leader(), domains, need, strategy)
    if taken is None:
        return None, need - int(fits.slices[domains].sum())
    return np.concatenate([np.array(chosen, dtype=np.intp), taken.domains]), 0


def _placed(
    view: View, unit: Unit, fits: dict[int, LevelFit], level: int, domains: Rows
) -> tuple[PodSetPlacement, ...]:
    """The unit spread over the nodes of domains that together take it."""
    share = assign.down(view.tree, fits, unit, level, domains)
    if share is None:
        raise BrokenInvariant(f"pod set {unit.workers.name}: chosen domains do not take it")
    return assign.placements(view.tree, unit, level, share)


def _no_fit_in_one(view: View, unit: Unit, fits: dict[int, LevelFit]) -> NoFit:
    """The answer where no single domain takes a unit: what the best one takes."""
    found = fits[unit.last]
    if not view.capacity.is_open.all():
        found = found.at(_open_domains(view, unit.last))
    best = order.ranked_led(found, unit.strategy)[0]
    return _no_fit(view, unit, fits, int(found.slices[best]))


def _open_domains(view: View, level: int) -> Rows:
    """The domains with a node that is open; all of them where there is none.

    Only these are in Kueue's tree, so that only these can be the best of those that do not fit.
    """
    has_open = np.logical_or.reduceat(view.capacity.is_open, view.tree.starts[level])
    return (has_open if has_open.any() else ~has_open).nonzero()[0]


def _no_fit(view: View, unit: Unit, fits: dict[int, LevelFit] | None, available: int) -> NoFit:
    """The answer for a unit of which only `available` slices fit."""
    layers: list[tuple[str, int, int]] = []
    if fits is not None and len(unit.layers.named) > 1:
        layers = _layers_that_fit(view, unit, fits)
    is_leader = (
        fits is not None
        and unit.leader is not None
        and (available >= unit.slices or not _may_lead(fits[unit.last]))
    )
    return NoFit(
        pod_set=unit.workers.name,
        level="" if unit.may_spread else view.tree.levels[unit.last],
        needed=unit.slices + (unit.layers.remainder > 0),
        available=available,
        unit="pod" if unit.layers.size == 1 else "slice",
        excluded=view.excluded(unit.workers),
        nodes=int(np.count_nonzero(view.capacity.is_open)),
        layers=tuple(layers),
        leader=unit.leader.name if is_leader and unit.leader is not None else "",
    )


def _may_lead(fits: LevelFit) -> bool:
    return fits.may_lead is not None and bool(fits.may_lead.any())


def _layers_that_fit(
    view: View, unit: Unit, fits: dict[int, LevelFit]
) -> list[tuple[str, int, int]]:
    """Per slice layer its level key, and how many of how many fit the best domain.

    Source: KEP-2724, as Kueue reports slices of several layers.
    """
    tree, domains = view.tree, _open_domains(view, unit.last)
    best = int(domains[fits[unit.last].slices[domains].argmax()])
    slots = tree.slots(unit.last, best)
    layers = []
    for level, pods in unit.layers.named:
        inside = np.unique(tree.domain_of[level][slots])
        fitting = int((fits[level].pods[inside] // pods).sum())
        layers.append((tree.levels[level], fitting, unit.workers.pods // pods))
    return layers
