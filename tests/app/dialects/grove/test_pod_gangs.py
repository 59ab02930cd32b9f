"""PodGangs and topologies of Grove's as they are read: every field, and what is not valid."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from app.dialects.declared import TopologySpec
from app.dialects.grove import DIALECT
from app.dialects.grove.pod_gangs import (
    MOST_BYTES,
    MOST_GROUP_BYTES,
    MOST_OBJECTS,
    MOST_POD_GROUPS,
    PodGangRecord,
    PodGroup,
    Together,
    decode_pod_gang,
)
from app.dialects.grove.topology import MOST_BYTES as MOST_LEVEL_BYTES
from app.dialects.grove.topology import MOST_LEVELS
from app.dialects.spec import Claim, GangKey, GroupSpec, LeafPods, LeafSpec
from app.errors import DecodeError
from app.kube.core.objects import Owner, PodRecord
from tests.app.dialects.grove.objects import (
    CREATED,
    Json,
    gang,
    member,
    pod_gang,
    pod_group,
    together,
    topology_record,
    within,
)
from tests.records import BLOCK, RACK, pod
from topology.model.request import Constraint

KEY = GangKey("default", "g", "grove")
# As Grove's operator v0.1.0-alpha.8 wrote it, but for some of its references.
SEEN = {
    "apiVersion": "scheduler.grove.io/v1alpha1",
    "kind": "PodGang",
    "metadata": {
        "name": "g1-0",
        "namespace": "default",
        "annotations": {"grove.io/topology-name": "grove-topology"},
        "labels": {"app.kubernetes.io/part-of": "g1"},
        "ownerReferences": [{"kind": "PodCliqueSet", "name": "g1", "controller": True}],
    },
    "spec": {
        "podgroups": [
            {
                "name": "g1-0-router",
                "minReplicas": 1,
                "podReferences": [{"namespace": "default", "name": "g1-0-router-jsqkn"}],
            },
            {"name": "g1-0-pf-0-pl", "minReplicas": 1, "podReferences": []},
            {
                "name": "g1-0-pf-0-pw",
                "minReplicas": 2,
                "podReferences": None,
                "topologyConstraint": {"packConstraint": {"required": RACK}},
            },
        ],
        "topologyConstraint": {"packConstraint": {"required": BLOCK}},
        "topologyConstraintGroupConfigs": [
            {
                "name": "g1-0-pf-0",
                "podGroupNames": ["g1-0-pf-0-pl", "g1-0-pf-0-pw"],
                "topologyConstraint": {"packConstraint": {"required": RACK}},
            }
        ],
    },
    "status": {"phase": "Pending", "conditions": [CREATED]},
}


def read(made: object) -> PodGangRecord:
    return decode_pod_gang(msgspec.json.encode(made))


def test_every_field_of_a_pod_gang_is_read() -> None:
    record = read(SEEN)
    assert record == PodGangRecord(
        kind="PodGang",
        namespace="default",
        name="g1-0",
        uid="",
        version="",
        topology="grove-topology",
        constraint=Constraint(required=BLOCK),
        pod_groups=(
            PodGroup("g1-0-router", 1),
            PodGroup("g1-0-pf-0-pl", 1),
            PodGroup("g1-0-pf-0-pw", 2, Constraint(required=RACK)),
        ),
        together=(
            Together("g1-0-pf-0", ("g1-0-pf-0-pl", "g1-0-pf-0-pw"), Constraint(required=RACK)),
        ),
        pods={"g1-0-router-jsqkn": ("g1-0-router",)},
        phase="Pending",
        conditions=(CREATED,),
    )


def test_a_pod_gang_is_a_tree_of_three_levels() -> None:
    key = GangKey("default", "g1-0", "grove")
    spec = DIALECT.spec(key, [read(SEEN)], (), (), {"g1-0-router": LeafPods(3)})
    assert spec is not None
    assert spec.topology == "grove.io/grove-topology"
    in_rack = Constraint(required=RACK)
    workers = GroupSpec("g1-0-pf-0-pw", (LeafSpec("g1-0-pf-0-pw", 2, needed=2),), in_rack)
    prefill = GroupSpec("g1-0-pf-0", (LeafSpec("g1-0-pf-0-pl", 1, needed=1), workers), in_rack)
    router = LeafSpec("g1-0-router", 3, needed=1)
    assert spec.root == GroupSpec("g1-0", (router, prefill), Constraint(required=BLOCK))


def test_required_and_preferred_are_read_together_and_may_be_left_out() -> None:
    assert gang("g", pod_group("a", 1), on=within(BLOCK, RACK)).constraint == Constraint(
        BLOCK, RACK
    )
    for said in ({}, {"packConstraint": None}, within()):
        assert gang("g", pod_group("a", 1, said), on=said).flaw == ""


def test_a_group_without_a_constraint_or_without_pod_groups_constrains_nothing() -> None:
    made = gang("g", pod_group("a", 1), groups=(together("x", "a"), together("y", on=within(RACK))))
    assert made.flaw == ""
    assert made.together == (Together("x", ("a",)),)


def test_a_group_may_be_called_like_a_pod_group() -> None:
    made = gang("g", pod_group("a", 1), pod_group("b", 1), groups=(together("a", "b"),))
    spec = DIALECT.spec(KEY, [made], (), ())
    assert spec is not None
    assert [leaf.name for leaf in spec.leaves()] == ["a", "b"]


def test_minimal_replicas_that_are_left_out_are_0_as_in_go() -> None:
    assert read({"spec": {"podgroups": [{"name": "a"}]}}).pod_groups == (PodGroup("a", 0),)


@pytest.mark.parametrize(
    ("made", "field"),
    [
        pytest.param(pod_gang("g"), "podgroups", id="no_pod_group"),
        pytest.param(pod_gang("g", pod_group("", 1)), "podgroups[0].name", id="no_name"),
        pytest.param(pod_gang("g", pod_group("a" * 64, 1)), "podgroups[0].name", id="long_name"),
        pytest.param(
            pod_gang("g", pod_group("a", 1), pod_group("a", 1)), "podgroups[1].name", id="twice"
        ),
        pytest.param(
            pod_gang("g", pod_group("a", -1)), "podgroups[0].minReplicas", id="negative_replicas"
        ),
        pytest.param(
            pod_gang("g", pod_group("a", 1, within("a rack"))),
            "podgroups[0].topologyConstraint.packConstraint.required",
            id="no_key_of_a_label",
        ),
        pytest.param(
            pod_gang("g", pod_group("a", 1), on=within(RACK, "k" * 400)),
            "topologyConstraint.packConstraint.preferred",
            id="long_key",
        ),
        pytest.param(
            pod_gang("g", pod_group("a", 1), groups=(together("x", "b"),)),
            "topologyConstraintGroupConfigs[0].podGroupNames[0]",
            id="group_of_no_pod_group",
        ),
        pytest.param(
            pod_gang("g", pod_group("a", 1), groups=(together("x", "a"), together("y", "a"))),
            "topologyConstraintGroupConfigs[0].podGroupNames[0]",
            id="pod_group_in_two_groups",
        ),
        pytest.param(
            pod_gang("g", pod_group("a", 1), groups=(together("x", "a", on=within("/")),)),
            "topologyConstraintGroupConfigs[0].topologyConstraint.packConstraint.required",
            id="group_with_no_key_of_a_label",
        ),
        pytest.param(
            pod_gang("g", *(pod_group(f"a{at}", 1) for at in range(MOST_POD_GROUPS + 1))),
            "podgroups",
            id="many_pod_groups",
        ),
        pytest.param(
            pod_gang("g", {**pod_group("a", 1), "padding": "x" * MOST_BYTES}),
            "podgroups",
            id="long_pod_groups",
        ),
        pytest.param({"spec": {"podgroups": [{}] * 100_000}}, "podgroups", id="more_than_is_built"),
        pytest.param(
            pod_gang("g", pod_group("a", 1), groups=(together("x" * MOST_GROUP_BYTES, "a"),)),
            "topologyConstraintGroupConfigs",
            id="long_groups",
        ),
        pytest.param({"spec": {"podgroups": {"name": "a"}}}, "podgroups", id="no_list"),
        pytest.param({"spec": {"podgroups": [{"name": 5}]}}, "podgroups", id="no_text"),
    ],
)
def test_what_is_not_valid_is_a_flaw_that_names_the_field(made: Json, field: str) -> None:
    record = read(made)
    assert f": spec.{field}: " in record.flaw
    assert len(record.flaw) < 2000
    assert (record.pod_groups, record.together, record.topology) == ((), (), "")


def test_ten_thousand_references_to_pods_are_no_hindrance() -> None:
    references = [{"namespace": "default", "name": f"g1-0-router-{at:05}"} for at in range(10_000)]
    assert read(pod_gang("g", {**pod_group("a", 1), "podReferences": references})).flaw == ""


@pytest.mark.parametrize("said", [None, {}, {"metadata": None, "spec": None, "status": None}])
def test_a_pod_gang_that_says_nothing_has_no_pod_groups(said: Any) -> None:
    assert "spec.podgroups: Required value" in read(said or {}).flaw


@pytest.mark.parametrize("said", [b"", b"[]", b'{"metadata": 5}', b'{"spec": [1]}', b"\xff"])
def test_what_no_api_server_sends_is_a_decoding_error(said: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_pod_gang(said)


def test_a_pod_is_in_the_pod_group_that_its_label_names() -> None:
    made = gang("g", pod_group("a", 1))
    claim = DIALECT.claim(member("p", "a"), [made])
    assert claim is not None
    assert (claim.gang, claim.leaf, claim.flaw) == (KEY, "a", "")
    for name in ("", "b"):
        wrong = DIALECT.claim(member("p", name), [made])
        assert wrong is not None
        assert "metadata.labels[grove.io/podclique]" in wrong.flaw


def test_keys_are_named_as_levels_where_the_pod_gang_names_no_topology() -> None:
    parts = (pod_group("a", 1, within("", "h")), pod_group("b", 1))
    groups = (together("x", "b", on=within("r")),)
    bare = gang("g", *parts, groups=groups, on=within("b"), topology="")
    assert list(DIALECT.levels_named(bare)) == ["b", "r", "h"]
    assert list(DIALECT.levels_named(gang("g", *parts, groups=groups, on=within("b")))) == []


# -- topologies ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["ClusterTopology", "ClusterTopologyBinding"])
def test_a_topology_has_the_keys_of_its_levels(kind: str) -> None:
    record = topology_record("net", BLOCK, RACK, "kubernetes.io/hostname", kind=kind)
    assert record.kind == kind
    (spec,) = DIALECT.topologies(record)
    levels = (BLOCK, RACK, "kubernetes.io/hostname")
    named = tuple(zip(("region", "zone", "datacenter"), levels, strict=True))
    assert spec == TopologySpec("grove.io/net", levels, aliases=named, replaces_settings=False)


def test_levels_inside_a_node_are_left_out() -> None:
    record = topology_record("net", RACK, "kubernetes.io/hostname", "example.com/numa")
    assert record.levels == (RACK, "kubernetes.io/hostname")


def test_levels_that_are_too_many_or_too_long_are_not_all_kept() -> None:
    many = topology_record("net", *(f"l{at}" for at in range(100)))
    assert len(many.levels) == MOST_LEVELS + 1
    assert topology_record("net", "l" * MOST_LEVEL_BYTES).levels == ()


# -- references ------------------------------------------------------------------------------------


def plain(name: str, **more: Any) -> PodRecord:
    """A pod that says nothing of PodGangs."""
    return pod(name, **more)


def test_a_pod_that_says_nothing_is_in_the_pod_group_that_names_it() -> None:
    naming = gang("g", pod_group("router", 1, names=["a"]), pod_group("worker", 1, names=["b"]))
    assert DIALECT.claim(plain("a"), [naming]) == Claim(KEY, "router")
    assert DIALECT.claim(plain("b"), [naming]) == Claim(KEY, "worker")
    assert DIALECT.claim(plain("c"), [naming]) is None
    elsewhere = msgspec.structs.replace(plain("a"), namespace="other")
    assert DIALECT.claim(elsewhere, [naming]) is None
    assert DIALECT.claim(plain("a")) is None


def test_a_pod_is_where_its_labels_say_whatever_names_it() -> None:
    own = gang("g", pod_group("w", 1))
    other = gang("other", pod_group("x", 1, names=["a"]))
    assert DIALECT.claim(member("a", "w"), [own, other]) == Claim(KEY, "w")
    assert DIALECT.claim(member("a", "w"), [other]) == Claim(KEY)


@pytest.mark.parametrize(
    ("naming", "told"),
    [
        pytest.param(
            [gang("g", pod_group("w", 1, names=["a"])), gang("h", pod_group("w", 1, names=["a"]))],
            "PodGangs g and h name it, and a pod is in one",
            id="two",
        ),
        pytest.param(
            [gang(name, pod_group("w", 1, names=["a"])) for name in ("k", "i", "g", "h")],
            "PodGangs g and h and 2 more name it, and a pod is in one",
            id="four",
        ),
        pytest.param(
            [gang("g", pod_group("w", 1, names=["a"]), pod_group("x", 1, names=["a", "a"]))],
            "PodGang g names it in pod groups w and x",
            id="two_pod_groups",
        ),
    ],
)
def test_a_pod_that_is_named_twice_is_told_by_whom(naming: list[PodGangRecord], told: str) -> None:
    for order in (naming, naming[::-1]):
        claim = DIALECT.claim(plain("a"), order)
        assert claim is not None
        assert claim.gang == KEY
        assert claim.flaw == (f"pod default/a: spec.podgroups.podReferences: Forbidden: {told}")


def test_of_a_pod_gang_that_is_made_anew_either_names_its_pods() -> None:
    old = gang("g", pod_group("w", 1, names=["a"]))
    again = msgspec.structs.replace(old, uid="uid-again")
    assert DIALECT.claim(plain("a"), [old, again]) == Claim(KEY, "w")


def test_a_pod_of_a_pod_gang_with_a_flaw_is_told_of_that() -> None:
    wrong = gang("g", pod_group("w", -1, names=["a"]))
    claim = DIALECT.claim(plain("a"), [wrong])
    assert claim == Claim(KEY, flaw=wrong.flaw)
    assert "minReplicas" in wrong.flaw


def test_pods_of_nodes_are_not_named() -> None:
    assert DIALECT.may_name(plain("a"))
    assert not DIALECT.may_name(plain("a", owner=Owner("apps/v1", "DaemonSet", "d", "u")))


def test_pods_of_other_namespaces_are_no_members() -> None:
    made = pod_gang("g", pod_group("w", 1))
    made["spec"]["podgroups"][0]["podReferences"] = [
        None,
        {"name": "a"},
        {"namespace": "other", "name": "b"},
        {"namespace": "other", "name": "c"},
    ]
    record = read(made)
    assert record.pods == {"a": ("w",)}
    assert [(each.namespace, each.name) for each in DIALECT.pods_named(record)] == [
        ("default", "a"),
        ("other", "b"),
    ]


def test_twenty_thousand_references_are_read_and_more_than_are_read_are_told() -> None:
    names = [f"worker-{at:05}-abcdefghij-klmno" for at in range(20_000)]
    record = gang("g", pod_group("w", 1, names=names))
    assert len(record.pods) == 20_000
    assert record.flaw == DIALECT.pods_unread(record) == ""
    record = gang("g", pod_group("w", 1, names=map(str, range(MOST_OBJECTS))))
    assert record.pods == {}
    assert f"Too many: {MOST_OBJECTS + 1}" in DIALECT.pods_unread(record)


# -- reuseReservationRef ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reference", "name"),
    [
        pytest.param({"namespace": "default", "name": "old"}, "old", id="of_its_namespace"),
        pytest.param({"name": "old"}, "old", id="without_a_namespace"),
        pytest.param({"namespace": "other", "name": "old"}, "", id="of_another_namespace"),
        pytest.param({"namespace": "default", "name": "g"}, "", id="itself"),
        pytest.param({"namespace": "default"}, "", id="without_a_name"),
        pytest.param(None, "", id="null"),
    ],
)
def test_a_pod_gang_names_the_one_whose_place_it_takes(reference: Any, name: str) -> None:
    made = pod_gang("g", pod_group("w", 1))
    made["spec"]["reuseReservationRef"] = reference
    record = read(made)
    assert record.flaw == ""
    spec = DIALECT.spec(KEY, [record], (), ())
    assert spec is not None
    assert spec.successor_of == (GangKey("default", name, "grove") if name else None)
