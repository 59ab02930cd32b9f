"""What a seed draws before anything happens: the cluster, and how much of what goes on there."""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.sim.afterwards import STARVATION_SECONDS
from tests.sim.chaos import KINDS
from tests.sim.watch import QUICK

LARGE, LARGE_SHARE = 40, 0.1  # pods of a large gang, and the share of seeds that have some
SHORT_SEARCHES_SHARE = 1 / 3  # of the seeds
GIVEN_BACK_SHARE = 0.7
LEAST_VISITS, DEFAULT_VISITS = 1_000, 20_000


@dataclass(frozen=True, slots=True)
class Profile:
    """Of one seed."""

    racks: tuple[int, ...]  # nodes of each rack
    gpus: int
    corrals: int
    chaos_seconds: float
    workloads_per_minute: float
    most_pods: int
    kinds: tuple[str, ...]
    intensity: float
    failures: float
    dies: float
    oddities: float
    rest_seconds: float
    pops_from_backoff: bool
    tick_seconds: float
    gated_share: float
    quick_lag: tuple[float, float]
    settings: tuple[tuple[str, Any], ...]


def profile_of(rng: Random) -> Profile:
    """One of many kinds of world."""
    share = rng.choice((0.15, 0.35, 0.6))
    # Gangs that take longer to pass kube-scheduler than a /bind is held.
    is_large = rng.random() < LARGE_SHARE
    return Profile(
        racks=tuple(4 if is_large else rng.randint(1, 4) for _ in range(rng.randint(2, 4))),
        gpus=8 if is_large else rng.choice((2, 4, 8)),
        corrals=rng.choice((1, 1, 2)),
        chaos_seconds=rng.uniform(30.0, 110.0),
        workloads_per_minute=rng.choice((4.0, 8.0, 12.0)),
        most_pods=LARGE if is_large else rng.choice((2, 4, 8)),
        kinds=tuple(kind for kind in KINDS if rng.random() < share),
        intensity=rng.choice((0.5, 1.0, 2.0)),
        failures=rng.choice((0.0, 0.05, 0.3)),
        dies=rng.choice((0.0, 0.0, 0.02, 0.06)),
        oddities=rng.choice((0.0, 0.05, 0.2)),
        rest_seconds=rng.choice((math.inf, math.inf, 300.0)),
        pops_from_backoff=rng.random() < 0.5,
        tick_seconds=rng.choice((0.1, 0.1, 0.5)),
        gated_share=rng.choice((0.0, 0.5, 1.0)),
        quick_lag=rng.choice((QUICK, QUICK, (0.01, 0.3))),
        settings=_settings(rng, is_large=is_large),
    )


def _settings(rng: Random, *, is_large: bool) -> tuple[tuple[str, Any], ...]:
    """The engine's knobs that change what it does, not only when."""
    return (
        ("owed_seconds", rng.choice((0.0, 20.0, 120.0))),
        ("node_failure_seconds", rng.choice((2.0, 30.0))),
        ("replace_failed_nodes", rng.random() < 0.7),
        ("replace_on_pod_termination", rng.random() < 0.5),
        ("fail_fast", rng.random() < 0.2),
        ("delete_excess_pods", rng.random() < 0.2),
        ("starvation_seconds", rng.choice((STARVATION_SECONDS, 300.0))),
        ("narrow_nodes", rng.choice((0, 2, 128))),
        ("hold_seconds", rng.choice((20.0, 20.0, 60.0))),
        ("gang_bind_seconds", rng.choice((20.0, 20.0, 3.0, 0.5) if not is_large else (1.0, 0.1))),
    )


def visits_per_search(seed: int) -> int:
    """So few in some seeds that most searches for several pod sets are too long for the loop."""
    is_short = Random(f"searches {seed}").random() < SHORT_SEARCHES_SHARE
    return LEAST_VISITS if is_short else DEFAULT_VISITS


def narrowed_pods_given_back(seed: int) -> bool:
    """Whether pods that were narrowed as their gates went are given back, too."""
    return Random(f"given back {seed}").random() < GIVEN_BACK_SHARE
