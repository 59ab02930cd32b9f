"""The simulated autoscalers act on the sandbox as `plays` says, and bring a gang its rack."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.autoscaling.gang_plays import GANG_PLAYS, SETTINGS
from tests.autoscaling.objects import definition
from tests.autoscaling.plays import PLAYS, Play, play
from tests.cluster import RACK, Cluster
from tests.contract.worlds import sandbox


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A sandbox without nodes whose scheduler asks a Corral, and that knows requests."""
    with sandbox(tmp_path_factory.mktemp("sandbox"), (RACK,)) as cluster:
        cluster.create(definition())
        yield cluster


@pytest.fixture(scope="module")
def growing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A sandbox without nodes whose scheduler asks a Corral that waits less long."""
    with sandbox(tmp_path_factory.mktemp("growing"), (RACK,), **SETTINGS) as cluster:
        cluster.create(definition())
        yield cluster


@pytest.mark.slow
@pytest.mark.parametrize("scene", PLAYS, ids=lambda scene: scene.__name__)
def test_on_the_sandbox(scene: Play, cluster: Cluster) -> None:
    play(scene, cluster)


@pytest.mark.slow
@pytest.mark.parametrize("scene", GANG_PLAYS, ids=lambda scene: scene.__name__)
def test_gangs_on_the_sandbox(scene: Play, growing: Cluster) -> None:
    play(scene, growing)
