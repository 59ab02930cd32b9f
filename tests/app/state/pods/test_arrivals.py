"""/bind is about pods that wait, as the watch shows them; /filter believes the watch."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from app.kube.core.objects import PodRecord
from app.kube.watch.events import Listed
from app.state.effects import Bind, RejectBind, Requeue
from app.state.filter_result import Pinned, Rejected
from app.state.pods.arrivals import EARLY_SECONDS, MOST_EARLY
from tests.app.state.world import World, four_racks, members
from tests.records import RACK, group, node, pod

change = msgspec.structs.replace
GATED = ("corral.dev/gang",)


def kinds(effects: list[object]) -> list[type]:
    return [type(effect) for effect in effects]


def planned_gang(name: str = "g") -> tuple[World, list[PodRecord]]:
    """A gang of two that is planned, on four racks."""
    world = World(four_racks())
    pods = members(name, 2)
    world.put(*pods)
    return world, pods


# -- requests that are never bound -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("watched", "sent"),
    [
        pytest.param(None, pod("p"), id="unwatched"),
        pytest.param(pod("p", scheduler="stock"), pod("p"), id="of_another_scheduler"),
        pytest.param(pod("p", gates=("example.com/x",)), pod("p"), id="gated"),
        pytest.param(pod("p"), change(pod("p"), uid="uid-forged"), id="forged_uid"),
        pytest.param(pod("p"), change(pod("p"), name="q"), id="forged_name"),
        pytest.param(pod("p"), change(pod("p"), namespace="other"), id="forged_namespace"),
        pytest.param(pod("p", phase="Failed"), pod("p"), id="ended"),
        pytest.param(pod("p", on="n10", phase="Running"), pod("p"), id="bound_elsewhere"),
    ],
)
def test_a_request_that_the_watch_does_not_bear_out_is_refused(
    watched: PodRecord | None, sent: PodRecord
) -> None:
    world = World(four_racks(), [watched] if watched else [])
    world.bind(sent, "n00")
    world.tick(EARLY_SECONDS + 0.1)
    assert world.told(Bind) == []
    assert world.refused == [sent.uid]
    assert world.held == {}


def test_a_deleted_pod_is_not_bound() -> None:
    world = World(four_racks(), [pod("p")])
    world.delete(pod("p"))
    world.bind(pod("p"), "n00")
    world.tick(EARLY_SECONDS + 0.1)
    assert (world.told(Bind), world.refused) == ([], ["uid-p"])


def test_a_pod_that_a_new_list_leaves_out_is_not_bound() -> None:
    world = World(four_racks(), [pod("p")])
    world.apply(Listed("Pod", ()))
    world.bind(pod("p"), "n00")
    world.tick(EARLY_SECONDS + 0.1)
    assert (world.told(Bind), world.refused) == ([], ["uid-p"])


def test_with_no_scheduler_name_the_pods_of_all_are_bound() -> None:
    stock = pod("p", scheduler="stock")
    world = World(four_racks(), [stock], scheduler_name="")
    assert kinds(world.bind(stock, "n00")) == [Bind]


def test_with_several_scheduler_names_the_pods_of_each_are_bound() -> None:
    pods = [pod(name, scheduler=name) for name in ("corral", "training", "stock")]
    world = World(four_racks(), pods, scheduler_name="corral,training")
    for each, on in zip(pods[:2], ("n00", "n01"), strict=True):
        assert kinds(world.bind(each, on)) == [Bind]
    world.bind(pods[2], "n02")
    world.tick(EARLY_SECONDS + 0.1)
    (refused,) = world.told(RejectBind)
    assert "with schedulerName corral or training" in refused.sentence


def test_a_gated_member_does_not_arrive_so_its_gang_does_not_start() -> None:
    world = World(four_racks())
    first, second = members("g", 2)
    world.put(first, change(second, gates=GATED))
    node_of = dict(world.gang().plan.nodes)
    assert node_of.keys() == {first.uid, second.uid}
    world.bind(second, node_of[second.uid])
    world.filter(first)
    world.bind(first, node_of[first.uid])
    assert world.told(Bind) == []
    assert world.gang().binding.arrived == {first.uid}


def test_a_forged_arrival_of_a_member_starts_nothing() -> None:
    world, (first, second) = planned_gang()
    node_of = dict(world.gang().plan.nodes)
    world.bind(change(second, namespace="evil"), node_of[second.uid])
    world.bind(change(second, name="evil"), node_of[second.uid])
    world.bind(first, node_of[first.uid])
    assert world.told(Bind) == []
    assert world.gang().binding.arrived == {first.uid}


# -- requests that are early -----------------------------------------------------------------------


def test_a_pod_that_the_watch_shows_a_moment_later_is_bound_then() -> None:
    world = World(four_racks())
    assert world.bind(pod("p"), "n00") == []
    world.put(pod("p"))
    assert [(each.uid, each.node) for each in world.told(Bind)] == [("uid-p", "n00")]
    assert set(world.held) == {"uid-p"}
    world.tick(EARLY_SECONDS + 0.1)
    assert world.refused == []


def test_the_pod_that_the_watch_shows_must_be_the_one_that_was_named() -> None:
    world = World(four_racks())
    world.bind(change(pod("p"), namespace="evil"), "n00")
    world.put(pod("p"))
    assert (world.told(Bind), world.refused) == ([], ["uid-p"])


def test_a_member_whose_gate_the_watch_still_shows_arrives_when_it_is_gone() -> None:
    world = World(four_racks())
    pods = members("g", 2)
    world.put(*(change(each, gates=GATED) for each in pods))
    node_of = dict(world.gang().plan.nodes)
    for each in pods:
        world.bind(each, node_of[each.uid])
    assert world.told(Bind) == []
    world.patch(world.effects)
    assert {each.uid for each in world.told(Bind)} == node_of.keys()


def test_while_the_watch_is_cut_an_ungated_member_waits_where_it_can_be_requeued() -> None:
    world = World(four_racks())
    pods = members("g", 2)
    world.put(*(change(each, gates=GATED) for each in pods))
    ungated = world.effects
    node_of = dict(world.gang().plan.nodes)
    for each in pods:
        assert world.filter(each) == Pinned(node_of[each.uid])
        world.bind(each, node_of[each.uid])
    world.tick(EARLY_SECONDS + 0.1)
    assert sorted(world.refused) == sorted(node_of)
    for each in pods:  # kube-scheduler's back-off for errors is over
        assert isinstance(answer := world.filter(each), Rejected)
        assert (
            answer.sentence
            == f"the watch still shows pod default/{each.name} with scheduling gates"
        )
    world.patch(ungated)
    assert {each.uid for each in world.told(Requeue)} == node_of.keys()
    for each in pods:
        assert world.filter(each) == Pinned(node_of[each.uid])
        world.bind(each, node_of[each.uid])
    assert {each.uid for each in world.told(Bind)} == node_of.keys()


def test_what_is_not_requeued_any_more_is_forgotten() -> None:
    world = World(four_racks())
    first, _ = pods = members("g", 2)
    world.put(*(change(each, gates=GATED) for each in pods))
    world.bind(first, world.gang().plan.nodes[first.uid])
    world.tick(EARLY_SECONDS + 0.1)
    assert world.engine.arrivals.is_behind(first.uid)
    world.delete(first)
    assert not world.engine.arrivals.is_behind(first.uid)


def test_an_early_pod_that_turns_out_to_be_bound_is_answered() -> None:
    world = World(four_racks())
    world.bind(pod("p"), "n00")
    world.bind(pod("q"), "n00")
    world.put(pod("p", on="n00", phase="Running"), pod("q", on="n10", phase="Running"))
    assert [each.uid for each in world.told(Bind)] == ["uid-p"]  # the API server says so once more
    assert world.refused == ["uid-q"]


def test_the_last_node_that_an_early_pod_was_sent_to_counts() -> None:
    world = World(four_racks())
    world.bind(pod("p"), "n00")
    world.bind(pod("p"), "n11")
    world.put(pod("p"))
    assert [each.node for each in world.told(Bind)] == ["n11"]


def test_one_early_request_too_many_is_refused_at_once() -> None:
    world = World([node("b0/r0/n00")])
    engine = world.engine
    for number in range(MOST_EARLY):
        assert engine.bind_arrived("default", f"p{number}", f"uid-{number}", "n00", world.now) == []
    refused = engine.bind_arrived("default", "more", "uid-more", "n00", world.now)
    assert kinds(refused) == [RejectBind]


def test_early_requests_are_refused_when_corral_stops() -> None:
    world = World(four_racks())
    world.bind(pod("p"), "n00")
    assert kinds(world.engine.drain(world.now)) == [RejectBind]


# -- /filter ---------------------------------------------------------------------------------------


def of_another_gang(one: PodRecord) -> PodRecord:
    return change(one, annotations=group("mine", 2, RACK))


FORGERIES: list[Callable[[PodRecord], PodRecord]] = [
    lambda one: change(one, namespace="evil"),
    lambda one: change(one, name="evil"),
    lambda one: change(one, namespace="evil", annotations={}),
    lambda one: change(one, name="evil", scheduler="stock"),
    lambda one: change(one, namespace="evil", nominated_node="n00"),
    lambda one: of_another_gang(change(one, namespace="evil")),
]
FORGED = ["namespace", "name", "ordinary", "stock", "nominated", "other_gang"]


@pytest.mark.parametrize("forge", FORGERIES, ids=FORGED)
@pytest.mark.parametrize("offered", [None, ["n00"], ["n33"], []], ids=["all", "one", "far", "none"])
def test_a_request_about_another_pod_with_a_members_uid_changes_nothing(
    forge: Callable[[PodRecord], PodRecord], offered: list[str] | None
) -> None:
    world, (first, _) = planned_gang()
    before = repr(world.gang()), world.held, world.engine.books.generation
    assert isinstance(world.filter(forge(first), offered), Rejected)
    assert (repr(world.gang()), world.held, world.engine.books.generation) == before
    world.tick()
    assert world.held == before[1]


@pytest.mark.parametrize(
    "forge",
    [
        lambda one: change(one, name="evil", annotations=group("evil", 4)),
        lambda one: change(one, namespace="evil", annotations=group("evil", 4)),
        lambda one: change(one, name="evil"),
    ],
    ids=["name", "namespace", "ordinary"],
)
def test_a_request_with_the_uid_of_a_pod_that_is_being_bound_frees_nothing(
    forge: Callable[[PodRecord], PodRecord],
) -> None:
    world = World(four_racks(), [ordinary := pod("ordinary")])
    world.filter(ordinary)
    world.bind(ordinary, "n00")
    world.filter(forge(ordinary))
    world.tick()
    assert world.held == {ordinary.uid: "n00"}


@pytest.mark.parametrize("forge", [of_another_gang, lambda one: change(one, annotations={})])
def test_a_member_is_answered_as_what_the_watch_shows(
    forge: Callable[[PodRecord], PodRecord],
) -> None:
    world, (first, _) = planned_gang()
    node_of = world.gang("g").plan.nodes
    assert world.filter(forge(first)) == Pinned(node_of[first.uid])
    assert [gang.key.name for gang in world.engine.gangs.by_key.values()] == ["g"]


def test_a_stranger_that_claims_a_gang_is_no_member_and_takes_no_place() -> None:
    world, pods = planned_gang()
    before = repr(world.gang()), world.held
    stranger = change(pods[0], name="stranger", uid="uid-stranger")
    assert isinstance(world.filter(stranger), Rejected)
    world.bind(stranger, "n00")
    assert (repr(world.gang()), world.held) == before
    world.tick(EARLY_SECONDS + 0.1)
    assert (world.told(Bind), world.refused, world.held) == ([], ["uid-stranger"], before[1])


def test_a_request_cannot_widen_or_move_what_a_pod_was_narrowed_to() -> None:
    world = World(four_racks())
    pods = [change(each, gates=GATED) for each in members("g", 2)]
    world.put(*pods)
    world.patch(world.effects)
    member = world.gang().members[pods[0].uid]
    narrowed = member.allowed
    assert narrowed
    forged = change(world.pods[pods[0].uid], shape=_narrowed_to(world, "n33"))
    world.filter(forged)
    assert member.allowed == narrowed


def test_an_ordinary_pod_that_understates_itself_gets_no_reserved_node() -> None:
    world = World([node("b0/r0/n00")])
    plain = pod("plain", gpus=4)
    world.put(*members("g", 1, gpus=6), plain)
    assert world.filter(change(plain, request=pod("x", gpus=0).request)).without == {"n00"}
    assert kinds(world.bind(plain, "n00")) == [RejectBind]


def test_capacity_of_a_pod_being_bound_is_not_freed_by_a_request_about_another() -> None:
    world = World([node("b0/r0/n00")])
    plain = pod("plain", gpus=8)
    world.put(plain)
    world.bind(plain, "n00")
    world.filter(change(plain, namespace="evil"))
    assert set(world.held) == {"uid-plain"}


def test_a_pod_that_only_a_request_has_told_of_is_not_written_to() -> None:
    world = World([node("b0/r0/n00")])
    (member,) = members("g", 1)
    world.put(member, pod("plain"))
    world.filter(pod("unwatched"))
    world.filter(change(pod("plain"), name="victim"))
    world.delete(member)
    world.tick()
    assert [each.name for each in world.told(Requeue)] == []


def test_a_pod_that_waits_for_room_is_woken_though_a_request_used_its_uid() -> None:
    world = World([node("b0/r0/n00")])
    (member,) = members("g", 1)
    plain = pod("plain")
    world.put(member, plain)
    world.filter(plain)
    world.filter(change(plain, name="evil"))
    world.delete(member)
    world.tick()
    assert [each.name for each in world.told(Requeue)] == ["plain"]


def _narrowed_to(world: World, name: str) -> object:
    shape = world.pods["uid-g0"].shape
    (first, *_) = shape.terms
    (line,) = first.fields
    return change(shape, terms=(change(first, fields=(change(line, values=(name,)),)),))
