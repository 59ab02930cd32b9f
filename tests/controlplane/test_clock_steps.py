"""The wall clock of a Corral is set forward and back while gangs start: nothing is decided by it.

Two Corrals with a Lease of their own, as deploy/beside.yaml has them; kube-scheduler asks the one
that leads. tests/app/test_wall_clock.py shows where the clock is read at all.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.certificates import replace
from tests.cluster import GPU, RACK, Cluster, Object, Objects, grid
from tests.controlplane import stepped_clock
from tests.controlplane.chronicle import Chronicle
from tests.controlplane.plane import ControlPlane
from tests.controlplane.seen import START_SECONDS, clear
from tests.controlplane.test_beside import rights
from tests.corral_process import CorralProcess
from tests.workloads import asking, behind_gate, member, members

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.thorough]

__all__ = ["rights"]
REPEATED = int(os.environ.get("CORRAL_FAULT_ROUNDS", "1"))
LEASE = "corral"
HOUR = 3600
LEADER, OTHER = "clock-0", "clock-1"
STEPS = [(LEADER, HOUR), (OTHER, HOUR), (LEADER, -HOUR), (OTHER, -HOUR), (LEADER, 0), (OTHER, 0)]
SIZE = 8
LOOKED_SECONDS = 4.5  # the Lease is read, and renewed, every two seconds
SHOWN_SECONDS = 60.0  # between an event's time and that of its Corral's clock


class Clock:
    """The wall clock of one Corral."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.set(0)

    def set(self, seconds: int) -> None:
        """So much ahead of this machine's, or behind it."""
        self.seconds = seconds
        replace(self.file, str(seconds).encode())

    def time(self) -> float:
        return time.time() + self.seconds


@pytest.fixture
def clocks(tmp_path: Path) -> dict[str, Clock]:
    return {name: Clock(tmp_path / f"{name}.clock") for name in (LEADER, OTHER)}


@pytest.fixture
def leader(
    plane: ControlPlane,
    cluster: Cluster,
    rights: None,
    clocks: dict[str, Clock],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[CorralProcess]:
    """The one that leads, and the other beside it."""
    monkeypatch.setenv("PYTHONPATH", str(Path(stepped_clock.__path__[0])))
    corrals = []
    for name, clock in clocks.items():
        (tmp_path / name).mkdir()
        monkeypatch.setenv("STEPPED_CLOCK", str(clock.file))
        own = {"own_lease": f"corral-system/{LEASE}", "pod_name": name}
        corrals.append(CorralProcess(plane.kubeconfig("corral"), tmp_path / name, **own))
        corrals[-1].start()
        cluster.wait(lambda: holder(cluster), START_SECONDS, "one that leads")
    yield corrals[0]
    for each in corrals:
        assert each.bugs() == {}
        each.kill()


@pytest.mark.timeout(120 + 100 * REPEATED)
def test_steps_of_an_hour_leave_gangs_whole_and_the_lease_where_it_was(
    plane: ControlPlane, cluster: Cluster, leader: CorralProcess, clocks: dict[str, Clock]
) -> None:
    plane.nodes(grid(racks=2, nodes=SIZE, gpus=8))
    plane.start_scheduler(extender=leader.url)
    terms = lease(cluster)["leaseTransitions"]
    with Chronicle(plane, gpus_per_node=8) as chronicle:
        for number, (whose, seconds) in enumerate(REPEATED * STEPS):
            gang = in_rack(f"g{number}")
            cluster.create_all(gang[: SIZE // 2])
            clocks[whose].set(seconds)
            never = member("never", 0, 1, annotations=asking(required=RACK), requests={GPU: 99})
            cluster.create_all([never, *gang[SIZE // 2 :]])
            cluster.wait(lambda: len(cluster.bound()) == SIZE, START_SECONDS, "the whole gang")
            told = cluster.wait(lambda: event_of(cluster), START_SECONDS, "the verdict's event")
            at = datetime.fromisoformat(told["lastTimestamp"]).astimezone(UTC).timestamp()
            assert abs(at - clocks[LEADER].time()) <= SHOWN_SECONDS, "the clock did not step"
            time.sleep(LOOKED_SECONDS)
            assert holder(cluster) == LEADER
            clear(cluster)
            cluster.delete_all("Event")
        assert lease(cluster)["leaseTransitions"] == terms, "another one led for a while"
        wanted = SIZE * len(REPEATED * STEPS)
        cluster.wait(lambda: chronicle.bindings == wanted, 10, "the whole history")
        assert chronicle.problems == []


def in_rack(name: str) -> Objects:
    gang = members(name, SIZE, requests={GPU: 8}, annotations=asking(required=RACK))
    return [behind_gate(one) for one in gang]


def lease(cluster: Cluster) -> Object:
    """Its spec; {}: there is none yet."""
    found = cluster.get("Lease", LEASE, "corral-system")
    return dict(found["spec"]) if found else {}


def holder(cluster: Cluster) -> str:
    """The pod that leads, "" if none does."""
    return str(lease(cluster).get("holderIdentity") or "").partition("_")[0]


def event_of(cluster: Cluster) -> Object | None:
    """What Corral says of the gang that has no place."""
    found = (
        each
        for each in cluster.list("Event", "default")
        if each["involvedObject"]["name"] == "never-0"
        and each["source"].get("component") == "corral-extender"
    )
    return next(found, None)
