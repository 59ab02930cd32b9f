"""A tenant whose pods come by the webhook where gangs are born in place: what he can hold by that.

A place is planned before its pod is stored, so each attack is pods that are stored in part, or not
at all. What `test_attacks.py` says of an attack holds of these; when they are over nothing is held.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from tests.attacks import FAST, in_namespace
from tests.certificates import pair
from tests.cluster import GPU, RACK, Cluster, Object, Objects, Refused, grid
from tests.controlplane.plane import ControlPlane
from tests.controlplane.test_attacks import MOST_HELD, SETTLE_SECONDS, TRIES, Felt
from tests.controlplane.test_tenants import tenants
from tests.controlplane.webhook import MUTATING, Webhook, installed, path_of
from tests.tenants import LOUD, QUIET
from tests.workloads import asking, gates_of, members

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.alone,
    pytest.mark.slow,
    pytest.mark.thorough,
    pytest.mark.timeout(600),
]

__all__ = ["tenants"]  # a fixture

BORN_SECONDS = 5.0
ENDS_SECONDS = BORN_SECONDS + 10.0  # a place for a pod that does not come
GANGS = 60  # of four pods each: 240 places, of which he may hold 32
ASKED_AT_ONCE = 16
BORN = "corral_pods_born_total"
ABSENT = "corral_absent_pods"
Attack = Callable[[Webhook], None]


@pytest.fixture
def webhook(plane: ControlPlane, tenants: Cluster, tmp_path: Path) -> Iterator[Webhook]:
    """A cluster of four racks, and a Corral that has gangs born in place."""
    plane.nodes(grid(racks=4, nodes=8, gpus=8))
    with installed(plane, tmp_path, born_seconds=BORN_SECONDS) as found:
        plane.start_scheduler(extender=found.corral.url)
        yield found
        assert found.corral.bugs() == {}


def first_pods(name: str, of: int = 4, gangs: int = GANGS) -> Objects:
    """The first pod of each of many gangs that start before all of their pods are there."""
    said = asking(required=RACK) | {FAST: "true"}
    return in_namespace(
        LOUD,
        [
            each
            for at in range(gangs)
            for each in members(
                f"{name}-{at}", of, numbers=[0], requests={GPU: 1, "cpu": "10m"}, annotations=said
            )
        ],
    )


# -- the attacks -----------------------------------------------------------------------------------


def alone(webhook: Webhook) -> None:
    """No second pod of any gang is created."""
    webhook.cluster.create_all(first_pods("alone"))


def too_large(webhook: Webhook) -> None:
    """Each gang has more pods than the cluster has room for."""
    webhook.cluster.create_all(first_pods("large", of=100_000))


def only_tried(webhook: Webhook) -> None:
    """Creations that are to be tried only: `kubectl apply --dry-run=server`."""
    many(webhook.tried, first_pods("tried"))


def refused(webhook: Webhook) -> None:
    """Creations that another admission refuses, after the webhook was asked."""
    cluster = webhook.cluster
    limits = [{"type": "Container", "max": {"cpu": "1m"}}]
    metadata = {"name": "nothing", "namespace": LOUD}
    made = {"apiVersion": "v1", "kind": "LimitRange", "metadata": metadata}
    path = f"/api/v1/namespaces/{LOUD}/limitranges"
    cluster.request("POST", path, body={**made, "spec": {"limits": limits}})
    outcomes: list[bool] = []

    def is_refused(each: Object) -> None:
        try:
            cluster.create(each)
        except Refused as refusal:
            outcomes.append("maximum cpu usage" in str(refusal))

    try:
        many(is_refused, first_pods("refused"))
    finally:
        cluster.request("DELETE", f"{path}/nothing")
    assert outcomes == [True] * GANGS


def by_hand(webhook: Webhook) -> None:
    """Questions at the webhook's own port, of pods and namespaces that are not there."""
    (hook,) = [
        each["clientConfig"]
        for one in webhook.cluster.request("GET", path_of(MUTATING)).json()["items"]
        for each in one["webhooks"]
        if each["name"] == "gate.corral.dev"
    ]
    with httpx.Client(verify=pair("apiserver").client(), trust_env=False, timeout=20.0) as client:
        for at, each in enumerate(first_pods("asked", gangs=5 * GANGS)):
            each["metadata"]["namespace"] = f"made-up-{at}"
            answer = client.post(hook["url"], json=review(each))
            assert answer.status_code == 200
            assert answer.json()["response"]["allowed"] is True


def made_and_deleted(webhook: Webhook) -> None:
    """Pods that go at once, so that their gangs are born again and again."""
    for _ in range(3):
        webhook.cluster.create_all(first_pods("again", gangs=GANGS // 3))
        webhook.cluster.delete_all("Pod", LOUD)


def many(ask: Callable[[Object], object], things: Objects) -> None:
    with ThreadPoolExecutor(ASKED_AT_ONCE) as pool:
        for _ in pool.map(ask, things):
            pass


def review(thing: Object) -> Object:
    """What the API server sends of a pod that is being created."""
    request = {
        "uid": "by-hand",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "namespace": thing["metadata"]["namespace"],
        "name": thing["metadata"]["name"],
        "operation": "CREATE",
        "object": thing,
        "dryRun": False,
    }
    return {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}


ATTACKS: dict[str, Attack] = {
    "gangs of which one pod comes": alone,
    "gangs that fit nowhere": too_large,
    "pods that are only tried": only_tried,
    "pods that are refused by others": refused,
    "questions by hand": by_hand,
    "pods that are deleted at once": made_and_deleted,
}


# -- what others notice ----------------------------------------------------------------------------


def start_of(cluster: Cluster, name: str) -> float:
    """Seconds from the creation of a gang, by the webhook, until it runs; it is gone afterwards."""
    pods = members(name, 4, requests={GPU: 8}, annotations=asking(required=RACK))
    began = time.monotonic()
    made = cluster.create_all(in_namespace(QUIET, pods))
    assert all(gates_of(each) for each in made)
    cluster.wait(lambda: len(cluster.bound(QUIET)) == 4, 60, "the quiet tenant's gang")
    took = time.monotonic() - began
    cluster.delete_all("Pod", QUIET)
    cluster.wait(lambda: not cluster.list("Pod", QUIET), 30, "no pod left")
    return took


def felt(webhook: Webhook, name: str, attack: Attack) -> Felt:
    """Attacks; his pods are gone afterwards, and nothing is held for any."""
    cluster, corral = webhook.cluster, webhook.corral
    before, memory = (
        statistics.median(start_of(cluster, f"alone-{each}") for each in range(TRIES)),
        corral.resident(),
    )
    attack(webhook)
    held = int(corral.metric(ABSENT))
    beside = max(start_of(cluster, f"beside-{each}") for each in range(TRIES))
    held = max(held, int(corral.metric(ABSENT)))
    time.sleep(SETTLE_SECONDS)
    with suppress(Refused):
        cluster.delete_all("Pod", LOUD)
    cluster.wait(lambda: not cluster.list("Pod", LOUD), 60, "the attacker's pods to go")
    cluster.wait(lambda: corral.metric(ABSENT) == 0, ENDS_SECONDS, "no place to be held")
    start_of(cluster, "after")
    # Who reaches the port may name any namespace: beside what others hold each may have its share.
    most_held = 2 * MOST_HELD if attack is by_hand else MOST_HELD
    return Felt(name, before, beside, held, corral.resident() - memory, most_held)


def test_no_attack_on_births_delays_anothers_gang_holds_too_much_or_leaves_memory_behind(
    webhook: Webhook,
) -> None:
    start_of(webhook.cluster, "warm")
    found = [felt(webhook, name, attack) for name, attack in ATTACKS.items()]
    print(*found, sep="\n")
    assert [each for each in found if not each.is_within_bounds] == []
    assert any(each.held == MOST_HELD for each in found)
    assert webhook.corral.metric(BORN) > 0


def test_after_all_of_them_every_node_is_free_again(webhook: Webhook) -> None:
    cluster = webhook.cluster
    for attack in ATTACKS.values():
        attack(webhook)
    cluster.delete_all("Pod", LOUD)
    cluster.wait(lambda: not cluster.list("Pod", LOUD), 60, "the attacker's pods to go")
    pods = [
        each
        for rack in range(4)
        for each in members(
            f"whole-{rack}", 8, requests={GPU: 8}, annotations=asking(required=RACK)
        )
    ]
    cluster.create_all(in_namespace(QUIET, pods))
    cluster.wait(lambda: len(cluster.bound(QUIET)) == 32, 60 + ENDS_SECONDS, "all four racks")
    assert webhook.corral.metric(ABSENT) == 0
