"""Where a gang of pods fits: arithmetic on arrays, and nothing else.

A cluster is a tree of levels (block, rack, node). Sorted by path, every domain of it is a
range of nodes, so "how many pods fit in each rack" is one division per node and one sum per
range. A search divides once, adds up level by level, takes the tightest domain that holds the
whole pod set and goes down to nodes inside it. Nothing in this package reads a clock, a file
or a network, logs, draws a random number or knows what Kubernetes objects look like: the same
inputs give the same answer, bit for bit.

Read in this order; each folder says more:
    model       tree, capacity, request and answer: what a search reads, and what it returns
    fit         how much of one unit fits in each domain, and which domain comes first
    pod_set     a place for one pod set, its leader and its slices, as Kueue places it
    nested      a place for groups inside groups, and for pods missing beside pods that stay
    packing     several shapes on the same nodes, exactly
    fragments   what pods leave on a node that no usual pod can use
    victims     who has to go so that a gang has room
    relax       what would fit instead of a gang that does not
    errors      what is raised
    invariants  what must hold between all of these
"""

from __future__ import annotations

from topology.errors import BrokenInvariant, InvalidRequest, InvalidTopology, TopologyError
from topology.fit.order import packing_scores
from topology.fit.view import Options
from topology.model.answer import (
    FewerMembers,
    FewerPods,
    Never,
    NodesBack,
    NoFit,
    Pairs,
    Placement,
    PodSetPlacement,
    Relaxation,
    WiderLevel,
)
from topology.model.capacity import Capacity
from topology.model.levels import NODE_LEVEL, levels_of
from topology.model.request import (
    Constraint,
    DomainOrder,
    Gang,
    Group,
    Leader,
    PodSet,
    Slice,
    Strategy,
)
from topology.model.resources import CPU, PODS, Counts, Mask, ResourceAxis, Rows
from topology.model.tree import Tree, build, levels_that_do_not_nest
from topology.nested.complete import complete
from topology.nested.walk import find
from topology.pod_set.assign import assignment
from topology.relax.relax import Leeway, Relaxations, relaxations

__all__ = [
    "CPU",
    "NODE_LEVEL",
    "PODS",
    "BrokenInvariant",
    "Capacity",
    "Constraint",
    "Counts",
    "DomainOrder",
    "FewerMembers",
    "FewerPods",
    "Gang",
    "Group",
    "InvalidRequest",
    "InvalidTopology",
    "Leader",
    "Leeway",
    "Mask",
    "Never",
    "NoFit",
    "NodesBack",
    "Options",
    "Pairs",
    "Placement",
    "PodSet",
    "PodSetPlacement",
    "Relaxation",
    "Relaxations",
    "ResourceAxis",
    "Rows",
    "Slice",
    "Strategy",
    "TopologyError",
    "Tree",
    "WiderLevel",
    "assignment",
    "build",
    "complete",
    "find",
    "levels_of",
    "levels_that_do_not_nest",
    "packing_scores",
    "relaxations",
]
