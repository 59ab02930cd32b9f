"""Words that one place reads and another does not: the webhook, the reader, templates, versions.

A test with the mark `REPORTED` says what is right and is not so yet; it goes when that is mended.
"""

from __future__ import annotations

import json
from functools import partial

import msgspec
import pytest

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


@REPORTED(reason="a template with unconstrained 'false' is none of the gang, and the rule takes it")
def test_a_template_that_says_false_is_in_the_gang_or_a_mistake() -> None:
    """Else the gang starts with some of its JobSet's pods, and the others come one by one."""
    world = World(four_racks(), kinds=("Topology", "Job", "JobSet", "Node", "Pod"))
    no = {UNCONSTRAINED: "false"}
    parts = (Template("a", 2, {REQUIRED: RACK}), Template("b", 2, no))
    whole = workload("JobSet", "js", {}, templates=parts)
    world.apply(Listed("JobSet", (whole,)))
    (first, second), pods = job_set("js", {"a": (1, 2), "b": (1, 2)}, RACK)
    second = msgspec.structs.replace(second, templates=(Template("", 2, no),))
    world.put(first, second, *pods[:2])
    world.tick()
    assert world.schedule(*pods[:2]) == {}


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
