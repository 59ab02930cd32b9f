"""Workloads of Volcano's, drawn at random: jobs of one or two tasks, and of partitions.

flat       one task; it starts with all of its pods, or with some of them
tasks      a master and workers, with a minimum of each
parted     workers in partitions, each in a HyperNode of its own, and sometimes a master
"""

from __future__ import annotations

from random import Random
from typing import Literal

from app.kube.core.objects import Shape
from tests.records import GPU
from tests.sim.kinds import POOL, Template, Workload
from tests.sim.volcano.pod_group import Json, Partitions, PodGroup

MOST_PODS = 8
BY_JOB_SHARE = 0.65
PLAIN_SHARE = 0.6  # of the others, those of one task: their PodGroup is made for their owner
KINDS = {"job": "vcjob", "pods": "vcpods", "user": "podgroup"}
MASTER, WORKER = "master", "worker"
SHAPES = (Shape(),) * 8 + (Shape(selector=((POOL, "a"),)),)


def draw(
    rng: Random, most_pods: int, most_gpus: int, gated_share: float, queues: tuple[str, ...]
) -> Workload:
    """A new workload, without a name."""
    form = rng.choice(("flat", "flat", "tasks", "parted", "parted"))
    size = min(rng.choice((1, 2, 2, 3, 4, 4, 5, 6, 8)), most_pods, MOST_PODS)
    gpus = rng.choice([amount for amount in (1, 1, 2, 4, 8) if amount <= most_gpus])
    shape = rng.choice(SHAPES)
    if form == "parted" and size >= 2:
        templates, partitions, least_of = _parted(rng, size, gpus, shape)
    elif form == "tasks" and size >= 2:
        workers, least = size - 1, rng.randint(1, size - 1)
        templates = (_master(rng, gpus, shape), Template(workers, gpus, 1000, shape, WORKER))
        partitions, least_of = None, {MASTER: 1, WORKER: least}
    else:
        templates = (Template(size, gpus, 1000, shape, WORKER),)
        partitions, least_of = None, {WORKER: rng.choice((size, size, rng.randint(1, size)))}
    made_for: Literal["job", "pods", "user"] = "job" if rng.random() < BY_JOB_SHARE else "user"
    if made_for == "user" and form == "flat" and rng.random() < PLAIN_SHARE:
        made_for = "pods"
    names_tasks = made_for == "job" or (made_for == "user" and rng.random() < 0.5)
    group = PodGroup(
        made_for,
        sum(least_of.values()),
        least_of if names_tasks else {},
        _job_topology(rng, is_parted=partitions is not None),
        partitions,
        rng.choice(queues),
        _requests(templates, least_of),
    )
    return Workload(
        name="",
        kind=KINDS[made_for],
        templates=templates,
        annotations={},
        priority=rng.choice((0, 0, 0, 5, 10)),
        is_gated=rng.random() < gated_share,
        seconds=rng.uniform(5.0, 60.0),
        declared=sum(template.pods for template in templates),
        replaces=rng.random() < 0.9,
        pod_group=group,
        lacks_volume=rng.choice(("first", "all")) if rng.random() < 0.05 else "",
    )


def whole(pods: int, tier: int) -> Workload:
    """A job that starts with all of its pods in one HyperNode, each with one device."""
    template = Template(pods, 1, 1000, part=WORKER)
    least_of = {WORKER: pods}
    requests = _requests((template,), least_of)
    topology = {"mode": "hard", "highestTierAllowed": tier}
    return Workload(
        name="",
        kind="vcjob",
        templates=(template,),
        annotations={},
        priority=0,
        is_gated=False,
        seconds=1000.0,
        declared=pods,
        pod_group=PodGroup("job", pods, least_of, topology, None, "default", requests),
    )


def _parted(
    rng: Random, size: int, gpus: int, shape: Shape
) -> tuple[tuple[Template, ...], Partitions, dict[str, int]]:
    each = rng.choice([pods for pods in (1, 2, 2, 3, 4) if pods <= size])
    parts = size // each
    least = rng.choice((parts, parts, rng.randint(1, parts)))
    partitions = Partitions(WORKER, each, least, _topology(rng, (1, 1, 1, 2)))
    workers = Template(parts * each, gpus, 1000, shape, WORKER)
    if rng.random() < 0.3:
        return (_master(rng, gpus, shape), workers), partitions, {MASTER: 1, WORKER: least * each}
    return (workers,), partitions, {WORKER: least * each}


def _master(rng: Random, gpus: int, shape: Shape) -> Template:
    return Template(1, rng.choice((0, 1, gpus)), 500, shape, MASTER)


def _job_topology(rng: Random, *, is_parted: bool) -> Json | None:
    if rng.random() < (0.5 if is_parted else 0.15):
        return None
    return _topology(rng, (2, 2, 3) if is_parted else (1, 1, 1, 2, 2, 3))


def _topology(rng: Random, tiers: tuple[int, ...]) -> Json:
    if rng.random() < 0.2:
        return {"mode": "soft"}
    return {"mode": "hard", "highestTierAllowed": rng.choice(tiers)}


def _requests(templates: tuple[Template, ...], least_of: dict[str, int]) -> dict[str, int]:
    """What the pods request together that it takes to start."""
    pods = [(each, least_of.get(each.part, 0)) for each in templates]
    return {
        "cpu": sum(template.cpu * least for template, least in pods),
        GPU: sum(template.gpus * least for template, least in pods),
    }
