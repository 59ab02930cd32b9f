"""What benchmarks/event_path.py counts."""

from __future__ import annotations

import gc

from benchmarks.event_path import STATUS_OF_A_MEMBER, followed, measure
from tests.records import pod
from topology import NODE_LEVEL, Gang, Group, PodSet, build


def test_each_call_of_a_project_function_is_one_return():
    one = pod("a")
    path = followed(lambda: (one.is_finished, one.is_finished, len(one.name)))
    assert path.returns == 2
    assert [file.rpartition("/app/")[2] for file in path.files] == ["kube/core/objects.py"]


def test_what_is_called_below_counts_too():
    path = followed(lambda: build(["rack", NODE_LEVEL], {"n1": ("r1", "n1")}, generation=1))
    assert path.returns > 1
    assert any(file.endswith("/topology/model/tree.py") for file in path.files)


def test_what_the_garbage_collector_ends_meanwhile_does_not_count():
    walk = Gang("a", Group("a", (PodSet("a", 1, (1,)),))).pod_sets()
    next(walk)  # to be ended before its end is one return more
    left: list[object] = [walk]
    left.append(left)
    del walk, left
    thresholds = gc.get_threshold()

    def make_it_run() -> list[list[int]]:
        gc.set_threshold(1)
        return [[] for _ in range(100)]

    try:
        path = followed(make_it_run)
    finally:
        gc.set_threshold(*thresholds)
    assert path.returns == 0


def test_every_kind_of_event_has_its_two_figures_and_they_do_not_vary():
    rows = list(measure())
    assert {row.unit for row in rows} == {"files", "returns"}
    assert all(row.value > 0 for row in rows)
    assert rows == list(measure())


def test_the_status_of_a_member_passes_through_a_few_files_and_calls():
    """Most events of a large cluster are these: one call too many costs as much as the work."""
    counts = {row.unit: row.value for row in measure() if row.case == STATUS_OF_A_MEMBER}
    assert counts["files"] <= 13
    assert counts["returns"] <= 33


def test_the_pod_that_completes_its_gang_passes_through_the_plan():
    of_case = {row.case: row.value for row in measure() if row.unit == "files"}
    waits = of_case["a gated pod is created, its gang is not complete"]
    assert of_case["a gated pod is created, its gang is complete"] > waits
