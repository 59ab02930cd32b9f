"""Workloads of native PodGroups, drawn at random: gangs of all or of some pods, and basic."""

from __future__ import annotations

from random import Random

from app.kube.core.objects import Shape
from tests.records import BLOCK, RACK
from tests.sim.kinds import POOL, Template, Workload, drawn_life, of_objects
from tests.sim.native.pod_group import HOST, NATIVE_WORDS, Policy, Words

MOST_PODS = 8
BASIC_SHARE = 0.2
KEYS = ("", BLOCK, RACK, RACK, RACK, HOST)
SHAPES = (Shape(),) * 8 + (Shape(selector=((POOL, "a"),)),)


def draw(
    rng: Random, most_pods: int, most_gpus: int, gated_share: float, words: Words = NATIVE_WORDS
) -> Workload:
    """A new workload, without a name."""
    pods = min(rng.choice((1, 2, 2, 3, 4, 4, 6, 8)), most_pods, MOST_PODS)
    gpus = rng.choice([amount for amount in (1, 1, 2, 4, 8) if amount <= most_gpus])
    made = _workload(Template(pods, gpus, 1000, rng.choice(SHAPES)), policy(rng, pods), words)
    return drawn_life(rng, made, gated_share)


def policy(rng: Random, pods: int) -> Policy:
    """What a PodGroup of so many pods may require."""
    if rng.random() < BASIC_SHARE:
        return Policy(None, rng.choice(KEYS))
    return Policy(rng.choice((pods, pods, rng.randint(1, pods))), rng.choice(KEYS))


def whole(pods: int, words: Words = NATIVE_WORDS) -> Workload:
    """A gang that takes all of a rack, each pod with one device."""
    return _workload(Template(pods, 1, 1000), Policy(pods, RACK), words)


def _workload(template: Template, its: Policy, words: Words) -> Workload:
    return of_objects(words.workload, (template,), native=its)
