"""How much fits where: the first half of every search.

    free[R, N] ─pods_per_node─▶ pods[N] ─of_nodes─▶ LevelFit ─of_parents─▶ LevelFit ─▶ ...

A LevelFit counts what each domain of one level takes: pods, slices, and either of them beside
the leader. Nothing here chooses; choosing is `search` with the rules of `order`. The functions
are pure and allocate only their result. One row per resource keeps each division a straight
run over memory: 15 to 25 times faster than one row per node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy import typing as npt

from topology.fit.unit import Layers
from topology.model.request import PODS_MAX
from topology.model.resources import Counts, Mask, Rows

NOT_OPEN = "not ready or unschedulable"
NOT_ALLOWED = "node selector, affinity or taint"
OUTSIDE = "outside the domain of the pods that stay"

_INT64_MAX = 2**63 - 1


def pods_per_node(free: Counts | Sequence[Counts], request: Sequence[int] | Counts) -> Counts:
    """Count the identical pods each node can still take.

    Shapes: free (R, N) or R rows of it, request (R,) -> (N,).
    Units: base units of each resource row (`topology.resources`). A node counts for at
        most PODS_MAX, so that no sum over nodes overflows.
    Raises: ValueError if the request is empty; a pod requests at least one
        pod slot, so an empty request is a caller's bug.
    Source: kueue pkg/cache/scheduler/tas_flavor_snapshot.go (v0.16), phase 1.
    """
    asked = [resource for resource, amount in enumerate(request) if amount]
    if not asked:
        raise ValueError("empty request: every pod asks for one pod slot")
    pods: Counts = np.full_like(free[asked[0]], PODS_MAX)
    quotient = np.empty_like(pods)
    for resource in asked:
        amount = request[resource]
        if amount == 1:  # of the pod slots, and of most devices: no division
            np.minimum(pods, free[resource], out=pods)
        else:
            np.minimum(pods, np.floor_divide(free[resource], amount, out=quotient), out=pods)
    # A node over-committed by pods we do not manage has negative free capacity.
    np.maximum(pods, 0, out=pods)
    return pods


def exclusions(
    free: Counts | Sequence[Counts],
    asked: Sequence[tuple[str, int]],
    is_open: Mask,
    is_allowed: Mask,
    *,
    is_inside: Mask | None = None,
    reasons: Sequence[str] | None = None,
) -> tuple[tuple[str, int], ...]:
    """Count the nodes that take no pod at all, by the first reason that holds.

    A node is closed, or its shape is not allowed there, or it is outside of where the pods must
    be, or a resource does not suffice for one pod; of several such resources the alphabetically
    first. `reasons` says per node why a shape is not allowed there.
    Shapes: free (len(asked), N) in the order of `asked`; the masks and reasons (N,).
    Order: most frequent first, ties alphabetical.
    Source: kueue pkg/cache/scheduler/tas_flavor_snapshot.go (v0.16), the limiting resource.
    """
    nodes: Counter[str] = Counter()
    nodes[NOT_OPEN] = int(np.count_nonzero(~is_open))
    refused = is_open & ~is_allowed
    if reasons is None:
        nodes[NOT_ALLOWED] = int(np.count_nonzero(refused))
    else:
        nodes.update(reasons[slot] or NOT_ALLOWED for slot in refused.nonzero()[0].tolist())
    remaining = is_open & is_allowed
    if is_inside is not None:
        nodes[OUTSIDE] = int(np.count_nonzero(remaining & ~is_inside))
        remaining &= is_inside
    for index in sorted(range(len(asked)), key=lambda index: asked[index][0]):
        name, amount = asked[index]
        is_short = remaining & (free[index] < amount)
        nodes[f"insufficient {name}"] = int(np.count_nonzero(is_short))
        remaining &= ~is_short
    found = [(reason, number) for reason, number in nodes.items() if number]
    return tuple(sorted(found, key=lambda entry: (-entry[1], entry[0])))


@dataclass(frozen=True, slots=True, eq=False)
class LevelFit:
    """What the domains of one level, or some of them, take of one unit.

    Shapes: all (D,). "Led": in a domain that hosts the leader as well.
    """

    pods: Counts
    pods_led: Counts
    slices: Counts
    """Slices of the outermost layer, at its level and wider ones; 0 below. Pods without slices."""
    slices_led: Counts
    may_lead: Mask | None = None
    """None: there is no leader."""
    scores: Counts | None = None
    """Preference for the nodes inside, added up; None: there is none."""

    def at(self, domains: Rows) -> LevelFit:
        """Of some domains, in the order given."""
        pods = self.pods[domains]
        slices = pods if self.slices is self.pods else self.slices[domains]
        if self.may_lead is None:
            return LevelFit(pods, pods, slices, slices, None, _at(self.scores, domains))
        return LevelFit(
            pods,
            self.pods_led[domains],
            slices,
            self.slices_led[domains],
            self.may_lead[domains],
            _at(self.scores, domains),
        )

    def within(self, domains: slice) -> LevelFit:
        """Of a range of domains, without copying."""
        pods = self.pods[domains]
        slices = pods if self.slices is self.pods else self.slices[domains]
        may_lead = None if self.may_lead is None else self.may_lead[domains]
        scores = None if self.scores is None else self.scores[domains]
        return LevelFit(
            pods, self.pods_led[domains], slices, self.slices_led[domains], may_lead, scores
        )

    def spread(self, domains: slice, size: int) -> LevelFit:
        """Of a range of domains as of all of them: 0 elsewhere. Shapes: (size,)."""

        def over_all(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
            whole = np.zeros(size, dtype=values.dtype)
            whole[domains] = values
            return whole

        return LevelFit(
            over_all(self.pods),
            over_all(self.pods_led),
            over_all(self.slices),
            over_all(self.slices_led),
            None if self.may_lead is None else over_all(self.may_lead),
            None if self.scores is None else over_all(self.scores),
        )


def _at(values: Counts | None, domains: Rows) -> Counts | None:
    return None if values is None else values[domains]


def of_nodes(
    pods: Counts,
    layers: Layers,
    node_level: int,
    *,
    led: tuple[Counts, Mask] | None = None,
    scores: Counts | None = None,
) -> LevelFit:
    """The fit of the nodes themselves.

    Shapes: all (N,). `led`: pods that fit beside the leader, and where it may be.
    """
    pods_led, may_lead = (pods, None) if led is None else led
    counted = LevelFit(pods, pods_led, pods, pods_led, may_lead, scores)
    return _with_slices(counted, None, node_level, layers)


def of_parents(child: LevelFit, first_child: Rows, level: int, layers: Layers) -> LevelFit:
    """The fit one level wider than `child`; `level` is the wider one.

    Where a domain hosts the leader, it hosts it in the child that loses least by it: what it
    loses is the smallest loss among the children that may lead.
    Source: kueue pkg/cache/scheduler/tas_flavor_snapshot.go (v0.16), phase 1, inner domains.
    """
    multiple = layers.inner[level + 1]
    pods, pods_led = child.pods, child.pods_led
    if multiple > 1:
        pods, pods_led = pods - pods % multiple, pods_led - pods_led % multiple
    total = np.add.reduceat(pods, first_child)
    scores = None if child.scores is None else np.add.reduceat(child.scores, first_child)
    slices = None
    if level < layers.level and not layers.are_pods:
        slices = np.add.reduceat(child.slices, first_child)
    if child.may_lead is None:
        sums = None if slices is None else (slices, slices)
        return _with_slices(LevelFit(total, total, total, total, None, scores), sums, level, layers)
    may_lead = np.logical_or.reduceat(child.may_lead, first_child)
    leads = (child.may_lead, may_lead, first_child)
    total_led = total - _least_loss(pods - pods_led, total, *leads)
    sums = None
    if slices is not None:
        lost = _least_loss(child.slices - child.slices_led, slices, *leads)
        sums = (slices, slices - lost)
    counted = LevelFit(total, total_led, total, total_led, may_lead, scores)
    return _with_slices(counted, sums, level, layers)


def _least_loss(
    losses: Counts, total: Counts, child_may_lead: Mask, may_lead: Mask, first_child: Rows
) -> Counts:
    """The smallest loss of the children that may lead; all there is where none may."""
    least = np.minimum.reduceat(np.where(child_may_lead, losses, _INT64_MAX), first_child)
    return np.where(may_lead, least, total)


def _with_slices(
    counted: LevelFit, sums: tuple[Counts, Counts] | None, level: int, layers: Layers
) -> LevelFit:
    """The same pods with their slices: counted at their level, `sums` above it, unknown below."""
    if layers.are_pods:
        return counted
    if level != layers.level:
        nothing = np.zeros_like(counted.pods)
        slices, slices_led = sums or (nothing, nothing)
        return replace(counted, slices=slices, slices_led=slices_led)
    slices = counted.pods // layers.size
    if layers.remainder:
        # The smaller last slice is placed as a leader is: it may cost a whole slice.
        costs = counted.pods % layers.size < layers.remainder
        may_lead = slices >= costs
        slices_led = np.where(may_lead, slices - costs, 0)
        return replace(counted, slices=slices, slices_led=slices_led, may_lead=may_lead)
    has_leader = counted.pods_led is not counted.pods
    slices_led = counted.pods_led // layers.size if has_leader else slices
    return replace(counted, slices=slices, slices_led=slices_led)


def roll_up(
    nodes: LevelFit, first_children: Mapping[int, Rows], layers: Layers, node_level: int
) -> dict[int, LevelFit]:
    """The fit of each level that has an entry in `first_children`, and of the nodes.

    `first_children`: per level, from the wanted widest one to the one above the nodes, the
    index of each domain's first child.
    """
    fits = {node_level: nodes}
    for level in range(node_level - 1, node_level - 1 - len(first_children), -1):
        fits[level] = of_parents(fits[level + 1], first_children[level], level, layers)
    return fits
