"""Pods of a template cut into segments where the pod-grouper made no sub-groups of them."""

from __future__ import annotations

from typing import Any

import pytest

from app.dialects.kai import DIALECT
from app.dialects.registry import DIALECTS
from app.dialects.spec import GangKey, GroupSpec, LeafPods, LeafSpec
from app.kube.core.objects import PodRecord
from tests.app.dialects.kai.objects import group, member, sub_group, within
from tests.records import RACK
from topology.model.request import Constraint

KEY = GangKey("default", "pg", "kai")
BLOCK = "example.com/block"
IN_A_RACK = Constraint(RACK)
INDEX = "training.kubeflow.org/replica-index"


def worker(at: int, size: str = "4", kind: str = "worker", **said: Any) -> PodRecord:
    annotations = {
        "kai.scheduler/segment-size": size,
        "kai.scheduler/segment-topology-required-placement": RACK,
        **said,
    }
    labels = {INDEX: str(at), "training.kubeflow.org/replica-type": kind}
    return member(f"{kind}-{at}", labels=labels, annotations=annotations)


def root_of(least: int, *pods: PodRecord) -> GroupSpec:
    record = group("pg", least, on=within(BLOCK))
    there: dict[str, int] = {}
    said = []
    for each in pods:
        claim = DIALECTS.claim(each, [record])
        assert claim is not None
        assert claim.flaw == ""
        there[claim.leaf] = there.get(claim.leaf, 0) + 1
        said.append(claim.said)
    pods_of = {leaf: LeafPods(count) for leaf, count in there.items()}
    spec = DIALECTS.spec(KEY, [record], said, (), pods_of)
    assert spec is not None
    return spec.root


def segment(at: int, pods: int, needed: int) -> GroupSpec:
    name = f"worker/{at}"
    return GroupSpec(name, (LeafSpec(name, pods, needed=needed),), IN_A_RACK)


def test_the_first_segments_are_needed_whole_and_the_rest_is_not() -> None:
    workers = [worker(at) for at in range(20)]
    assert root_of(12, *workers) == GroupSpec(
        "pg",
        (segment(0, 4, 4), segment(1, 4, 4), segment(2, 4, 4), segment(3, 4, 0), segment(4, 4, 0)),
        Constraint(BLOCK),
    )


def test_pods_of_other_templates_count_first_and_those_to_come_are_any() -> None:
    master = member("master-0", labels={INDEX: "0"})
    assert root_of(9, master, *(worker(at) for at in (0, 1, 2, 3, 5))).members == (
        LeafSpec("", 1, needed=1),
        segment(0, 4, 4),
        segment(1, 4, 4),
    )
    assert root_of(9, worker(0)).members == (LeafSpec("", 5, needed=5), segment(0, 4, 4))


def test_the_workers_of_a_leader_are_numbered_from_one() -> None:
    index = "leaderworkerset.sigs.k8s.io/worker-index"
    pods = [worker(0) for _ in range(6)]
    for at, each in enumerate(pods):
        each.labels.clear()  # type: ignore[attr-defined]
        each.labels[index] = str(at)  # type: ignore[index]
    (others, *segments) = root_of(6, *pods).members
    assert others == LeafSpec("", 1, needed=1)
    assert [each.name for each in segments] == ["segment/0", "segment/1"]


def test_where_the_pod_grouper_made_sub_groups_the_label_counts() -> None:
    record = group("pg", None, sub_group("segment-0", 4))
    claim = DIALECTS.claim(member("p", "segment-0", annotations=worker(9).annotations), [record])
    assert claim is not None
    assert claim.leaf == "segment-0"


@pytest.mark.parametrize(
    ("said", "error"),
    [
        pytest.param(
            {"size": "many"},
            'annotations[kai.scheduler/segment-size]: Invalid value: "many": must be a number of'
            " pods, at least 2",
            id="no_number",
        ),
        pytest.param(
            {"size": "1"},
            'annotations[kai.scheduler/segment-size]: Invalid value: "1": must be a number of'
            " pods, at least 2",
            id="one_pod",
        ),
        pytest.param(
            {"kai.scheduler/segment-topology-required-placement": ""},
            "annotations[kai.scheduler/segment-topology-required-placement]: Required value: a"
            " segment is in one domain of this level, or of"
            " kai.scheduler/segment-topology-preferred-placement",
            id="no_level",
        ),
        pytest.param(
            {"kai.scheduler/pod-index-label": "mine"},
            'annotations[kai.scheduler/pod-index-label]: Unsupported value: "mine": supported'
            ' values: "training.kubeflow.org/replica-index",'
            ' "batch.kubernetes.io/job-completion-index",'
            ' "leaderworkerset.sigs.k8s.io/worker-index"',
            id="a_label_that_is_not_kept",
        ),
    ],
)
def test_a_template_has_one_error_at_its_annotation_and_its_pods_wait_for_it(
    said: dict[str, str], error: str
) -> None:
    one = worker(0, **said)
    assert [str(flaw) for flaw in DIALECT.rules(one, None)] == [f"metadata.{error}"]
    claim = DIALECTS.claim(one, [group("pg", 1, on=within(BLOCK))])
    assert claim is not None
    assert claim.flaw == f"pod worker-0: metadata.{error}"


@pytest.mark.parametrize(
    ("on", "said", "error"),
    [
        pytest.param(
            None,
            {},
            'annotations[kai.scheduler/topology]: Invalid value: "": its PodGroup names none in'
            " spec.topologyConstraint",
            id="no_topology",
        ),
        pytest.param(
            within(BLOCK),
            {"kai.scheduler/topology": "other"},
            'annotations[kai.scheduler/topology]: Invalid value: "other": its PodGroup names net'
            " in spec.topologyConstraint",
            id="another_topology",
        ),
    ],
)
def test_a_segment_is_on_the_topology_of_its_pod_group(
    on: dict[str, Any] | None, said: dict[str, str], error: str
) -> None:
    claim = DIALECTS.claim(worker(0, **said), [group("pg", 1, on=on)])
    assert claim is not None
    assert claim.flaw == f"pod worker-0: metadata.{error}"


def test_a_pod_without_a_number_is_told() -> None:
    one = member("p", annotations=worker(0).annotations)
    claim = DIALECTS.claim(one, [group("pg", 1, on=within(BLOCK))])
    assert claim is not None
    assert f"labels[{INDEX}]: Required value: no number is there" in claim.flaw


def test_segments_beyond_all_bounds_are_one_segment() -> None:
    (one,) = root_of(2, *(worker(2 * at, size="2") for at in range(300))).members
    assert one == GroupSpec("", (LeafSpec("", 300, needed=2),), IN_A_RACK)
