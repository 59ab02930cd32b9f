"""Two pairs of {kube-scheduler, Corral}: the one that leads ends, or stops for a while, in a gang.

Also a single Corral that stops for a while, and an API server that restarts: everybody is blind
then, and kube-scheduler for longest.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event, Thread

import httpx
import pytest

from tests.cluster import GPU, RACK, Cluster, Objects, grid, pod
from tests.controlplane.chronicle import Chronicle
from tests.controlplane.pairs import for_root, leader, pair
from tests.controlplane.plane import ControlPlane
from tests.controlplane.seen import clear, racks_of
from tests.corral_process import CorralProcess
from tests.workloads import asking, behind_gate, gates_of, members

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

REPEATED = int(os.environ.get("CORRAL_FAULT_ROUNDS", "2"))
PAUSES = 2 * REPEATED
PAUSE_SECONDS = 2.0
RESUMED_SECONDS = 10.0
ELECTION = {"leaseDuration": "4s", "renewDeadline": "3s", "retryPeriod": "1s"}
PODS = 16
LATER_PODS = 4  # of a gang that is created when the API server is back
TAKEN_OVER_SECONDS = 30.0  # lease, poll of the Lease, back-offs of kube-scheduler
BACK_SECONDS = 120.0  # until kube-scheduler sees the API server again
WHOLE_SECONDS = 3.0  # from then on
RUN_SECONDS = 0.01  # at once, of a Corral that has little time
STARVED_SECONDS = 60.0  # for a gang whose Corral has a tenth of a core
LATE_SECONDS = 5.0  # for an answer of such a one
LIVENESS_SECONDS = 30.0
MOMENTS = (0.0, 0.1, 0.2, 0.4)  # seconds after the first pod of the gang was bound
OUTAGES = (0.5, 8.0, 2.0)  # seconds without an API server
READS_ON_SECONDS = 3.0  # from the API server's readiness to Corral's next write about a gang


def gang(name: str, size: int = PODS) -> Objects:
    pods = members(name, size, requests={GPU: 8}, annotations=asking(required=RACK))
    return [behind_gate(one) for one in pods]


@for_root
@pytest.mark.timeout(120 + 60 * REPEATED)
@pytest.mark.parametrize("ends", [True, False], ids=["killed", "paused"])
def test_a_gang_is_whole_in_one_rack_whatever_becomes_of_the_pair_that_leads(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path, ends: bool
) -> None:
    plane.nodes(grid(racks=2, nodes=16, gpus=8))
    prefix = "killed" if ends else "paused"
    with Chronicle(plane, gpus_per_node=8) as chronicle, ExitStack() as stack:
        pairs = {
            name: stack.enter_context(pair(plane, tmp_path, name, election=ELECTION))
            for name in (f"{prefix}-0", f"{prefix}-1")
        }
        for number in range(REPEATED):
            name = cluster.wait(lambda: leader(plane, pairs), TAKEN_OVER_SECONDS, "a leader")
            cluster.create_all(gang(f"g{number}"))
            cluster.wait(lambda: cluster.bound(), TAKEN_OVER_SECONDS, "the first binding")
            time.sleep(MOMENTS[number % len(MOMENTS)])
            old = pairs.pop(name)
            if ends:
                old.kill()
            else:
                old.pause()
            new = f"{prefix}-{number + 2}"
            pairs[new] = stack.enter_context(pair(plane, tmp_path, new, election=ELECTION))
            cluster.wait(lambda: leader(plane, pairs), TAKEN_OVER_SECONDS, "another leader")
            cluster.wait(lambda: len(cluster.bound()) == PODS, TAKEN_OVER_SECONDS, "the whole gang")
            assert len(racks_of(cluster)) == 1
            if not ends:
                clear(cluster)
                cluster.create_all(gang(f"next-{number}"))
                old.resume()
                cluster.wait(
                    lambda: len(cluster.bound()) == PODS, TAKEN_OVER_SECONDS, "the next gang"
                )
                old.kill()
            clear(cluster)
        wanted = PODS * REPEATED * (1 if ends else 2)
        cluster.wait(lambda: chronicle.bindings == wanted, 10.0, "the whole history")
        assert chronicle.problems == []


@pytest.mark.timeout(60 + 20 * PAUSES)
def test_a_corral_that_has_no_time_for_a_while_goes_on_where_it_was(
    plane: ControlPlane, cluster: Cluster, corral: CorralProcess
) -> None:
    plane.nodes(grid(racks=2, nodes=16, gpus=8))
    with Chronicle(plane, gpus_per_node=8) as chronicle:
        for number in range(PAUSES):
            cluster.create_all(gang(f"g{number}")[: PODS // 2 if number % 2 else PODS])
            time.sleep(MOMENTS[number % len(MOMENTS)])
            corral.pause()
            cluster.create_all(gang(f"g{number}")[PODS // 2 :] if number % 2 else [])
            time.sleep(PAUSE_SECONDS)
            corral.resume()
            cluster.wait(lambda: len(cluster.bound()) == PODS, RESUMED_SECONDS, "the whole gang")
            clear(cluster)
        cluster.wait(lambda: chronicle.bindings == PODS * PAUSES, 10.0, "the whole history")
        assert chronicle.problems == []


@pytest.mark.timeout(60 + 30 * REPEATED)
def test_a_corral_with_a_tenth_of_a_core_answers_late_and_does_everything(
    plane: ControlPlane, cluster: Cluster, corral: CorralProcess
) -> None:
    plane.nodes(grid(racks=2, nodes=16, gpus=8))
    answered: list[float] = []  # seconds, of what kubelet and kube-scheduler ask
    with Chronicle(plane, gpus_per_node=8) as chronicle, starved(corral):
        for number in range(REPEATED):
            cluster.create_all(gang(f"g{number}"))
            deadline = time.monotonic() + STARVED_SECONDS
            while len(cluster.bound()) < PODS and time.monotonic() < deadline:
                began = time.monotonic()
                assert httpx.get(f"{corral.url}/healthz", timeout=LIVENESS_SECONDS).is_success
                answered.append(time.monotonic() - began)
            assert len(cluster.bound()) == PODS
            assert len(racks_of(cluster)) == 1
            clear(cluster)
        assert chronicle.problems == []
    assert max(answered) <= LATE_SECONDS


@contextmanager
def starved(corral: CorralProcess) -> Iterator[None]:
    """Corral runs for a tenth of the time, 10 ms at once, until the block ends."""
    over = Event()

    def hold_up() -> None:
        while not over.wait(RUN_SECONDS):
            corral.pause()
            time.sleep(9 * RUN_SECONDS)
            corral.resume()

    thread = Thread(target=hold_up)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.mark.timeout(120 + 150 * REPEATED)
def test_corral_reads_on_when_the_api_server_is_back_and_gangs_are_whole_with_kube_scheduler(
    plane: ControlPlane, cluster: Cluster, corral: CorralProcess
) -> None:
    plane.nodes(grid(racks=2, nodes=16, gpus=8))
    waited: list[tuple[float, float, float]] = []  # outage, kube-scheduler's return, the gangs
    read_on: list[float] = []  # seconds until Corral has taken the gates off a gang
    with Chronicle(plane, gpus_per_node=8) as chronicle:
        for number in range(REPEATED):
            cluster.create_all(gang(f"g{number}"))
            time.sleep(MOMENTS[number % len(MOMENTS)])
            plane.stop_apiserver()
            time.sleep(OUTAGES[number % len(OUTAGES)])
            plane.start_apiserver()
            up = time.monotonic()
            cluster.create_all(gang(f"later-{number}", LATER_PODS))
            cluster.wait(lambda: are_ungated(cluster, "later"), BACK_SECONDS, "Corral's return")
            read_on.append(time.monotonic() - up)
            cluster.create(pod("canary", requests={"cpu": "1"}))
            cluster.wait(lambda: "canary" in cluster.bound(), BACK_SECONDS, "kube-scheduler")
            back = time.monotonic()
            cluster.wait(
                lambda: len(cluster.bound()) == PODS + LATER_PODS + 1,
                BACK_SECONDS,
                "both gangs are bound",
            )
            waited.append((OUTAGES[number % len(OUTAGES)], back - up, time.monotonic() - back))
            clear(cluster)
        told = [each for each in chronicle.problems if "the history has a hole" not in each]
    plane.denials()  # an API server that starts knows nobody's rights yet: these are not meant
    assert told == []
    assert max(after for _, _, after in waited) <= WHOLE_SECONDS, waited
    assert max(read_on) <= READS_ON_SECONDS, read_on


def are_ungated(cluster: Cluster, prefix: str) -> bool:
    """Whether Corral has planned them and let them go: kube-scheduler is not needed for that."""
    return not any(
        gates_of(one)
        for one in cluster.list("Pod", "default")
        if one["metadata"]["name"].startswith(prefix)
    )
