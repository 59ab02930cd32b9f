"""Words that one place reads and another does not: the webhook, the reader, templates, versions."""

from __future__ import annotations

import json

import msgspec
import pytest

from app.dialects.corral import WORKLOAD_REQUIRED
from app.dialects.declared import TopologySpec
from app.dialects.dialect import PodSetClaim, TemplateOwner
from app.dialects.kueue import driver_sets, topology
from app.dialects.registry import DIALECTS
from app.dialects.spec import Index
from app.dialects.workloads import Template
from app.kube.decoding.decode import decode_pod
from app.kube.watch.events import Listed
from tests.app.state.world import World, four_racks
from tests.records import GPU, GROUP, RACK, REQUIRED, UNCONSTRAINED, group, job, job_pods, pod
from tests.workload_pods import COMPLETION_INDEX, job_set, workload

INDEX_LABEL = "kueue.x-k8s.io/pod-group-pod-index-label"
POD_INDEX = "kueue.x-k8s.io/pod-group-pod-index"
ELASTIC = "kueue.x-k8s.io/elastic-job"


def test_the_label_that_has_a_pods_number_is_read_where_no_webhook_has_copied_it() -> None:
    said = {**group("g", 4, RACK), INDEX_LABEL: "example.com/rank"}
    claim = DIALECTS.claim(pod("g-3", annotations=said, labels={"example.com/rank": "3"}))
    assert claim is not None
    assert claim.index == Index(3, is_across=True)


@pytest.mark.parametrize(
    ("labels", "number"),
    [
        pytest.param({"rank": "3", POD_INDEX: "1"}, 3, id="as_the_webhook_writes_it_over"),
        pytest.param({"rank": "third", POD_INDEX: "1"}, 1, id="no_number"),
        pytest.param({POD_INDEX: "1"}, 1, id="no_such_label"),
        pytest.param({"rank": "third", COMPLETION_INDEX: "2"}, 2, id="of_a_job"),
        pytest.param({}, None, id="none_at_all"),
    ],
)
def test_a_label_that_says_no_number_leaves_it_to_the_others(
    labels: dict[str, str], number: int | None
) -> None:
    said = {**group("g", 4, RACK), INDEX_LABEL: "rank"}
    claim = DIALECTS.claim(pod("g-x", annotations=said, labels=labels))
    assert claim is not None
    assert claim.index == (None if number is None else Index(number, is_across=True))


def test_a_pod_keeps_the_label_that_it_names_until_it_is_placed_by_it() -> None:
    """Whatever the key is, and with no object that names it; pods beside it keep no such label."""
    world = World(four_racks())
    said = {**group("g", 4, RACK), INDEX_LABEL: "example.com/rank"}
    for at, rank in enumerate("3102"):
        whole = pod_json(f"g-{at}", said, {"example.com/rank": rank, "team": "a"})
        world.put(decode_pod(whole, DIALECTS.keeps))
    other = decode_pod(pod_json("x", {}, {"example.com/rank": "0"}), DIALECTS.keeps)
    assert other.labels == {}
    pods = [world.pods[f"uid-g-{at}"] for at in range(4)]
    assert [dict(each.labels) for each in pods] == [{"example.com/rank": each} for each in "3102"]
    world.tick()
    nodes = world.schedule(*pods)
    by_rank = [nodes[f"g-{'3102'.index(str(rank))}"] for rank in range(4)]
    assert by_rank == sorted(by_rank)
    assert len(set(by_rank)) == 4


def pod_json(name: str, annotations: dict[str, str], labels: dict[str, str]) -> bytes:
    metadata = {"namespace": "default", "name": name, "uid": f"uid-{name}", "labels": labels}
    resources = {"requests": {GPU: "8"}}
    spec = {"schedulerName": "corral", "containers": [{"name": "c", "resources": resources}]}
    return json.dumps({"metadata": metadata | {"annotations": annotations}, "spec": spec}).encode()


def test_a_template_that_says_false_is_in_the_gang_or_a_mistake() -> None:
    """Else the gang starts with some of its JobSet's pods, and the others come one by one."""
    world = World(four_racks(), kinds=("Topology", "Job", "JobSet", "Node", "Pod"))
    no = {UNCONSTRAINED: "false"}
    parts = (
        Template("a", 2, {REQUIRED: RACK}, scheduler="corral"),
        Template("b", 2, no, scheduler="corral"),
    )
    whole = workload("JobSet", "js", {}, templates=parts)
    world.apply(Listed("JobSet", (whole,)))
    (first, second), pods = job_set("js", {"a": (1, 2), "b": (1, 2)}, RACK)
    second = msgspec.structs.replace(second, templates=(parts[1],))
    world.put(first, second, *pods[:2])
    world.tick()
    assert world.schedule(*pods[:2]) == {}


@pytest.mark.parametrize("said", ["false", "0", "F"])
def test_one_that_says_false_is_told_so_where_it_stands(said: str) -> None:
    no = {UNCONSTRAINED: said}
    for asks, of_owner, why in (
        ({REQUIRED: RACK}, {}, "as 'spec.a.annotations' does"),
        (no, {WORKLOAD_REQUIRED: RACK}, f"beside the {WORKLOAD_REQUIRED} above"),
    ):
        pod_sets = (PodSetClaim("spec.a", asks, 1), PodSetClaim("spec.b", no, 4))
        found = list(DIALECTS.rules_together(TemplateOwner("g", "K", of_owner, pod_sets)))
        assert [claim.path for claim, _ in found] == ["spec.a", "spec.b"][asks is not no :]
        text = f"must be true: every template must request a topology, {why}"
        assert found[0][1].field == f"annotations[{UNCONSTRAINED}]"
        assert (found[0][1].value, found[0][1].text) == (said, text)


def test_templates_of_which_none_requests_anything_need_not_say_so() -> None:
    pod_sets = (PodSetClaim("spec.a", {UNCONSTRAINED: "false"}, 1), PodSetClaim("spec.b", {}, 4))
    assert list(DIALECTS.rules_together(TemplateOwner("g", "K", {}, pod_sets))) == []


def test_an_elastic_job_is_told_by_the_reader_what_the_webhook_refuses() -> None:
    assert DIALECTS.keeps(ELASTIC)


@pytest.mark.parametrize(
    ("said", "asks", "is_refused"),
    [
        pytest.param("true", {REQUIRED: RACK}, True, id="level"),
        pytest.param("true", {UNCONSTRAINED: "true"}, False, id="anywhere"),
        pytest.param("false", {REQUIRED: RACK}, False, id="not_elastic"),
    ],
)
def test_pods_of_an_elastic_job_that_came_without_the_webhook_are_told_its_rule(
    said: str, asks: dict[str, str], is_refused: bool
) -> None:
    world = World(four_racks())
    its = (Template("", 2, asks, scheduler="corral"),)
    world.put(msgspec.structs.replace(job("j", 2), annotations={ELASTIC: said}, templates=its))
    pods = job_pods("j", 2, **asks)
    world.put(*pods)
    world.tick()
    assert len(world.schedule(*pods)) == (0 if is_refused else 2)
    told = [each for each in world.reports if ELASTIC in each]
    assert bool(told) is is_refused
    assert all(f"annotations[{REQUIRED}]: Forbidden" in each for each in told)


def test_a_job_that_runs_and_becomes_elastic_runs_on() -> None:
    world = World(four_racks())
    before, pods = job("j", 2), job_pods("j", 2, **{REQUIRED: RACK})
    world.put(before, *pods)
    world.tick()
    assert len(world.schedule(*pods)) == 2
    its = (Template("", 2, {REQUIRED: RACK}, scheduler="corral"),)
    world.put(msgspec.structs.replace(before, annotations={ELASTIC: "true"}, templates=its))
    lost = world.pods[pods[0].uid]
    world.delete(lost)
    again = msgspec.structs.replace(pods[0], uid="uid-again", name="again")
    world.put(again)
    world.tick()
    assert world.schedule(again) == {"again": lost.node}


def test_the_webhook_refuses_an_elastic_job_that_requires_a_level() -> None:
    claim = PodSetClaim("spec.template.metadata", {REQUIRED: RACK}, 4, False, "corral")
    owner = TemplateOwner("batch", "Job", {ELASTIC: "true"}, (claim,))
    assert len(list(DIALECTS.rules_together(owner))) == 1


def test_topologies_are_read_of_an_api_server_that_has_the_version_before() -> None:
    """Kueue 0.14, of which `kueue-tas-docs.md` is, serves v1beta1 and no later one."""
    paths = [each.path for each in topology.RESOURCE.older]
    assert paths == [
        "/apis/kueue.x-k8s.io/v1beta1/topologies",
        "/apis/kueue.x-k8s.io/v1alpha1/topologies",
    ]


def test_each_version_is_read_alike() -> None:
    """Source: kueue apis/kueue/v1alpha1/tas_types.go (v0.9), v1beta1/topology_types.go (v0.14)."""
    levels = [{"nodeLabel": "block"}, {"nodeLabel": "rack"}]
    document = json.dumps({"metadata": {"name": "t"}, "spec": {"levels": levels}}).encode()
    for each in (topology.RESOURCE, *topology.RESOURCE.older):
        assert each.is_optional
        assert list(topology.specs_of(each.decode(document))) == [
            TopologySpec("t", ("block", "rack"))
        ]


def test_workers_that_a_driver_declares_request_what_they_are_limited_to() -> None:
    containers = [{"name": "c", "resources": {"limits": {GPU: 8}}}]
    sets = [
        {"name": "driver", "count": 1},
        {"name": "workers", "count": 2, "template": {"spec": {"containers": containers}}},
    ]
    driver = pod("d", annotations={GROUP: "g", driver_sets.SETS: json.dumps(sets)})
    _, workers = driver_sets.pod_sets(driver)
    assert workers.like is not None
    assert (GPU, 8) in workers.like.pod.request
