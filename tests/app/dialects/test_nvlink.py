"""The NVLink domain and the clique are two levels in one label of nodes."""

from __future__ import annotations

import pytest

from app.dialects import nvlink
from app.dialects.presets import PRESETS
from app.dialects.volcano.from_labels.domains import domains_of, placed_from_widest
from app.dialects.volcano.from_labels.manifests import manifests
from app.kube.core.objects import PodRecord, Requirement, Shape, Term
from app.state.effects import Ungate
from tests.app.state.world import World
from tests.records import group, node, pod

A, B = "3f9a2c1e-0000-4a57-9d3c-aaaaaaaaaaaa", "3f9a2c1e-0000-4a57-9d3c-bbbbbbbbbbbb"
GATED = ("corral.dev/gang",)


def cluster(**settings: object) -> World:
    """Two domains: one of the cliques 1 and 2 with two nodes each, one of three nodes in one."""
    cliques = {"a0": f"{A}.1", "a1": f"{A}.1", "a2": f"{A}.2", "a3": f"{A}.2"}
    cliques |= {"b0": f"{B}.1", "b1": f"{B}.1", "b2": f"{B}.1"}
    nodes = [node(name, labels={nvlink.CLIQUE: clique}) for name, clique in cliques.items()]
    return World([*nodes, node("c0")], levels=PRESETS["nvl72"], **settings)


def members(size: int, required: str, **more: object) -> list[PodRecord]:
    annotations = group("g", size, required)
    return [pod(f"g{number}", annotations=annotations, **more) for number in range(size)]


@pytest.mark.parametrize(
    ("labels", "value"),
    [
        ({nvlink.CLIQUE: f"{A}.7"}, A),
        ({nvlink.CLIQUE: "with.dots.7"}, "with.dots"),
        ({nvlink.CLIQUE: f"{A}.7", nvlink.DOMAIN: "rack-7"}, "rack-7"),
        ({nvlink.CLIQUE: f"{A}.7", nvlink.DOMAIN: ""}, A),
        ({nvlink.CLIQUE: "7"}, ""),
        ({nvlink.CLIQUE: ""}, ""),
        ({}, ""),
    ],
    ids=["of_the_clique", "at_the_last_dot", "own", "own_is_empty", "no_dot", "empty", "none"],
)
def test_the_domain_is_what_the_clique_names(labels: dict[str, str], value: str) -> None:
    assert nvlink.level_value(labels, nvlink.DOMAIN) == value


def test_any_other_level_is_a_label() -> None:
    labels = {nvlink.CLIQUE: f"{A}.7", "rack": "r1"}
    assert nvlink.level_value(labels, nvlink.CLIQUE) == f"{A}.7"
    assert nvlink.level_value(labels, "rack") == "r1"
    assert nvlink.level_value(labels, "block") == ""


@pytest.mark.parametrize(
    ("size", "level", "nodes"),
    [
        (3, nvlink.CLIQUE, {"b0", "b1", "b2"}),
        (4, nvlink.DOMAIN, {"a0", "a1", "a2", "a3"}),
    ],
)
def test_a_gang_is_in_one_domain_of_either_level(size: int, level: str, nodes: set[str]) -> None:
    world = cluster()
    world.put(*members(size, level))
    assert set(world.gang().plan.nodes.values()) == nodes


def test_a_gang_that_no_clique_holds_waits() -> None:
    world = cluster()
    world.put(*members(4, nvlink.CLIQUE))
    assert world.gang().plan.nodes == {}


def test_a_node_whose_clique_changes_is_in_another_domain() -> None:
    world = cluster()
    world.put(node("a3", labels={nvlink.CLIQUE: f"{B}.1"}))
    world.put(*members(4, nvlink.DOMAIN))
    world.tick()
    assert set(world.gang().plan.nodes.values()) == {"a3", "b0", "b1", "b2"}


@pytest.mark.parametrize(
    ("level", "selector"),
    [(nvlink.CLIQUE, {nvlink.CLIQUE: f"{B}.1"}), (nvlink.DOMAIN, {})],
)
def test_no_node_selector_names_a_level_that_is_no_label(
    level: str, selector: dict[str, str]
) -> None:
    # With a required term of its own, a pod is narrowed to labels, not to names of nodes.
    term = Term(expressions=(Requirement("kubernetes.io/hostname", "Exists", ()),))
    world = cluster()
    world.put(*members(3, level, gates=GATED, shape=Shape(terms=(term,))))
    ungated = world.told(Ungate)
    assert len(ungated) == 3
    for each in ungated:
        assert {key: value for key, value in each.selector if key != nvlink.CLIQUE} == {}
        assert dict(each.selector) == selector


def test_hyper_nodes_name_the_nodes_of_such_a_domain() -> None:
    labels = {"a0": {nvlink.CLIQUE: f"{A}.1"}, "a1": {nvlink.CLIQUE: f"{A}.2"}}
    levels = (nvlink.DOMAIN,)
    placed = placed_from_widest(labels, levels)
    (made,) = manifests(domains_of([(placed, levels)]), levels, "labels")
    names = [each["selector"]["exactMatch"]["name"] for each in made["spec"]["members"]]
    assert names == ["a0", "a1"]
