"""Both replicas are replaced, one after the other, while gangs come and stand in every phase.

By ones of the same release, of this one after the one before it, and back again. What is asserted
is what the API server has: no gang is partial or in two racks, none is lost and none waits long.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.cluster import Cluster, grid
from tests.controlplane.chronicle import Chronicle
from tests.controlplane.every_phase import BOUND, PHASES, PODS, REFUSED, EveryPhase
from tests.controlplane.pairs import Pair, for_root
from tests.controlplane.plane import ControlPlane
from tests.controlplane.releases import NoHistory, release_before
from tests.controlplane.rollout import Arrivals, Replicas, pods_of
from tests.corral_process import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.slow, for_root]

EVERY_SECONDS = 0.5
UNDISTURBED = 6  # gangs before the rollout
LONGER_SECONDS = 10.0  # a gang may wait for the sake of a rollout
WHOLE_SECONDS = 60.0


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources of the release before this one."""
    try:
        return release_before(tmp_path_factory.mktemp("before"))
    except NoHistory as error:
        pytest.skip(f"no release before this one: {error}")


@pytest.fixture(
    params=["restart", pytest.param("upgrade and downgrade", marks=pytest.mark.thorough)]
)
def trees(request: pytest.FixtureRequest) -> list[Path]:
    """The sources that run, and those that follow, one after the other."""
    if request.param == "restart":
        return [ROOT, ROOT]
    older: Path = request.getfixturevalue("before")
    return [older, ROOT, older]


@pytest.fixture
def every_phase(plane: ControlPlane, cluster: Cluster) -> Iterator[EveryPhase]:
    """The gangs to come; afterwards no policy of theirs, and no refusal that was meant is left."""
    yield EveryPhase(cluster)
    others = [one for one in plane.denials() if not any(name in one.path for name in REFUSED)]
    assert others == []


def phases(of: Pair) -> dict[str, str]:
    """What a Corral says of those gangs; "" of one that it does not know."""
    with httpx.Client(base_url=of.corral.url, timeout=10, trust_env=False) as client:
        told = {name: client.get(f"/v1/gangs/default/{name}").json() for name in PHASES}
    return {name: said.get("phase", "") for name, said in told.items()}


@pytest.mark.timeout(300)  # 60 s; on a busy machine a pair takes ten to be ready, and there are six
def test_gangs_of_every_phase_go_on_while_both_replicas_are_replaced(
    plane: ControlPlane,
    cluster: Cluster,
    tmp_path: Path,
    trees: list[Path],
    every_phase: EveryPhase,
) -> None:
    plane.nodes(grid(racks=32, nodes=8, gpus=8))
    name = f"of-{len(trees)}"
    with (
        Chronicle(plane, gpus_per_node=8) as chronicle,
        Replicas(plane, tmp_path, name, trees[0], {"bind_concurrency": 1}) as replicas,
    ):
        every_phase.begin()
        wait_for_every_phase(replicas)
        cluster.wait(lambda: every_phase.narrowed() == pods_of("held"), 5.0, "narrowed pods")
        with Arrivals(plane, EVERY_SECONDS) as arrivals:
            cluster.wait(lambda: len(arrivals.created_at) >= UNDISTURBED, WHOLE_SECONDS)
            undisturbed = max(arrivals.waits(WHOLE_SECONDS).values())
            for tree in trees[1:]:
                replicas.roll(tree)
            arrivals.stop()
            waits = arrivals.waits(WHOLE_SECONDS)
        assert every_phase.bound() == BOUND
        wait_for_every_phase(replicas)

        every_phase.release()
        everything = dict.fromkeys(PHASES, PODS)
        cluster.wait(lambda: every_phase.bound() == everything, WHOLE_SECONDS, "all gangs whole")
        whole = sum(len(pods_of(gang)) for gang in (*waits, *PHASES))
        twice_and_anchor = 2  # mended-0, which came again
        cluster.wait(lambda: chronicle.bindings == whole + twice_and_anchor, 10.0, "all bindings")
        bugs = [one.corral.bugs() for one in replicas.all()]
    assert chronicle.problems == []
    assert max(waits.values()) <= undisturbed + LONGER_SECONDS
    assert bugs == [{}, {}]
    print(f"{len(waits)} gangs, longest wait {undisturbed:.2f} -> {max(waits.values()):.2f} s")


def wait_for_every_phase(replicas: Replicas) -> None:
    """Returns when the Corral that leads has a gang in each phase. Raises: AssertionError."""
    leads = replicas.leader()
    deadline = time.monotonic() + WHOLE_SECONDS
    while (told := phases(leads)) != PHASES and time.monotonic() < deadline:
        time.sleep(0.1)
    assert told == PHASES
