"""Words that one place reads and another does not: the webhook, the reader, templates, versions.

A test with the mark `REPORTED` says what is right and is not so yet; it goes when that is mended.
"""

from __future__ import annotations

import json
from functools import partial

import msgspec
import pytest

from app.dialects.corral import WORKLOAD_REQUIRED
from app.dialects.dialect import PodSetClaim, TemplateOwner
from app.dialects.kueue import driver_sets, topology
from app.dialects.registry import DIALECTS
from app.dialects.spec import Index
from app.dialects.workloads import Template
from app.kube.watch.events import Listed
from tests.app.state.world import World, four_racks
from tests.records import GPU, GROUP, RACK, REQUIRED, UNCONSTRAINED, group, pod
from tests.workload_pods import job_set, workload

REPORTED = partial(pytest.mark.xfail, strict=True)
INDEX_LABEL = "kueue.x-k8s.io/pod-group-pod-index-label"
ELASTIC = "kueue.x-k8s.io/elastic-job"


@REPORTED(reason="only the webhook reads pod-group-pod-index-label")
def test_the_label_that_has_a_pods_number_is_read_where_no_webhook_has_copied_it() -> None:
    said = {**group("g", 4, RACK), INDEX_LABEL: "example.com/rank"}
    claim = DIALECTS.claim(pod("g-3", annotations=said, labels={"example.com/rank": "3"}))
    assert claim is not None
    assert claim.index == Index(3, is_across=True)


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


@REPORTED(reason="elastic-job is read by the webhook alone")
def test_an_elastic_job_is_told_by_the_reader_what_the_webhook_refuses() -> None:
    assert DIALECTS.keeps(ELASTIC)


def test_the_webhook_refuses_an_elastic_job_that_requires_a_level() -> None:
    claim = PodSetClaim("spec.template.metadata", {REQUIRED: RACK}, 4, False, "corral")
    owner = TemplateOwner("batch", "Job", {ELASTIC: "true"}, (claim,))
    assert len(list(DIALECTS.rules_together(owner))) == 1


@REPORTED(reason="Topologies are read in v1beta2 alone")
def test_topologies_are_read_of_an_api_server_that_has_the_version_before() -> None:
    """Kueue 0.14, of which `kueue-tas-docs.md` is, serves v1beta1 and no later one."""
    paths = [each.path for each in topology.RESOURCE.older]
    assert "/apis/kueue.x-k8s.io/v1beta1/topologies" in paths


@REPORTED(reason="templates of pods that come later are read without the API server's defaults")
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
