"""The pod templates in objects of any form: where they are, and for how many pods."""

from __future__ import annotations

import pytest

from app.admission.validating.templates import MOST_TEMPLATES, controller_of, template_of, templates
from app.dialects.workloads import KINDS
from app.dialects.workloads.templates import TemplatePlace

PLACES = {kind.kind: kind.templates for kind in KINDS}


def made(name: str) -> dict[str, object]:
    return {"metadata": {"labels": {"app": name}}, "spec": {"schedulerName": "corral"}}


def found(kind: str, thing: object) -> list[tuple[str, int | None]]:
    return [(each.path, each.pods) for each in templates(thing, PLACES[kind])]


def replicated(template: object, **more: object) -> dict[str, object]:
    return {"template": {"spec": {"template": template, **more}}}


@pytest.mark.parametrize("nothing", [None, 7, "x", [], {}], ids=repr)
def test_a_template_that_is_none_hides_no_other(nothing):
    jobs = [{"template": nothing}, replicated(made("a")), nothing, replicated(made("b"))]
    paths = [path for path, _ in found("JobSet", {"spec": {"replicatedJobs": jobs}})]
    expected = [f"spec.replicatedJobs[{at}].template.spec.template" for at in (1, 3)]
    assert paths == expected


@pytest.mark.parametrize("thing", [None, 7, [], {}, {"spec": None}, {"spec": []}], ids=repr)
@pytest.mark.parametrize("kind", ["Job", "JobSet", "PyTorchJob", "LeaderWorkerSet"])
def test_an_object_of_any_form_may_have_none(kind, thing):
    assert found(kind, thing) == []


def test_parts_by_name_are_found_by_their_name():
    parts = {"Master": {"template": made("m")}, "Worker": {"template": made("w"), "replicas": 3}}
    assert found("PyTorchJob", {"spec": {"pytorchReplicaSpecs": parts}}) == [
        ("spec.pytorchReplicaSpecs[Master].template", 1),
        ("spec.pytorchReplicaSpecs[Worker].template", 3),
    ]


def test_no_more_templates_are_looked_at_than_an_object_may_have():
    jobs = [replicated(made("a"))] * (MOST_TEMPLATES + 1)
    assert len(found("JobSet", {"spec": {"replicatedJobs": jobs}})) == MOST_TEMPLATES
    assert len(found("JobSet", {"spec": {"replicatedJobs": jobs[1:]}})) == MOST_TEMPLATES


@pytest.mark.parametrize(
    ("spec", "pods"),
    [
        pytest.param({}, 1, id="default"),
        pytest.param({"parallelism": 4}, 4, id="parallelism"),
        pytest.param({"parallelism": 4, "completions": 3}, 3, id="the_least_of_both"),
        pytest.param({"parallelism": 2, "completions": 3}, 2, id="whichever_it_is"),
        pytest.param({"parallelism": 1}, 1, id="one"),
        pytest.param({"parallelism": 0}, None, id="none_now"),
        pytest.param({"parallelism": -1}, None, id="below_none"),
        pytest.param({"parallelism": "4"}, 1, id="no_number"),
    ],
)
def test_a_jobs_template_is_for_as_many_pods_as_run_at_a_time(spec, pods):
    assert found("Job", {"spec": {"template": made("a"), **spec}}) == [("spec.template", pods)]


def test_jobs_of_a_job_set_multiply_their_pods():
    jobs = [{"replicas": 3, **replicated(made("a"), parallelism=4, completions=2)}]
    assert [pods for _, pods in found("JobSet", {"spec": {"replicatedJobs": jobs}})] == [6]


@pytest.mark.parametrize(
    ("leader", "pods"),
    [
        pytest.param({"leaderTemplate": made("l")}, [1, 3], id="of_its_own"),
        pytest.param({"leaderTemplate": None}, [4], id="null"),
        pytest.param({}, [4], id="none"),
    ],
)
def test_a_leader_of_its_own_is_none_of_its_workers(leader, pods):
    pod_sets = {"size": 4, "workerTemplate": made("w"), **leader}
    assert [
        n for _, n in found("LeaderWorkerSet", {"spec": {"leaderWorkerTemplate": pod_sets}})
    ] == pods


def test_where_the_pods_are_not_counted_there_is_one():
    (template,) = templates({"spec": {"template": made("a")}}, (TemplatePlace("spec", "template"),))
    assert (template.path, template.pods) == ("spec.template", 1)
    assert template.scheduler == "corral"


@pytest.mark.parametrize("odd", [None, 7, [], {}, ["x"]], ids=repr)
def test_only_texts_are_read(odd):
    content = {
        "metadata": {"labels": {"a": odd, "b": "2"}, "annotations": odd},
        "spec": {"schedulerName": odd},
    }
    read = template_of("", content)
    assert (read.labels, read.annotations, read.scheduler) == ({"b": "2"}, {}, "")


@pytest.mark.parametrize(
    ("owners", "kind"),
    [
        pytest.param([{"kind": "A", "controller": True}], "A", id="one"),
        pytest.param([{"kind": "A"}, {"kind": "B", "controller": True}], "B", id="the_second"),
        pytest.param([{"kind": "A", "controller": False}], "", id="no_controller"),
        pytest.param([{"kind": "A", "controller": 1}], "", id="no_boolean"),
        pytest.param([None, 7, {"kind": "B", "controller": True}], "B", id="after_odd_ones"),
        pytest.param([{"controller": True}], "", id="without_a_kind"),
        pytest.param({"kind": "A", "controller": True}, "", id="no_list"),
        pytest.param(None, "", id="null"),
    ],
)
def test_the_controller_is_the_owner_that_says_so(owners, kind):
    assert controller_of({"metadata": {"ownerReferences": owners}}) == kind
    assert controller_of({"metadata": None}) == controller_of(7) == ""
