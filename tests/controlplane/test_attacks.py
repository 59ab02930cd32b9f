"""A tenant who may create pods in his namespace, and everything he can do to the others with that.

Each attack alone and all at once: another namespace's gang starts at most a second later than it
would alone, he holds at most what he may, and Corral's memory is free again once his pods are gone.
While the pods come the gang is measured against the same pods without a word to Corral: the API
server stores them and kube-scheduler looks at them one by one, whatever Corral does.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.attacks import ATTACKS, STARVING, all_of_them, driver, harmless
from tests.cluster import GPU, RACK, Cluster, Objects, grid
from tests.controlplane.plane import ControlPlane
from tests.controlplane.test_tenants import tenants
from tests.corral_process import CorralProcess, scheduled
from tests.tenants import LOUD, QUIET
from tests.workloads import asking, behind_gate, members

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.alone,
    pytest.mark.slow,
    pytest.mark.timeout(900),
]

__all__ = ["tenants"]  # a fixture

MIB = 1024 * 1024
DELAY_SECONDS = 1.0
MEMORY_MIB = 64
SETTLE_SECONDS = 60.0  # for kube-scheduler to look at every new pod once
MOST_HELD = 32  # places for pods that do not exist: `absent_pods_per_namespace`
MOST_KEPT = 8  # nodes kept free for gangs that starve: `earmarked_nodes`
KEPT = "corral_earmarked_nodes"
TRIES = 3


@pytest.fixture
def attacked(plane: ControlPlane, tenants: Cluster, tmp_path: Path) -> Iterator[CorralProcess]:
    """A cluster of four racks with eight nodes each."""
    plane.nodes(grid(racks=4, nodes=8, gpus=8))
    with scheduled(plane, tmp_path, starvation_seconds=1.0, fewest_fragments=True) as corral:
        yield corral
        assert corral.bugs() == {}


def gang(name: str) -> Objects:
    pods = members(name, 4, requests={GPU: 8}, annotations=asking(required=RACK))
    for each in pods:
        each["metadata"]["namespace"] = QUIET
    return [behind_gate(each) for each in pods]


def start_of(cluster: Cluster, name: str) -> float:
    """Seconds from the creation of a gang until it runs; it is gone afterwards."""
    began = time.monotonic()
    cluster.create_all(gang(name))
    cluster.wait(lambda: len(cluster.bound(QUIET)) == 4, 60, "the quiet tenant's gang")
    took = time.monotonic() - began
    cluster.delete_all("Pod", QUIET)
    cluster.wait(lambda: not cluster.list("Pod", QUIET), 30, "no pod left")
    return took


def untried(cluster: Cluster) -> list[str]:
    """The attacker's pods that kube-scheduler has not looked at yet, and is to look at."""
    return [
        each["metadata"]["name"]
        for each in cluster.list("Pod", LOUD)
        if not (each["spec"].get("nodeName") or each.get("status", {}).get("conditions"))
    ]


@dataclass(frozen=True, slots=True)
class Felt:
    """What an attack did to another tenant: seconds, pods and MiB."""

    attack: str
    alone: float
    beside: float
    held: int
    memory: float
    most_held: int = MOST_HELD
    kept: int = 0  # nodes, for gangs that starve
    meanwhile: float = 0.0  # while his pods were looked at for the first time …
    meanwhile_harmless: float = 0.0  # … and while as many harmless ones were

    @property
    def is_within_bounds(self) -> bool:
        return (
            self.beside <= self.alone + DELAY_SECONDS
            and self.meanwhile <= 2 * self.meanwhile_harmless + DELAY_SECONDS
            and self.kept <= MOST_KEPT
            and self.held <= self.most_held
            and self.memory <= MEMORY_MIB
        )


def felt(cluster: Cluster, corral: CorralProcess, attack: str, pods: Objects) -> Felt:
    """Attacks; his pods are gone afterwards."""
    alone = statistics.median(start_of(cluster, f"alone-{each}") for each in range(TRIES))
    meanwhile_harmless = come(cluster, "harmless", harmless(pods))
    go(cluster)
    before = corral.resident()
    meanwhile = come(cluster, attack, pods)
    if attack == STARVING:
        cluster.wait(lambda: corral.metric(KEPT), SETTLE_SECONDS, "nodes to be kept")
    beside = max(start_of(cluster, f"beside-{each}") for each in range(TRIES))
    told = corral.metrics()  # at once: each look waits for the next answer
    held, kept = (int(told[name]) for name in ("corral_absent_pods", KEPT))
    go(cluster)
    start_of(cluster, "after")
    memory = corral.resident() - before
    return Felt(attack, alone, beside, held, memory, MOST_HELD, kept, meanwhile, meanwhile_harmless)


def come(cluster: Cluster, name: str, pods: Objects) -> float:
    """Creates pods of the attacker; seconds that the other's gang takes until all were tried."""
    cluster.create_all(pods)
    took = start_of(cluster, "meanwhile")
    cluster.wait(lambda: not untried(cluster), SETTLE_SECONDS, f"every pod to be tried: {name}")
    return took


def go(cluster: Cluster) -> None:
    """Deletes all pods of the attacker."""
    cluster.delete_all("Pod", LOUD)
    cluster.wait(lambda: not cluster.list("Pod", LOUD), 60, "the attacker's pods to go")


def test_no_attack_delays_anothers_gang_holds_too_much_or_leaves_memory_behind(
    tenants: Cluster, attacked: CorralProcess
) -> None:
    start_of(tenants, "warm")
    found = [felt(tenants, attacked, name, attack()) for name, attack in ATTACKS.items()]
    found.append(felt(tenants, attacked, "all at once", all_of_them()))
    print(*found, sep="\n")
    assert [each for each in found if not each.is_within_bounds] == []
    assert any(each.held == MOST_HELD for each in found)
    assert [each.kept for each in found if each.attack == STARVING] == [MOST_KEPT]


def test_a_node_that_goes_is_taken_note_of_after_an_attack(
    tenants: Cluster, attacked: CorralProcess
) -> None:
    (first,) = tenants.create_all(driver(1_273))
    tenants.wait(lambda: tenants.events(first), 30, "the driver to be refused")
    tenants.delete_all("Pod", LOUD)
    tenants.create_all(gang("runs"))
    tenants.wait(lambda: len(tenants.bound(QUIET)) == 4, 60, "the quiet tenant's gang")
    under_it = tenants.bound(QUIET)["runs-0"]
    tenants.delete("Node", under_it)
    tenants.delete("Pod", "runs-0", QUIET)
    (replacement, *_) = gang("runs")
    tenants.create(replacement)
    tenants.wait(lambda: len(tenants.bound(QUIET)) == 4, 60, "the replacement")
    assert attacked.bugs() == {}
