"""Objects with rules of their own: whose are checked, what of a change is refused, at what cost."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path

import pytest

from app.admission.namespaces import METADATA_NAME, Namespaces
from app.admission.routes import MOST_CHECKED_BYTES
from app.admission.scope import Scope
from app.admission.validating.validate import MOST_ERRORS, Thing, Validator
from app.dialects.registry import DIALECTS
from app.labels import selector_from_text
from app.settings import EngineOptions
from tests.app.admission.port import SCOPE, review, running_port
from tests.app.admission.test_routes import post
from tests.app.dialects.volcano.objects import by_labels, by_pattern, exact, hyper_node
from tests.app.dialects.volcano.workloads import pod_group, sub_group, task, vcjob
from tests.cluster import Object
from tests.work import lines_run

NO_TIER = {"mode": "hard"}
ELSEWHERE = Scope("corral", Namespaces(selector_from_text(f"{METADATA_NAME} in (team)")))
BROKEN = [
    pytest.param(
        hyper_node("s0", 1, [*exact("Node", "n0"), *by_pattern("(")]),
        'HyperNode.topology.volcano.sh "s0"',
        'spec.members[1].selector.regexMatch.pattern: Invalid value: "(": missing ): (',
        "HyperNode",
        id="HyperNode",
    ),
    pytest.param(
        pod_group("pg", 1, sub_groups=[sub_group("a", 2, topology=NO_TIER)]),
        'PodGroup.scheduling.volcano.sh "pg"',
        "spec.subGroupPolicy[0].networkTopology: Required value: hard mode needs"
        " highestTierAllowed or highestTierName",
        "PodGroup.scheduling.volcano.sh",
        id="PodGroup",
    ),
    pytest.param(
        vcjob("train", task("worker", 4), networkTopology=NO_TIER),
        'Job.batch.volcano.sh "train"',
        "spec.networkTopology: Required value: hard mode needs highestTierAllowed or"
        " highestTierName",
        "Job.batch.volcano.sh",
        id="vcjob",
    ),
]


def errors(thing: Object, before: Object | None = None, scope: Scope = SCOPE) -> list[str]:
    group = thing["apiVersion"].rpartition("/")[0]
    whole = Thing(group, thing["kind"], thing["metadata"].get("namespace", ""), thing)
    return [str(error) for error in Validator(scope, DIALECTS).errors(whole, before)]


def changed(thing: Object, change: Callable[[Object], object]) -> Object:
    """A copy whose spec was changed."""
    other = copy.deepcopy(thing)
    change(other["spec"])
    return other


def test_an_object_of_a_vocabulary_that_no_scheduler_of_ours_speaks_is_let_in() -> None:
    options = EngineOptions(scheduler_vocabularies=(("corral", "kai"),))
    theirs = hyper_node("s0", 1, by_pattern("("))
    thing = Thing("topology.volcano.sh", "HyperNode", "", theirs)
    assert Validator(SCOPE, DIALECTS).errors(thing)
    validator = Validator(SCOPE, DIALECTS.configured(options))
    assert not validator.is_known(thing.group, thing.kind)
    assert validator.errors(thing) == []


# -- over HTTP -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("thing", "name", "error", "kind"), BROKEN)
async def test_a_refusal_names_the_object_the_field_and_the_value(
    tmp_path: Path, thing: Object, name: str, error: str, kind: str
) -> None:
    async with running_port(tmp_path) as running:
        response = await post(running, "/validate", review(thing))
        assert running.value("corral_admission_rejected_total", kind=kind) == 1
        assert running.value("corral_admissions_total", outcome="refused") == 1
    assert response["allowed"] is False
    status = response["status"]
    assert status["message"] == f"{name} is invalid: {error}"
    field, _, message = error.partition(": ")
    (cause,) = status["details"]["causes"]
    assert (cause["field"], cause["message"]) == (field, message)
    assert status["details"]["group"] == thing["apiVersion"].partition("/")[0]


@pytest.mark.parametrize(("thing", "name", "error", "kind"), BROKEN)
async def test_what_was_broken_before_may_lose_a_finalizer_and_get_a_status(
    tmp_path: Path, thing: Object, name: str, error: str, kind: str
) -> None:
    after = copy.deepcopy(thing) | {"status": {"phase": "Running"}}
    after["metadata"]["labels"] = {"a": "b"}
    held = copy.deepcopy(thing)
    held["metadata"]["finalizers"] = ["example.com/keep"]
    async with running_port(tmp_path) as running:
        asked = review(after, before=held, operation="UPDATE")
        assert (await post(running, "/validate", asked))["allowed"] is True
        asked = review(thing, before=None, operation="CREATE", subResource="status")
        assert (await post(running, "/validate", asked))["allowed"] is True


async def test_a_large_object_is_let_in_and_its_user_told(tmp_path: Path) -> None:
    thing = hyper_node("s0", 1, by_pattern("(") * 20_000)
    async with running_port(tmp_path) as running:
        response = await post(running, "/validate", review(thing, namespace=""))
        assert running.value("corral_admissions_total", outcome="unread") == 1
    assert response["allowed"] is True
    (warning,) = response["warnings"]
    assert warning.startswith("Corral: HyperNode s0 has ")
    assert f"more than the {MOST_CHECKED_BYTES} that are checked" in warning


async def test_an_object_that_no_schema_takes_is_let_in_with_a_warning(tmp_path: Path) -> None:
    thing = pod_group("pg", 1, networkTopology="hard")
    async with running_port(tmp_path) as running:
        response = await post(running, "/validate", review(thing))
    assert response["allowed"] is True
    assert "PodGroup default/pg" in response["warnings"][0]


# -- whose objects ---------------------------------------------------------------------------------


def of_task(scheduler: str, labels: dict[str, str] | None = None) -> Object:
    made = task("worker", 4, labels=labels)
    made["template"]["spec"]["schedulerName"] = scheduler
    return made


@pytest.mark.parametrize(
    ("thing", "scope", "is_checked"),
    [
        pytest.param(vcjob("j", task("a", 1), scheduler="volcano"), SCOPE, False, id="others_job"),
        pytest.param(vcjob("j", task("a", 1), scheduler="volcano"), Scope(""), True, id="any"),
        pytest.param(vcjob("j", of_task("volcano")), SCOPE, False, id="others_pods_of_our_job"),
        pytest.param(
            vcjob("j", task("a", 1), of_task("corral"), scheduler="volcano"),
            SCOPE,
            True,
            id="our_pods_of_another_job",
        ),
        pytest.param(
            vcjob("j", task("a", 1, labels={"tier": "web"})),
            Scope("corral", pods=selector_from_text("tier!=web")),
            False,
            id="pods_not_selected",
        ),
        pytest.param(vcjob("j", task("a", 1)), ELSEWHERE, False, id="job_elsewhere"),
        pytest.param(pod_group("pg", 1), SCOPE, True, id="pod_group"),
        pytest.param(pod_group("pg", 1), ELSEWHERE, False, id="pod_group_elsewhere"),
    ],
)
def test_objects_are_checked_if_their_pods_are_ours_as_far_as_they_say(
    thing: Object, scope: Scope, is_checked: bool
) -> None:
    broken = changed(thing, lambda spec: spec.update(networkTopology=NO_TIER))
    assert bool(errors(broken, scope=scope)) is is_checked


def test_a_hyper_node_has_no_namespace_and_is_checked_whatever_is_selected() -> None:
    assert len(errors(hyper_node("s0", 1, by_pattern("(")), scope=ELSEWHERE)) == 1


def test_a_vcjob_that_becomes_ours_is_checked_as_a_whole() -> None:
    before = vcjob("j", task("a", 1), scheduler="volcano", networkTopology=NO_TIER)
    after = changed(before, lambda spec: spec.update(schedulerName="corral"))
    assert len(errors(after, before)) == 1


# -- changes ---------------------------------------------------------------------------------------

MEMBERS = [*by_pattern("("), *exact("Node", "n0"), *by_labels()]
BEFORE = hyper_node("s0", 1, MEMBERS)


@pytest.mark.parametrize(
    ("change", "refused"),
    [
        pytest.param(lambda spec: spec.update(tier=2), [], id="another_field"),
        pytest.param(lambda spec: spec["members"].pop(1), [], id="a_good_one_less"),
        pytest.param(lambda spec: spec["members"].pop(0), [], id="a_broken_one_less"),
        pytest.param(lambda spec: spec["members"].reverse(), [], id="another_order"),
        pytest.param(
            lambda spec: spec["members"].insert(0, exact("Node", "n1")[0]), [], id="one_before"
        ),
        pytest.param(
            lambda spec: spec["members"].append(by_pattern(")")[0]),
            ["spec.members[3].selector.regexMatch.pattern"],
            id="one_more_broken",
        ),
        pytest.param(
            lambda spec: spec["members"].append(by_labels()[0]),
            ["spec.members[3].selector.labelMatch"],
            id="one_more_that_is_broken_alike",
        ),
        pytest.param(
            lambda spec: spec["members"][0]["selector"]["regexMatch"].update(pattern="(("),
            ["spec.members[0].selector.regexMatch.pattern"],
            id="broken_otherwise",
        ),
        pytest.param(lambda spec: spec.update(members=[]), ["spec.members"], id="no_members"),
    ],
)
def test_a_change_is_refused_for_the_errors_that_it_brings_in(
    change: Callable[[Object], object], refused: list[str]
) -> None:
    told = errors(changed(BEFORE, change), BEFORE)
    assert [each.partition(": ")[0] for each in told] == refused


def test_a_partitioned_task_is_scaled_with_its_partitions() -> None:
    policy = {"totalPartitions": 2, "partitionSize": 4}
    before = vcjob("train", task("worker", 8, partitionPolicy=policy))
    (told,) = errors(changed(before, lambda spec: spec["tasks"][0].update(replicas=9)), before)
    assert told.startswith("spec.tasks[0].replicas: Invalid value: 9: ")
    both = {"replicas": 12, "partitionPolicy": policy | {"totalPartitions": 3}}
    assert errors(changed(before, lambda spec: spec["tasks"][0].update(both)), before) == []


def test_of_an_object_with_very_many_errors_a_change_is_let_in() -> None:
    before = hyper_node("s0", 1, [{"type": "Node"}] * (MOST_ERRORS + 1))
    assert len(errors(before)) == MOST_ERRORS
    assert errors(changed(before, lambda spec: spec.update(tier=-1)), before) == []


# -- cost ------------------------------------------------------------------------------------------


def of(number: int) -> dict[str, Object]:
    """Hostile objects of that size."""
    labels = {f"k{at}": "" for at in range(number)}
    return {
        "members": hyper_node("s0", 1, [{}] * number),
        "requirements": hyper_node("s0", 1, by_labels(*[{"operator": "In"}] * number)),
        "labels": hyper_node("s0", 1, by_labels(**labels)),
        "tasks": pod_group("pg", 1, tasks={str(at): -1 for at in range(number)}),
        "policies": pod_group("pg", 1, sub_groups=[{}] * number),
        "keys": pod_group("pg", 1, sub_groups=[{"matchLabelKeys": ["-"] * number}]),
        "tasks_of_a_job": vcjob("j", *[task("a", 1)] * number),
    }


@pytest.mark.parametrize("what", list(of(0)))
def test_the_errors_of_an_object_ten_times_as_large_cost_no_more(what: str) -> None:
    small, large = of(1_000)[what], of(10_000)[what]
    for each in (small, large):
        errors(each)  # what is made on first use does not count
    assert lines_run(lambda: errors(large)) <= 1.2 * lines_run(lambda: errors(small))


@pytest.mark.parametrize("kind", [("topology.volcano.sh", "HyperNode"), ("", "PodGroup")])
def test_a_kind_is_known_by_its_group(kind: tuple[str, str]) -> None:
    validator = Validator(SCOPE, DIALECTS)
    assert validator.is_known(*kind) is bool(kind[0])
    assert not validator.is_known("scheduling.x-k8s.io", "PodGroup")
    assert not validator.is_known("kai.scheduler", "HyperNode")
