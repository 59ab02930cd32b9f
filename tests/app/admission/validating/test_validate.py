"""What is wrong with a whole object: every kind of template, each error at its own field."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import Any

import pytest

from app.admission.namespaces import METADATA_NAME, Namespaces
from app.admission.scope import Scope
from app.admission.validating.templates import MOST_TEMPLATES
from app.admission.validating.validate import Thing, Validator
from app.dialects.corral import WORKLOAD
from app.dialects.kueue import owners
from app.dialects.kueue.annotations import PREFERRED, UNCONSTRAINED
from app.dialects.registry import DIALECTS, Dialects
from app.dialects.workloads import KINDS
from app.labels import selector_from_text
from tests.app.admission.port import BESIDE_KUEUE, SCOPE
from tests.cluster import BLOCK, RACK, Object, job, pod
from tests.work import lines_run
from tests.workloads import GROUP, REQUIRED, TOTAL, asking, member

SLICE_LEVEL = "kueue.x-k8s.io/podset-slice-required-topology"
SLICE_SIZE = "kueue.x-k8s.io/podset-slice-size"
POD_SET_GROUP = "kueue.x-k8s.io/podset-group-name"
RETRIABLE = "kueue.x-k8s.io/retriable-in-group"
BROKEN = {REQUIRED: "my rack"}
ANYWHERE = {UNCONSTRAINED: "true"}
IN_ALL, NEAR_ALL = WORKLOAD
QUEUE = {"kueue.x-k8s.io/queue-name": "team"}
CHECKED = [("", "Pod"), *((kind.group, kind.kind) for kind in KINDS)]


def slices_of(pods: int) -> dict[str, str]:
    return {SLICE_LEVEL: RACK, SLICE_SIZE: str(pods)}


def template(annotations: dict[str, str], scheduler: str = "corral") -> Object:
    return {"metadata": {"annotations": annotations}, "spec": {"schedulerName": scheduler}}


def made(api_version: str, kind: str, **spec: Any) -> Object:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": "train", "namespace": "team"},
        "spec": spec,
    }


def stateful_set(annotations: dict[str, str], replicas: int | None = None) -> Object:
    count = {} if replicas is None else {"replicas": replicas}
    return made("apps/v1", "StatefulSet", template=template(annotations), **count)


def job_set(*sets: tuple[dict[str, str], int, int]) -> Object:
    """A JobSet; each set is its annotations, its Jobs, and the pods of one of them."""
    jobs = [
        {
            "name": f"set{number}",
            "replicas": replicas,
            "template": {"spec": {"parallelism": pods, "template": template(annotations)}},
        }
        for number, (annotations, replicas, pods) in enumerate(sets)
    ]
    return made("jobset.x-k8s.io/v1alpha2", "JobSet", replicatedJobs=jobs)


def leader_worker_set(workers: dict[str, str], leader: dict[str, str] | None, size: int) -> Object:
    leaders = {} if leader is None else {"leaderTemplate": template(leader)}
    return made(
        "leaderworkerset.x-k8s.io/v1",
        "LeaderWorkerSet",
        leaderWorkerTemplate={"size": size, "workerTemplate": template(workers), **leaders},
    )


def kubeflow(kind: str, field: str, **types: tuple[dict[str, str], int]) -> Object:
    replicas = {
        name: {"replicas": pods, "template": template(annotations)}
        for name, (annotations, pods) in types.items()
    }
    return made("kubeflow.org/v1", kind, **{field: replicas})


def errors(
    thing: Object,
    before: Object | None = None,
    scope: Scope = SCOPE,
    dialects: Dialects = DIALECTS,
) -> list[str]:
    group = thing["apiVersion"].rpartition("/")[0]
    namespace = thing["metadata"].get("namespace", "team")
    whole = Thing(group, thing["kind"], namespace, thing)
    return [str(error) for error in Validator(scope, dialects).errors(whole, before)]


def changed(thing: Object, **annotations: str | None) -> Object:
    """A copy with other annotations; None takes one away."""
    other = copy.deepcopy(thing)
    strings = other["metadata"]["annotations"] | annotations
    other["metadata"]["annotations"] = {k: v for k, v in strings.items() if v is not None}
    return other


@pytest.mark.parametrize(
    ("thing", "path"),
    [
        pytest.param(pod("p", annotations=BROKEN), "metadata", id="Pod"),
        pytest.param(job("j", pods=2, annotations=BROKEN), "spec.template.metadata", id="Job"),
        pytest.param(stateful_set(BROKEN), "spec.template.metadata", id="StatefulSet"),
        pytest.param(
            job_set((ANYWHERE, 1, 1), (BROKEN, 1, 1)),
            "spec.replicatedJobs[1].template.spec.template.metadata",
            id="JobSet",
        ),
        pytest.param(
            leader_worker_set(ANYWHERE, BROKEN, 4),
            "spec.leaderWorkerTemplate.leaderTemplate.metadata",
            id="LeaderWorkerSet_leader",
        ),
        pytest.param(
            leader_worker_set(BROKEN, None, 4),
            "spec.leaderWorkerTemplate.workerTemplate.metadata",
            id="LeaderWorkerSet_worker",
        ),
        *(
            pytest.param(
                kubeflow(kind, field, Worker=(BROKEN, 2)),
                f"spec.{field}[Worker].template.metadata",
                id=kind,
            )
            for kind, field in (
                ("PyTorchJob", "pytorchReplicaSpecs"),
                ("TFJob", "tfReplicaSpecs"),
                ("XGBoostJob", "xgbReplicaSpecs"),
                ("PaddleJob", "paddleReplicaSpecs"),
                ("JAXJob", "jaxReplicaSpecs"),
                ("MPIJob", "mpiReplicaSpecs"),
            )
        ),
    ],
)
def test_each_kind_is_refused_with_the_path_of_its_template(thing, path):
    assert errors(thing) == [
        f'{path}.annotations[{REQUIRED}]: Invalid value: "my rack": must be the key of a node '
        "label, such as topology.kubernetes.io/rack"
    ]


def test_templates_that_say_nothing_below_a_workload_that_does_are_refused():
    """Their pods would be ordinary ones, and in any domain."""
    thing = job_set(({}, 1, 1), ({}, 1, 4))
    thing["metadata"]["annotations"] = {"corral.dev/workload-required-topology": RACK}
    modes = f"'{REQUIRED}', '{PREFERRED}', '{UNCONSTRAINED}'"
    told = f"must contain one of {modes}, beside the corral.dev/workload-required-topology above"
    assert errors(thing) == [
        f"spec.replicatedJobs[{at}].template.spec.template.metadata.annotations: Required value:"
        f" {told}"
        for at in range(2)
    ]
    anywhere = job_set(({UNCONSTRAINED: "true"}, 1, 1), ({UNCONSTRAINED: "true"}, 1, 4))
    anywhere["metadata"]["annotations"] = thing["metadata"]["annotations"]
    assert errors(anywhere) == []


def test_kep_2724_a_template_that_says_nothing_beside_one_that_does_is_refused():
    path = "spec.replicatedJobs[0].template.spec.template.metadata"
    other = "spec.replicatedJobs[1].template.spec.template.metadata"
    modes = f"'{REQUIRED}', '{PREFERRED}', '{UNCONSTRAINED}'"
    assert errors(job_set(({}, 1, 1), ({REQUIRED: RACK}, 1, 4))) == [
        f"{path}.annotations: Required value: must contain one of {modes}, as"
        f" '{other}.annotations' does"
    ]
    assert errors(job_set((ANYWHERE, 1, 1), ({REQUIRED: RACK}, 1, 4))) == []
    assert errors(job_set(({}, 1, 1), ({}, 1, 4))) == []


IN_RACK = {REQUIRED: RACK}
GROUPED = {POD_SET_GROUP: "g", REQUIRED: RACK}
APART = [  # what templates of one object may not say together
    pytest.param({}, IN_RACK, id="nothing_beside_a_level"),
    pytest.param(ANYWHERE | {IN_ALL: RACK}, ANYWHERE | {IN_ALL: BLOCK}, id="two_levels_of_all"),
    pytest.param(GROUPED, IN_RACK, id="a_leader_without_workers"),
    pytest.param(GROUPED, {POD_SET_GROUP: "g", PREFERRED: RACK}, id="a_leader_elsewhere"),
]


@pytest.mark.parametrize(("first", "second"), APART)
@pytest.mark.parametrize(
    "of_two",
    [
        pytest.param(lambda one, two: job_set((one, 1, 1), (two, 2, 4)), id="JobSet"),
        pytest.param(lambda one, two: leader_worker_set(two, one, 5), id="LeaderWorkerSet"),
        *(
            pytest.param(
                lambda one, two, kind=kind, field=field: kubeflow(
                    kind, field, Master=(one, 1), Worker=(two, 4)
                ),
                id=kind,
            )
            for kind, field in (
                ("PyTorchJob", "pytorchReplicaSpecs"),
                ("MPIJob", "mpiReplicaSpecs"),
            )
        ),
    ],
)
def test_what_is_refused_of_templates_together_is_what_their_gang_is_told(of_two, first, second):
    thing = of_two(first, second)
    read = next(each for each in DIALECTS.resources() if each.kind == thing["kind"])
    record = read.decode(json.dumps(thing).encode())
    (key, *_) = DIALECTS.keys_of(record)
    told = owners.flaw(key, [record], "corral")
    assert told == f"{thing['kind']} team/train: {errors(thing)[0]}"
    assert owners.flaw(key, [record], "another") == ""


@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_slices_that_divide_the_pods_are_let_in(size):
    assert errors(job("j", pods=8, annotations=slices_of(size))) == []


@pytest.mark.parametrize("size", [3, 5, 7])
def test_slices_that_do_not_divide_the_pods_are_refused(size):
    (told,) = errors(job("j", pods=8, annotations=slices_of(size)))
    assert told == (
        f"spec.template.metadata.annotations[{SLICE_SIZE}]: Invalid value:"
        f' "{size}": must evenly divide pod set count 8'
    )


@pytest.mark.parametrize("key", WORKLOAD)
def test_the_level_of_a_whole_workload_must_be_a_label_key(key):
    (told,) = errors(job("j", pods=8, annotations={REQUIRED: RACK, key: "my block"}))
    assert f'annotations[{key}]: Invalid value: "my block": must be the key of' in told


def at_job(number: int) -> str:
    return f"spec.replicatedJobs[{number}].template.spec.template.metadata"


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        pytest.param(
            {IN_ALL: RACK}, {IN_ALL: BLOCK},
            f"annotations[{IN_ALL}]: Invalid value: \"{BLOCK}\": must be consistent with"
            f" '{at_job(0)}.annotations[{IN_ALL}]': \"{RACK}\"",
            id="another_level",
        ),
        pytest.param(
            {IN_ALL: RACK}, {NEAR_ALL: RACK},
            f"annotations[{NEAR_ALL}]: Invalid value: \"{RACK}\": must be consistent with"
            f" '{at_job(0)}.annotations[{IN_ALL}]': \"{RACK}\"",
            id="preferred_and_required",
        ),
    ],
)  # fmt: skip
def test_templates_that_name_other_levels_of_their_workload_are_refused(first, second, told):
    thing = job_set((ANYWHERE | first, 1, 1), (ANYWHERE | second, 1, 4), (ANYWHERE, 1, 1))
    assert errors(thing) == [f"{at_job(1)}.{told}"]


def test_one_template_may_name_the_level_of_all():
    assert errors(job_set((ANYWHERE, 1, 1), (ANYWHERE | {IN_ALL: RACK}, 1, 4))) == []
    both = ANYWHERE | {IN_ALL: BLOCK, NEAR_ALL: RACK}
    assert errors(job_set((both, 1, 1), (both, 1, 4))) == []


@pytest.mark.parametrize(
    "thing", [job("j", pods=8, annotations={IN_ALL: RACK}), stateful_set({IN_ALL: RACK})]
)
def test_a_template_that_names_another_level_than_its_object_is_refused(thing):
    thing["metadata"]["annotations"] = {NEAR_ALL: BLOCK}
    assert errors(thing) == [
        f'spec.template.metadata.annotations[{IN_ALL}]: Invalid value: "{RACK}": must be consistent'
        f" with 'metadata.annotations[{NEAR_ALL}]': \"{BLOCK}\""
    ]


def test_the_level_that_an_object_names_must_be_a_label_key():
    thing = job_set((ANYWHERE, 1, 1))
    thing["metadata"]["annotations"] = {IN_ALL: "my block"}
    (told,) = errors(thing)
    assert told.startswith(f'metadata.annotations[{IN_ALL}]: Invalid value: "my block": must be')


def test_every_kind_that_is_checked_is_counted():
    validator = Validator(SCOPE, DIALECTS)
    assert {kind for _, kind in CHECKED} <= set(DIALECTS.kinds)
    assert all(validator.is_known(group, kind) for group, kind in CHECKED)
    assert not validator.is_known("apps", "Deployment")
    assert not validator.is_known("example.com", "Pod")
    assert not validator.is_known("kueue.x-k8s.io", "Topology")


@pytest.mark.parametrize(
    ("of_size", "pods"),
    [
        pytest.param(lambda n: job("j", pods=8, annotations=slices_of(n)), 8, id="Job"),
        pytest.param(
            lambda n: (
                job("j", pods=8, annotations=slices_of(n))
                | {"spec": {"parallelism": 8, "completions": 6, "template": template(slices_of(n))}}
            ),
            6,
            id="Job_with_fewer_completions",
        ),
        pytest.param(
            lambda n: made("batch/v1", "Job", template=template(slices_of(n))), 1, id="Job_default"
        ),
        pytest.param(lambda n: stateful_set(slices_of(n), 5), 5, id="StatefulSet"),
        pytest.param(lambda n: stateful_set(slices_of(n)), 1, id="StatefulSet_default"),
        pytest.param(lambda n: job_set((slices_of(n), 3, 4)), 12, id="JobSet"),
        pytest.param(lambda n: leader_worker_set(slices_of(n), None, 8), 8, id="LWS_alike"),
        pytest.param(lambda n: leader_worker_set(slices_of(n), ANYWHERE, 8), 7, id="LWS_workers"),
        pytest.param(lambda n: leader_worker_set(ANYWHERE, slices_of(n), 8), 1, id="LWS_leader"),
        pytest.param(
            lambda n: kubeflow(
                "TFJob", "tfReplicaSpecs", PS=(ANYWHERE, 2), Worker=(slices_of(n), 4)
            ),
            4,
            id="Kubeflow",
        ),
    ],
)
def test_a_slice_is_held_against_the_size_of_its_own_pod_set(of_size, pods):
    assert errors(of_size(pods)) == []
    (told,) = errors(of_size(pods + 1))
    assert f"[{SLICE_SIZE}]: Invalid value: " in told
    assert told.endswith(f"must not be greater than pod set count {pods}")


@pytest.mark.parametrize(
    "thing",
    [
        pytest.param(stateful_set(slices_of(4), 0), id="scaled_to_none"),
        pytest.param(pod("p", annotations=slices_of(4)), id="plain_pod"),
    ],
)
def test_where_the_size_is_not_known_no_slice_is_too_large(thing):
    assert errors(thing) == []


@pytest.mark.parametrize(
    ("owners", "is_part"),
    [
        pytest.param([{"controller": True}], True, id="its_controller"),
        pytest.param([{}, {"controller": True}], True, id="its_controller_behind_another_owner"),
        pytest.param([{}], False, id="an_owner_that_does_not_control_it"),
        pytest.param([{"controller": False}], False, id="one_that_says_so"),
        pytest.param([], False, id="nobody"),
        pytest.param([None, "JobSet"], False, id="what_is_no_owner"),
    ],
)
def test_a_job_that_a_job_set_controls_has_a_part_of_the_pods_only(owners, is_part):
    thing = job("j", pods=2, annotations={**slices_of(8), REQUIRED: BLOCK})
    job_set = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "train"}
    thing["metadata"]["ownerReferences"] = [
        {**job_set, "uid": "u", **each} if isinstance(each, dict) else each for each in owners
    ]
    assert (errors(thing) == []) is is_part


GROUPED = {REQUIRED: RACK, POD_SET_GROUP: "g"}


@pytest.mark.parametrize(
    "thing",
    [
        pytest.param(job_set((GROUPED, 1, 1), (GROUPED, 2, 4)), id="JobSet"),
        pytest.param(leader_worker_set(GROUPED, GROUPED, 8), id="LeaderWorkerSet"),
        pytest.param(
            kubeflow("MPIJob", "mpiReplicaSpecs", Launcher=(GROUPED, 1), Worker=(GROUPED, 4)),
            id="MPIJob",
        ),
        pytest.param(job("train-workers-0", pods=4, annotations=GROUPED), id="Job_of_a_JobSet"),
    ],
)
def test_a_leader_and_its_workers_are_let_in(thing):
    assert errors(thing) == []


@pytest.mark.parametrize(
    ("thing", "text"),
    [
        pytest.param(job_set((GROUPED, 1, 1)), "got: 1 pod set(s)", id="one_set"),
        pytest.param(leader_worker_set(GROUPED, {}, 8), "got: 1 pod set(s)", id="no_leader"),
        pytest.param(
            job_set((GROUPED, 2, 1), (GROUPED, 1, 3)), "got: 2 replica(s) and 3", id="no_set_of_one"
        ),
        pytest.param(
            job_set((GROUPED, 1, 1), ({**GROUPED, REQUIRED: BLOCK}, 1, 3)),
            "consistent with 'spec.replicatedJobs[1].template.spec.template.metadata.annotations'",
            id="two_levels",
        ),
    ],
)
def test_a_pod_set_group_that_is_not_whole_is_refused(thing, text):
    told = errors(thing)
    assert any(text in each for each in told)
    assert all(each.startswith("spec.") for each in told)


@pytest.mark.parametrize(("elastic", "refused"), [("true", 1), ("false", 0)])
def test_an_elastic_job_that_asks_for_one_domain_is_refused(elastic, refused):
    thing = job("j", pods=2, annotations=asking(required=RACK))
    thing["metadata"]["annotations"] = {"kueue.x-k8s.io/elastic-job": elastic}
    told = errors(thing)
    assert len(told) == refused
    assert all(f"annotations[{REQUIRED}]: Forbidden: " in each for each in told)


def test_a_template_of_a_pod_group_is_checked_like_its_pods():
    (told,) = errors(stateful_set({GROUP: "g"}))
    assert told.startswith(f"spec.template.metadata.annotations[{TOTAL}]: Required value: both")


def test_all_errors_of_all_templates_are_told():
    thing = job_set((BROKEN, 1, 1), ({**BROKEN, SLICE_SIZE: "x"}, 1, 1))
    fields = [each.partition(": ")[0] for each in errors(thing)]
    paths = [f"spec.replicatedJobs[{n}].template.spec.template.metadata" for n in (0, 1)]
    assert set(fields) == {
        f"{paths[0]}.annotations[{REQUIRED}]",
        f"{paths[1]}.annotations[{REQUIRED}]",
        f"{paths[1]}.annotations[{SLICE_SIZE}]",
    }
    assert len(fields) == 4  # the size is no number, and it stands alone


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("corral.dev/spare-pods", "-", "must be a whole number from 0 to 100"),
        ("kueue.x-k8s.io/pod-group-serving", "yes", "must be a boolean value"),
        ("kueue.x-k8s.io/pod-group-sets", "[]", "must have 1 to 18 sets"),
    ],
)
def test_what_reading_the_gang_refuses_is_told_at_its_own_field(key, value, text):
    (told,) = errors(pod("p", annotations={**asking(required=RACK), key: value}))
    assert told == f'metadata.annotations[{key}]: Invalid value: "{value}": {text}'


def test_a_group_of_a_leader_worker_set_that_has_no_size_is_told_of_its_pods():
    prefix = "leaderworkerset.sigs.k8s.io/"
    labels = {prefix + "name": "lws", prefix + "group-index": "0"}
    annotations = {**asking(required=RACK), prefix + "size": "x"}
    (told,) = errors(pod("p", labels=labels, annotations=annotations))
    assert told.startswith(f'metadata.annotations[{prefix}size]: Invalid value: "x": ')


@pytest.mark.parametrize(
    ("thing", "scope"),
    [
        pytest.param(pod("p", annotations=BROKEN, scheduler="volcano"), SCOPE, id="scheduler"),
        pytest.param(
            pod("p", annotations=BROKEN, namespace="kube-system"),
            replace(SCOPE, namespaces=Namespaces(selector_from_text(f"{METADATA_NAME} in (team)"))),
            id="namespace",
        ),
        pytest.param(
            pod("p", annotations=BROKEN, labels={"team": "b"}),
            replace(SCOPE, pods=selector_from_text("team!=b")),
            id="pod",
        ),
        pytest.param(
            job("j", pods=1, annotations=BROKEN),
            replace(SCOPE, pods=selector_from_text("team")),
            id="pods_of_a_template",
        ),
        pytest.param(
            pod("p", annotations=BROKEN, gates=["kueue.x-k8s.io/admission"]), SCOPE, id="kueues_pod"
        ),
        pytest.param(
            made("apps/v1", "Deployment", template=template(BROKEN)), SCOPE, id="unknown_kind"
        ),
        pytest.param(
            made("example.com/v1", "Job", template=template(BROKEN)), SCOPE, id="foreign_group"
        ),
    ],
)
def test_what_is_not_ours_is_let_in(thing, scope):
    assert errors(thing, scope=scope) == []


@pytest.mark.parametrize(
    ("gates", "is_checked"),
    [
        pytest.param(None, True, id="null"),
        pytest.param("kueue.x-k8s.io/admission", True, id="a_text"),
        pytest.param({"name": "kueue.x-k8s.io/admission"}, True, id="an_object"),
        pytest.param(["kueue.x-k8s.io/admission", None, 7], True, id="texts"),
        pytest.param([{"name": None}, {}], True, id="no_names"),
        pytest.param([None, {"name": "kueue.x-k8s.io/admission"}], False, id="kueues_behind_null"),
    ],
)
def test_gates_of_any_form_are_read(gates, is_checked):
    thing = pod("p", annotations=BROKEN)
    thing["spec"]["schedulingGates"] = gates
    assert bool(errors(thing)) is is_checked


@pytest.mark.parametrize(
    "thing",
    [
        pytest.param(pod("p", annotations=BROKEN, labels=QUEUE), id="pod_in_a_queue"),
        pytest.param(
            job("j", pods=1, annotations=BROKEN)
            | {"metadata": {"name": "j", "labels": QUEUE, "namespace": "default"}},
            id="job_in_a_queue",
        ),
    ],
)
def test_what_is_in_a_queue_is_let_in_where_kueue_runs(thing):
    assert errors(thing, dialects=BESIDE_KUEUE) == []
    assert errors(thing) != []


def test_an_error_that_was_there_before_does_not_hold_up_a_change():
    before = pod("p", annotations=BROKEN)
    assert errors(changed(before, note="finalized"), before) == []


def test_a_change_is_refused_for_what_it_brings_in():
    before = pod("p", annotations=BROKEN)
    (told,) = errors(changed(before, **{SLICE_SIZE: "2"}), before)
    assert told.startswith(f"metadata.annotations[{SLICE_SIZE}]: Forbidden: ")


def test_a_template_scaled_below_its_slice_is_refused():
    (told,) = errors(stateful_set(slices_of(4), 2), stateful_set(slices_of(4), 8))
    assert told.endswith("must not be greater than pod set count 2")


def test_a_pod_may_not_change_its_group():
    before = member("g", 0, 2)
    (told,) = errors(changed(before, **{GROUP: "h"}), before)
    assert told == f'metadata.annotations[{GROUP}]: Invalid value: "h": field is immutable'


def test_a_workload_of_one_group_may_make_pods_of_another():
    before = stateful_set({GROUP: "of-its-pods", TOTAL: "2"}, 2)
    before["metadata"]["annotations"] = {GROUP: "its-own"}
    assert errors(changed(before, note="scaled"), before) == []


def test_a_pod_that_ends_its_group_may_not_take_it_back():
    before = member("g", 0, 2, annotations={RETRIABLE: "false"})
    (told,) = errors(changed(before, **{RETRIABLE: None}), before)
    assert told == (
        f"metadata.annotations[{RETRIABLE}]: Forbidden: "
        "unretriable pod group can't be converted to retriable"
    )


def test_a_long_value_is_shown_in_part_and_escaped():
    (told,) = errors(pod("p", annotations={REQUIRED: 'a"\n\u202e' + "x" * 100_000}))
    assert len(told) < 600
    assert '"a\\"\\n' in told
    assert "…" in told
    assert "\n" not in told


def test_an_object_of_thousands_of_templates_is_answered_soon():
    assert len(errors(job_set(*[(BROKEN, 1, 1)] * 5_000))) == MOST_TEMPLATES


def test_of_more_templates_than_are_looked_at_none_lacks_the_other_of_its_group():
    """The pair of the last that is looked at is not."""
    sets = [(GROUPED | {POD_SET_GROUP: f"g{at // 2}"}, 1, 1) for at in range(1, 2 * MOST_TEMPLATES)]
    assert errors(job_set(({REQUIRED: RACK}, 1, 1), *sets)) == []


def test_a_change_of_an_object_that_has_no_errors_costs_one_look_at_it():
    """What was wrong before matters only where something is wrong now."""
    fine = job_set(*[({REQUIRED: RACK}, 1, 1)] * MOST_TEMPLATES)
    broken = job_set(*[(BROKEN, 1, 1)] * MOST_TEMPLATES)
    errors(fine)  # what is imported on first use does not count
    assert lines_run(lambda: errors(fine, broken)) < 1.1 * lines_run(lambda: errors(fine))


ANYTHING: list[Any] = [None, True, 0, -1, "x", [], {}, [None], {"spec": 3}, {"metadata": []}]


@pytest.mark.parametrize("kind", CHECKED, ids=lambda kind: kind[1])
@pytest.mark.parametrize("content", ANYTHING, ids=repr)
def test_objects_of_any_form_are_answered(kind, content):
    for depth in range(8):
        holder: Any = content
        for name in ("template", "spec", "template", "x", "replicatedJobs", "spec")[:depth]:
            holder = {name: holder, "metadata": content, "spec": holder}
        assert Validator(SCOPE, DIALECTS).errors(Thing(*kind, "team", holder), content) == []


@pytest.mark.parametrize(
    "count", [True, "8", 2.5, None, 10**30, -4, {}], ids=lambda count: repr(count)[:12]
)
def test_counts_of_any_form_are_answered(count):
    thing = stateful_set(slices_of(4))
    thing["spec"]["replicas"] = count
    assert all("greater than pod set count" in told for told in errors(thing))
