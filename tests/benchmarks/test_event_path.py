"""What benchmarks/event_path.py counts."""

from __future__ import annotations

from benchmarks.event_path import followed, measure
from tests.records import pod
from topology import NODE_LEVEL, build


def test_each_call_of_a_project_function_is_one_return():
    one = pod("a")
    path = followed(lambda: (one.is_finished, one.is_finished, len(one.name)))
    assert path.returns == 2
    assert [file.rpartition("/app/")[2] for file in path.files] == ["kube/core/objects.py"]


def test_what_is_called_below_counts_too():
    path = followed(lambda: build(["rack", NODE_LEVEL], {"n1": ("r1", "n1")}, generation=1))
    assert path.returns > 1
    assert any(file.endswith("/topology/model/tree.py") for file in path.files)


def test_every_kind_of_event_has_its_two_figures_and_they_do_not_vary():
    rows = list(measure())
    assert {row.unit for row in rows} == {"files", "returns"}
    assert all(row.value > 0 for row in rows)
    assert rows == list(measure())


def test_the_pod_that_completes_its_gang_passes_through_the_plan():
    of_case = {row.case: row.value for row in measure() if row.unit == "files"}
    waits = of_case["a gated pod is created, its gang is not complete"]
    assert of_case["a gated pod is created, its gang is complete"] > waits
