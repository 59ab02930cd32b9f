"""From chosen domains down to nodes, and from pods to nodes.

    chosen domains ──A──▶ domains of the slice level ──B──▶ nodes ──assignment──▶ slot of each rank

A. Down to the slice level all children of all chosen domains compete together: how much a domain
   was chosen for does not bind its children. Without slices that is the whole way to the nodes.
B. Inside a slice every domain hands what it got to its own children, the smallest first, in
   parts of the next slice layer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from topology.fit.fill import Filled, Offers, fill
from topology.fit.fit import LevelFit
from topology.fit.order import ranked
from topology.fit.unit import Unit
from topology.model.answer import Pairs, PodSetPlacement
from topology.model.request import PODS_MAX
from topology.model.resources import Counts, Rows
from topology.model.tree import Tree


@dataclass(frozen=True, slots=True, eq=False)
class Share:
    """What domains of one level get of one unit."""

    domains: Rows
    pods: Counts
    """Workers in each; may be 0."""
    leader: int | None = None
    """The domain that gets the leader."""


def down(
    tree: Tree, fits: dict[int, LevelFit], unit: Unit, level: int, domains: Rows
) -> Share | None:
    """Shares a unit among nodes inside domains that together take it; None if they do not.

    Shapes: domains in the order in which they are to be filled.
    Source: kueue pkg/cache/scheduler/tas_flavor_snapshot.go (v0.16), phase 2b.
    """
    # Step A.
    while level < unit.layers.level:
        if domains.size > 1:
            taken = fill(Offers.of(fits[level]), domains, unit.slices, unit.strategy)
            if taken is None:
                return None
            domains = np.sort(taken.domains)
        children = tree.children(level, domains)
        level += 1
        domains = children[ranked(fits[level].at(children), unit.strategy)]
    taken = fill(Offers.of(fits[level]), domains, unit.slices, unit.strategy)
    if taken is None:
        return None
    share = _share(taken, unit.layers.size)
    if unit.layers.remainder:
        share.pods[share.domains == share.leader] += unit.layers.remainder
        share = Share(share.domains, share.pods)
    # Step B.
    return inside(tree, fits, unit, level, share)


def inside(
    tree: Tree, fits: dict[int, LevelFit], unit: Unit, level: int, share: Share
) -> Share | None:
    """Hands what each domain got down to its own nodes; None if they do not take it.

    Step B of the module.
    """
    while level < tree.node_level:
        below = unit.layers.inner[level + 1] if level >= unit.layers.level else unit.layers.size
        first = tree.first_children(level)
        ends = np.append(first[1:], tree.starts[level + 1].size)
        shares: list[Share] = []
        for domain, pods in zip(share.domains.tolist(), share.pods.tolist(), strict=True):
            leads = domain == share.leader
            if pods == 0 and not leads:
                continue
            children = slice(int(first[domain]), int(ends[domain]))
            here = fits[level + 1].within(children)
            part = _among(here, unit, pods, below, leads=leads)
            if part is None:
                return None
            leader = None if part.leader is None else part.leader + children.start
            shares.append(Share(part.domains + children.start, part.pods, leader))
        share = _joined(shares)
        level += 1
    return share


def _among(children: LevelFit, unit: Unit, pods: int, part: int, *, leads: bool) -> Share | None:
    """What the children of one domain get of its pods, in parts of so many pods."""
    offers = Offers.of(children, part)
    order = ranked(children, unit.strategy)
    taken = fill(offers if leads else offers.beside_leader(), order, pods // part, unit.strategy)
    return None if taken is None else _share(taken, part)


def _share(taken: Filled, pods: int) -> Share:
    """The share of domains that got so many pods for each of what they took."""
    return Share(taken.domains, taken.counts * pods, taken.leader)


def _joined(shares: list[Share]) -> Share:
    leaders = [share.leader for share in shares if share.leader is not None]
    return Share(
        np.concatenate([share.domains for share in shares]),
        np.concatenate([share.pods for share in shares]),
        leaders[0] if leaders else None,
    )


def placements(tree: Tree, unit: Unit, level: int, share: Share) -> tuple[PodSetPlacement, ...]:
    """The answer for a unit whose nodes are known: its pod sets as the gang names them.

    `level` is the one the domains were chosen at.
    """
    is_used = share.pods > 0
    slots = _in_slot_order(share.domains[is_used], share.pods[is_used])
    workers = placement(tree, unit.workers.name, level, slots)
    if unit.leader is None:
        return (workers,)
    assert share.leader is not None, "a share of a unit with a leader has a place for it"
    leader = placement(tree, unit.leader.name, level, Pairs.of([(share.leader, 1)]))
    return (leader, workers) if unit.is_leader_first else (workers, leader)


def _in_slot_order(slots: Rows, pods: Counts) -> Pairs:
    """The same pods by slot: both in one integer, which sorts several times faster."""
    if slots.size < 2:
        return Pairs(slots, pods)
    pods_bits = PODS_MAX.bit_length()
    key = (slots.astype(np.int64) << pods_bits) + pods
    key.sort()
    return Pairs((key >> pods_bits).astype(np.intp, copy=False), key & PODS_MAX)


def placement(tree: Tree, name: str, level: int, slots: Pairs) -> PodSetPlacement:
    """One pod set on slots in order, with what each domain of a level holds in the end."""
    domains = slots
    if level < tree.node_level and slots:
        domain_of = tree.domain_of[level][slots.indices]  # ascending, since the slots are
        changes = (domain_of[1:] != domain_of[:-1]).nonzero()[0]
        first = np.zeros(changes.size + 1, dtype=np.intp)
        np.add(changes, 1, out=first[1:])
        domains = Pairs(domain_of[first], np.add.reduceat(slots.pods, first))
    return PodSetPlacement(pod_set=name, level=level, domains=domains, slots=slots)


def assignment(placed: PodSetPlacement) -> Rows:
    """The slot of each rank: ranks fill the slots in slot order, so neighbours stay together.

    Shapes: (pods,).
    """
    return np.repeat(placed.slots.indices, placed.slots.pods)
