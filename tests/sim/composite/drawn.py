"""Workloads of CompositePodGroups, drawn at random: of one group to three, each a gang or not."""

from __future__ import annotations

from random import Random

from app.kube.core.objects import Shape
from tests.records import BLOCK, RACK
from tests.sim.composite.tree import KIND, Tree, part_of
from tests.sim.kinds import POOL, Template, Workload, drawn_life, of_objects
from tests.sim.native.pod_group import Policy

MOST_PODS = 8
BASIC_SHARE = 0.15
# Two blocks of racks: levels inside one another are of the topology that is set.
KEYS = ("", BLOCK, BLOCK, RACK)
INNER_KEYS = ("", "", RACK)
SHAPES = (Shape(),) * 8 + (Shape(selector=((POOL, "a"),)),)


def draw(rng: Random, most_pods: int, most_gpus: int, gated_share: float) -> Workload:
    """A new workload, without a name."""
    total = min(rng.choice((2, 3, 4, 4, 6, 8)), most_pods, MOST_PODS)
    groups = min(rng.choice((1, 2, 2, 2, 3)), total)
    sizes = [total // groups + (at < total % groups) for at in range(groups)]
    gpus = rng.choice([amount for amount in (1, 1, 2, 4) if amount <= most_gpus])
    shape = rng.choice(SHAPES)
    made = _workload(sizes, gpus, tree(rng, sizes), shape)
    return drawn_life(rng, made, gated_share)


def tree(rng: Random, sizes: list[int]) -> Tree:
    """What may be required of groups of so many pods."""
    is_basic = rng.random() < BASIC_SHARE
    groups = tuple(
        # A basic group in a composite that counts groups is refused.
        Policy(
            None if is_basic and rng.random() < 0.5 else rng.choice((size, rng.randint(1, size))),
            rng.choice(INNER_KEYS),
        )
        for size in sizes
    )
    least = None if is_basic else rng.choice((len(sizes), len(sizes), rng.randint(1, len(sizes))))
    return Tree(least, rng.choice(KEYS), groups)


def whole(pods: int) -> Workload:
    """Two groups that take all of a rack between them, each pod with one device."""
    sizes = [pods // 2, pods - pods // 2] if pods > 1 else [pods]
    its = Tree(len(sizes), RACK, tuple(Policy(each, "") for each in sizes))
    return _workload(sizes, 1, its, Shape())


def _workload(sizes: list[int], gpus: int, its: Tree, shape: Shape) -> Workload:
    templates = tuple(
        Template(size, gpus, 1000, shape, part_of(at)) for at, size in enumerate(sizes)
    )
    return of_objects(KIND, templates, composite=its)
