"""Of two Corrals one leads: what the other one plans, and what it does when it leads itself."""

from __future__ import annotations

import pytest

from app.dialects import corral
from app.kube.core.objects import PodRecord
from app.state.effects import Delete, Ungate
from app.state.filter_result import Pinned, Rejected
from app.state.report.messages import gangs as messages
from tests.app.state.world import World, four_racks, members, racks, ungated
from tests.records import RACK, group, pod

TWO_RACKS = four_racks()[:8]  # n00 to n03, n10 to n13


def lead(world: World, *, is_leading: bool = True) -> None:
    """Tell it, and let it do what it does then."""
    world._take(world.inputs.lead(is_leading, world.now))
    world.tick()


def follower(*gangs: str) -> World:
    """One that follows; each of these gangs takes a whole rack of the two, behind its gates."""
    world = World(TWO_RACKS)
    lead(world, is_leading=False)
    world.put(*(each for name in gangs for each in members(name, 4, gates=(corral.GATE,))))
    world.tick()
    return world


def narrow(world: World, name: str, rack: str, pods: int = 4) -> None:
    """The Corral that leads has placed this gang in a rack, and patched so many of its pods."""
    nodes = tuple(each.name for each in TWO_RACKS if each.name.startswith(rack))
    how = ((corral.NARROWED, corral.NODES),)
    for uid in [f"uid-{name}{number}" for number in range(pods)]:
        pod = world.pods[uid]
        patch = Ungate(pod.namespace, pod.name, uid, corral.GATE, nodes=nodes, annotations=how)
        world.put(ungated(pod, patch))
    world.tick()


def planned(world: World, name: str) -> set[str]:
    """The racks that are held for a gang."""
    return {on[:2] for uid, on in world.held.items() if uid.startswith(f"uid-{name}")}


@pytest.mark.parametrize(("its", "other"), [("n0", "n1"), ("n1", "n0")])
def test_who_follows_keeps_no_gated_gang_in_the_way_of_one_that_is_narrowed(its, other):
    world = follower("first", "second")
    narrow(world, "second", its)
    lead(world)
    assert planned(world, "second") == {its}
    assert planned(world, "first") == {other}
    assert len(world.ungated) == 4


@pytest.mark.parametrize("rack", ["n0", "n1"])
def test_a_gang_that_the_one_before_left_half_patched_goes_where_that_part_must(rack):
    world = follower("first", "second")
    narrow(world, "second", rack, pods=1)
    lead(world)
    assert planned(world, "second") == {rack}
    assert sorted(world.ungated)[-3:] == ["second1", "second2", "second3"]


def test_who_follows_removes_no_gate_and_asks_for_nothing():
    world = follower("first", "second")
    assert world.held == {}
    assert world.ungated == []
    assert world.reports == []


def test_who_led_gives_up_what_it_has_not_narrowed_yet():
    world = World(TWO_RACKS, [*members("bare", 4), *members("gated", 4, gates=(corral.GATE,))])
    assert (planned(world, "bare"), planned(world, "gated")) == ({"n0"}, {"n1"})
    lead(world, is_leading=False)
    assert (planned(world, "bare"), planned(world, "gated")) == (set(), {"n1"})
    lead(world)
    assert (planned(world, "bare"), planned(world, "gated")) == ({"n0"}, {"n1"})


def test_a_pod_without_gates_waits_until_its_corral_leads_and_is_told_so():
    world = follower()
    world.put(*members("bare", 4))
    world.tick()
    pods = [world.pods[f"uid-bare{number}"] for number in range(4)]
    said = [world.filter(each) for each in pods]
    assert said == [Rejected(messages.taking_over(world.gang("bare").key))] * 4
    world.effects.clear()
    lead(world)
    assert sorted(world.woken) == sorted(each.name for each in pods)
    assert all(isinstance(world.filter(each), Pinned) for each in pods)
    assert len(racks(world.schedule(*pods))) == 1


def narrowed_to(world: World, rack: str, *pods: PodRecord) -> list[PodRecord]:
    """These pods, as the Corral that led has left them."""
    nodes = tuple(sorted(each for each in world.engine.books.nodes if each.startswith(rack)))
    how = ((corral.NARROWED, corral.NODES),)
    patches = (
        Ungate(each.namespace, each.name, each.uid, corral.GATE, nodes=nodes, annotations=how)
        for each in pods
    )
    return [ungated(each, patch) for each, patch in zip(pods, patches, strict=True)]


def test_all_are_planned_though_a_narrowed_gang_is_counted_late_and_a_pod_ends_meanwhile():
    """Two thousand pods are counted a fifth of a second after the last time."""
    ending = pod("ending", on="n30", gpus=1)
    world = World(four_racks(pods=600), [ending])
    lead(world, is_leading=False)
    world.put(*members("gated", 4, gates=(corral.GATE,)))
    world.tick()
    large = narrowed_to(world, "n1", *members("large", 2_000, gpus=0, cpu=10, gates=(corral.GATE,)))
    world.put(*large[:1980])
    world.tick()
    world.put(*large[1980:1990])
    lead(world)
    world.delete(ending)
    world.put(*large[1990:])
    for _ in range(40):
        world.tick()
    assert len(world.held) == 2_004


def test_a_narrowed_gang_that_is_put_off_keeps_no_other_waiting():
    world = follower("gated")
    world.put(*narrowed_to(world, "n0", *members("late", 4, gates=(corral.GATE,))))
    world.engine.queue.put_off(world.gang("late"), world.now + 60.0)
    lead(world)
    for _ in range(10):
        world.tick()
    assert planned(world, "gated") == {"n1"}


def test_a_pod_too_many_that_came_while_it_followed_is_deleted_by_who_leads_next():
    world = World(four_racks(), members("g", 2), delete_excess_pods=True)
    lead(world, is_leading=False)
    world.put(pod("third", annotations=group("g", 2, RACK), created="2026-02-01T00:00:00Z"))
    for _ in range(30):
        world.tick()
    world.effects.clear()  # who follows deletes nothing
    lead(world)
    for _ in range(30):
        world.tick()
    assert [each.name for each in world.told(Delete)] == ["third"]


def alone(names: list[str]) -> list[str]:
    """Those of these pods that are in no gang of a test."""
    return [name for name in names if not name.startswith("full")]


@pytest.mark.parametrize("lives_on", [True, False])
def test_ordinary_pods_that_the_corral_before_rejected_are_woken_where_kube_scheduler_lives_on(
    lives_on,
):
    world = World(TWO_RACKS, scheduler_lives_on=lives_on)
    lead(world, is_leading=False)
    world.put(pod("lone"), *members("full", 8, required=None))
    lead(world)
    assert len(world.held) == 8
    world.delete(*members("full", 8))
    world.tick()
    assert alone(world.woken) == (["lone"] if lives_on else [])


def test_ordinary_pods_that_were_rejected_before_a_restart_are_woken():
    full = members("full", 8, required=None)
    others = [pod("large", gpus=9), pod("gated", gates=(corral.GATE,)), pod("small", gpus=0)]
    world = World(TWO_RACKS, [pod("lone"), *others, pod("runs", gpus=0, on="n00"), *full])
    assert len(world.held) == 8
    assert alone(world.woken) == []
    for _ in range(2):
        world.delete(*full)
        world.tick()
        assert sorted(alone(world.woken)) == ["lone", "small"]  # each once
        world.put(*full)


@pytest.mark.parametrize("lives_on", [True, False])
def test_pods_that_the_corral_before_rejected_are_woken_where_kube_scheduler_lives_on(lives_on):
    """One that begins with the Corral beside it tries every pod by itself."""
    world = World(TWO_RACKS, scheduler_lives_on=lives_on)
    lead(world, is_leading=False)
    world.put(*members("bare", 4))
    taken = [pod(f"t{number}", on=f"n0{number}") for number in range(4)]
    world.put(*taken, *narrowed_to(world, "n0", *members("late", 4, gates=(corral.GATE,))))
    world.tick()
    lead(world)
    for _ in range(10):
        world.tick()
    world.delete(*taken)
    for _ in range(10):
        world.tick()
    assert len(world.held) == 8
    names = [f"{name}{number}" for name in ("bare", "late") for number in range(4)]
    assert sorted(set(world.woken)) == (names if lives_on else [])
