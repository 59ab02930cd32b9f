"""Native PodGroups: how both versions are read, where their pods belong, what they are as gangs."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from app.dialects.native.pod_groups import decode_pod_group, resource
from app.dialects.registry import DIALECTS
from app.dialects.spec import ANYWHERE, Claim, GangKey, GangSpec, GroupSpec, LeafPods, LeafSpec
from app.errors import DecodeError
from app.kube.core.objects import Owner
from tests.app.dialects.native.objects import (
    ALPHA,
    BETA,
    KEY,
    KIND,
    ON,
    group,
    member,
    members,
    pod_group,
    read,
)
from tests.records import (
    BLOCK,
    GROUP,
    PREFERRED,
    RACK,
    REQUIRED,
    SLICE_LEVEL,
    SLICE_SIZE,
    UNCONSTRAINED,
    pod,
)
from topology.model.request import Constraint, Slice

WHERE = "PodGroup default/train: spec."
ALL = "corral.dev/disruption"


def spec_of(made: dict[str, Any], pods: int = 0, **annotations: str) -> GangSpec:
    record = read(made)
    said = [
        claim.said
        for each in members(pods, annotations=annotations)
        if (claim := ON.claim(each, [record]))
    ]
    found = ON.spec(KEY, [record], said, (), {"": LeafPods(pods)} if pods else {})
    assert found is not None
    return found


def flaw_of(**spec: Any) -> str:
    return read({**pod_group(), "spec": {**pod_group()["spec"], **spec}}).flaw


# -- versions --------------------------------------------------------------------------------------


def test_the_newest_version_that_is_served_is_read_and_what_was_read_says_which():
    newest = resource(ON.keeps)
    found = [newest, *newest.older]
    assert [each.path for each in found] == [
        "/apis/scheduling.k8s.io/v1beta1/podgroups",
        "/apis/scheduling.k8s.io/v1alpha3/podgroups",
        "/apis/scheduling.k8s.io/v1alpha2/podgroups",
    ]
    assert {(each.kind, each.is_optional) for each in found} == {(KIND, True)}
    made = pod_group()
    del made["apiVersion"], made["kind"]  # as in a list
    raw = msgspec.json.encode(made)
    assert [each.decode(raw).api for each in found] == [BETA, "v1alpha3", ALPHA]


@pytest.mark.parametrize("api", [ALPHA, BETA])
def test_what_a_pod_group_requires_of_its_pods_is_read_alike_in_both_versions(api):
    record = group(least=4, key=RACK, api=api)
    assert (record.least, record.level, record.flaw, record.api) == (4, RACK, "", api)
    basic = group(api=api)
    assert (basic.least, basic.level, basic.flaw) == (1, "", "")


@pytest.mark.parametrize(
    ("mode", "together"),
    [
        ("Pod", False),
        ("PodGroup", True),
        ({"single": {}}, False),
        ({"all": {}}, True),
        (None, None),
    ],
)
def test_disruption_mode_says_whether_the_pods_end_together(mode, together):
    assert spec_of(pod_group(least=2, disruptionMode=mode)).lifecycle.ends_together is together


def test_of_the_time_when_a_pod_is_preempted_its_own_annotation_counts_first():
    made = pod_group(least=2, disruptionMode="Pod")
    assert spec_of(made, 2, **{ALL: "all"}).lifecycle.ends_together is True


def test_what_says_where_a_pod_group_came_from_and_how_it_ends_decides_nothing():
    alpha = {"podGroupTemplateRef": {"workload": {"workloadName": "w", "podGroupTemplateName": ""}}}
    beta = {"workloadRef": {"workloadName": "w", "templateName": "t"}, "preemptionPolicy": "Never"}
    more = {"priority": 7, "priorityClassName": "p", "resourceClaims": [{"name": "c"}]}
    for api, spec in ((ALPHA, alpha), (BETA, beta)):
        assert group(least=2, api=api, **spec, **more) == group(least=2, api=api)


# -- as a gang -------------------------------------------------------------------------------------


def test_a_gang_needs_min_count_pods_and_has_all_that_exist():
    root = GroupSpec("train", (LeafSpec("", 4, slices=(), needed=4),), Constraint(required=RACK))
    assert spec_of(pod_group(least=4, key=RACK), 2).root == root
    more = spec_of(pod_group(least=4), 6)
    assert more.root == GroupSpec("train", (LeafSpec("", 6, needed=4),))
    assert more.is_elastic


def test_the_gang_of_a_job_is_known_from_the_pod_group_that_is_made_before_its_pods():
    """Of `spec.scheduling` with a gang: its controller writes minCount, here of 4 pods."""
    made = pod_group("j-workload-1a2b", least=4, key=RACK, api=BETA)
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}
    made["metadata"]["ownerReferences"] = [owner]
    key = GangKey("default", "j-workload-1a2b", "native")
    spec = ON.spec(key, [read(made)], (), ())
    assert spec is not None
    assert (spec.pods, spec.root.constraint) == (4, Constraint(required=RACK))
    of_job = member("j-0", "j-workload-1a2b", owner=Owner("batch/v1", "Job", "j", "u"))
    assert ON.claim(of_job) == Claim(key)  # before the watch shows the PodGroup as well


def test_a_basic_group_needs_one_pod_and_keeps_all_that_exist_in_one_domain():
    spec = spec_of(pod_group(key=RACK), 3)
    assert spec.root == GroupSpec("train", (LeafSpec("", 3, needed=1),), Constraint(required=RACK))


def test_annotations_of_the_pod_group_say_what_it_has_no_field_for():
    said = {PREFERRED: RACK, SLICE_LEVEL: RACK, SLICE_SIZE: "2"}
    (leaf,) = spec_of(pod_group(least=4, key=BLOCK, annotations=said), 4).leaves()
    both = Constraint(required=BLOCK, preferred=RACK)
    assert (leaf.constraint, leaf.slices) == (both, (Slice(2, RACK),))


def test_annotations_of_its_pods_do_so_as_well():
    claim = ON.claim(member("a", annotations={PREFERRED: RACK}), [group(least=2)])
    assert claim is not None
    assert claim.said.constraint == Constraint(preferred=RACK)
    (leaf,) = spec_of(pod_group(least=2), 2, **{PREFERRED: RACK}).leaves()
    assert leaf.constraint is None  # each pod has it in its claim


def test_a_level_for_all_pods_together_is_kept_around_the_one_of_the_pod_group():
    spec = spec_of(
        pod_group(least=2, key=RACK), 2, **{"corral.dev/workload-required-topology": BLOCK}
    )
    (inner,) = spec.root.members
    assert (spec.root.constraint, inner.constraint) == (
        Constraint(required=BLOCK),
        Constraint(required=RACK),
    )


def test_pods_of_an_indexed_job_are_numbered():
    label = {"batch.kubernetes.io/job-completion-index": "3"}
    one = member("a", labels=label, owner=Owner("batch/v1", "Job", "j", "u"))
    claim = ON.claim(one, [])
    assert claim is not None
    assert claim.index is not None
    assert claim.index.index == 3


# -- pods ------------------------------------------------------------------------------------------


def test_a_pod_belongs_to_the_pod_group_of_its_own_namespace():
    other = msgspec.structs.replace(member("a"), namespace="other")
    mistaken = group(least=0)
    assert mistaken.flaw
    assert ON.claim(other, [mistaken]) == Claim(GangKey("other", "train", "native"))
    assert list(ON.keys_of(mistaken)) == [KEY]


def test_a_pod_without_a_pod_group_is_none_of_ours():
    assert ON.claim(pod("a")) is None
    assert ON.sorted_by(pod("a")) == ()


def test_the_pod_group_counts_before_what_annotations_say():
    claim = ON.claim(member("a", annotations={REQUIRED: RACK}, owner=Owner("v1", "X", "x", "u")))
    assert claim is not None
    assert (claim.gang, claim.flaw) == (KEY, "")
    assert claim.said.constraint == Constraint(required=RACK)


OF_JOB = {"owner": Owner("batch/v1", "Job", "j", "u")}
TOGETHER = {"corral.dev/workload-required-topology": BLOCK}


def test_a_basic_group_made_for_a_job_does_not_make_its_annotations_say_less():
    """They promise that all its pods start together; a basic group needs one."""
    one = member("j-0", annotations={REQUIRED: RACK}, **OF_JOB)
    assert ON.claim(one) == ON.claim(one, [group(least=2)])  # before any is there, and with a gang
    claim = ON.claim(one, [group()])
    assert claim is not None
    assert (claim.gang, claim.flaw) == (GangKey("default", "j", "job", "u"), "")
    assert claim.said.constraint == Constraint(required=RACK)
    assert ON.sorts(group()) != ON.sorts(group(least=2))  # its pods are claimed anew


@pytest.mark.parametrize(
    ("made", "annotations", "more"),
    [
        pytest.param({}, {}, OF_JOB, id="pods_without_annotations"),
        pytest.param({}, {REQUIRED: RACK}, {}, id="pods_of_no_job"),
        pytest.param({"key": BLOCK}, {REQUIRED: RACK}, OF_JOB, id="a_level"),
        pytest.param({"annotations": {PREFERRED: RACK}}, {REQUIRED: RACK}, OF_JOB, id="words"),
        pytest.param({"annotations": TOGETHER}, {REQUIRED: RACK}, OF_JOB, id="words_for_all"),
        pytest.param({"least": 2}, {REQUIRED: RACK}, OF_JOB, id="a_gang"),
    ],
)
def test_any_other_group_counts_before_annotations(made, annotations, more):
    claim = ON.claim(member("j-0", annotations=annotations, **more), [group(**made)])
    assert claim is not None
    assert claim.gang == KEY


@pytest.mark.parametrize(
    ("said", "told"),
    [
        pytest.param(
            {GROUP: "g"},
            "spec.schedulingGroup.podGroupName: Forbidden: may not be set together with"
            " kueue.x-k8s.io/pod-group-name, which names pod group g",
            id="another_gang",
        ),
        pytest.param(
            {REQUIRED: RACK, "kueue.x-k8s.io/podset-group-name": "g"},
            "spec.schedulingGroup.podGroupName: Forbidden: a PodGroup has no leader that is placed"
            " with its workers, as podset-group-name asks",
            id="a_leader",
        ),
        pytest.param(
            {REQUIRED: "/"},
            'metadata.annotations[kueue.x-k8s.io/podset-required-topology]: Invalid value: "/":'
            " must be the key of a node label, such as topology.kubernetes.io/rack",
            id="no_key",
        ),
    ],
)
def test_a_pod_that_contradicts_its_pod_group_cannot_join_it(said, told):
    claim = ON.claim(member("a", annotations=said))
    assert claim == Claim(KEY, flaw=f"pod default/a: {told}")


def test_a_pod_of_which_not_all_is_read_cannot_join():
    broken = msgspec.structs.replace(member("a"), problem="Pod default/a: not all is read")
    assert ON.claim(broken) == Claim(KEY, flaw="Pod default/a: not all is read")


def test_a_name_that_no_object_has_is_cut():
    claim = ON.claim(member("a", "x" * 1_000_000))
    assert claim is not None
    assert len(claim.gang.name) == 253


def test_its_pods_are_claimed_anew_when_it_becomes_mistaken_and_not_when_it_grows():
    good, grown, mistaken = group(least=2), group(least=3), group(least=0)
    assert ON.sorts(good) == ON.sorts(grown)
    assert ON.sorts(mistaken) not in (ON.sorts(good), None)


def test_a_level_for_all_pods_together_is_asked_for_by_a_user():
    asking = group(least=2, annotations=TOGETHER)
    assert ON.of(KEY).asked_in(member("a"), [asking]) == "spec.schedulingGroup.podGroupName"
    assert ON.of(KEY).asked_in(member("a"), [group(least=2)]) == ""
    assert ON.sorts(asking) != ON.sorts(group(least=2))


# -- who starts them -------------------------------------------------------------------------------


def test_while_it_is_off_pods_of_a_pod_group_are_left_to_kube_scheduler():
    assert DIALECTS.is_managed({}, {"other": ""}, (), "train")
    assert not DIALECTS.is_managed({}, {})
    assert not ON.is_managed({}, {}, (), "train")
    assert (KIND in DIALECTS.kinds, KIND in ON.kinds) == (False, True)
    assert DIALECTS.claim(member("a")) is None
    assert DIALECTS.sorted_by(member("a")) == ()


@pytest.mark.parametrize(
    "said",
    [
        {REQUIRED: RACK},
        {PREFERRED: RACK},
        {"corral.dev/workload-required-topology": RACK},
        {GROUP: "g"},
    ],
    ids=lambda said: next(iter(said)),
)
def test_while_it_is_off_a_pod_that_requests_what_kube_scheduler_does_not_read_is_refused(said):
    one = member("a", annotations={"other": "", **said})
    assert not DIALECTS.is_managed(one.labels, one.annotations, (), "train")
    told = (
        "pod default/a: spec.schedulingGroup.podGroupName: Forbidden: kube-scheduler starts its"
        f" pods, as native_pod_groups is off, and does not read {next(iter(said))}"
    )
    assert DIALECTS.claim(one) == Claim(KEY, flaw=told)


def test_what_requests_nothing_is_no_reason_to_refuse_it():
    said = {UNCONSTRAINED: "false", "kueue.x-k8s.io/pod-index-offset": "1"}
    assert DIALECTS.is_managed({}, said, (), "train")


# -- what cannot be kept ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        pytest.param(
            {"schedulingPolicy": {"gang": {"minCount": 0}}},
            "schedulingPolicy.gang.minCount: Invalid value: 0: must be greater than or equal to 1",
            id="no_pods",
        ),
        pytest.param(
            {"schedulingPolicy": {"gang": {"minCount": 2**31}}},
            "schedulingPolicy.gang.minCount: Invalid value: 2147483648: must be less than or equal"
            " to 100000",
            id="too_many_pods",
        ),
        pytest.param(
            {"schedulingPolicy": {"gang": {}}},
            "schedulingPolicy.gang.minCount: Invalid value: 0: must be greater than or equal to 1",
            id="no_number_of_pods",
        ),
        *(
            pytest.param(
                {"schedulingPolicy": policy},
                "schedulingPolicy: Required value: must have either basic or gang",
                id=name,
            )
            for name, policy in (
                ("no_policy", None),
                ("empty_policy", {}),
                ("two_policies", {"basic": {}, "gang": {"minCount": 1}}),
                ("policy_of_a_later_version", {"elastic": {}}),
            )
        ),
        pytest.param(
            {"schedulingConstraints": {"topology": [{"key": RACK}, {"key": BLOCK}]}},
            "schedulingConstraints.topology: Too many: 2: must have at most 1 items",
            id="two_keys",
        ),
        *(
            pytest.param(
                {"schedulingConstraints": {"topology": [topology]}},
                f'schedulingConstraints.topology[0].key: Invalid value: "{shown}": must be the key'
                " of a node label, such as topology.kubernetes.io/rack",
                id=name,
            )
            for name, topology, shown in (
                ("no_key", {}, ""),
                ("null_topology", None, ""),
                ("no_label_key", {"key": "a b"}, "a b"),
            )
        ),
        pytest.param(
            {"disruptionMode": "Some"},
            'disruptionMode: Invalid value: "Some": must be Pod or PodGroup, or have single or all',
            id="unknown_mode",
        ),
        pytest.param(
            {"disruptionMode": {"some": {}}},
            'disruptionMode: Invalid value: "": must be Pod or PodGroup, or have single or all',
            id="unknown_kind_of_mode",
        ),
    ],
)
def test_what_cannot_be_kept_is_told_by_object_field_and_value(spec, told):
    assert flaw_of(**spec) == WHERE + told
    broken = read({**pod_group(), "spec": {**pod_group()["spec"], **spec}})
    assert ON.claim(member("a"), [broken]) == Claim(KEY, flaw=WHERE + told)
    assert (broken.least, broken.level) == (1, "")


def test_an_annotation_of_it_that_cannot_be_kept_is_told_alike():
    told = group(annotations={REQUIRED: "/"}).flaw
    assert told.startswith("PodGroup default/train: metadata.annotations[kueue.x-k8s.io/podset-req")


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"schedulingPolicy": [1]}, id="another_type"),
        pytest.param({"schedulingConstraints": {"topology": [{"key": 7}]}}, id="a_number_as_key"),
        pytest.param({"schedulingConstraints": {"topology": [{}] * 500_000}}, id="a_long_list"),
        pytest.param({"disruptionMode": 7}, id="a_number_as_mode"),
    ],
)
def test_what_the_api_server_would_not_send_is_an_error_that_names_the_object(spec):
    with pytest.raises(DecodeError, match=r"^PodGroup default/train: "):
        read({**pod_group(), "spec": spec})


@pytest.mark.parametrize("raw", [b"", b"7", b"[" * 100_000, b'{"metadata":7}', b'{"spec":"x"}'])
def test_what_is_no_pod_group_is_an_error(raw):
    with pytest.raises(DecodeError):
        decode_pod_group(raw, api=ALPHA, keep=ON.keeps)


@pytest.mark.parametrize("raw", [b"{}", b'{"metadata":null,"spec":null,"status":null}'])
def test_an_empty_one_is_mistaken(raw):
    assert "schedulingPolicy" in decode_pod_group(raw, api=ALPHA, keep=ON.keeps).flaw


@pytest.mark.parametrize(
    "status",
    [
        pytest.param(7, id="no_object"),
        pytest.param({"conditions": [{"type": "x" * 10_000}]}, id="a_long_one"),
        pytest.param({"conditions": [None, {}]}, id="empty_conditions"),
    ],
)
def test_a_status_that_is_not_read_takes_nothing_of_the_spec(status):
    record = read({**pod_group(least=3), "status": status})
    assert (record.least, record.flaw, record.conditions) == (3, "", ())


def test_what_a_pod_group_does_not_say_is_anywhere():
    record = group(least=2)
    assert (record.constraint, record.slices, record.ends_together) == (ANYWHERE, (), None)
