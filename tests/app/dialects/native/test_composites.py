"""CompositePodGroups: where pods belong in them, what they are as gangs, what makes none."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from app.dialects.native.composites import decode_composite, resource
from app.dialects.registry import DIALECTS
from app.dialects.spec import Claim, GangKey, GangSpec, LeafPods
from app.dialects.written import AT_WRITE, GangView
from app.errors import DecodeError
from app.kube.core.objects import ObjectRecord, Owner
from tests.app.dialects.native.composites import KIND, composite, composite_object, inner, root
from tests.app.dialects.native.objects import BETA, ON, group, member
from tests.records import BLOCK, PREFERRED, RACK, REQUIRED
from topology.model.request import Constraint

TRAIN = (
    composite("all", 2, key=BLOCK),
    composite("replica-0", 2, inside="all", key=RACK),
    inner("prefill-0", 4, "replica-0"),
    inner("decode-0", 2, "replica-0", key="kubernetes.io/hostname"),
    inner("router", 1),
)
PODS = {"prefill-0": 5, "decode-0": 2, "router": 1}


def spec_of(*objects: ObjectRecord, name: str = "all", **pods: int) -> GangSpec:
    there = {leaf: LeafPods(number) for leaf, number in pods.items()}
    found = ON.spec(root(name), objects, (), (), there)
    assert found is not None
    return found


def claim_of(of: str, *objects: ObjectRecord, **more: Any) -> Claim:
    claim = ON.claim(member("p", of, **more), objects)
    assert claim is not None
    return claim


def names(spec: GangSpec) -> dict[str, tuple[int, int | None]]:
    return {leaf.name: (leaf.pods, leaf.needed) for leaf in spec.leaves()}


# -- kinds -----------------------------------------------------------------------------------------


def test_the_kind_is_read_where_it_is_served_and_missed_where_it_is_not():
    of_kind = resource(ON.keeps)
    assert (of_kind.path, of_kind.is_optional) == (
        "/apis/scheduling.k8s.io/v1alpha3/compositepodgroups",
        True,
    )
    assert (KIND in ON.kinds, KIND in DIALECTS.kinds) == (True, False)


# -- pods ------------------------------------------------------------------------------------------


def test_a_pod_is_in_the_gang_of_the_outermost_composite_and_claims_its_pod_group_there():
    assert claim_of("prefill-0", *TRAIN) == Claim(root(), "prefill-0")
    assert claim_of("router", *TRAIN) == Claim(root(), "router")


def test_a_pod_group_alone_is_what_it_was():
    assert claim_of("train", group(least=2)) == Claim(GangKey("default", "train", "native"))


@pytest.mark.parametrize(
    ("there", "name"),
    [
        pytest.param((inner("router", 1),), "all", id="none_of_them_is_there"),
        pytest.param((TRAIN[1], TRAIN[2]), "all", id="the_outermost_is_not"),
        pytest.param((TRAIN[2],), "replica-0", id="one_between_is_not"),
    ],
)
def test_it_waits_for_a_composite_that_is_not_there(there, name):
    claim = claim_of(there[-1].name, *there)
    assert (claim.gang, claim.flaw) == (root(name), "")
    assert ON.spec(claim.gang, there, (), ()) is None
    assert ON.of(claim.gang).awaited(claim.gang) == f"CompositePodGroup {name} is there"


def test_pods_of_indexed_jobs_are_numbered_pod_group_by_pod_group():
    label = {"batch.kubernetes.io/job-completion-index": "3"}
    claim = claim_of("router", *TRAIN, labels=label, owner=Owner("batch/v1", "Job", "j", "u"))
    assert claim.index is not None
    assert (claim.index.index, claim.index.is_across) == (3, False)


def test_a_pod_that_asks_for_a_level_of_its_own_has_it_inside():
    assert claim_of("router", *TRAIN, annotations={PREFERRED: RACK}).said.constraint == Constraint(
        preferred=RACK
    )
    flawed = claim_of("router", *TRAIN, annotations={REQUIRED: "/"})
    assert flawed.gang == root()
    assert flawed.flaw.startswith("pod default/p: metadata.annotations[")


def test_a_level_of_a_composite_is_asked_for_by_a_user():
    asked = ON.of(root()).asked_in
    assert asked(member("p", "router"), TRAIN) == "spec.schedulingGroup.podGroupName"
    assert asked(member("p", "router"), (composite("all", 1), inner("router", 1))) == ""


def test_claims_are_made_anew_when_a_composite_comes_or_is_another_and_not_when_it_grows():
    assert ON.sorts(composite("all", 2)) == ON.sorts(composite("all", 3))
    assert ON.sorts(composite("all", 2)) != ON.sorts(composite("all", 2, inside="more"))
    assert ON.sorts(composite("all", 0)) != ON.sorts(composite("all", 2))
    assert ON.sorts(inner("router", 1)) != ON.sorts(group("router", 1, api=BETA))


def test_an_object_names_the_one_that_it_is_inside():
    assert ON.inside(inner("router", 1)) == root()
    assert ON.inside(composite("replica-0", 1, inside="all")) == root()
    assert ON.inside(composite("all", 1)) is None
    assert ON.inside(group(least=1)) is None
    assert list(ON.keys_of(composite("all", 1))) == [root()]


# -- as a gang -------------------------------------------------------------------------------------


def test_groups_in_groups_have_their_numbers_and_levels():
    spec = spec_of(*TRAIN, **PODS)
    outer = spec.root
    assert (outer.constraint, outer.needed) == (Constraint(required=BLOCK), 2)
    replica, router = outer.members
    assert (replica.name, replica.constraint, replica.needed) == (
        "replica-0",
        Constraint(required=RACK),
        2,
    )
    decode, prefill = replica.members
    assert decode.constraint == Constraint(required="kubernetes.io/hostname")
    assert (prefill.name, router.name) == ("prefill-0", "router")
    assert names(spec) == {"decode-0": (2, 2), "prefill-0": (5, 4), "router": (1, 1)}
    assert (spec.flaw, spec.awaits, spec.where) == ("", "", "CompositePodGroup default/all")


def test_the_order_in_which_objects_are_read_makes_no_difference():
    assert spec_of(*TRAIN, **PODS) == spec_of(*reversed(TRAIN), **PODS)


def test_a_basic_composite_needs_one_group():
    spec = spec_of(composite("all"), inner("a", 2), inner("b", None), a=2, b=3)
    assert spec.root.needed == 1
    assert names(spec) == {"a": (2, 2), "b": (3, 1)}


def test_a_composite_and_a_pod_group_may_have_one_name():
    spec = spec_of(composite("all", 1), inner("all", 2), all=2)
    assert names(spec) == {"all": (2, 2)}
    assert claim_of("all", composite("all", 1), inner("all", 2)) == Claim(root(), "all")


def test_a_group_that_lacks_groups_is_never_whole_and_says_how_many_it_has():
    objects = (composite("all", 3), inner("a", 2), inner("b", 2))
    spec = spec_of(*objects, a=2, b=2)
    assert names(spec) == {"a": (2, 2), "b": (2, 2), "all/0": (1, 1)}
    assert spec.awaits == "CompositePodGroup all, which has 2 of 3 groups, has the others"
    assert spec_of(*objects, inner("c", 1), a=2, b=2, c=1).awaits == ""


def test_a_group_that_may_be_absent_is_not_waited_for():
    lacks = (composite("part", 2, inside="all"), inner("c", 1, "part"))
    spec = spec_of(composite("all", 1), inner("a", 2), *lacks, a=2, c=1)
    assert spec.awaits == ""
    assert names(spec)["part/0"] == (1, 1)  # it has no place before the other group is there
    needed = spec_of(composite("all", 2), inner("a", 2), *lacks, a=2, c=1)
    assert needed.awaits == "CompositePodGroup part, which has 1 of 2 groups, has the others"


@pytest.mark.parametrize(
    ("outer", "within", "whole"),
    [
        pytest.param({"all": {}}, {"all": {}}, True, id="all_of_it"),
        pytest.param({"single": {}}, {"all": {}}, True, id="a_part_of_it"),
        pytest.param({"single": {}}, {"single": {}}, False, id="each_by_itself"),
        pytest.param(None, None, None, id="it_does_not_say"),
    ],
)
def test_a_gang_ends_as_a_whole_where_a_part_of_it_does(outer, within, whole):
    objects = (composite("all", 1, disruptionMode=outer), inner("a", 1, disruptionMode=within))
    spec = spec_of(*objects)
    assert (spec.lifecycle.ends_together, spec.flaw) == (whole, "")


# -- annotations for what it has no field for ------------------------------------------------------

SLICED = {
    "kueue.x-k8s.io/podset-slice-required-topology": RACK,
    "kueue.x-k8s.io/podset-slice-size": "2",
}


def test_annotations_of_a_composite_are_for_all_of_it_inside_the_domain_of_its_key():
    both = composite("all", 2, key=BLOCK, annotations={PREFERRED: RACK})
    spec = spec_of(both, inner("a", 2), inner("b", 1), a=2, b=1)
    assert (spec.root.constraint, spec.root.needed) == (Constraint(BLOCK, RACK), 2)
    assert [each.name for each in spec.root.members] == ["a", "b"]
    both = composite("all", 2, key=BLOCK, annotations={REQUIRED: RACK})
    spec = spec_of(both, inner("a", 2), inner("b", 1), a=2, b=1)
    (inside,) = spec.root.members
    assert (spec.root.constraint, spec.root.needed) == (Constraint(required=BLOCK), None)
    assert (inside.constraint, inside.needed) == (Constraint(required=RACK), 2)
    assert [each.name for each in inside.members] == ["a", "b"]
    alone = composite("all", 1, annotations={REQUIRED: RACK})
    whole = spec_of(alone, inner("a", 2), a=2).root
    assert (whole.constraint, whole.needed) == (Constraint(required=RACK), 1)


def test_a_level_of_the_whole_workload_may_be_on_any_composite_of_it():
    said = {"corral.dev/workload-required-topology": BLOCK}
    part = composite("part", 1, inside="all", annotations=said)
    spec = spec_of(composite("all", 1), part, inner("a", 2, "part"), a=2)
    assert spec.root.constraint == Constraint(required=BLOCK)
    assert spec.levels_named == (("CompositePodGroup default/part", Constraint(required=BLOCK)),)


@pytest.mark.parametrize(
    "said", [{PREFERRED: RACK}, {"corral.dev/workload-required-topology": RACK}]
)
def test_an_annotation_of_a_composite_is_asked_for_by_a_user(said):
    asked = ON.of(root()).asked_in
    says = composite("all", 1, annotations=said)
    assert asked(member("p", "router"), (says, inner("router", 1))) != ""
    assert ON.sorts(says) != ON.sorts(composite("all", 1))


@pytest.mark.parametrize(
    ("said", "told"),
    [
        pytest.param(
            SLICED,
            "annotations[kueue.x-k8s.io/podset-slice-required-topology]: Forbidden: slices are of"
            " the pods of a PodGroup: set it on those inside, or on their pods",
            id="slices",
        ),
        pytest.param(
            {"kueue.x-k8s.io/podset-group-name": "g", REQUIRED: RACK},
            "annotations[kueue.x-k8s.io/podset-group-name]: Forbidden: a CompositePodGroup has no"
            " leader that is placed with its workers",
            id="a_leader",
        ),
        pytest.param(
            {PREFERRED: "/"},
            "annotations[kueue.x-k8s.io/podset-preferred-topology]: Invalid value:"
            ' "/": must be the key of a node label, such as topology.kubernetes.io/rack',
            id="no_level",
        ),
    ],
)
def test_an_annotation_that_a_composite_cannot_keep_is_told_to_the_pods_inside(said, told):
    flawed = composite("all", 1, key=BLOCK, annotations=said)
    assert flawed.flaw == f"CompositePodGroup default/all: metadata.{told}"
    assert claim_of("a", flawed, inner("a", 1)).flaw == flawed.flaw
    assert (flawed.level, flawed.constraint) == ("", Constraint())


# -- what makes no gang ----------------------------------------------------------------------------


def test_groups_in_a_circle_are_told_by_name():
    circle = (
        composite("a", 1, inside="b"),
        composite("b", 1, inside="a"),
        inner("workers", 1, "a"),
    )
    told = (
        'PodGroup default/workers: spec.parentCompositePodGroupName: Invalid value: "a": it is'
        " inside a circle: a in b in a"
    )
    assert claim_of("workers", *circle) == Claim(GangKey("default", "workers", "native"), flaw=told)
    itself = (composite("a", 1, inside="a"), inner("workers", 1, "a"))
    assert claim_of("workers", *itself).flaw.endswith("a circle: a in a")


def test_groups_that_are_too_deep_are_told_by_name_and_so_is_their_tree():
    chain = [composite("c0", 1)]
    chain += [composite(f"c{at}", 1, inside=f"c{at - 1}") for at in range(1, 4)]
    deep, fits = inner("deep", 1, "c3"), inner("fits", 1, "c2")
    told = (
        'PodGroup default/deep: spec.parentCompositePodGroupName: Invalid value: "c3": groups are'
        " inside one another 5 deep, and 4 are read"
    )
    assert claim_of("deep", *chain, deep).flaw == told
    assert claim_of("fits", *chain, fits) == Claim(root("c0"), "fits")
    assert spec_of(*chain, fits, name="c0").flaw == ""
    assert spec_of(*chain, deep, fits, name="c0").flaw == told


def test_more_groups_than_are_read_are_told():
    many = [inner(f"g{at}", 1) for at in range(257)]
    assert spec_of(composite("all", 1), *many[:256]).flaw == ""
    assert spec_of(composite("all", 1), *many).flaw == (
        "CompositePodGroup default/all has more groups inside than the 256 that are read"
    )


@pytest.mark.parametrize(
    ("objects", "told"),
    [
        pytest.param(
            (composite("all", 1), inner("a", None)),
            "PodGroup default/a: spec.schedulingPolicy.basic: Forbidden: CompositePodGroup all,"
            " which it is inside, counts groups that start as a whole",
            id="basic_in_a_gang",
        ),
        pytest.param(
            (
                composite("all", 1),
                composite("part", None, inside="all"),
                inner("a", 1, "part"),
            ),
            "CompositePodGroup default/part: spec.schedulingPolicy.basic: Forbidden:"
            " CompositePodGroup all, which it is inside, counts groups that start as a whole",
            id="a_basic_composite_in_a_gang",
        ),
        pytest.param(
            (
                composite("all", 1, disruptionMode={"all": {}}),
                inner("a", 1, disruptionMode={"single": {}}),
            ),
            "PodGroup default/a: spec.disruptionMode: Forbidden: all of CompositePodGroup all,"
            " which it is inside, ends together",
            id="single_in_all",
        ),
        pytest.param(
            (composite("all", 1), inner("a", 1), inner("b", 0)),
            "PodGroup default/b: spec.schedulingPolicy.gang.minCount: Invalid value: 0: must be"
            " greater than or equal to 1",
            id="a_mistake_in_another_group",
        ),
    ],
)
def test_what_contradicts_in_a_tree_keeps_all_of_it_from_starting(objects, told):
    assert spec_of(*objects, a=1).flaw == told


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        pytest.param(
            {"schedulingPolicy": {"gang": {"minGroupCount": 0}}},
            "schedulingPolicy.gang.minGroupCount: Invalid value: 0: must be greater than or equal"
            " to 1",
            id="no_groups",
        ),
        pytest.param(
            {"schedulingPolicy": {"gang": {"minCount": 2}}},
            "schedulingPolicy.gang.minGroupCount: Invalid value: 0: must be greater than or equal"
            " to 1",
            id="pods_where_groups_are_counted",
        ),
        pytest.param(
            {"schedulingPolicy": {"gang": {"minGroupCount": 257}}},
            "schedulingPolicy.gang.minGroupCount: Invalid value: 257: must be less than or equal"
            " to 256",
            id="too_many_groups",
        ),
        pytest.param(
            {"schedulingPolicy": {}},
            "schedulingPolicy: Required value: must have either basic or gang",
            id="no_policy",
        ),
        pytest.param(
            {"schedulingConstraints": {"topology": [{"key": RACK}, {"key": BLOCK}]}},
            "schedulingConstraints.topology: Too many: 2: must have at most 1 items",
            id="two_keys",
        ),
    ],
)
def test_a_mistake_in_a_composite_is_told_to_the_pods_inside(spec, told):
    flawed = composite("all", 1, **spec)
    assert flawed.flaw == f"CompositePodGroup default/all: spec.{told}"
    claim = claim_of("a", flawed, inner("a", 1))
    assert (claim.gang, claim.flaw) == (root(), flawed.flaw)
    assert (flawed.least, flawed.level) == (1, "")


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"parentCompositePodGroupName": ["a", "b"]}, id="two_parents"),
        pytest.param({"schedulingPolicy": [1]}, id="another_type"),
    ],
)
def test_what_the_api_server_would_not_send_is_an_error_that_names_the_object(spec):
    made = composite_object()
    raw = msgspec.json.encode({**made, "spec": {**made["spec"], **spec}})
    with pytest.raises(DecodeError, match=r"^CompositePodGroup default/all: "):
        decode_composite(raw, keep=ON.keeps)


@pytest.mark.parametrize("raw", [b"", b"7", b"[" * 100_000, b'{"metadata":7}', b'{"spec":"x"}'])
def test_what_is_none_is_an_error(raw):
    with pytest.raises(DecodeError):
        decode_composite(raw, keep=ON.keeps)


def test_a_name_that_no_object_has_is_cut():
    assert len(composite("all", 1, inside="x" * 100_000).parent) == 253


# -- conditions ------------------------------------------------------------------------------------

VIEW = {"pods": 8, "bound": 0, "message": "no room"}
STARTED = {"prefill-0": 4, "decode-0": 2, "router": 0}


def written(view: GangView, *objects: ObjectRecord) -> dict[str, tuple[str, str, str]]:
    spec = spec_of(*objects, **PODS)
    found = {}
    for patch in ON.of(root()).statuses(spec, objects, view):
        (condition,) = patch.status["conditions"]
        assert condition["lastTransitionTime"] == AT_WRITE
        *_, kind, name, _ = patch.path.split("/")
        found[f"{kind}/{name}"] = condition["type"], condition["status"], condition["message"]
    return found


def test_every_group_says_whether_its_own_part_has_started():
    view = GangView("waiting", **VIEW, settled={})
    waits = {
        "podgroups/prefill-0": ("PodGroupInitiallyScheduled", "False", "no room"),
        "podgroups/decode-0": ("PodGroupInitiallyScheduled", "False", "no room"),
        "podgroups/router": ("PodGroupInitiallyScheduled", "False", "no room"),
        "compositepodgroups/all": ("CompositePodGroupInitiallyScheduled", "False", "no room"),
        "compositepodgroups/replica-0": (
            "CompositePodGroupInitiallyScheduled",
            "False",
            "no room",
        ),
    }
    assert written(view, *TRAIN) == waits
    part = written(GangView("repairing", 8, 6, "no room", settled=STARTED), *TRAIN)
    assert {name for name, said in part.items() if said[1] == "True"} == {
        "podgroups/prefill-0",
        "podgroups/decode-0",
        "compositepodgroups/replica-0",
    }
    runs = GangView("running", 8, 8, "", is_scheduled=True, settled={**STARTED, "router": 1})
    assert {said[1] for said in written(runs, *TRAIN).values()} == {"True"}
    assert len(written(runs, *TRAIN)) == 5


def test_of_a_gang_that_needs_all_its_pods_all_start_together():
    objects = (composite("all", 1), inner("a", 2))
    view = GangView("running", 2, 2, "", is_scheduled=True)
    assert {said[1] for said in written(view, *objects).values()} == {"True"}
    waits = GangView("gathering", 1, 0, "waits", is_scheduled=False)
    assert {said[1] for said in written(waits, *objects).values()} == {"False"}


def test_a_tree_with_a_mistake_has_never_started():
    objects = (composite("all", 1), inner("a", None))
    view = GangView("gathering", 1, 0, "is invalid", settled={"a": 1})
    assert {said[1] for said in written(view, *objects).values()} == {"False"}


def test_nothing_is_said_before_pods_come():
    assert written(GangView("", 0, 0, ""), *TRAIN) == {}
