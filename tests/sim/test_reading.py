"""What the simulator remembers instead of reading or checking it again, and that it is the same."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pytest
from msgspec.structs import replace

from app.dialects import registry
from app.kube.core.objects import ObjectRecord, PodRecord
from app.state.settings import EngineSettings
from tests.records import BLOCK, GPU, RACK, node, pod
from tests.sim.dialects import Remembering, remembering
from tests.sim.shadow import check_books
from tests.sim.told import role_of, taken_by_pods
from tests.sim.world import World

SETTINGS = EngineSettings(native_pod_groups="on", levels=(BLOCK, RACK))
PLAIN = registry.DIALECTS.configured(SETTINGS)


class Asked(World):
    """A world whose engines' readings of all pods are compared as it is judged."""

    compared = 0

    def _judge(self) -> None:
        super()._judge()
        for corral in self.corrals:
            engine = corral.engine
            assert isinstance(engine.dialects, Remembering)
            for each in self.api.pods.values():
                objects = engine.named_pods.of(each)
                _compare(engine.dialects, each, objects)
                self.compared += bool(objects)


def _compare(
    dialects: registry.Dialects, one: PodRecord, objects: Collection[ObjectRecord]
) -> None:
    assert dialects.is_silent(one) == PLAIN.is_silent(one)
    assert dialects.may_be_named(one) == PLAIN.may_be_named(one)
    assert dialects.sorted_by(one) == PLAIN.sorted_by(one)
    for said_by in ((), objects):
        assert dialects.claim(one, said_by) == PLAIN.claim(one, said_by)


@pytest.mark.slow
def test_what_is_remembered_of_pods_is_what_the_vocabularies_say() -> None:
    world = Asked(3)
    assert not world.run().violation
    assert world.compared


def test_a_changed_pod_is_read_anew() -> None:
    dialects = remembering(SETTINGS)
    one = pod("g-0")
    assert dialects.is_silent(one)
    member = replace(one, annotations={"kueue.x-k8s.io/podset-required-topology": RACK})
    for _ in range(2):
        assert not dialects.is_silent(member)
        assert dialects.claim(member) == PLAIN.claim(member) != dialects.claim(one)


def test_the_role_of_a_changed_pod_is_another() -> None:
    one = pod("g-0", gpus=1)
    assert role_of(one) == role_of(one)
    assert role_of(replace(one, request=pod("g-0", gpus=2).request)) != role_of(one)


def test_what_is_taken_follows_the_mirror() -> None:
    world = World(1)
    (corral, *_) = world.corrals
    assert corral.life is not None
    pods = corral.life.streams["Pod"]
    assert taken_by_pods(corral.life) == {}
    world.api.create("Node", node("b9/r9/n9", gpus=8))
    world.api.create("Pod", pod("other", gpus=3, on="n9", scheduler="other"))
    assert taken_by_pods(corral.life) == {}
    world.clock.run_until(3.0)
    assert pods.mirror["other"]
    assert taken_by_pods(corral.life)["n9"][GPU] == 3


def test_a_tree_that_has_been_checked_cannot_be_written_to() -> None:
    world = World(1)
    world.clock.run_until(3.0)
    (corral, *_) = world.corrals
    assert corral.life is not None
    check_books(corral.life)
    for topology in corral.engine.books.topologies.values():
        for array in topology.tree.starts:
            with pytest.raises(ValueError, match="read-only"):
                array += np.int64(1)
