"""Pods of one kind that were narrowed to a node each: a pod set for every one of them."""

from __future__ import annotations

import pytest

from app.dialects.corral import BORN, NODES
from app.kube.core.objects import Requirement, Shape, Term
from app.kube.watch.events import Applied
from tests.app.state.world import World
from tests.records import SLICE_LEVEL, SLICE_SIZE, group, node, pod
from tests.work import lines_run
from topology import NODE_LEVEL


def narrowed_to(name: str) -> Shape:
    return Shape(terms=(Term(fields=(Requirement("metadata.name", "In", (name,)),)),))


def begun(pods: int, **more: str) -> tuple[World, list]:
    """So many nodes, a pod of a gang on each, and as many more, narrowed to a node each."""
    names = [f"n{index}" for index in range(pods)]
    world = World([node(name) for name in names])
    annotations = group("g", 2 * pods, **{BORN: NODES}, **more)
    for name in names:
        world.put(pod(f"r-{name}", gpus=1, annotations=annotations, on=name, phase="Running"))
    waiting = [
        pod(f"w-{name}", gpus=1, annotations=annotations, shape=narrowed_to(name)) for name in names
    ]
    return world, waiting


def test_each_goes_to_its_node_beside_those_that_run():
    world, waiting = begun(4)
    world.put(*waiting)
    assert world.schedule(*waiting) == {each.name: each.name[2:] for each in waiting}


@pytest.mark.parametrize("more", [{}, {SLICE_LEVEL: NODE_LEVEL, SLICE_SIZE: "1"}])
def test_a_plan_takes_as_many_steps_as_there_are_pods_however_many_of_them_run(more):
    def steps(pods: int) -> int:
        world, (*others, last) = begun(pods, **more)
        for each in others:
            world.engine.apply(Applied(each), world.now)
        return lines_run(lambda: world.engine.apply(Applied(last), world.now))

    assert steps(80) < 5 * steps(20)
