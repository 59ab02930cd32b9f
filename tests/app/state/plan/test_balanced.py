"""Balanced placement: a setting, and where it applies."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.app.state.world import World, four_racks
from tests.records import (
    PREFERRED,
    RACK,
    REQUIRED,
    SLICE_LEVEL,
    SLICE_SIZE,
    UNCONSTRAINED,
    group,
    pod,
)

HOST = "kubernetes.io/hostname"


def pods_per_node(annotations: dict[str, str], pods: int = 6, **settings: bool) -> list[int]:
    """How many pods of a gang each node gets, the most first; a node has room for four."""
    world = World(four_racks(), **settings)
    says = group("g", pods, **annotations)
    gang = [pod(f"g{i}", gpus=2, annotations=says) for i in range(pods)]
    world.put(*gang)
    placed = world.schedule(*gang)
    return sorted(Counter(placed.values()).values(), reverse=True)


@pytest.mark.parametrize(
    ("annotations", "nodes"),
    [
        pytest.param({PREFERRED: RACK}, [3, 3], id="preferred"),
        pytest.param({PREFERRED: RACK, SLICE_LEVEL: HOST, SLICE_SIZE: "1"}, [3, 3], id="slices"),
        pytest.param({REQUIRED: RACK}, [4, 2], id="required"),
        pytest.param({UNCONSTRAINED: "true"}, [4, 2], id="unconstrained"),
        pytest.param({SLICE_LEVEL: RACK, SLICE_SIZE: "2"}, [4, 2], id="slices_alone"),
    ],
)
def test_only_a_preferred_level_is_balanced(annotations: dict[str, str], nodes: list[int]) -> None:
    assert pods_per_node(annotations, balanced_placement=True) == nodes


def test_it_is_off_unless_it_is_set() -> None:
    assert pods_per_node({PREFERRED: RACK}) == [4, 2]


def test_a_remainder_is_placed_although_it_cannot_be_balanced() -> None:
    """One member of a pod set has succeeded, the others are lost: three come for slices of two."""
    world = World(four_racks(), balanced_placement=True, owed_seconds=0.0)
    says = group("g", 5, **{PREFERRED: RACK, SLICE_LEVEL: RACK, SLICE_SIZE: "2"})
    driver = pod("driver", gpus=1, annotations=group("g", 5))
    workers = [pod(f"g{i}", annotations=says) for i in range(4)]
    world.put(driver, *workers)
    placed = world.schedule(driver, *workers)
    world.put(pod("g0", annotations=says, on=placed["g0"], phase="Succeeded"))
    world.delete(*workers[1:])
    again = [pod(f"again{i}", annotations=says) for i in range(3)]
    world.put(*again)
    world.tick()
    assert len(world.schedule(*again)) == 3
