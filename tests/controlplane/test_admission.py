"""The webhook as deploy/webhook.yaml installs it, asked by the real kube-apiserver.

What differs in the policies of deploy/policies.yaml is in test_policies.py. What holds of both, and
of both together, needs no Corral of its own: it is in test_admitted.py and test_admitted_gangs.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster import RACK, Cluster, Objects, collection, grid, pod
from tests.controlplane.admission import BROKEN
from tests.controlplane.plane import ControlPlane
from tests.controlplane.policies import installed_policies
from tests.controlplane.seen import START_SECONDS, racks_of
from tests.controlplane.webhook import (
    MUTATING,
    SHIPPED,
    VALIDATING,
    Webhook,
    installed,
    path_of,
)
from tests.workloads import (
    GATE,
    asking,
    gates_of,
    member,
    members,
)

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

IN_RACK = asking(required=RACK)
ROLE_HASH = "kueue.x-k8s.io/role-hash"
VALIDATED = 'corral_admission_seconds_count{route="validate"}'


@pytest.fixture
def webhook(plane: ControlPlane, cluster: Cluster, tmp_path: Path) -> Iterator[Webhook]:
    with installed(plane, tmp_path) as webhook:
        yield webhook


@pytest.fixture
def quiet(cluster: Cluster) -> Iterator[str]:
    """A namespace labelled gangs=no."""
    metadata = {"name": "quiet", "labels": {"gangs": "no"}}
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    yield "quiet"
    cluster.delete("Namespace", "quiet")


def test_the_shipped_service_and_configurations_are_accepted_as_written(cluster: Cluster) -> None:
    for document in yaml.safe_load_all(SHIPPED.read_text(encoding="utf-8")):
        home = document["metadata"].get("namespace")
        path = collection(document["kind"], home, document["apiVersion"])
        params = {"dryRun": "All", "fieldValidation": "Strict"}
        answer = cluster.request("POST", path, body=document, params=params)
        assert answer.json()["metadata"]["name"] == document["metadata"]["name"]


def test_a_test_that_fails_leaves_no_configuration_behind(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path
) -> None:
    def fail() -> None:
        with installed(plane, tmp_path):
            assert len(configurations(cluster)) == 2
            raise AssertionError("something fails meanwhile")

    with pytest.raises(AssertionError, match="meanwhile"):
        fail()
    assert configurations(cluster) == []


def test_only_pods_that_both_selectors_select_are_taken_in(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path, quiet: str
) -> None:
    selectors = {"admission_namespace_selector": "gangs!=no", "admission_pod_selector": "tier!=web"}
    with plane.granted("corral-namespaces"), installed(plane, tmp_path, **selectors) as webhook:

        def is_gated(**fields: Any) -> bool:
            return GATE in gates_of(webhook.tried(pod("p", annotations=IN_RACK, **fields)))

        assert is_gated()
        assert not is_gated(labels={"tier": "web"})
        assert not is_gated(namespace=quiet)
        assert not webhook.is_refused(pod("p", annotations=BROKEN, namespace=quiet))
        cluster.patch("Namespace", quiet, {"metadata": {"labels": {"gangs": "yes"}}})
        cluster.wait(lambda: is_gated(namespace=quiet), START_SECONDS, "the label's effect")


def test_a_change_that_says_nothing_new_is_not_even_sent(webhook: Webhook) -> None:
    webhook.cluster.create(member("red", 0, 2))
    before = webhook.corral.metric(VALIDATED)
    webhook.cluster.patch("Pod", "red-0", {"metadata": {"finalizers": ["example.com/keep"]}})
    webhook.cluster.patch("Pod", "red-0", {"metadata": {"finalizers": None}})
    webhook.cluster.patch("Pod", "red-0", {"metadata": {"labels": {"app": "x"}}})
    assert webhook.corral.metric(VALIDATED) == before
    webhook.cluster.patch("Pod", "red-0", {"metadata": {"annotations": {ROLE_HASH: "x"}}})
    assert webhook.corral.metric(VALIDATED) == before + 1


def test_a_pod_that_was_let_in_broken_can_still_lose_its_finalizer(webhook: Webhook) -> None:
    webhook.corral.terminate()
    thing = pod("p", annotations=BROKEN)
    thing["metadata"]["finalizers"] = ["example.com/keep"]
    webhook.cluster.create(thing)
    webhook.corral.start()
    webhook.wait_effective()
    # With another annotation beside it, so that the webhook is asked.
    change = {"metadata": {"finalizers": None, "annotations": {ROLE_HASH: "x"}}}
    changed = webhook.cluster.patch("Pod", "p", change)
    assert "finalizers" not in changed["metadata"]


def test_without_an_answer_pods_are_created_gateless(webhook: Webhook) -> None:
    assert webhook.corral.terminate() == 0
    created = webhook.cluster.create(member("red", 0, 2, annotations=IN_RACK))
    assert gates_of(created) == []
    webhook.cluster.create(pod("p", annotations=BROKEN))


def test_by_policies_pods_are_gated_while_corral_is_away_and_start_when_it_is_back(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path
) -> None:
    with installed_policies(plane, tmp_path) as admission:
        plane.nodes(grid(blocks=1, racks=2, nodes=4, gpus=8))
        plane.start_scheduler(extender=admission.corral.url)
        assert configurations(cluster) == []
        assert admission.corral.terminate() == 0
        for thing in members("red", 4, annotations=IN_RACK):
            assert gates_of(cluster.create(thing)) == [GATE]
        admission.corral.start()
        cluster.wait(lambda: len(cluster.bound()) == 4, START_SECONDS, "four bindings")
        assert len(racks_of(cluster)) == 1


def configurations(cluster: Cluster) -> Objects:
    """The webhook configurations of both kinds that the API server has."""
    answers = (cluster.request("GET", path_of(kind)) for kind in (MUTATING, VALIDATING))
    return [one for answer in answers for one in answer.json()["items"]]
