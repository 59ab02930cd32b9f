"""Pods as the real kube-apiserver stores them, or refuses them, whatever gates and checks them.

None of these tests needs a Corral of its own, so that one serves them all.
"""

from __future__ import annotations

import pytest

from tests.cluster import RACK, Cluster, Object, pod
from tests.controlplane import kueue_webhook
from tests.controlplane.admission import BROKEN, Admission
from tests.controlplane.ways_of_gating import admission_of_all
from tests.workloads import GATE, GROUP, MANAGED, QUEUE, REQUIRED, asking, gates_of, member

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

__all__ = ["admission_of_all"]

IN_RACK = asking(required=RACK)
ROLE_HASH = "kueue.x-k8s.io/role-hash"
INDEX = "kueue.x-k8s.io/pod-group-pod-index"
SLICE_SIZE = "kueue.x-k8s.io/podset-slice-size"


@pytest.fixture
def admission(cluster: Cluster, admission_of_all: Admission) -> Admission:
    """What gates and checks pods; afterwards none of them is left."""
    return admission_of_all


def test_the_pods_of_a_group_are_created_gated_and_labelled(admission: Admission) -> None:
    source = {"kueue.x-k8s.io/pod-group-pod-index-label": "example.com/rank"}
    before = admission.pods_gated()
    for number in range(2):
        thing = member("red", number, 2, annotations={**IN_RACK, **source})
        thing["metadata"]["labels"] = {"example.com/rank": str(number)}
        created = admission.cluster.create(thing)
        assert gates_of(created) == [GATE]
        assert created["metadata"]["labels"][MANAGED] == "true"
        assert created["metadata"]["labels"][INDEX] == str(number)
        role = created["metadata"]["annotations"].get(ROLE_HASH, "")
        assert len(role) == (8 if admission.hashes_roles else 0)
    assert admission.pods_gated() - before == (2 if admission.is_gated_by_corral else 0)


def test_foreign_gates_stay_in_front_of_ours(admission: Admission) -> None:
    created = admission.cluster.create(member("red", 0, 2, gates=["example.com/quota"]))
    assert gates_of(created) == ["example.com/quota", GATE]


@pytest.mark.parametrize(
    "thing",
    [
        pytest.param(pod("p"), id="ordinary"),
        pytest.param(pod("p", annotations=IN_RACK, scheduler="default-scheduler"), id="stock"),
        pytest.param(pod("p", annotations=IN_RACK, labels={MANAGED: "false"}), id="opted_out"),
        pytest.param(pod("p", annotations=IN_RACK, namespace="kube-system"), id="kube_system"),
        pytest.param(
            pod("p", annotations=IN_RACK, gates=["kueue.x-k8s.io/admission"]), id="kueues"
        ),
    ],
)
def test_other_pods_are_created_as_they_are(admission: Admission, thing: Object) -> None:
    assert GATE not in gates_of(admission.tried(thing))


def test_a_pod_that_kueues_webhook_takes_in_is_given_back(admission: Admission) -> None:
    with kueue_webhook.installed(admission.cluster):
        taken = admission.tried(pod("p", labels={QUEUE: "team"}, annotations=IN_RACK))
        assert gates_of(taken) == [kueue_webhook.GATE]
        assert MANAGED not in taken["metadata"]["labels"]
        ours = admission.tried(pod("p", annotations=IN_RACK))
        assert gates_of(ours) == [GATE]


def test_a_broken_annotation_is_refused_with_its_field(admission: Admission) -> None:
    thing = pod("p", annotations={**BROKEN, SLICE_SIZE: "none"})
    refused = admission.refusal(lambda: admission.cluster.create(thing))
    assert refused.status == 422
    assert f'metadata.annotations[{REQUIRED}]: Invalid value: "my rack": must be' in str(refused)
    assert f"metadata.annotations[{SLICE_SIZE}]: Invalid value: " in str(refused)
    assert admission.cluster.get("Pod", "p") is None


def test_a_missing_index_source_is_refused(admission: Admission) -> None:
    source = {"kueue.x-k8s.io/pod-group-pod-index-label": "example.com/rank"}
    thing = member("red", 0, 2, annotations=source)
    refused = admission.refusal(lambda: admission.cluster.create(thing))
    assert f'metadata.labels[{INDEX}]: Invalid value: "": must be' in str(refused)


def test_a_group_name_may_not_change_and_other_things_may(admission: Admission) -> None:
    admission.cluster.create(member("red", 0, 2))
    other = {"metadata": {"annotations": {GROUP: "blue"}}}
    refused = admission.refusal(lambda: admission.cluster.patch("Pod", "red-0", other))
    assert f'metadata.annotations[{GROUP}]: Invalid value: "blue": field is immutable' in str(
        refused
    )
    noted = {"metadata": {"annotations": {"example.com/note": "x"}}}
    admission.cluster.patch("Pod", "red-0", noted)
