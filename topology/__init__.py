"""Where a gang of pods fits: arithmetic on arrays, and nothing else.

A cluster is a tree of levels (block, rack, node). Sorted by path, every domain of it is a
range of nodes, so "how many pods fit in each rack" is one division per node and one sum per
range. A search divides once, adds up level by level, takes the tightest domain that holds the
whole pod set and goes down to nodes inside it. Nothing in this package reads a clock, a file
or a network, logs, draws a random number or knows what Kubernetes objects look like: the same
inputs give the same answer, bit for bit.

Read in this order:
    tree        nodes as slots, domains as ranges of slots
    capacity    what is allocatable, used and held over those slots
    request     what is asked for: gang, group, pod set, constraint, slices, leader
    unit        what of it is placed in one go, in levels of one tree
    room        the books as one search sees them: masks, scores, what it assumes itself
    fit         how much fits each node and each domain
    order       which comes first: every tie-break; `take`, how much each gets
    search      which level and which domains; `assign` then goes down to nodes and ranks
    balanced    the same many in every domain, where that is asked for
    parts       a gang with groups inside groups; `scope`, one domain as a cluster of its own
    groups      which domain each group takes, and its members inside it, on a `board`, screened
                by `headroom`; `uneven` builds trees from domains that name their members
    packing     several shapes on the same nodes, exactly: `greedy`, `patterns`, `table`, `solver`
    replace     a place for some pods of a gang beside others that stay: what is `missing` of one
                pod set, and what is `remaining` to be asked for by groups in groups
    relax       what would fit of a gang that does not: a milder request, or other books (`changes`)
                with the `fewest` changes; a `judge` asks `groups.find` within a budget
    answer      Placement, or NoFit and why, and what would fit instead
    ranks       which pod goes to which of the nodes
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
    WithoutPods,
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
from topology.relax.changed_capacity import Occupant
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
    "Occupant",
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
    "WithoutPods",
    "assignment",
    "build",
    "complete",
    "find",
    "levels_of",
    "levels_that_do_not_nest",
    "packing_scores",
    "relaxations",
]
