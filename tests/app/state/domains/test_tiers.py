"""What a tier means on a topology as it is now."""

from __future__ import annotations

import pytest

from app.dialects.spec import ANYWHERE, GangKey, GangSpec, GroupSpec, LeafSpec, Within
from app.state.domains.tiers import Tiers
from topology.model.request import Constraint

LEVELS = {1: "leaf", 3: "spine", 4: "core"}


def tiers(levels: dict[int, str] = LEVELS) -> Tiers:
    found = Tiers()
    found.set_levels(levels)
    return found


@pytest.mark.parametrize(
    ("within", "constraint"),
    [
        (Within(1), Constraint(required="leaf")),
        (Within(2), Constraint(required="leaf")),
        (Within(3), Constraint(required="spine", preferred="leaf")),
        (Within(4), Constraint(required="core", preferred="leaf")),
        (Within(5), Constraint(preferred="leaf")),  # the whole cluster
        (Within(0), Constraint(required="tier 0")),  # there is none
        (Within(is_soft=True), Constraint(preferred="leaf")),
        (Within(None, "rack"), Constraint(required="tierName rack")),
    ],
)
def test_a_tier_is_the_widest_level_that_it_allows(within: Within, constraint: Constraint) -> None:
    assert tiers().constraint(within) == constraint


@pytest.mark.parametrize(
    ("tier", "constraint"), [(0, Constraint(required="tier 0")), (1, ANYWHERE), (9, ANYWHERE)]
)
def test_without_domains_the_whole_cluster_is_tier_1(tier: int, constraint: Constraint) -> None:
    assert tiers({}).constraint(Within(tier)) == constraint
    assert tiers({}).constraint(Within(is_soft=True)) == ANYWHERE


def test_of_two_tiers_with_one_name_it_is_the_narrower() -> None:
    found = tiers()
    found.add("rack", 3)
    found.add("rack", 1)
    found.add("rack", 1)
    assert found.constraint(Within(None, "rack")) == Constraint(required="leaf")
    found.drop("rack", 1)
    assert found.constraint(Within(None, "rack")) == Constraint(required="leaf")
    found.drop("rack", 1)
    assert found.constraint(Within(None, "rack")).required == "spine"
    found.drop("rack", 3)
    assert found.constraint(Within(None, "rack")).required == "tierName rack"


def test_it_tells_when_tiers_or_names_are_others() -> None:
    found, told = Tiers(), []
    for step in (
        lambda: found.set_levels(LEVELS),
        lambda: found.set_levels(dict(LEVELS)),
        lambda: found.add("rack", 1),
        lambda: found.add("rack", 1),
        lambda: found.drop("rack", 1),
        lambda: found.add("", 1),
        lambda: found.drop("rack", 1),
    ):
        found.is_changed = False
        step()
        told.append(found.is_changed)
    assert told == [True, False, True, False, False, False, True]


def spec(within: Within | None, inner: Within | None) -> GangSpec:
    group = GroupSpec("inner", (LeafSpec("a", 1),), within=inner)
    root = GroupSpec("root", (group, LeafSpec("b", 1)), within=within)
    return GangSpec(GangKey("n", "g", "s"), root, "here", topology="HyperNodes")


def test_every_group_of_a_spec_gets_its_level() -> None:
    found = tiers().resolved(spec(Within(4), Within(1)))
    inner, _ = found.root.members
    assert isinstance(inner, GroupSpec)
    assert (found.root.constraint.required, inner.constraint.required) == ("core", "leaf")
    assert (found.has_tiers, found.topology) == (False, "HyperNodes")


def test_a_gang_that_nothing_is_asked_of_is_on_no_topology() -> None:
    assert tiers({}).resolved(spec(Within(1), Within(is_soft=True))).topology is None
    assert tiers({}).resolved(spec(Within(1), Within(0))).topology == "HyperNodes"
