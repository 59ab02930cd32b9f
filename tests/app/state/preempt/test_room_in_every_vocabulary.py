"""Gangs of every vocabulary make room for one another: the lowest one in the way goes, whole.

Two racks of two nodes with room for one pod each; a gang of two runs in each of them, and a third
one of higher priority that requires a rack waits.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pytest
from msgspec.structs import replace

from app.kube.core.objects import ObjectRecord, PodRecord
from tests.app.dialects.grove import objects as grove
from tests.app.dialects.kai import objects as kai
from tests.app.dialects.native import composites
from tests.app.dialects.native import objects as native
from tests.app.state.preempt.test_making_room import runs
from tests.app.state.preempt.test_room_plans import Evicting, placed
from tests.records import BLOCK, RACK, node, pod
from tests.records import group as kueue_group

NODES = {"low": ("n00", "n01"), "middle": ("n10", "n11"), "high": ()}
PRIORITIES = {"low": 0, "middle": 5, "high": 1000}


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """`objects`: what there is besides the gangs; `made`: a gang's own; `pods`: its two pods."""

    objects: tuple[ObjectRecord, ...] = ()
    settings: tuple[tuple[str, object], ...] = ()

    def made(self, name: str) -> Iterable[ObjectRecord]:
        return ()

    def pods(self, name: str) -> list[PodRecord]:
        annotations = kueue_group(name, 2, RACK)
        return [pod(f"{name}{at}", gpus=1, annotations=annotations) for at in range(2)]


class Native(Vocabulary):
    def made(self, name: str) -> Iterable[ObjectRecord]:
        yield native.group(name, 2, key=RACK)

    def pods(self, name: str) -> list[PodRecord]:
        return [native.member(f"{name}{at}", name, gpus=1) for at in range(2)]


class Kai(Vocabulary):
    def made(self, name: str) -> Iterable[ObjectRecord]:
        yield kai.group(name, 2, on=kai.within(RACK))

    def pods(self, name: str) -> list[PodRecord]:
        return [kai.member(f"{name}{at}", of=name, gpus=1) for at in range(2)]


class Composite(Native):
    """A group for each of the two pods, and both groups in one rack."""

    def made(self, name: str) -> Iterable[ObjectRecord]:
        yield composites.composite(name, 2, key=RACK)
        for at in range(2):
            yield composites.inner(f"{name}-{at}", 1, name)

    def pods(self, name: str) -> list[PodRecord]:
        return [native.member(f"{name}{at}", f"{name}-{at}", gpus=1) for at in range(2)]


class KaiTree(Kai):
    """A sub-group for each of the two pods."""

    def made(self, name: str) -> Iterable[ObjectRecord]:
        parts = [kai.sub_group(f"part{at}", 1) for at in range(2)]
        yield kai.group(name, None, *parts, on=kai.within(RACK))

    def pods(self, name: str) -> list[PodRecord]:
        return [kai.member(f"{name}{at}", f"part{at}", of=name, gpus=1) for at in range(2)]


class Grove(Vocabulary):
    def made(self, name: str) -> Iterable[ObjectRecord]:
        yield grove.gang(name, grove.pod_group("w", 2), on=grove.within(RACK))

    def pods(self, name: str) -> list[PodRecord]:
        return [grove.member(f"{name}{at}", "w", of=name, gpus=1) for at in range(2)]


VOCABULARIES = {
    "kueue": Vocabulary(),
    "native": Native(settings=(("native_pod_groups", "on"),)),
    "composite": Composite(settings=(("native_pod_groups", "on"),)),
    "kai_tree": KaiTree((kai.topology_record("net", BLOCK, RACK),)),
    "kai": Kai((kai.topology_record("net", BLOCK, RACK),)),
    "grove": Grove((grove.topology_record("grove-topology", BLOCK, RACK),)),
}


def members(vocabulary: Vocabulary, name: str) -> list[PodRecord]:
    made = [replace(each, priority=PRIORITIES[name]) for each in vocabulary.pods(name)]
    return runs(*made, on=NODES[name]) if NODES[name] else made


@pytest.mark.parametrize("name", VOCABULARIES)
def test_the_gang_of_the_lowest_priority_goes_whole_and_the_highest_starts_in_its_rack(name):
    vocabulary = VOCABULARIES[name]
    objects = [*vocabulary.objects, *(each for gang in NODES for each in vocabulary.made(gang))]
    world = Evicting(
        [node(f"b0/r{rack}/n{rack}{at}", gpus=1) for rack in range(2) for at in range(2)],
        [],
        waiting=[*objects, *(each for gang in NODES for each in members(vocabulary, gang))],
        **dict(vocabulary.settings),
    )
    assert sorted(world.evicted) == ["low0", "low1"]
    assert placed(world, "high") == {}
    world.let_go()
    world.run(2.0)
    assert set(placed(world, "high").values()) == set(NODES["low"])
    assert world.results == {"placed": 1}
