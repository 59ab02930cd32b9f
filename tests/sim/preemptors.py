"""Pods of high priority that come when the cluster is full, in the seeds that preempt.

    fillers take all room ─▶ a pod of high priority ─▶ kube-scheduler preempts, in post_filter.py

Budgets protect some of the pods; some of high priority may not preempt. All random numbers are of
its own: a seed without it is the history that it was.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from tests.records import GPU
from tests.sim.budgets import APPS, DisruptionBudgets
from tests.sim.kinds import LEAST_HIGH, Workload, filler, preemptor
from tests.sim.node_filters import counts, lacks, may_be_on, totals_by_node
from tests.sim.post_filter import Preemption

if TYPE_CHECKING:
    from tests.sim.world import World

SHARE = 1 / 3  # of the seeds; in the others no pod is preempted
MOST_PREEMPTORS = 3  # workloads of high priority at a time
GIVEN_UP_SHARE = 0.1  # each time, of the pods for which others end: one is deleted
MOST_WITH_FILLERS = 10  # workloads at a time
PER_MINUTE = 20.0  # at most: they come when there is no room for them


def preemption_of(seed: int, *, is_sure: bool = False) -> Preemption | None:
    """How kube-scheduler preempts in this world, if it does; `is_sure`: it does in every one."""
    rng = Random(f"preemption {seed}")
    if rng.random() >= SHARE and not is_sure:
        return None
    grace = rng.choice(((0.2, 2.0), (1.0, 10.0), (5.0, 40.0), (5.0, 40.0)))
    return Preemption(rng, failures=rng.choice((0.0, 0.1, 0.3)), grace=grace)


class Preemptors:
    """Fills the cluster, and has pods of high priority come that it has no room for."""

    def __init__(self, world: World, preemption: Preemption) -> None:
        self._world, self._preemption, self._rng = world, preemption, preemption.rng
        self._budgets: DisruptionBudgets | None = None
        if world.evictions is None or not world.evictions.has_budgets:  # else there are some
            self._budgets = DisruptionBudgets(
                world.clock, world.api, Random(f"budgets {world.seed}"), world.history, world.hits
            )

    def begin(self) -> None:
        """Do so until the cluster is healed."""
        if self._budgets is not None:
            self._world.workloads.apps = APPS
            self._budgets.begin()
        self._world.clock.after(self._rng.uniform(5.0, 15.0), self._create)

    def heal(self) -> None:
        """Nothing goes wrong any more, and budgets stay what they are."""
        self._preemption.heal()
        if self._budgets is not None:
            self._budgets.is_healed = True

    def _create(self) -> None:
        world, rng = self._world, self._rng
        if world.chaos.is_healed:
            return
        workloads = world.workloads
        there = [each for each in workloads.all.values() if each.priority >= LEAST_HIGH]
        nominated = [pod for pod in world.api.list("Pod") if pod.nominated_node and not pod.node]
        if nominated and rng.random() < GIVEN_UP_SHARE:
            world.hits.hit("F20 given up")
            workloads.delete_pod(rng.choice(nominated))
        high = preemptor(rng, world.profile.gpus)
        if not self._is_full_for(high):
            if len(workloads.all) < MOST_WITH_FILLERS:
                self._start(filler(rng, world.profile.gpus))
        elif len(there) < MOST_PREEMPTORS:
            world.hits.hit("W preemptor")
            self._start(high)
        world.clock.after(rng.expovariate(PER_MINUTE / 60.0), self._create)

    def _start(self, workload: Workload) -> None:
        workload.name = self._world.workloads.new_name(workload.kind)
        self._world.workloads.begin(workload)

    def _is_full_for(self, workload: Workload) -> bool:
        """Whether no node has as many devices left as one of its pods requests."""
        template, api = workload.templates[0], self._world.api
        taken = totals_by_node((pod.node, pod.request) for pod in api.pods.values() if counts(pod))
        return all(
            lacks(node, taken.get(name, {}), ((GPU, template.gpus),))
            for name, node in api.nodes.items()
            if may_be_on(node, template.shape)
        )
