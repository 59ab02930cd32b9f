"""The webhook as deploy/webhook.yaml installs it, asked by the real kube-apiserver."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests.app.admission.certificates import pair
from tests.cluster import BLOCK, RACK, Cluster, Object, Refused, collection, grid, job, pod
from tests.controlplane.plane import ROOT, ControlPlane, free_ports
from tests.controlplane.seen import START_SECONDS, racks_of
from tests.corral_process import CorralProcess
from tests.workloads import GATE, GROUP, MANAGED, REQUIRED, asking, gates_of, member, members

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

SHIPPED = ROOT / "deploy" / "webhook.yaml"
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/"
EFFECTIVE_SECONDS = 20.0  # until an API server calls a webhook it was told of; 1 s as a rule
IN_RACK = asking(required=RACK)
BROKEN = {REQUIRED: "my rack"}
ROLE_HASH = "kueue.x-k8s.io/role-hash"
INDEX = "kueue.x-k8s.io/pod-group-pod-index"
SLICE_SIZE = "kueue.x-k8s.io/podset-slice-size"


@dataclass
class Webhook:
    """A Corral whose webhook the API server calls."""

    corral: CorralProcess
    cluster: Cluster

    def is_effective(self) -> bool:
        """Whether all three of its webhooks are called by now."""
        return (
            GATE in gates_of(self.tried(member("probe", 0, 2)))
            and self.is_refused(pod("probe", annotations=BROKEN))
            and self.is_refused(job("probe", pods=1, annotations=BROKEN))
        )

    def is_refused(self, thing: Object) -> bool:
        """Whether the object would not be let in."""
        try:
            self.tried(thing)
        except Refused:
            return True
        return False

    def tried(self, thing: Object) -> Object:
        """The object as it would be stored."""
        path = collection(thing["kind"], thing["metadata"]["namespace"])
        answer = self.cluster.request("POST", path, body=thing, params={"dryRun": "All"})
        tried: Object = answer.json()
        return tried

    def refusal(self, ask: Callable[[], object]) -> Refused:
        """How a request is refused; it must be."""
        with pytest.raises(Refused) as refused:
            ask()
        return refused.value


@pytest.fixture
def webhook(plane: ControlPlane, cluster: Cluster, tmp_path: Path) -> Iterator[Webhook]:
    certificate, key = pair("apiserver").write(tmp_path)
    (port,) = free_ports(1)
    settings = {
        "admission_listen": f"127.0.0.1:{port}",
        "admission_cert": str(certificate),
        "admission_key": str(key),
    }
    with CorralProcess(plane.kubeconfig("corral"), tmp_path, **settings) as corral:
        installed: list[str] = []
        try:
            for configuration in _configurations(f"https://127.0.0.1:{port}"):
                path = f"{CONFIGURATIONS}{configuration['kind'].lower()}s"
                cluster.request("POST", path, body=configuration)
                installed.append(f"{path}/{configuration['metadata']['name']}")
            running = Webhook(corral, cluster)
            cluster.wait(running.is_effective, EFFECTIVE_SECONDS, "the webhook's first call")
            yield running
        finally:
            for path in installed:
                cluster.request("DELETE", path)


def _configurations(url: str) -> Iterator[Object]:
    """Those that are shipped; only where Corral is, and whom to trust there, is replaced."""
    for document in yaml.safe_load_all(SHIPPED.read_text(encoding="utf-8")):
        for each in document.get("webhooks", []):
            each["clientConfig"] = {
                "url": url + each["clientConfig"]["service"]["path"],
                "caBundle": base64.b64encode(pair("apiserver").certificate).decode(),
            }
        if "webhooks" in document:
            yield document


def test_the_shipped_service_and_configurations_are_accepted_as_written(cluster: Cluster) -> None:
    for document in yaml.safe_load_all(SHIPPED.read_text(encoding="utf-8")):
        home = document["metadata"].get("namespace")
        path = collection(document["kind"], home, document["apiVersion"])
        params = {"dryRun": "All", "fieldValidation": "Strict"}
        answer = cluster.request("POST", path, body=document, params=params)
        assert answer.json()["metadata"]["name"] == document["metadata"]["name"]


def test_the_pods_of_a_group_are_created_gated_and_labelled(webhook: Webhook) -> None:
    source = {"kueue.x-k8s.io/pod-group-pod-index-label": "example.com/rank"}
    for number in range(2):
        thing = member("red", number, 2, annotations={**IN_RACK, **source})
        thing["metadata"]["labels"] = {"example.com/rank": str(number)}
        created = webhook.cluster.create(thing)
        assert gates_of(created) == [GATE]
        assert created["metadata"]["labels"][MANAGED] == "true"
        assert created["metadata"]["labels"][INDEX] == str(number)
        assert len(created["metadata"]["annotations"][ROLE_HASH]) == 8
    assert webhook.corral.metric("corral_pods_gated_total") == 2


def test_foreign_gates_stay_in_front_of_ours(webhook: Webhook) -> None:
    created = webhook.cluster.create(member("red", 0, 2, gates=["example.com/quota"]))
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
def test_other_pods_are_created_as_they_are(webhook: Webhook, thing: Object) -> None:
    assert GATE not in gates_of(webhook.tried(thing))


def test_a_broken_annotation_is_refused_with_its_field(webhook: Webhook) -> None:
    thing = pod("p", annotations={**BROKEN, SLICE_SIZE: "none"})
    refused = webhook.refusal(lambda: webhook.cluster.create(thing))
    assert refused.status == 422
    assert f'metadata.annotations[{REQUIRED}]: Invalid value: "my rack": must be' in str(refused)
    assert f"metadata.annotations[{SLICE_SIZE}]: Invalid value: " in str(refused)
    assert webhook.cluster.get("Pod", "p") is None


def test_a_missing_index_source_is_refused(webhook: Webhook) -> None:
    source = {"kueue.x-k8s.io/pod-group-pod-index-label": "example.com/rank"}
    thing = member("red", 0, 2, annotations=source)
    refused = webhook.refusal(lambda: webhook.cluster.create(thing))
    assert f'metadata.labels[{INDEX}]: Invalid value: "": must be' in str(refused)


def test_a_job_is_refused_with_the_path_of_its_template(webhook: Webhook) -> None:
    wanted = {"kueue.x-k8s.io/podset-slice-required-topology": RACK, SLICE_SIZE: "9"}
    refused = webhook.refusal(lambda: webhook.cluster.create(job("j", pods=8, annotations=wanted)))
    assert f"spec.template.metadata.annotations[{SLICE_SIZE}]: Invalid value: " in str(refused)
    assert "must not be greater than pod set count 8" in str(refused)
    assert webhook.cluster.get("Job", "j") is None


def test_a_group_name_may_not_change_and_other_things_may(webhook: Webhook) -> None:
    webhook.cluster.create(member("red", 0, 2))
    other = {"metadata": {"annotations": {GROUP: "blue"}}}
    refused = webhook.refusal(lambda: webhook.cluster.patch("Pod", "red-0", other))
    assert f'metadata.annotations[{GROUP}]: Invalid value: "blue": field is immutable' in str(
        refused
    )
    noted = {"metadata": {"annotations": {"example.com/note": "x"}}}
    webhook.cluster.patch("Pod", "red-0", noted)


def test_a_change_that_says_nothing_new_is_not_even_sent(webhook: Webhook) -> None:
    webhook.cluster.create(member("red", 0, 2))
    before = webhook.corral.metric('corral_admission_seconds_count{route="validate"}')
    webhook.cluster.patch("Pod", "red-0", {"metadata": {"finalizers": ["example.com/keep"]}})
    webhook.cluster.patch("Pod", "red-0", {"metadata": {"finalizers": None}})
    webhook.cluster.patch("Pod", "red-0", {"metadata": {"labels": {"app": "x"}}})
    assert webhook.corral.metric('corral_admission_seconds_count{route="validate"}') == before


def test_a_pod_that_was_let_in_broken_can_still_lose_its_finalizer(webhook: Webhook) -> None:
    webhook.corral.terminate()
    thing = pod("p", annotations=BROKEN)
    thing["metadata"]["finalizers"] = ["example.com/keep"]
    webhook.cluster.create(thing)
    webhook.corral.start()
    webhook.cluster.wait(webhook.is_effective, EFFECTIVE_SECONDS, "the webhook's first call")
    # With another annotation beside it, so that the webhook is asked.
    change = {"metadata": {"finalizers": None, "annotations": {ROLE_HASH: "x"}}}
    changed = webhook.cluster.patch("Pod", "p", change)
    assert "finalizers" not in changed["metadata"]


def test_without_an_answer_pods_are_created_gateless(webhook: Webhook) -> None:
    assert webhook.corral.terminate() == 0
    created = webhook.cluster.create(member("red", 0, 2, annotations=IN_RACK))
    assert gates_of(created) == []
    webhook.cluster.create(pod("p", annotations=BROKEN))


def test_a_gated_gang_starts_whole_in_one_rack(plane: ControlPlane, webhook: Webhook) -> None:
    cluster = webhook.cluster
    plane.nodes(grid(blocks=1, racks=2, nodes=4, gpus=8))
    plane.start_scheduler(extender=webhook.corral.url)
    for thing in members("red", 4, annotations=IN_RACK)[:3]:
        assert gates_of(cluster.create(thing)) == [GATE]
    assert cluster.bound() == {}
    cluster.create(members("red", 4, annotations=IN_RACK)[3])
    cluster.wait(lambda: len(cluster.bound()) == 4, START_SECONDS, "four bindings")
    assert len(racks_of(cluster)) == 1


def test_the_pods_of_a_job_are_gated_and_start(plane: ControlPlane, webhook: Webhook) -> None:
    cluster = webhook.cluster
    plane.nodes(grid(blocks=1, racks=1, nodes=2, gpus=8))
    plane.start_scheduler(extender=webhook.corral.url)
    cluster.create(job("train", pods=2, annotations=asking(required=BLOCK)))
    cluster.wait(lambda: len(cluster.bound()) == 2, START_SECONDS, "two bindings")
    assert webhook.corral.metric("corral_pods_gated_total") == 2
    assert all(
        one["metadata"]["labels"][MANAGED] == "true" for one in cluster.list("Pod", "default")
    )
