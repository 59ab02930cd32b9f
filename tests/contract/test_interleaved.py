"""Two gangs race for the last rack, two hundred times: one is whole, the other has nothing."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from tests.cluster import BLOCK, RACK, Cluster, Objects, grid
from tests.contract.play import waiting, workload_of
from tests.contract.worlds import sandbox
from tests.workloads import asking, members

REPETITIONS = 200
RACE_SECONDS = 10.0  # 0.1 s on an idle machine
SPEED = 20.0  # back-offs of 50 ms
TICK_SECONDS = 0.02  # how soon Corral sees that the rack is free again


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_two_gangs_created_interleaved_never_share_the_last_rack(tmp_path: Path) -> None:
    dice = random.Random("two gangs, one rack")
    winners: Counter[str] = Counter()
    with sandbox(tmp_path, (BLOCK, RACK), speed=SPEED, tick_seconds=TICK_SECONDS) as cluster:
        cluster.create_all(grid(racks=1, nodes=4, gpus=8))
        for _ in range(REPETITIONS):
            winners[race(cluster, dice)] += 1
    assert winners.total() == REPETITIONS
    assert set(winners) == {"red", "blue"}  # the order of creation decides, nothing else


def race(cluster: Cluster, dice: random.Random) -> str:
    """Creates both gangs in a random order, many pods at once; returns who got the rack first.

    The other gets it next, when the first is gone: it had nothing, and nothing was lost.
    """
    pods = [
        *members("red", 4, annotations=asking(required=RACK)),
        *members("blue", 4, annotations=asking(required=RACK)),
    ]
    dice.shuffle(pods)
    cluster.create_all(pods)
    cluster.wait(lambda: len(cluster.bound()) >= 4, RACE_SECONDS, "one gang's bindings")
    cluster.wait(lambda: is_judged(cluster), RACE_SECONDS, "a verdict on every other pod")
    winner, *others = {workload_of(pod) for pod in bound_pods(cluster)}
    assert not others
    assert len(bound_pods(cluster)) == 4

    for number in range(4):
        cluster.delete("Pod", f"{winner}-{number}")
    cluster.wait(lambda: len(cluster.bound()) == 4, RACE_SECONDS, "the other gang's bindings")
    assert {workload_of(pod) for pod in bound_pods(cluster)} == {"red", "blue"} - {winner}
    cluster.delete_all("Pod")
    cluster.wait(lambda: not cluster.list("Pod", "default"), RACE_SECONDS, "no pod left")
    return winner


def bound_pods(cluster: Cluster) -> Objects:
    return [pod for pod in cluster.list("Pod", "default") if pod["spec"].get("nodeName")]


def is_judged(cluster: Cluster) -> bool:
    """Whether kube-scheduler has said why to every pod that it has not bound."""
    return all(text for _, text in waiting(cluster.list("Pod", "default")))
