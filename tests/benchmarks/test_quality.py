"""A gang for which there is room gets it, and never more than there is."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from benchmarks.quality import gang_waits, large, locality, pictures
from benchmarks.quality.allocation import GPU, MIB, WHOLE, Asked, Trace, replayed
from benchmarks.quality.feasible import BLOCK, RACK, instance
from tests.records import node
from topology import DomainOrder, NoFit, Options, find, invariants
from topology.fit.view import Visits

SEEDS = 120
KINDS = [
    pytest.param(False, False, id="alike_each_in_a_rack"),
    pytest.param(True, False, id="mixed_each_in_a_rack"),
    pytest.param(False, True, id="alike_nested"),
    pytest.param(True, True, id="mixed_nested"),
]
TRIES = 32  # as the planner has them
MOST_VISITS = 600_000  # of nodes, in one search


@pytest.mark.parametrize(("is_mixed", "is_nested"), KINDS)
def test_no_gang_is_refused_that_fits(is_mixed: bool, is_nested: bool) -> None:
    for seed in range(SEEDS):
        made = instance(seed, is_mixed=is_mixed, is_nested=is_nested)
        visits = Visits()
        options = Options(tries=TRIES, visits=visits)
        found = find(made.capacity.tree, made.capacity, made.gang, {}, options)
        assert not isinstance(found, NoFit), (seed, str(found))
        tree = made.capacity.tree
        invariants.check(tree, made.capacity, gang=made.gang, placement=found)
        assert visits.total <= MOST_VISITS, seed


def test_a_gang_that_fits_into_one_block_of_a_large_cluster_is_not_refused() -> None:
    for seed in range(4):
        made = large.instance(seed)
        tree, visits = made.capacity.tree, Visits()
        found = find(tree, made.capacity, made.gang, {}, Options(tries=TRIES, visits=visits))
        assert not isinstance(found, NoFit), (seed, str(found))
        invariants.check(tree, made.capacity, gang=made.gang, placement=found)
        assert visits.total <= MOST_VISITS, seed


def test_the_hidden_packing_is_where_the_gang_requires() -> None:
    made = instance(3, is_mixed=True, is_nested=True)
    assert {made.gang.root.constraint.required} == {BLOCK}
    assert {member.constraint.required for member in made.gang.root.members} == {RACK}


def asked(gpus: int, part: int = WHOLE) -> Asked:
    return Asked((("cpu", 1_000), ("memory", MIB), (GPU, gpus * part), ("pods", 1)), gpus, part)


def trace(*pods: Asked) -> Trace:
    """Four racks of a node with four GPUs each."""
    amounts = (("cpu", 64_000), ("memory", 64 * MIB), (GPU, 4 * WHOLE), ("pods", 110))
    nodes = [replace(node(f"b/r{at}/n{at}"), allocatable=tuple(sorted(amounts))) for at in range(4)]
    return Trace(nodes, [f"b/r{at}" for at in range(4)], pods)


@pytest.mark.parametrize("fewest_fragments", [False, True])
def test_pods_that_fill_whole_nodes_get_all_gpus_and_leave_half_the_racks_free(
    fewest_fragments: bool,
) -> None:
    found = replayed(trace(asked(4)), 1, fewest_fragments=fewest_fragments)
    assert (found.allocated, found.free_racks) == (1.0, 2)


def test_parts_that_fit_by_sum_and_on_no_gpu_are_not_placed() -> None:
    """One pod of 600 to a GPU: 16 of them, of 26 that are asked for."""
    found = replayed(trace(asked(1, 600)), 1)
    assert found.allocated == 16 * 600 / (16 * WHOLE)


def test_the_same_order_of_pods_comes_out_the_same() -> None:
    of = trace(asked(1, 600), asked(2), asked(1, 300), asked(4))
    assert replayed(of, 7) == replayed(of, 7)


def test_half_of_the_gpus_are_given_out_before_all_of_them_are() -> None:
    """Of pods that take a node each: two of four racks are free then."""
    course = replayed(trace(asked(4)), 1).course
    assert [(each.asked, each.given, each.free_racks) for each in course] == [
        (0.25, 0.25, 3), (0.5, 0.5, 2), (0.75, 0.75, 1), (1.0, 1.0, 0),
    ]  # fmt: skip


def partition(*jobs: int) -> locality.Partition:
    """Two switches of three hosts and one of two; jobs of so many hosts, one after the other."""
    sizes = {"a": 3, "b": 3, "c": 2}
    hosts = [(switch, f"{switch}{at}") for switch, size in sizes.items() for at in range(size)]
    paths = {host: ("cell", "rack", switch, host) for switch, host in hosts}
    each = enumerate(tuple(range(count)) for count in jobs)
    return locality.Partition(paths, tuple((at, at + 1, numbers) for at, numbers in each))


def test_the_least_of_a_job_is_the_largest_switches() -> None:
    assert locality.least(partition(1, 3, 4, 6, 7, 8)) == [1, 1, 2, 2, 3, 3]


def test_alone_in_the_partition_each_job_gets_the_least() -> None:
    of = partition(1, 3, 4, 6, 7, 8)
    assert locality.replayed(of, DomainOrder.FEWEST) == locality.least(of)


def test_a_picture_shows_what_was_replayed_and_is_the_same_each_time(tmp_path: Path) -> None:
    first, again = tmp_path / "first.svg", tmp_path / "again.svg"
    for to in (first, again):
        pictures.racks({"small": trace(asked(4))}, {"fewest_fragments": True}, to)
    assert "pods of the small trace" in first.read_text()
    assert "fewest_fragments" in first.read_text()
    assert first.read_bytes() == again.read_bytes()
    for to in (first, again):
        pictures.switches({"small": (partition(4, 4), 0.0)}, to)
    assert "small: 2 jobs" in first.read_text()
    assert first.read_bytes() == again.read_bytes()


def waiting(*jobs: tuple[float, int, float]) -> gang_waits.Trace:
    """Four hosts of one ASW, and gangs by arrival, pods and seconds."""
    hosts = [gang_waits.host("p", "a", f"h{at}") for at in range(4)]
    return gang_waits.Trace(hosts, [gang_waits.Job(*each) for each in jobs])


OVERTAKEN = ((0.0, 2, 5_000.0), (10.0, 4, 100.0), (400.0, 2, 9_000.0), (500.0, 2, 4_000.0))
"""The gang of four waits; of those behind it the second one ends before the first gang does."""


@pytest.mark.parametrize("mode", gang_waits.MODES)
def test_a_gang_that_starves_is_overtaken_by_what_ends_before_its_room_is_there(
    mode: gang_waits.Mode,
) -> None:
    of = waiting(*OVERTAKEN)
    passing = gang_waits.replayed(of, mode, earmarks_per_namespace=0).seconds
    assert passing[1:3] == pytest.approx([9_390.0, 0.0])
    settings = {"has_deadlines": True, "backfill": "deadlines", "earmarked_share": 1.0}
    found = gang_waits.replayed(of, mode, **settings).seconds
    assert found == pytest.approx([0.0, 4_990.0, 4_700.0, 0.0])


def test_gangs_that_come_closer_together_ask_for_the_load() -> None:
    of = gang_waits.loaded(waiting(*OVERTAKEN), 0.5, deal=1)
    work = sum(job.pods * job.seconds for job in of.jobs)
    assert work / (of.jobs[-1].arrival * len(of.nodes)) == pytest.approx(0.5)
