"""Gangs that have waited too long get a domain to themselves."""

from __future__ import annotations

from app.kube.core.objects import Owner
from tests.app.state.world import World, four_racks, members, racks
from tests.records import group, pod

STARVED = {"starvation_seconds": 60.0}


def busy_racks(free_on_r1=2):
    """Ordinary pods of 8 GPUs on every node, but for some of rack 1."""
    return [
        pod(f"o{r}{i}", on=f"n{r}{i}", phase="Running")
        for r in range(4)
        for i in range(4)
        if not (r == 1 and i < free_on_r1)
    ]


def starving(**settings):
    world = World(four_racks(), [*busy_racks(), *members("big", 4)], **{**STARVED, **settings})
    world.tick(61.0)
    world.tick()
    return world


def test_before_its_time_a_blocked_gang_keeps_nothing_from_anybody():
    world = World(four_racks(), [*busy_racks(), *members("big", 4)], **STARVED)
    world.tick(30.0)
    assert world.filter(pod("stranger")).without == frozenset()


def test_a_starving_gang_earmarks_the_rack_where_most_of_it_fits():
    world = starving()
    assert world.filter(pod("stranger")).without == {"n10", "n11", "n12", "n13"}


def test_a_smaller_gang_that_comes_later_does_not_get_the_earmarked_rack():
    world = starving()
    world.put(*members("small", 2))
    world.tick()
    assert world.held == {}
    assert "kept for a gang that has waited longer" in world.reports[-1]


def test_a_gang_of_higher_priority_passes():
    world = starving()
    world.put(*members("urgent", 2, priority=10))
    world.tick()
    assert racks(world.held) == {"n1"}


def test_the_starving_gang_gets_its_rack_when_the_last_node_frees():
    world = starving()
    for name in ("o12", "o13"):
        world.delete(world.pods[f"uid-{name}"])
    world.tick()
    assert racks(world.held) == {"n1"}
    placed = world.schedule(*(world.pods[f"uid-big{i}"] for i in range(4)))
    assert len(placed) == 4


def test_the_earmark_ends_with_the_gang():
    world = starving()
    for index in range(4):
        world.delete(world.pods[f"uid-big{index}"])
    world.tick(5.1)
    assert world.filter(pod("stranger")).without == frozenset()


def test_pods_that_ask_for_nothing_the_gang_needs_may_pass():
    world = starving()
    assert world.filter(pod("web", gpus=0)).without == frozenset()


def test_daemon_set_pods_belong_to_the_node():
    world = starving()
    owner = Owner("apps/v1", "DaemonSet", "exporter", "uid-exporter")
    assert world.filter(pod("exporter", owner=owner)).without == frozenset()


def test_one_namespace_has_no_more_earmarks_than_it_is_allowed():
    world = World(four_racks(), [*busy_racks(), *members("a", 4), *members("b", 4)], **STARVED)
    world.tick(61.0)
    world.tick()
    assert len(world.engine.starvation.of) == 1
    world = World(
        four_racks(),
        [*busy_racks(), *members("a", 4), *members("b", 4)],
        earmarks_per_namespace=2,
        **STARVED,
    )
    world.tick(61.0)
    world.tick()
    first, second = (each.nodes for each in world.engine.starvation.of.values())
    assert not first & second


def test_with_none_allowed_nothing_is_earmarked():
    world = starving(earmarks_per_namespace=0)
    assert world.filter(pod("stranger")).without == frozenset()


def test_a_gang_that_no_rack_could_ever_take_earmarks_nothing():
    world = World(four_racks(), [*busy_racks(), *members("huge", 5)], **STARVED)
    world.tick(61.0)
    world.tick()
    assert world.engine.starvation.of == {}


def test_a_gang_without_a_required_level_earmarks_as_few_nodes_as_could_take_it():
    annotations = group("any", 3, **{"kueue.x-k8s.io/podset-unconstrained-topology": "true"})
    pods = [pod(f"any{i}", annotations=annotations) for i in range(3)]
    world = World(four_racks(), [*busy_racks(), *pods], **STARVED)
    world.tick(61.0)
    world.tick()
    assert world.filter(pod("stranger")).without >= {"n10", "n11"}
    assert len(world.filter(pod("stranger")).without) == 3


def test_a_pod_turned_away_by_an_earmark_is_woken_when_it_ends():
    world = starving()
    stranger = pod("stranger")
    assert len(world.filter(stranger, ["n10"]).without & {"n10"}) == 1
    for index in range(4):
        world.delete(world.pods[f"uid-big{index}"])
    world.tick(5.1)
    world.tick()
    assert "stranger" in world.woken


def test_an_earmark_that_passes_to_another_gang_has_it_planned_at_once():
    world = starving()
    world.put(*members("next", 2, created="2026-01-02T00:00:00Z"))
    world.tick(61.0)
    world.tick()
    assert world.held == {}
    for index in range(4):
        world.delete(world.pods[f"uid-big{index}"])
    world.tick(5.1)
    world.tick()
    assert racks(world.held) == {"n1"}
