"""Planned members that were rejected are nominated for their nodes, and for no others."""

from __future__ import annotations

import msgspec
import pytest

from app.dialects import corral
from app.kube.core.objects import PodRecord
from app.kube.watch.events import Listed
from app.state.effects import Requeue
from app.state.engine import Engine
from app.state.filter_result import Pinned, Rejected
from tests import records
from tests.app.state.world import Names, World, four_racks, members
from tests.records import node

LARGE = [node(f"b0/r{at // 10}/n{at:03}") for at in range(300)]
SAMPLE = 300 * 48 // 100  # of 300 nodes, by kube-scheduler's adaptive rule


def nominated(world: World) -> dict[str, str | None]:
    """What the latest requeue of each pod says of its nominated node."""
    return {each.name: each.nominated for each in world.effects if isinstance(each, Requeue)}


def rejected_then_planned(world: World, gang: list[PodRecord]) -> None:
    """All but the last come to /filter before the gang is complete."""
    *early, last = gang
    world.put(*early)
    for each in early:
        assert isinstance(world.filter(each), Rejected)
    world.put(last)
    world.tick()


def nominated_by_us(pod: PodRecord, on: str) -> PodRecord:
    """The pod as our write leaves it."""
    said = {**pod.annotations, corral.NOMINATED: on}
    return msgspec.structs.replace(pod, nominated_node=on, annotations=said)


def seen_nominated(world: World, pod: PodRecord, on: str) -> PodRecord:
    """The pod as kube-scheduler and the watch have it then."""
    shown = nominated_by_us(pod, on)
    world.put(shown)
    return shown


def test_a_member_that_was_rejected_is_nominated_for_its_planned_node():
    world, gang = World(four_racks()), members("g", 3)
    rejected_then_planned(world, gang)
    assert nominated(world) == {pod.name: world.held[pod.uid] for pod in gang[:2]}


def test_where_it_is_not_wanted_members_are_requeued_without_a_nomination():
    world, gang = World(four_racks(), nominate_planned=False), members("g", 3)
    rejected_then_planned(world, gang)
    assert nominated(world) == {"g0": None, "g1": None}


def test_a_request_about_the_nominated_node_alone_gets_it():
    world, gang = World(four_racks()), members("g", 2)
    rejected_then_planned(world, gang)
    on = world.held[gang[0].uid]
    assert world.filter(seen_nominated(world, gang[0], on), [on]) == Pinned(on)


def test_a_nomination_of_ours_takes_nothing_beside_the_reservation():
    world, gang = World(four_racks()), members("g", 4)
    rejected_then_planned(world, gang)
    for pod in gang:
        seen_nominated(world, pod, world.held[pod.uid])
    others = [members(name, 4) for name in ("a", "b", "c")]  # as many as there are racks left
    world.put(*(pod for each in others for pod in each))
    world.tick()
    assert len(world.held) == 16


def test_the_nominations_of_a_lost_plan_are_taken_back():
    world, gang = World(four_racks()), members("g", 3)
    rejected_then_planned(world, gang)
    for pod in gang[:2]:
        seen_nominated(world, pod, world.held[pod.uid])
    world.effects.clear()
    world.delete(gang[2])
    world.tick()
    assert world.held == {}
    assert nominated(world) == {"g0": "", "g1": ""}
    world.effects.clear()
    world.tick()
    assert nominated(world) == {}


def test_what_the_watch_shows_for_long_after_it_was_taken_back_is_taken_back_again():
    world, gang = World(four_racks()), members("g", 2)
    rejected_then_planned(world, gang)
    shown = seen_nominated(world, gang[0], world.held[gang[0].uid])
    world.delete(gang[1])
    world.tick()
    for _ in range(2):
        world.effects.clear()
        world.tick(world.settings.rewake_seconds)
        assert nominated(world) == {"g0": ""}
    world.put(msgspec.structs.replace(shown, nominated_node=""))
    world.effects.clear()
    world.tick(world.settings.rewake_seconds)
    assert nominated(world) == {}


def test_a_nomination_that_the_watch_has_not_shown_yet_is_taken_back_too():
    world, gang = World(four_racks()), members("g", 2)
    rejected_then_planned(world, gang)
    world.delete(gang[1])
    world.tick()
    assert nominated(world) == {"g0": ""}


def test_a_member_whose_plan_changes_is_nominated_anew():
    world, gang = World(four_racks()), members("g", 1, required=None)
    world.put(node("b0/r0/n00", is_cordoned=True))
    assert isinstance(world.filter(gang[0]), Rejected)  # the watch has not shown it
    world.put(gang[0])
    world.tick()
    first = world.held[gang[0].uid]
    seen_nominated(world, gang[0], first)
    world.effects.clear()
    world.put(msgspec.structs.replace(world.engine.books.nodes[first], is_ready=False))
    for _ in range(100):
        world.tick()
    now = world.held[gang[0].uid]
    assert now != first
    assert nominated(world)["g0"] == now


def test_a_member_that_is_bound_keeps_what_it_has():
    world, gang = World(four_racks()), members("g", 2)
    rejected_then_planned(world, gang)
    world.effects.clear()
    assert len(world.schedule(*gang)) == 2
    world.tick()
    assert nominated(world) == {}


@pytest.mark.parametrize("is_shown", [True, False], ids=["shown", "not_shown"])
def test_a_member_that_is_shown_to_be_nominated_is_not_woken_again(is_shown):
    world, gang = World(four_racks()), members("g", 2)
    rejected_then_planned(world, gang)
    if is_shown:
        seen_nominated(world, gang[0], world.held[gang[0].uid])
    world.effects.clear()
    world.tick(world.settings.rewake_seconds)
    assert ("g0" in world.woken) is not is_shown


# -- pods that are in no gang any more -------------------------------------------------------------


def left_its_gang(pod: PodRecord) -> PodRecord:
    """The pod without what named its gang."""
    said = {key: text for key, text in pod.annotations.items() if key == corral.NOMINATED}
    return msgspec.structs.replace(pod, labels={}, annotations=said)


def test_the_nomination_of_a_pod_that_leaves_its_gang_is_taken_back_until_the_watch_shows_it():
    world, gang = World(four_racks()), members("g", 2)
    rejected_then_planned(world, gang)
    shown = left_its_gang(seen_nominated(world, gang[0], world.held[gang[0].uid]))
    world.put(shown)
    for _ in range(2):
        world.effects.clear()
        world.tick(world.settings.rewake_seconds)
        assert nominated(world) == {"g0": ""}
    world.put(msgspec.structs.replace(shown, nominated_node="", annotations={}))
    world.effects.clear()
    world.tick(world.settings.rewake_seconds)
    assert nominated(world) == {}


def test_a_nomination_that_the_watch_shows_once_the_pod_has_left_is_taken_back():
    world, gang = World(four_racks()), members("g", 2)
    rejected_then_planned(world, gang)
    on = world.held[gang[0].uid]
    world.put(left_its_gang(gang[0]))
    world.effects.clear()
    world.put(left_its_gang(nominated_by_us(gang[0], on)))
    world.tick()
    assert nominated(world) == {"g0": ""}


def test_a_nomination_of_ours_from_before_a_restart_is_taken_back_from_a_pod_of_no_gang():
    pod = left_its_gang(nominated_by_us(members("g", 1)[0], "n00"))
    assert nominated(World(four_racks(), [pod])) == {"g0": ""}


def test_a_nomination_by_kube_scheduler_stays():
    (pod,) = members("g", 1)
    alone = left_its_gang(pod)
    elsewhere = {corral.NOMINATED: "n10"}  # where we had nominated it, before kube-scheduler did
    pods = [
        msgspec.structs.replace(alone, nominated_node="n00"),
        msgspec.structs.replace(
            alone, name="h", uid="uid-h", nominated_node="n00", annotations=elsewhere
        ),
    ]
    assert nominated(World(four_racks(), pods)) == {}


def test_while_a_pod_ends_there_a_nomination_may_be_kube_schedulers_own():
    ending = records.pod("ending", on="n00", gpus=1, is_terminating=True)
    pod = left_its_gang(nominated_by_us(members("g", 1)[0], "n00"))
    world = World(four_racks(), [pod, ending])
    assert nominated(world) == {}
    world.delete(ending)
    world.tick(world.settings.rewake_seconds)
    assert nominated(world) == {"g0": ""}


def test_a_nomination_is_taken_back_only_once_all_is_read():
    world = World(four_racks())
    engine = world.engine = Engine(world.settings)
    pod = nominated_by_us(members("g", 1)[0], "n00")
    for event in (
        Listed("Topology", ()),
        Listed("Node", tuple(four_racks())),
        Listed("Pod", (pod,)),
    ):
        engine.apply(event, world.now)
    world.effects.clear()
    world.tick()
    assert nominated(world) == {}


@pytest.mark.parametrize("is_planned", [True, False])
def test_where_no_pods_are_nominated_any_more_those_that_are_lose_it_with_their_plan(is_planned):
    gang = members("g", 1, required=None)
    shown = nominated_by_us(gang[0], "n00")
    world = World([node("b0/r0/n00", is_cordoned=not is_planned)], [shown], nominate_planned=False)
    world.tick()
    assert (nominated(world).get("g0") == "") is not is_planned
    world.effects.clear()
    world.put(node("b0/r0/n00", is_cordoned=True))
    world.tick()
    assert (nominated(world).get("g0") == "") is is_planned


# -- samples of the nodes --------------------------------------------------------------------------


def a_sample_without(world: World, on: str) -> list[str]:
    return [each.name for each in LARGE if each.name != on][:SAMPLE]


def test_a_planned_member_that_is_offered_a_sample_is_nominated():
    world, gang = World(LARGE), members("g", 2)
    world.put(*gang)
    before = dict(world.held)
    on = before[gang[0].uid]
    assert isinstance(world.filter(gang[0], a_sample_without(world, on)), Rejected)
    assert nominated(world) == {"g0": on}
    assert world.held == before
    assert not [text for text in world.reports if "percentageOfNodesToScore" in text]


def test_a_nominated_node_that_kube_scheduler_passes_over_has_refused_the_pod():
    world, gang = World(LARGE), members("g", 2)
    world.put(*gang)
    on = world.held[gang[0].uid]
    shown = seen_nominated(world, gang[0], on)
    world.filter(shown, a_sample_without(world, on))
    assert world.held[gang[0].uid] != on


@pytest.mark.parametrize("namespace", ["default", "other"])
def test_where_nominating_is_forbidden_a_sample_is_a_mistake_and_wakes_no_pod(namespace):
    world, gang = World(LARGE), members("g", 2)
    world.put(*gang)
    world._take(world.inputs.nominating_forbidden(namespace, 600.0, world.now))
    sample = a_sample_without(world, world.held[gang[0].uid])
    assert isinstance(world.filter(gang[0], sample), Rejected)
    is_forbidden = namespace == "default"
    assert bool(nominated(world)) is not is_forbidden
    assert any("rbac.yaml" in text for text in world.reports) is is_forbidden


def test_where_nominating_is_forbidden_members_are_requeued_until_it_is_tried_again():
    world, gang = World(four_racks()), members("g", 2)
    world._take(world.inputs.nominating_forbidden("default", 15.0, world.now))
    rejected_then_planned(world, gang)
    assert nominated(world) == {"g0": None}
    world.tick(world.settings.rewake_seconds)
    assert nominated(world) == {"g0": None}
    world.effects.clear()
    world.tick(world.settings.rewake_seconds)
    world.tick(world.settings.rewake_seconds)
    assert nominated(world) == {"g0": world.held[gang[0].uid]}


def test_a_nomination_that_may_not_be_taken_back_is_not_taken_back_over_and_over():
    world, gang = World(four_racks()), members("g", 2)
    rejected_then_planned(world, gang)
    seen_nominated(world, gang[0], world.held[gang[0].uid])
    world._take(world.inputs.nominating_forbidden("default", 600.0, world.now))
    world.effects.clear()
    world.delete(gang[1])
    for _ in range(3):
        world.tick(world.settings.rewake_seconds)
    assert world.woken == []


# -- after a restart -------------------------------------------------------------------------------


def test_a_nomination_from_before_a_restart_is_taken_back_if_there_is_no_plan():
    (pod, _) = members("g", 2)
    shown = msgspec.structs.replace(pod, nominated_node="n00")
    world = World(four_racks(), [shown])
    assert isinstance(world.filter(shown, ["n00"]), Rejected)  # the probe
    assert isinstance(world.filter(shown), Rejected)
    assert nominated(world) == {"g0": ""}


def test_a_nomination_from_before_a_restart_counts_for_nothing():
    (pod, _) = members("g", 2)
    shown = msgspec.structs.replace(pod, nominated_node="n00")
    others = [members(name, 4) for name in ("a", "b", "c", "d")]
    world = World(four_racks(), [shown, *(each for gang in others for each in gang)])
    assert len(world.held) == 16


@pytest.mark.parametrize("is_known", [True, False], ids=["listed_before", "listed_later"])
def test_a_nominated_member_that_came_before_all_was_read_is_requeued(is_known):
    world = World(four_racks())
    gang = [msgspec.structs.replace(each, nominated_node="n00") for each in members("g", 2)]
    engine = world.engine = Engine(world.settings)
    pods = Listed("Pod", tuple(gang))
    others = (Listed("Topology", ()), Listed("Job", ()), Listed("Node", tuple(four_racks())))
    for event in (pods, *others[:2]) if is_known else others[:2]:
        engine.apply(event, world.now)
    answer, _ = engine.filter(gang[0], Names(["n00"]), world.now)
    assert isinstance(answer, Rejected)
    for event in others[2:] if is_known else (others[2], pods):
        world.apply(event)
    world.tick()
    assert "g0" in nominated(world)


def test_a_nomination_by_the_corral_before_this_one_is_taken_back_where_there_is_no_plan():
    gang = members("g", 2)
    shown = msgspec.structs.replace(gang[0], nominated_node="n00")
    world = World(four_racks(), [shown])
    world.tick()
    assert nominated(world) == {"g0": ""}


def test_a_nomination_by_the_corral_before_this_one_follows_the_plan_of_this_one():
    gang = members("g", 2)
    shown = [msgspec.structs.replace(each, nominated_node="n33") for each in gang]
    world = World(four_racks(), shown)
    world.tick()
    assert "n33" not in world.held.values()
    assert nominated(world) == {each.name: world.held[each.uid] for each in gang}
