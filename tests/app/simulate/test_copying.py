"""What others have in the books counts in the copy: refusals, nominations, quotas and queues."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from app.dialects.spec import GangKey
from app.kube.core.objects import NodeRecord
from app.kube.watch.events import Applied
from app.simulate.body import objects_in
from app.simulate.copying import Copy
from app.simulate.given import all_given
from app.simulate.simulating import simulate
from app.simulate.view import Simulated, Verdict
from app.state.engine import Engine
from tests.app.api.test_simulating import job
from tests.app.simulate import controllers
from tests.app.simulate.clusters import NOW, engine_of, read
from tests.app.simulate.test_as_created import AT, RULES
from tests.records import GPU, RACK, REQUIRED, group, node, pod


def simulated(engine: Engine, *things: Any) -> Simulated:
    given = all_given(objects_in(json.dumps(things).encode()), "default")
    return simulate(given, Copy.of(engine, AT), RULES).gangs[0]


def nodes_of(found: Simulated) -> list[str]:
    return [each.node for each in found.places]


def two() -> list[NodeRecord]:
    return [node("b0/r0/a"), node("b0/r0/b")]


def test_a_node_that_kube_scheduler_refused_is_left_out_in_that_namespace() -> None:
    engine = engine_of(two())
    first = nodes_of(simulated(engine, job("t", 1)))
    shaped = (pod("x", gpus=8, cpu=0).request, pod("x").shape)
    engine.refusals.add("default", shaped, first[0], AT, 30.0)
    (other,) = nodes_of(simulated(engine, job("t", 1)))
    assert other != first[0]
    engine.refusals.add("default", shaped, other, AT, 30.0)
    found = simulated(engine, job("t", 1))
    assert found.verdict is Verdict.DOES_NOT_FIT
    assert "refused" in found.message or "kube-scheduler" in found.message


def test_new_nodes_that_are_kept_for_a_gang_which_asked_for_them_are_left_to_it() -> None:
    engine = engine_of([], [pod(f"g{at}", annotations=group("g", 3, RACK)) for at in range(3)])
    engine.tick(NOW + 40.0)
    for each in two():
        engine.apply(Applied(each), NOW + 41.0)
    engine.tick(NOW + 41.0)
    (kept,) = engine.new_nodes.of.values()
    assert kept.nodes == {"a", "b"}
    found = simulated(engine, job("t", 1))
    assert found.verdict is Verdict.DOES_NOT_FIT
    assert "kept for a gang" in found.message
    above = job("t", 1)
    above["spec"]["template"]["spec"]["priority"] = 10
    assert simulated(engine, above).verdict is Verdict.FITS


def test_a_node_that_a_pod_is_nominated_for_is_left_to_it() -> None:
    engine = engine_of(two())
    (first,) = nodes_of(simulated(engine, job("t", 1)))
    preemptor = msgspec.structs.replace(
        pod("high", gpus=8, priority=100, scheduler="other"), nominated_node=first
    )
    engine.apply(Applied(preemptor), NOW)
    (other,) = nodes_of(simulated(engine, job("t", 1)))
    assert other != first


def test_nodes_that_are_kept_for_a_gang_that_starves_are_left_to_it() -> None:
    engine = engine_of(two())
    for at in range(3):
        engine.apply(Applied(pod(f"s{at}", annotations=group("s", 3, RACK))), NOW)
    engine.tick(NOW)
    (starving,) = engine.gangs.by_key.values()
    rank = (True, -1.0, 0.0, "default", "s")
    engine.planner.earmarked[starving.key] = (frozenset({"a", "b"}), rank)
    found = simulated(engine, job("t", 1))
    assert found.verdict is Verdict.DOES_NOT_FIT


@pytest.mark.parametrize(("free_in", "fits"), [(500.0, True), (400.0, False)])
def test_what_ends_before_kept_nodes_are_free_may_use_them(free_in: float, fits: bool) -> None:
    engine = engine_of(two(), backfill="deadlines")
    for at in range(3):
        engine.apply(Applied(pod(f"s{at}", annotations=group("s", 3, RACK))), NOW)
    (starving,) = engine.gangs.by_key.values()
    rank = (True, -1.0, 0.0, "default", "s")
    engine.planner.earmarked[starving.key] = (frozenset({"a", "b"}), rank)
    engine.planner.free_in[starving.key] = free_in
    ending = job("t", 1)
    ending["spec"]["activeDeadlineSeconds"] = 450
    assert (simulated(engine, ending).verdict is Verdict.FITS) is fits


def test_places_that_others_of_the_namespace_have_for_pods_to_come_count() -> None:
    settings = {"absent_pods_per_namespace": 2, "absent_share_per_namespace": 0.0}
    engine = engine_of([node(f"b0/r0/n{at}") for at in range(8)], **settings)
    found = simulated(engine, stateful("one", 3))
    assert found.verdict is Verdict.FITS
    assert [each.to_come for each in found.places] == [False, True, True]
    # The same in the cluster: both places of the namespace are taken.
    controllers.create(engine, [stateful("one", 3)], NOW)
    engine.tick(NOW + 0.1)
    assert len(engine.absent_pods.held) == 2
    found = simulated(engine, stateful("two", 3))
    assert found.gang is not None
    assert (found.verdict, found.gang.reason.value) == (Verdict.WAITS, "NamespaceBudget")
    assert found.explanation is not None
    assert "absent_pods_per_namespace" in found.explanation.advice


def stateful(name: str, pods: int) -> dict[str, Any]:
    resources = {"requests": {GPU: 8}}
    spec = {"schedulerName": "corral", "containers": [{"name": "m", "resources": resources}]}
    template = {"metadata": {"annotations": {REQUIRED: RACK}}, "spec": spec}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name},
        "spec": {"replicas": pods, "template": template},
    }


def test_a_quota_that_pods_to_come_would_break_is_named() -> None:
    engine = engine_of([node(f"b0/r0/n{at}") for at in range(8)])
    quota = {
        "metadata": {"name": "small", "namespace": "default", "uid": "uid-quota"},
        "status": {"hard": {f"requests.{GPU}": "8"}, "used": {f"requests.{GPU}": "0"}},
    }
    engine.apply(Applied(read(engine, "ResourceQuota", quota)), NOW)
    found = simulated(engine, stateful("ss", 3))
    assert found.gang is not None
    assert (found.verdict, found.gang.reason.value) == (Verdict.WAITS, "Quota")
    assert "small" in found.message
    assert found.explanation is not None
    assert "ResourceQuota" in found.explanation.advice


def test_a_queue_of_volcanos_that_is_full_has_the_gang_wait() -> None:
    engine = engine_of(two())
    queue = {
        "metadata": {"name": "default", "uid": "uid-queue"},
        "spec": {"weight": 1, "capability": {GPU: "4"}},
        "status": {"state": "Open"},
    }
    kind = next(e.kind for e in engine.dialects.resources() if e.path.endswith("/queues"))
    engine.apply(Applied(read(engine, kind, queue)), NOW)
    resources = {"requests": {GPU: 8}}
    template = {"spec": {"containers": [{"name": "m", "resources": resources}]}}
    thing = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "v"},
        "spec": {
            "schedulerName": "corral",
            "minAvailable": 1,
            "tasks": [{"name": "w", "replicas": 1, "minAvailable": 1, "template": template}],
        },
    }
    found = simulated(engine, thing)
    assert (found.verdict, GPU in found.message) == (Verdict.WAITS, True)
    assert "queue" in found.message.lower()


def test_an_object_that_exists_is_told_and_another_takes_its_place() -> None:
    engine = engine_of(two())
    controllers.create(engine, [job("t", 3)], NOW)
    engine.tick(NOW)
    found = simulated(engine, job("t", 2))
    assert found.verdict is Verdict.FITS
    assert any("exists" in each for each in found.notes)


def test_an_object_of_another_api_group_with_the_same_name_stays() -> None:
    """A Job of batch is no vcjob, nor is Kubernetes' PodGroup Volcano's."""
    engine = engine_of(two(), native_pod_groups="on")
    vcjob = {"metadata": {"namespace": "default", "name": "t", "uid": "uid-vcjob"}, "spec": {}}
    engine.apply(Applied(read(engine, "Job.batch.volcano.sh", vcjob)), NOW)
    found = simulated(engine, job("t", 2))
    assert (found.verdict, found.notes) == (Verdict.FITS, ())


def test_pods_that_are_too_young_to_go_are_left_alone() -> None:
    engine = engine_of(two(), preempt_min_runtime_seconds=600.0)
    assert Copy.of(engine, AT, 10_000.0).standing.spared.newest == 9_400.0
    assert Copy.of(engine_of(two()), AT, 10_000.0).standing.spared.newest == float("inf")


@pytest.mark.parametrize("sees_all", [False, True])
@pytest.mark.parametrize("is_set", [False, True])
def test_who_has_places_for_pods_to_come_is_named_to_those_who_may_see_him(
    sees_all: bool, is_set: bool
) -> None:
    """Whether others are named in events is another matter: who sees all reads a simulation."""
    engine = engine_of(two(), name_other_namespaces=is_set)
    theirs = GangKey("elsewhere", "theirs", "statefulset")
    engine.absent_pods.count_others({"to-come": (theirs, pod("x", gpus=8).request)}, {theirs: 1})
    given = all_given(objects_in(json.dumps(job("t", 3)).encode()), "default")
    found = simulate(given, Copy.of(engine, AT), RULES, sees_all=sees_all)
    assert found.gangs[0].verdict is Verdict.DOES_NOT_FIT
    assert ("elsewhere" in found.model_dump_json()) is sees_all
    assert "places are held for a pod of " in found.gangs[0].message
