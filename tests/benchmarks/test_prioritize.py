"""The cluster that /prioritize is measured on is as busy as the benchmark says."""

from __future__ import annotations

from msgspec.structs import replace

from benchmarks.prioritize import GIVEN_OUT, Cluster
from benchmarks.quality.allocation import GPU, WHOLE, Asked
from tests.records import node

PART = Asked((("cpu", 1_000), (GPU, 500), ("pods", 1)), 1, 500)
WHOLE_ONE = Asked((("cpu", 4_000), (GPU, WHOLE), ("pods", 1)), 1, WHOLE)


def cluster():
    amounts = tuple(sorted({"cpu": 64_000, GPU: 8 * WHOLE, "pods": 99}.items()))
    racks = [replace(node(f"b0/r{at % 2}/n{at}"), allocatable=amounts) for at in range(6)]
    made = Cluster(racks)
    made.fill([PART, WHOLE_ONE])
    return made


def test_so_many_gpus_are_given_out_and_no_node_gives_more_than_it_has():
    made = cluster()
    given = [taken[GPU] for taken in made.taken.values()]
    assert GIVEN_OUT <= sum(given) / (6 * 8 * WHOLE) <= GIVEN_OUT + 1 / 48
    assert max(given) <= 8 * WHOLE
    assert len(made.engine.books.bound) == made.pods


def test_the_best_node_has_room_and_the_devices_of_all_nodes_are_known():
    made = cluster()
    _, best = made.seconds(WHOLE_ONE)
    assert made.taken[best][GPU] <= 7 * WHOLE
    assert not made.engine.books.rebooked
