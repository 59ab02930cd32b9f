"""What one gang may require of nodes; what is beyond it is refused by name and not searched."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from app.kube.core.node_requirements import MOST_OF_GANG, MOST_OF_POD, VALUES
from app.kube.core.objects import Requirement, Shape, Term, Toleration
from tests.app.state.world import World, four_racks, members

POOL = Requirement("pool", "NotIn", ("a",))


def selector(number: int) -> Shape:
    return Shape(selector=tuple((f"k{at}", "v") for at in range(number)))


def one_term(number: int) -> Shape:
    return Shape(terms=(Term((POOL,) * number),))


def many_terms(number: int) -> Shape:
    return Shape(terms=(Term((POOL,)),) * number)


def empty_terms(number: int) -> Shape:
    return Shape(terms=(Term(),) * number)


def preferred(number: int) -> Shape:
    return Shape(preferred=((1, Term((POOL,))),) * number)


def tolerations(number: int) -> Shape:
    return Shape(tolerations=(Toleration("t", "Exists", "", "", False),) * number)


def with_values(number: int) -> Shape:
    listed = tuple(f"v{at}" for at in range((number - 1) * VALUES))
    return Shape(terms=(Term((Requirement("pool", "NotIn", listed),)),))


FIELDS = {
    selector: "nodeSelector",
    one_term: "affinity.nodeAffinity",
    many_terms: "affinity.nodeAffinity",
    empty_terms: "affinity.nodeAffinity",
    preferred: "affinity.nodeAffinity",
    with_values: "affinity.nodeAffinity",
    tolerations: "tolerations",
}


def world_of(*shapes: Shape) -> World:
    pods = members("g", len(shapes), gpus=1)
    pods = [replace(each, shape=shape) for each, shape in zip(pods, shapes, strict=True)]
    return World(four_racks(), pods)


@pytest.mark.parametrize("made", FIELDS, ids=lambda made: made.__name__)
def test_a_pod_of_a_gang_has_so_many_requirements_on_nodes_and_the_verdict_counts_them(made):
    world = world_of(made(1), made(MOST_OF_POD))
    world.tick()
    assert not any("requirements" in each for each in world.reports)
    world = world_of(made(1), made(MOST_OF_POD + 1))
    world.tick()
    assert world.held == {}
    assert (
        f"pod default/g1: spec.{FIELDS[made]} has {MOST_OF_POD + 1} requirements, and a pod"
        f" of a gang may have {MOST_OF_POD}"
    ) in world.reports[-1]


def different(pods: int, requirements: int) -> list[Shape]:
    """Shapes of so many requirements each that all nodes meet."""
    return [
        Shape(terms=(Term((Requirement(f"k{at}", "DoesNotExist", ()),) * requirements),))
        for at in range(pods)
    ]


def test_the_kinds_of_a_gang_have_so_many_requirements_together():
    each = MOST_OF_GANG // 16
    assert len(world_of(*different(16, each)).held) == 16
    world = world_of(*different(15, each), *different(1, each + 1))
    world.tick()
    assert world.held == {}
    assert f"have {MOST_OF_GANG + 1} requirements" in world.reports[-1]


def test_pods_that_are_alike_count_once():
    (shape,) = different(1, MOST_OF_POD)
    assert len(world_of(*(shape,) * 16).held) == 16


def test_a_gang_that_runs_takes_no_pod_that_requires_too_much():
    world = world_of(Shape(), one_term(MOST_OF_POD + 1))
    world.put(replace(world.pods["uid-g0"], node="n00", phase="Running", version="2"))
    world.tick()
    assert world.held == {}


def test_what_is_refused_looks_at_no_node():
    visits = []
    for requirements in (MOST_OF_POD + 1, 10 * MOST_OF_POD):
        world = world_of(*(one_term(requirements),) * 4)
        world.tick()
        visits.append(world.engine.planner.node_table.visits.total)
    assert visits == [0, 0]
