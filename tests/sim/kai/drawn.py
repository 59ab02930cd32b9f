"""Workloads of PodGroups on several Topologies, drawn at random.

    PodGroup, in a block or not ─┬─ a leaf, or a sub-group of some, on `net` or `racks`
                                 ├─ a leaf, or a sub-group of some, on `rows`
                                 └─ a leaf anywhere, or a sub-group of two on different Topologies

Each part may have sub-groups that it needs some of, pods that it does not need, or nothing that it
needs. What one part needs some of is on one Topology.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from app.kube.core.objects import Shape
from tests.records import BLOCK, RACK
from tests.sim.kai.tree import HALL, KIND, NET, RACKS, ROW, ROWS, Part, Sub, Tree, Within
from tests.sim.kinds import POOL, Template, Workload, drawn_life, of_objects
from tests.sim.native.pod_group import HOST

MOST_PODS = 8
ANYWHERE, MIXED = "anywhere", "mixed"
KINDS = (
    (NET, ROWS),
    (NET, ROWS),
    (RACKS, ROWS),
    (RACKS, ROWS, ANYWHERE),
    (NET, ROWS, ROWS),
    (MIXED, ROWS),
    (NET, RACKS, ROWS),
    (MIXED, ANYWHERE),
)
GROUP_SHARE = 0.35  # of the parts with pods for it
AROUND_SHARE = 0.35  # of PodGroups: all pods are in one block
SHAPES = (Shape(),) * 8 + (Shape(selector=((POOL, "a"),)),)


def draw(rng: Random, most_pods: int, most_gpus: int, gated_share: float) -> Workload:
    """A new workload, without a name."""
    its = parts(rng, min(rng.choice((2, 3, 4, 4, 5, 6, 8)), most_pods, MOST_PODS))
    gpus = rng.choice([amount for amount in (1, 1, 2, 4) if amount <= most_gpus])
    made = workload(tree(rng, its), gpus, rng.choice(SHAPES))
    return drawn_life(rng, made, gated_share)


def parts(rng: Random, pods: int) -> tuple[Part, ...]:
    """The parts of a gang of so many pods, or of a few more."""
    kinds = rng.choice(KINDS)
    sizes = [pods // len(kinds) + (at < pods % len(kinds)) for at in range(len(kinds))]
    found = []
    for kind, size in zip(kinds, sizes, strict=True):
        leaves = 1
        if kind == MIXED:
            leaves = 2
        elif kind != ANYWHERE and size >= 2 and rng.random() < GROUP_SHARE:
            leaves = rng.randint(2, min(size, 3))
        size = max(size, leaves)
        its = tuple(size // leaves + (at < size % leaves) for at in range(leaves))
        found.append(Part(kind, its))
    return tuple(found)


def tree(rng: Random, its: tuple[Part, ...]) -> Tree:
    """What may be required of such parts."""
    # Around a sub-group that is in a block itself and on two Topologies there is no other one.
    is_around = rng.random() < AROUND_SHARE and not any(each.kind == MIXED for each in its)
    subs: list[Sub] = []
    for at, part in enumerate(its):
        inner = [_leaf(rng, name, part, leaf) for leaf, name in enumerate(part.names(at))]
        if len(inner) > 1:
            subs.append(_group(rng, f"p{at}", part))
            inner = [replace(each, parent=f"p{at}") for each in inner]
        subs += inner
    found = Tree(Within(NET, BLOCK) if is_around else None, tuple(subs), its)
    if any(each.least for each in found.leaves):
        return found
    return replace(found, subs=(*subs[:-1], replace(subs[-1], least=1)))


def with_other_numbers(rng: Random, its: Tree) -> Tree:
    """The same where each part takes another number of its pods, or of its members."""
    other = {each.name: each.least for each in tree(rng, its.drawn).subs}
    return replace(its, subs=tuple(replace(each, least=other[each.name]) for each in its.subs))


def _leaf(rng: Random, name: str, part: Part, at: int) -> Sub:
    size, is_inner = part.sizes[at], len(part.sizes) > 1
    some = rng.randint(1, size)
    least = rng.choice((size, size, size, size, size, some, some, some if is_inner else 0))
    kind = (RACKS, ROWS)[at] if part.kind == MIXED else part.kind
    return Sub(name, "", least, _within(rng, kind, is_inner=is_inner))


def _within(rng: Random, kind: str, *, is_inner: bool) -> Within | None:
    if kind == NET:
        return Within(NET, rng.choice((RACK, RACK, HOST) if is_inner else (BLOCK, RACK, RACK)))
    if kind == RACKS:
        return Within(RACKS, RACK)
    if kind == ROWS:
        return Within(ROWS, ROW if is_inner else rng.choice((HALL, ROW, ROW)))
    return None


def _group(rng: Random, name: str, part: Part) -> Sub:
    """The sub-group around the leaves of a part."""
    if part.kind == MIXED:  # on two Topologies: it needs both of its members
        return Sub(name, "", None, Within(NET, BLOCK))
    wide = {NET: Within(NET, BLOCK), ROWS: Within(ROWS, HALL)}.get(part.kind)
    members = len(part.sizes)
    least = rng.choice((None, None, members, rng.randint(1, members)))
    return Sub(name, "", least, wide if rng.random() < 0.5 else None)


def whole(rack_pods: int, row_pods: int) -> Workload:
    """A gang that takes all of a rack, and of a row what is beside it."""
    its = (Part(RACKS, (rack_pods,)), Part(ROWS, (row_pods,)))
    subs = (
        Sub("p0", "", rack_pods, Within(RACKS, RACK)),
        Sub("p1", "", row_pods, Within(ROWS, ROW)),
    )
    return workload(Tree(None, subs, its), 1, Shape())


def workload(said: Tree, gpus: int, shape: Shape) -> Workload:
    """A workload of its parts, each pod with so many devices."""
    templates = tuple(
        Template(size, gpus, 1000, shape, name)
        for at, part in enumerate(said.drawn)
        for size, name in zip(part.sizes, part.names(at), strict=True)
    )
    return of_objects(KIND, templates, kai=said)
