"""Balanced placement: about the same number of slices in every domain used.

    siblings at the preferred level ─▶ the most each of few domains can have alike (threshold)
        ─▶ domains that have less are pruned ─▶ the best siblings ─▶ the set of domains that
        wastes least ─▶ threshold each, the extra ones where most fit ─▶ down to nodes

It is tried for a preferred level before the ordinary search, and gives None where it finds
nothing, also where Kueue's own would end in an empty success or in an error.
Source: kueue pkg/cache/scheduler/tas_balanced_placement.go (v0.16).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from topology.fit import fit
from topology.fit.fit import LevelFit
from topology.fit.order import ranked, ranked_led
from topology.fit.unit import Unit
from topology.fit.view import CALL, View
from topology.model.request import Strategy
from topology.model.resources import Counts, Rows
from topology.model.tree import Tree
from topology.pod_set.assign import Share, inside
from topology.pod_set.knapsack import chosen_set

_BEST_FIT = Strategy.BEST_FIT


@dataclass(frozen=True, slots=True, eq=False)
class _Siblings:
    """The domains inside one parent, as ranges of every level, with what they take."""

    ranges: dict[int, slice]
    fits: dict[int, LevelFit]


@dataclass(frozen=True, slots=True)
class Greedy:
    """How few domains take a unit, those that take most first."""

    taken: int
    last_led: int | None
    """The last domain taken for the leader."""
    last: int | None
    """The last domain taken for workers alone."""


def place(view: View, fits: dict[int, LevelFit], unit: Unit) -> Share | None:
    """The share of every node of a balanced placement, or None if there is none."""
    tree = view.tree
    if unit.slices == 0:
        return None
    # Step 1: the best siblings.
    best = _best_siblings(view, fits, unit)
    if best is None:
        return None
    siblings, threshold = best
    # Step 2: their domains that waste least, then the children of those.
    level, range_ = unit.first, siblings.ranges[unit.first]
    domains = np.arange(range_.stop - range_.start, dtype=np.intp)
    if unit.layers.level > level:
        members = siblings.fits[level]
        order = _by_entropy(tree, siblings, level)
        chosen = chosen_set(members, order, _count(members, unit), unit, view.spend)
        if chosen is None:
            return None
        domains = tree.children(level, np.sort(chosen) + range_.start)
        level += 1
        range_ = siblings.ranges[level]
        domains = domains - range_.start
    # Step 3: the threshold for each, the extra ones where most fit.
    share = _even_share(view, siblings.fits[level], domains, unit, threshold)
    if share is None:
        return None
    leader = None if share.leader is None else share.leader + range_.start
    whole = _over_the_tree(tree, siblings, level)
    return inside(tree, whole, unit, level, Share(share.domains + range_.start, share.pods, leader))


def greedy(fits: LevelFit, need: int) -> Greedy | None:
    """How few domains take so many slices and the leader; None if they do not."""
    taken, last_led = 0, None
    domains = ranked_led(fits, _BEST_FIT)
    if fits.may_lead is not None:
        if not fits.may_lead[domains[0]]:
            return None
        taken, last_led = 1, int(domains[0])
        need -= int(fits.slices_led[last_led])
        rest = np.sort(domains[1:])
        domains = rest[ranked(fits.at(rest), _BEST_FIT)] if rest.size else rest
    if need <= 0:
        return Greedy(taken, last_led, None)
    slices = fits.slices[domains]
    if not slices.all():
        slices = slices[: int((slices == 0).argmax())]
    running = slices.cumsum()
    place = int(running.searchsorted(need))
    if place == running.size:
        return None
    return Greedy(taken + place + 1, last_led, int(domains[place]))


def _best_siblings(
    view: View, fits: dict[int, LevelFit], unit: Unit
) -> tuple[_Siblings, int] | None:
    """Of all siblings at the preferred level those with the highest threshold, then fewest."""
    tree = view.tree
    best: _Siblings | None = None
    best_threshold = best_domains = 0
    for ranges in _families(tree, fits, unit):
        view.spend(CALL)
        family = _Siblings(
            ranges, {level: fits[level].within(range_) for level, range_ in ranges.items()}
        )
        lower = family.fits[min(unit.first + 1, unit.layers.level)]
        found = greedy(lower, unit.slices)
        if found is None:
            continue
        threshold, reserved = _thresholds(lower, found, unit.slices)
        if threshold < best_threshold:
            continue
        pruned = _pruned(tree, family, unit, threshold)
        fitting = greedy(pruned.fits[unit.first], unit.slices)
        if fitting is None and max(1, best_threshold) <= reserved < threshold:
            # Less for each, so that the leader's domain keeps up with the others.
            threshold = reserved
            pruned = _pruned(tree, family, unit, threshold)
            fitting = greedy(pruned.fits[unit.first], unit.slices)
        if fitting is None:
            continue
        if (threshold, -fitting.taken) > (best_threshold, -best_domains):
            best, best_threshold, best_domains = pruned, threshold, fitting.taken
    return None if best is None or best_threshold == 0 else (best, best_threshold)


def _families(tree: Tree, fits: dict[int, LevelFit], unit: Unit) -> Iterator[dict[int, slice]]:
    """The ranges of each set of siblings that together have enough slices."""
    levels = range(unit.first, tree.node_level + 1)
    if unit.first == 0:
        yield {level: slice(0, tree.starts[level].size) for level in levels}
        return
    above = unit.first - 1
    enough = np.add.reduceat(fits[unit.first].slices, tree.first_children(above)) >= unit.slices
    for parent in enough.nonzero()[0].tolist():
        slots = tree.slots(above, parent)
        yield {
            level: slice(
                int(tree.starts[level].searchsorted(slots.start)),
                int(tree.starts[level].searchsorted(slots.stop)),
            )
            for level in levels
        }


def _thresholds(lower: LevelFit, found: Greedy, slices: int) -> tuple[int, int]:
    """The most slices that each domain taken can have alike, without and with the leader there.

    Kueue calls it the threshold.
    """
    threshold = slices // found.taken
    if found.last_led is not None:
        threshold = min(threshold, int(lower.slices_led[found.last_led]))
    if found.last is not None:
        threshold = min(threshold, int(lower.slices[found.last]))
        if lower.may_lead is not None:
            return threshold, min(threshold, int(lower.slices_led[found.last]))
    return threshold, threshold


def _pruned(tree: Tree, family: _Siblings, unit: Unit, threshold: int) -> _Siblings:
    """Siblings without the domains that have less than the threshold.

    First their children, by what they have; then they themselves, by what is left of them.
    """
    pruned = family
    for level in range(min(unit.first + 1, tree.node_level), unit.first - 1, -1):
        pruned = _kept(tree, pruned, unit, level, threshold)
    return pruned


def _kept(tree: Tree, family: _Siblings, unit: Unit, level: int, threshold: int) -> _Siblings:
    """What is left of siblings if only domains of a level that reach the threshold live.

    One that reaches it only without the leader lives, and does not lead.
    """
    fits = family.fits[level]
    lives = fits.slices >= threshold
    leads = lives if fits.may_lead is None else lives & (fits.slices_led >= threshold)
    slots = family.ranges[tree.node_level]
    domain_of = tree.domain_of[level][slots] - family.ranges[level].start
    nodes = family.fits[tree.node_level]
    lives, leads = lives[domain_of], leads[domain_of]
    led = None
    if nodes.may_lead is not None:
        # A domain that could not lead in the first place keeps its count.
        led = (
            np.where(leads | (lives & ~nodes.may_lead), nodes.pods_led, 0),
            nodes.may_lead & leads,
        )
    layers = unit.layers.without_inner()
    leaf = fit.of_nodes(
        np.where(lives, nodes.pods, 0), layers, tree.node_level, led=led, scores=nodes.scores
    )
    first_children = {
        above: tree.first_children(above)[family.ranges[above]] - family.ranges[above + 1].start
        for above in range(unit.first, tree.node_level)
    }
    return _Siblings(family.ranges, fit.roll_up(leaf, first_children, layers, tree.node_level))


def _count(fits: LevelFit, unit: Unit) -> int:
    """How few of these domains take the unit; 0 if they do not."""
    found = greedy(fits, unit.slices)
    return 0 if found is None else found.taken


def _by_entropy(tree: Tree, siblings: _Siblings, level: int) -> Rows:
    """Domains that may lead first, then the roomiest, then those with the most even children."""
    members, children = siblings.fits[level], siblings.fits[level + 1]
    first = tree.first_children(level)[siblings.ranges[level]]
    first = first - siblings.ranges[level + 1].start
    parts = np.split(children.pods, first[1:])
    return np.array(
        sorted(
            range(len(parts)),
            key=lambda domain: (
                0 if members.may_lead is None else -int(members.may_lead[domain]),
                -int(members.slices_led[domain]),
                -entropy(parts[domain]),
                domain,
            ),
        ),
        dtype=np.intp,
    )


def entropy(pods: Counts) -> float:
    """How evenly pods are spread, in bits. Added up in order of size, so that equal spreads of
    equal numbers are equal: Kueue adds in random order, and its ties break at random.
    """
    total = int(pods.sum())
    shares = [number / total for number in sorted(pods.tolist()) if number]
    return -math.fsum(share * math.log2(share) for share in shares)


def _even_share(
    view: View, fits: LevelFit, domains: Rows, unit: Unit, threshold: int
) -> Share | None:
    """Slices of each domain: the threshold, and the extra ones where most fit."""
    here, order = fits.at(domains), np.arange(domains.size)
    chosen = chosen_set(here, order, _count(here, unit), unit, view.spend)
    if chosen is None or unit.slices < chosen.size * threshold:
        return None
    chosen = np.sort(chosen)
    chosen = chosen[ranked_led(here.at(chosen), _BEST_FIT)]
    extra = unit.slices - chosen.size * threshold
    slices = []
    for place, domain in enumerate(chosen.tolist()):
        leads = place == 0 and unit.leader is not None
        room = int((here.slices_led if leads else here.slices)[domain]) - threshold
        taken = min(room, extra)
        slices.append(threshold + taken)
        extra -= taken
    if extra > 0:
        return None
    leader = int(domains[chosen[0]]) if unit.leader is not None else None
    return Share(domains[chosen], np.array(slices, dtype=np.int64) * unit.layers.size, leader)


def _over_the_tree(tree: Tree, siblings: _Siblings, level: int) -> dict[int, LevelFit]:
    """What the siblings take, as counts over all domains; nothing elsewhere."""
    return {
        below: siblings.fits[below].spread(siblings.ranges[below], tree.starts[below].size)
        for below in range(level, tree.node_level + 1)
    }
