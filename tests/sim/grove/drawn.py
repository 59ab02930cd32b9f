"""PodCliqueSets, drawn at random.

flat       one clique; it starts with all of its pods, with some of them, or with any
cliques    two or three, each with a minimum and a level of its own
scaled     a clique, and a scaling group of two: its first replicas start with the clique, the
           others each for itself after those

A level inside another one is never wider than that.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from app.kube.core.objects import Shape
from tests.sim.grove.pod_clique_set import KEYS, Clique, Pack, PodCliqueSet
from tests.sim.kinds import POOL, Template, Workload

KIND = "podcliqueset"
MOST_PODS = 8
NO_MINIMUM_SHARE = 0.15  # of cliques
BY_REFERENCE_SHARE = 0.25  # of PodCliqueSets: as another operator may make them
SHAPES = (Shape(),) * 8 + (Shape(selector=((POOL, "a"),)),)
LEVELS = tuple(KEYS)


def draw(rng: Random, most_pods: int, most_gpus: int) -> Workload:
    """A new workload, without a name."""
    size = min(rng.choice((1, 2, 3, 3, 4, 4, 5, 6, 8)), most_pods, MOST_PODS)
    form = rng.choice(("flat", "cliques", "cliques", "scaled", "scaled", "scaled"))
    pack = _pack(rng, ("", "block", "block", "rack"), "")
    if form == "scaled" and size >= 2:
        return _scaled(rng, size, most_gpus, pack)
    cliques, pods = [], {}
    for at in range(min(size, 1 if form == "flat" else rng.choice((2, 2, 3)))):
        name = f"c{at}"
        pods[name] = 1 + sum(rng.random() < 0.5 for _ in range(max(size - 3, 0)))
        cliques.append(Clique(name, _least(rng, pods[name]), _clique_pack(rng, pack.required)))
    made = PodCliqueSet(tuple(cliques), pack)
    return _workload(rng, made, pods, most_gpus)


def whole(pods: int) -> Workload:
    """A gang that takes all of a rack, each pod with one device, inside a block."""
    clique = Clique("c0", pods, Pack(required="rack"))
    made = PodCliqueSet((clique,), Pack(required="block"))
    workload = _workload(Random(0), made, {"c0": pods}, 1)
    workload.templates = (Template(pods, 1, 1000, part="0-c0"),)
    workload.seconds, workload.lacks_volume, workload.priority = 1000.0, "", 0
    return workload


def _scaled(rng: Random, size: int, most_gpus: int, pack: Pack) -> Workload:
    workers = rng.choice((1, 1, 2))
    replicas = max(min(rng.choice((1, 2, 2, 3)), (size - 1) // (workers + 1)), 1)
    group_pack = _pack(rng, ("", "", "rack", "rack"), pack.required)
    inside = group_pack.required or pack.required
    cliques = (
        Clique("router", 1, _clique_pack(rng, pack.required)),
        Clique("pl", 1, _clique_pack(rng, inside), is_scaled=True),
        Clique("pw", rng.randint(1, workers), _clique_pack(rng, inside), is_scaled=True),
    )
    made = PodCliqueSet(cliques, pack, group_pack, replicas, rng.randint(1, replicas))
    return _workload(rng, made, {"router": 1, "pl": 1, "pw": workers}, most_gpus)


def _workload(rng: Random, made: PodCliqueSet, pods: dict[str, int], most_gpus: int) -> Workload:
    made = replace(made, is_by_reference=rng.random() < BY_REFERENCE_SHARE)
    gpus = [amount for amount in (1, 1, 2, 4) if amount <= most_gpus]
    of_clique = {each.name: rng.choice(gpus) for each in made.cliques}
    shape = rng.choice(SHAPES)
    templates = tuple(
        Template(pods[each.clique.name], of_clique[each.clique.name], 1000, shape, each.name)
        for parts in made.gangs().values()
        for each in parts
    )
    return Workload(
        name="",
        kind=KIND,
        templates=templates,
        annotations={},
        priority=rng.choice((0, 0, 0, 5, 10)),
        is_gated=False,  # by Corral's webhook: Grove would take that gate off
        seconds=rng.uniform(5.0, 60.0),
        declared=sum(template.pods for template in templates),
        replaces=rng.random() < 0.9,
        pod_clique_set=made,
        lacks_volume=rng.choice(("first", "all")) if rng.random() < 0.05 else "",
    )


def _least(rng: Random, pods: int) -> int:
    if rng.random() < NO_MINIMUM_SHARE:
        return 0
    return rng.choice((pods, pods, rng.randint(1, pods)))


def _clique_pack(rng: Random, around: str) -> Pack:
    return _pack(rng, ("", "", "", "rack", "rack", "host"), around)


def _pack(rng: Random, levels: tuple[str, ...], around: str) -> Pack:
    """One of these levels, not wider than what is around, and sometimes a preferred one."""
    required = rng.choice(levels)
    if required and around and LEVELS.index(required) < LEVELS.index(around):
        required = around
    preferred = rng.choice(LEVELS) if rng.random() < 0.25 else ""
    return Pack(required, preferred)
