"""Every kind whose pods are read has a maker, and what it makes is a gang of that kind."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from app.dialects import workloads
from app.dialects.making import MAKERS, Misfit
from app.dialects.registry import DIALECTS
from app.dialects.workloads.leader_worker_set import EXCLUSIVE
from app.simulate.body import objects_in
from app.simulate.copying import Copy
from app.simulate.given import all_given
from app.simulate.simulating import simulate
from app.simulate.view import Simulation
from tests.app.simulate.clusters import AT_ONCE, engine_of
from tests.app.simulate.test_as_created import AT, RULES
from tests.app.state.world import four_racks
from tests.records import BLOCK, GPU, RACK, REQUIRED

OF_THE_CLUSTER = {"HyperNode", "Topology"}  # they make no pods


def simulated(*things: Any) -> Simulation:
    given = all_given(objects_in(json.dumps(things).encode()), "default")
    return simulate(given, Copy.of(engine_of(four_racks(), **AT_ONCE), AT), RULES)


def test_every_kind_that_has_templates_or_rules_of_its_own_can_be_made() -> None:
    of_templates = {(each.group, each.kind) for each in workloads.KINDS}
    native_on = DIALECTS.configured(engine_of((), **AT_ONCE).settings)
    of_rules = {
        (rules.group, rules.kind)
        for dialect in native_on.each
        for rules in dialect.object_rules()
        if rules.kind not in OF_THE_CLUSTER
    }
    assert len(of_templates) >= 10
    assert len(of_rules) >= 5
    assert of_templates | of_rules <= MAKERS.keys()


def gang(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "corral.dev/v1",
        "kind": "Gang",
        "metadata": {"name": "own"},
        "spec": spec,
    }


def test_a_gang_in_our_own_words_is_placed_as_it_says() -> None:
    workers = {"name": "w", "pods": 4, "requests": {GPU: 8}, "required": BLOCK}
    workers["slices"] = [{"pods": 2, "level": RACK}]
    head = {"name": "head", "pods": 1, "requests": {"cpu": 1}}
    (found,) = simulated(gang(required=BLOCK, podSets=[workers, head])).gangs
    assert found.verdict == "Fits"
    assert sorted(each.pod for each in found.places) == [
        "own-head-0", "own-w-0", "own-w-1", "own-w-2", "own-w-3",
    ]  # fmt: skip
    blocks = [each for each in found.domains if each.level == BLOCK]
    assert [each.pods for each in blocks] == [5]
    on = {each.pod: each.node[:2] for each in found.places}
    assert on["own-w-0"] == on["own-w-1"]
    assert on["own-w-2"] == on["own-w-3"]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({}, "spec.podSets"),
        ({"podSets": [{"pod": 1}]}, "spec.podSets[0].pod"),
        ({"podSets": [{"pods": -1}]}, "spec.podSets[0].pods"),
        ({"podSets": [{"slices": [{"size": 2}]}]}, "spec.podSets[0].slices[0].size"),
        ({"podsets": []}, "spec.podsets"),
        ({"podSets": {}}, "spec.podSets"),
        ({"podSets": [1]}, "spec.podSets[0]"),
    ],
)
def test_what_no_gang_says_is_named(spec: dict[str, Any], field: str) -> None:
    (found,) = simulated(gang(**spec)).gangs
    assert found.verdict == "Invalid"
    assert [each.field for each in found.errors] == [field]


def test_a_gang_without_corral_as_its_scheduler_is_none() -> None:
    (found,) = simulated(gang(schedulerName="other", podSets=[{"pods": 1}])).gangs
    assert (found.verdict, "other" in found.message) == ("NoGang", True)


def job_set(**more: Any) -> dict[str, Any]:
    spec = {
        "schedulerName": "corral",
        "containers": [{"name": "m", "resources": {"requests": {GPU: 4}}}],
    }
    template = {"metadata": {"annotations": {REQUIRED: RACK}}, "spec": spec}
    parts = [
        {
            "name": name,
            "replicas": 2,
            "template": {"spec": {"parallelism": 2, "completions": 2, "template": template}},
        }
        for name in ("a", "b")
    ]
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "js", **more.pop("metadata", {})},
        "spec": {"replicatedJobs": parts, **more},
    }


def pods_made(thing: dict[str, Any]) -> list[str]:
    given = all_given([thing], "default")
    parts = MAKERS["jobset.x-k8s.io", "JobSet"](given[0].content)
    return [each.content["metadata"]["name"] for each in parts if each.is_pod]


def test_what_is_made_once_others_run_is_left_out_and_has_its_places() -> None:
    in_order = job_set(startupPolicy={"startupPolicyOrder": "InOrder"})
    assert pods_made(in_order) == ["js-a-0-0", "js-a-0-1", "js-a-1-0", "js-a-1-1"]
    (found,) = simulated(in_order).gangs
    assert [each.to_come for each in found.places].count(True) == 4
    key = "alpha.jobset.sigs.k8s.io/exclusive-topology"
    led = job_set(metadata={"annotations": {key: RACK}})
    assert pods_made(led) == ["js-a-0-0", "js-a-1-0", "js-b-0-0", "js-b-1-0"]
    assert len(pods_made(job_set())) == 8


@pytest.mark.parametrize(
    ("parallelism", "verdict"),
    [pytest.param(4, "Fits", id="a_rack"), pytest.param(5, "DoesNotFit", id="more_than_a_rack")],
)
def test_a_job_that_says_how_its_pods_are_scheduled_is_a_gang(
    parallelism: int, verdict: str
) -> None:
    container = {"name": "m", "resources": {"requests": {GPU: 8}}}
    spec = {
        "completionMode": "Indexed",
        "parallelism": parallelism,
        "completions": parallelism,
        "scheduling": {
            "schedulingPolicy": {"gang": {}},
            "schedulingConstraints": {"topology": [{"key": RACK}]},
        },
        "template": {"spec": {"schedulerName": "corral", "containers": [container]}},
    }
    thing = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": spec}
    (found,) = simulated(thing).gangs
    assert (found.verdict, len(found.places)) == (verdict, 4 if verdict == "Fits" else 0)


def test_a_number_of_another_type_is_named_with_its_path() -> None:
    thing = job_set()
    thing["spec"]["replicatedJobs"][1]["replicas"] = "two"
    with pytest.raises(Misfit, match=r"spec.replicatedJobs\[1\].replicas.*two"):
        pods_made(thing)


MOST = 2**31 - 1
SECONDS = 2  # of thousands that the numbers would take
POD_CLIQUE_SET = ("grove.io/v1alpha1", "PodCliqueSet")
LEADER_WORKER_SET = ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet")


@contextmanager
def ends_within(seconds: int) -> Iterator[None]:
    """Raises: TimeoutError in a block that goes on for longer."""

    def late(*_: object) -> None:
        raise TimeoutError(f"not done after {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def scaled(*groups: dict[str, Any]) -> dict[str, Any]:
    template = {"cliques": [], "podCliqueScalingGroups": list(groups)}
    return {"replicas": 1, "template": template}


def test_pods_of_a_scaling_group_are_labelled_with_it_and_with_the_replica() -> None:
    """Affinity to other pods may select them."""
    clique = {"name": "w", "spec": {"replicas": 1, "podSpec": {"containers": [{"name": "m"}]}}}
    spec = scaled({"name": "g", "replicas": 2, "cliqueNames": ["w"]})
    spec["template"]["cliques"] = [clique, {**clique, "name": "router"}]
    of = {"apiVersion": POD_CLIQUE_SET[0], "kind": POD_CLIQUE_SET[1], "metadata": {"name": "x"}}
    made = (each.content for each in MAKERS["grove.io", "PodCliqueSet"]({**of, "spec": spec}))
    labels = {
        each["metadata"]["name"]: [
            each["metadata"]["labels"].get(f"grove.io/podcliquescalinggroup{part}")
            for part in ("", "-replica-index")
        ]
        for each in made
        if each["kind"] == "Pod"
    }
    assert labels == {
        "x-0-g-0-w-0": ["x-0-g", "0"],
        "x-0-g-1-w-0": ["x-0-g", "1"],
        "x-0-router-0": [None, None],
    }


@pytest.mark.parametrize(
    ("spec", "annotations", "made"),
    [
        pytest.param({}, {}, ["x-0", "x-0-1", "x-0-2", "x-1", "x-1-1", "x-1-2"], id="at_once"),
        pytest.param({"startupPolicy": "LeaderReady"}, {}, ["x-0", "x-1"], id="leader_ready"),
        pytest.param({}, {EXCLUSIVE: "rack"}, ["x-0", "x-1"], id="exclusive_placement"),
    ],
)
def test_workers_are_made_with_their_leader_or_once_it_is_ready(
    spec: dict[str, Any], annotations: dict[str, str], made: list[str]
) -> None:
    template = {"spec": {"containers": [{"name": "m"}]}}
    inside = {"size": 3, "workerTemplate": template}
    of = {
        "apiVersion": LEADER_WORKER_SET[0],
        "kind": LEADER_WORKER_SET[1],
        "metadata": {"name": "x", "annotations": annotations},
        "spec": {"replicas": 2, "leaderWorkerTemplate": inside, **spec},
    }
    parts = (each.content for each in MAKERS["leaderworkerset.x-k8s.io", "LeaderWorkerSet"](of))
    assert [each["metadata"]["name"] for each in parts if each["kind"] == "Pod"] == made


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        pytest.param(
            LEADER_WORKER_SET,
            {"replicas": MOST, "leaderWorkerTemplate": {"size": 0}},
            id="groups_of_no_pods",
        ),
        pytest.param(
            POD_CLIQUE_SET,
            scaled({"name": "g", "replicas": MOST, "minAvailable": MOST}),
            id="replicas_of_no_cliques",
        ),
    ],
)
def test_what_makes_no_pods_ends_whatever_its_numbers_say(
    kind: tuple[str, str], spec: dict[str, Any]
) -> None:
    made = MAKERS[kind[0].partition("/")[0], kind[1]]
    of = {"apiVersion": kind[0], "kind": kind[1], "metadata": {"name": "x"}, "spec": spec}
    with ends_within(SECONDS), suppress(Misfit):
        assert sum(1 for _ in made(of)) <= 1


def test_replicas_of_no_cliques_are_refused_by_name() -> None:
    of = {"apiVersion": POD_CLIQUE_SET[0], "kind": POD_CLIQUE_SET[1], "metadata": {"name": "x"}}
    group = {"name": "g", "replicas": 200, "minAvailable": 200}
    with pytest.raises(Misfit) as caught:
        list(MAKERS["grove.io", "PodCliqueSet"]({**of, "spec": scaled(group, group)}))
    assert caught.value.field == "spec.template.podCliqueScalingGroups[1].minAvailable"
