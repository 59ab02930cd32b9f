"""Pods of indexed Jobs, and where the members of a gang sit."""

from __future__ import annotations

import msgspec

from tests.records import BLOCK, REQUIRED, job_owner, pod
from tests.workload_pods import COMPLETION_INDEX


def indexed(name, pods, level=BLOCK, **more):
    """The pods of an indexed Job."""
    return [
        pod(
            f"{name}-{index}",
            owner=job_owner(name),
            labels={COMPLETION_INDEX: str(index)},
            annotations={REQUIRED: level},
            **more,
        )
        for index in range(pods)
    ]


def nodes_of(world, pods):
    """The node planned for each of these, in their order."""
    return [world.held[each.uid] for each in pods]


def in_tree_order(world, nodes):
    """Whether these nodes follow one another as the tree has them."""
    order = list(world.engine.books.topologies["default"].tree.nodes)
    return [order.index(name) for name in nodes] == sorted(order.index(name) for name in nodes)


def running(pods, nodes):
    return [
        msgspec.structs.replace(each, node=on, phase="Running")
        for each, on in zip(pods, nodes, strict=True)
    ]
