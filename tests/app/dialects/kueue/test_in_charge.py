"""Which pods Kueue has taken charge of."""

from __future__ import annotations

import pytest

from app.dialects.kueue.in_charge import is_kueues


@pytest.mark.parametrize(
    ("labels", "annotations", "gates"),
    [
        pytest.param({"kueue.x-k8s.io/managed": "true"}, {}, (), id="managed_label"),
        pytest.param({}, {}, ("kueue.x-k8s.io/admission",), id="admission_gate"),
        pytest.param({}, {}, ("example.com/x", "kueue.x-k8s.io/topology"), id="topology_gate"),
        pytest.param({"kueue.x-k8s.io/podset": "main"}, {}, (), id="pod_of_a_managed_job"),
        pytest.param({}, {"kueue.x-k8s.io/workload": "w"}, (), id="workload"),
        pytest.param({}, {"kueue.x-k8s.io/pod-suspending-parent": "sts"}, (), id="parent"),
    ],
)
def test_what_kueue_has_taken_charge_of_is_kueues(labels, annotations, gates):
    assert is_kueues(labels, annotations, gates, by_queue=False)


@pytest.mark.parametrize("by_queue", [True, False])
def test_a_queue_name_alone_is_kueues_only_where_kueue_runs(by_queue):
    labels = {"kueue.x-k8s.io/queue-name": "team"}
    assert is_kueues(labels, {}, by_queue=by_queue) == by_queue


@pytest.mark.parametrize(
    ("labels", "annotations", "gates"),
    [
        pytest.param({}, {}, (), id="nothing"),
        pytest.param({"kueue.x-k8s.io/managed": "false"}, {}, (), id="managed_false"),
        pytest.param({"kueue.x-k8s.io/workload": "w"}, {}, (), id="workload_as_a_label"),
        pytest.param({}, {"kueue.x-k8s.io/podset": "main"}, (), id="pod_set_as_an_annotation"),
        pytest.param({}, {"kueue.x-k8s.io/queue-name": "q"}, (), id="queue_as_an_annotation"),
        pytest.param({}, {}, ("example.com/x", "corral.dev/gang"), id="gates_of_others"),
    ],
)
@pytest.mark.parametrize("by_queue", [True, False])
def test_what_only_looks_like_it_is_not_kueues(labels, annotations, gates, by_queue):
    assert not is_kueues(labels, annotations, gates, by_queue=by_queue)
