"""Preferred nodes before others, and why nodes are closed when nothing fits."""

from __future__ import annotations

import msgspec
import pytest

from app.dialects.corral import NARROWED, NODES
from app.dialects.spec import GroupSpec, LeafSpec
from app.kube.core.objects import Requirement, Shape, Taint, Term, Toleration
from app.state.filter_result import Pinned, Rejected
from tests.app.state.crews import CrewWorld, hands
from tests.app.state.world import World, four_racks, members, racks
from tests.records import RACK, group, node, pod
from topology.model.request import Constraint


def in_zone(zone: str, operator: str = "In") -> Term:
    return Term(expressions=(Requirement("zone", operator, (zone,)),))


def two_zones():
    """Racks 0 and 1 in zone a, racks 2 and 3 in zone b."""
    return [
        msgspec.structs.replace(each, labels={**each.labels, "zone": "ab"[int(each.name[1]) // 2]})
        for each in four_racks()
    ]


@pytest.mark.parametrize(
    ("terms", "settings", "rack"),
    [
        pytest.param((), {}, "n0", id="none_the_tightest_rack"),
        pytest.param(((1, in_zone("b")),), {}, "n2", id="one_outweighs_capacity"),
        pytest.param(((1, in_zone("b")), (9, in_zone("a"))), {}, "n0", id="the_heavier"),
        pytest.param(((1, in_zone("b", "Future")),), {}, "n0", id="never_holds"),
        pytest.param(((1, in_zone("b")),), {"preferred_affinity": False}, "n0", id="switched_off"),
    ],
)
def test_preferred_affinity_decides_between_racks(terms, settings, rack):
    world = World(two_zones(), [pod("f", on="n00")], **settings)
    gang = members("g", 2, shape=Shape(preferred=terms))
    world.put(*gang)
    assert racks(world.schedule(*gang)) == {rack}


def test_a_preference_is_none_for_a_rack_that_does_not_fit():
    full = [pod(f"f{i}", on=f"n{2 + i // 4}{i % 4}") for i in range(8)]
    world = World(two_zones(), full)
    gang = members("g", 2, shape=Shape(preferred=((100, in_zone("b")),)))
    world.put(*gang)
    assert racks(world.schedule(*gang)) <= {"n0", "n1"}


def test_a_preference_follows_the_labels_of_the_nodes():
    world = World(two_zones())
    shape = Shape(preferred=((1, in_zone("c")),))
    first = members("g", 2, shape=shape)
    world.put(*first)
    world.schedule(*first)
    moved = [
        msgspec.structs.replace(each, labels={**each.labels, "zone": "c"})
        for each in two_zones()
        if each.name.startswith("n3")
    ]
    world.put(*moved)
    second = members("h", 2, shape=shape)
    world.put(*second)
    world.tick()
    assert racks(world.schedule(*second)) == {"n3"}


def told(world, *gang):
    world.put(*gang)
    world.tick()
    answer = world.filter(gang[0])
    assert isinstance(answer, Rejected)
    return answer.sentence


def test_a_verdict_counts_nodes_by_the_first_reason_that_closes_them():
    shape = Shape(selector=(("pool", "a"),), terms=(in_zone("a"),))
    taints = (Taint("maintenance", "now", "NoSchedule"),)
    nodes = [
        node("b0/r0/n1", labels={"pool": "a", "zone": "a"}),
        node("b0/r0/n2", labels={"pool": "a", "zone": "b"}),
        node("b0/r0/n3", labels={"pool": "b", "zone": "a"}),
        node("b0/r0/n4", labels={"pool": "a", "zone": "a"}, taints=taints),
        node("b0/r0/n5", labels={"pool": "b", "zone": "b"}, taints=taints),
        node("b0/r0/n6", is_ready=False),
    ]
    sentence = told(World(nodes), *members("g", 2, shape=shape))
    assert sentence.endswith(
        '; excluded nodes: taint "maintenance=now:NoSchedule" 2, affinity 1, nodeSelector 1,'
        " not ready or unschedulable 1"
    )


@pytest.mark.parametrize(
    ("tolerations", "is_told"),
    [((), True), ((Toleration("k", "Exists", "", ""),), False)],
    ids=["untolerated", "tolerated"],
)
def test_a_taint_without_a_value_is_named_by_key_and_effect(tolerations, is_told):
    nodes = [node("b0/r0/n1", taints=(Taint("k", "", "NoExecute"),))]
    sentence = told(World(nodes), *members("g", 2, shape=Shape(tolerations=tolerations)))
    assert ('taint "k:NoExecute" 1' in sentence) is is_told


def test_nodes_kube_scheduler_does_not_offer_are_told_as_refused():
    world = World([node(f"b0/r0/n{i}") for i in range(3)], retry_seconds=0.1)
    gang = members("g", 2)
    world.put(*gang)
    answer = world.filter(gang[0], ["n2", "other"])
    assert isinstance(answer, Rejected)
    world.tick(0.5)
    assert "refused by kube-scheduler 2" in world.filter(gang[0]).sentence


def test_nodes_outside_the_domain_of_those_that_run_are_told_as_such():
    runs = [
        pod(f"g{i}", on=f"n2{i}", annotations=group("g", 5, RACK), phase="Running")
        for i in range(4)
    ]
    world = World(four_racks(), runs)
    sentence = told(world, pod("g4", annotations=group("g", 5, RACK)))
    assert "outside the domain of the pods that stay 12" in sentence


def test_gangs_that_were_narrowed_differently_do_not_share_a_verdict():
    def narrowed(name, nodes):
        terms = tuple(Term(fields=(Requirement("metadata.name", "In", (on,)),)) for on in nodes)
        annotations = group(name, 2, RACK) | {NARROWED: NODES}
        return [
            pod(f"{name}{i}", annotations=annotations, shape=Shape(terms=terms)) for i in range(2)
        ]

    world = World(four_racks(), [pod(f"f{i}", on=f"n0{i}") for i in range(4)])
    world.put(*narrowed("a", ["n00", "n01"]))
    assert world.held == {}
    world.put(*narrowed("b", ["n10", "n11"]))
    assert set(world.held.values()) == {"n10", "n11"}


def test_what_a_narrowed_pod_is_not_offered_says_nothing_of_other_nodes():
    """Its two nodes lie in rack 0; the other half of the gang was narrowed to rack 1."""
    annotations = group("g", 2) | {NARROWED: NODES}
    one, other = [
        pod(
            f"g{rack}",
            annotations=annotations,
            shape=Shape(
                terms=tuple(
                    Term(fields=(Requirement("metadata.name", "In", (f"n{rack}{i}",)),))
                    for i in range(2)
                )
            ),
        )
        for rack in range(2)
    ]
    world = World(four_racks())
    world.put(one, other)
    before = dict(world.held)
    refused, offered = before[one.uid], {"n00", "n01"} - {before[one.uid]}
    assert world.filter(one, [*offered, "elsewhere"]) == Pinned(*offered)
    assert world.held == {one.uid: min(offered), other.uid: before[other.uid]}
    assert refused not in world.held.values()


def test_a_pod_set_without_a_name_is_called_by_its_first_pod():
    train, feed = hands("c", "", 2), hands("c", "", 2, first=2, gpus=0, cpu=9_000)
    crew = GroupSpec("c", (LeafSpec("", 4),), Constraint(required=RACK))
    devices = [node(f"b0/r0/n0{at}", cpu=8_000) for at in range(2)]
    others = [node(f"b0/r1/n1{at}", gpus=0) for at in range(2)]
    answer = CrewWorld({"c": crew}, [*devices, *others], [*train, *feed]).filter(feed[0])
    assert isinstance(answer, Rejected)
    assert f"but not beside pod set {feed[0].name}" in answer.sentence
