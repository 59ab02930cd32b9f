"""The stock control plane, and our configuration of it: what the rest of the e2e tests stand on."""

from __future__ import annotations

import socket
from itertools import islice
from pathlib import Path

import httpx
import pytest
import yaml

from tests.cluster import GPU, Cluster, Objects, Refused, grid, job, node, pod
from tests.controlplane.echo_extender import echo_extender
from tests.controlplane.plane import (
    FIRST_PORT,
    PORTS,
    SCHEDULER_CONFIG,
    ControlPlane,
    free_ports,
    ports_of,
)
from tests.controlplane.process import ProcessEnded

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


def test_the_stock_scheduler_binds_a_plain_pod(plane: ControlPlane, cluster: Cluster) -> None:
    plane.nodes([node("only")])
    plane.start_scheduler()
    created = cluster.create(pod("plain"))

    cluster.wait(lambda: cluster.bound() == {"plain": "only"}, 15, "the binding")
    told = cluster.wait(lambda: cluster.events(created), 10, "its event")
    assert [event["reason"] for event in told] == ["Scheduled"]


def test_a_pod_of_another_scheduler_is_left_alone(plane: ControlPlane, cluster: Cluster) -> None:
    plane.nodes([node("only")])
    plane.start_scheduler()
    cluster.create(pod("theirs", scheduler="default-scheduler"))
    cluster.create(pod("ours"))

    cluster.wait(lambda: "ours" in cluster.bound(), 15, "the binding")
    assert cluster.bound() == {"ours": "only"}


def test_the_job_controller_makes_a_pod_per_index(plane: ControlPlane, cluster: Cluster) -> None:
    created = cluster.create(job("train", pods=3, requests={GPU: 8}))

    pods = cluster.wait(lambda: _all_of(cluster, 3), 15, "three pods")
    assert {one["metadata"]["ownerReferences"][0]["uid"] for one in pods} == {
        created["metadata"]["uid"]
    }


def test_the_scheduler_asks_the_extender_in_the_words_we_read(
    plane: ControlPlane, cluster: Cluster
) -> None:
    plane.nodes(grid(racks=1, nodes=3))
    with echo_extender(plane.cluster("corral")) as extender:
        plane.start_scheduler(extender=extender.url)
        created = cluster.create(pod("asked", annotations={"team": "blue"}))
        bound = cluster.wait(lambda: cluster.bound().get("asked"), 15, "the binding")

    names = {"b0-r0-n0", "b0-r0-n1", "b0-r0-n2"}
    assert extender.verbs() == ["/filter", "/prioritize", "/bind"]
    for path in ("/filter", "/prioritize"):
        body = extender.body(path)
        assert set(body) == {"Pod", "Nodes", "NodeNames"}
        assert body["Nodes"] is None
        assert set(body["NodeNames"]) == names
        assert body["Pod"]["metadata"]["uid"] == created["metadata"]["uid"]
        assert body["Pod"]["metadata"]["annotations"] == {"team": "blue"}
        assert "managedFields" not in body["Pod"]["metadata"]
    assert extender.body("/bind") == {
        "PodName": "asked",
        "PodNamespace": "default",
        "PodUID": created["metadata"]["uid"],
        "Node": bound,
    }
    headers = extender.asked[0][1]
    assert headers["Content-Type"] == "application/json"
    assert int(headers["Content-Length"]) > 0


def test_the_scheduler_skips_prioritize_when_one_node_is_left(
    plane: ControlPlane, cluster: Cluster
) -> None:
    plane.nodes([node("only")])
    with echo_extender(plane.cluster("corral")) as extender:
        plane.start_scheduler(extender=extender.url)
        cluster.create(pod("pinned"))
        cluster.wait(lambda: cluster.bound(), 15, "the binding")

    assert extender.verbs() == ["/filter", "/bind"]


def test_the_scheduler_asks_preempt_with_the_uids_of_the_victims(
    plane: ControlPlane, cluster: Cluster
) -> None:
    plane.nodes([node("only", gpus=8)])
    with echo_extender(plane.cluster("corral")) as extender:
        plane.start_scheduler(extender=extender.url)
        victim = cluster.create(pod("victim", requests={GPU: 8}))
        cluster.wait(lambda: "victim" in cluster.bound(), 15, "the victim's binding")
        cluster.create(
            pod("urgent", requests={GPU: 8}, priorityClassName="system-cluster-critical")
        )
        cluster.wait(lambda: cluster.bound() == {"urgent": "only"}, 20, "the preemption")

    body = extender.body("/preempt")
    assert set(body) == {"Pod", "NodeNameToVictims", "NodeNameToMetaVictims"}
    assert body["NodeNameToVictims"] is None
    assert body["NodeNameToMetaVictims"]["only"]["Pods"] == [{"UID": victim["metadata"]["uid"]}]


def test_nothing_binds_while_the_extender_does_not_answer(
    plane: ControlPlane, cluster: Cluster
) -> None:
    plane.nodes([node("only")])
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))  # nobody listens: the connection is refused
        plane.start_scheduler(extender=f"http://127.0.0.1:{silent.getsockname()[1]}")
        created = cluster.create(pod("waits"))
        told = cluster.wait(lambda: cluster.events(created), 15, "its event")

    assert told[0]["reason"] == "FailedScheduling"
    assert cluster.bound() == {}


def test_the_scheduler_leads_by_its_own_lease(plane: ControlPlane, cluster: Cluster) -> None:
    plane.nodes([node("only")])
    plane.start_scheduler(leaderElection={"leaderElect": True})
    cluster.create(pod("led"))
    cluster.wait(lambda: cluster.bound() == {"led": "only"}, 15, "the binding")

    lease = cluster.get("Lease", "corral-scheduler", "corral-system")
    assert lease is not None
    assert lease["spec"]["holderIdentity"].startswith(f"{socket.gethostname()}_")
    cluster.delete("Lease", "corral-scheduler", "corral-system")


def test_a_binding_with_another_uid_is_refused_as_a_conflict(
    plane: ControlPlane, cluster: Cluster
) -> None:
    plane.nodes([node("only")])
    cluster.create(pod("recreated"))

    with pytest.raises(Refused) as refused:
        cluster.bind("recreated", "only", uid="00000000-0000-0000-0000-000000000000")
    assert refused.value.status == 409
    assert cluster.bound() == {}


def test_a_second_binding_is_refused_as_a_conflict(plane: ControlPlane, cluster: Cluster) -> None:
    plane.nodes([node("first"), node("second")])
    created = cluster.create(pod("once"))
    cluster.bind("once", "first", uid=created["metadata"]["uid"])

    with pytest.raises(Refused) as refused:
        cluster.bind("once", "second", uid=created["metadata"]["uid"])
    assert refused.value.status == 409
    assert cluster.bound() == {"once": "first"}


def test_a_watch_tells_what_happens_and_ends_in_time(cluster: Cluster) -> None:
    cluster.create(pod("seen"))
    told = []
    for event in cluster.watch("Pod", 10, "default"):
        told.append((event["type"], event["object"]["metadata"]["name"]))
        if event["type"] == "ADDED":
            cluster.delete("Pod", "seen")
        if event["type"] == "DELETED":
            break
    quiet = list(cluster.watch("Pod", 1, "default"))

    assert told[0] == ("ADDED", "seen")
    assert told[-1] == ("DELETED", "seen")
    assert quiet == []


def test_a_configuration_with_a_misspelt_field_ends_with_the_schedulers_own_words(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path
) -> None:
    settings = yaml.safe_load(SCHEDULER_CONFIG.read_text(encoding="utf-8"))
    misspelt = tmp_path / "misspelt.yaml"
    misspelt.write_text(yaml.safe_dump(settings | {"percentageOfNodes": 100}), encoding="utf-8")

    with pytest.raises(ProcessEnded, match="percentageOfNodes"):
        plane.start_scheduler(misspelt)
    plane.start_scheduler()
    assert "Caches populated" in plane.scheduler_log


def test_a_plane_that_cannot_start_leaves_nothing_running(
    plane: ControlPlane, tmp_path: Path
) -> None:
    second = ControlPlane(tmp_path / "second")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", httpx.URL(second.url).port or 0))
        taken.listen()
        with pytest.raises(ProcessEnded, match="kube-apiserver ended"), second:
            pass

    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{second.etcd_url}/readyz", trust_env=False)


def test_a_port_for_a_process_is_none_that_a_connection_may_be_given() -> None:
    given = Path("/proc/sys/net/ipv4/ip_local_port_range")
    if not given.exists():
        pytest.skip("only Linux says which ports connections are given")
    lowest = int(given.read_text(encoding="ascii").split()[0])
    ports = [port for _ in range(50) for port in free_ports(3)]
    assert max(ports) < lowest
    assert len(set(ports)) == len(ports)


def test_workers_side_by_side_try_no_port_of_each_other() -> None:
    workers = [*(f"gw{number}" for number in range(3)), ""]
    ports = [
        set(islice(ports_of(pid, worker), PORTS)) for pid, worker in enumerate(workers, start=4_711)
    ]
    assert len(set.union(*ports)) == sum(map(len, ports))
    assert all(FIRST_PORT <= port < FIRST_PORT + PORTS for each in ports for port in each)


def test_a_port_that_is_listened_on_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    (free,) = free_ports(1)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ports = iter((taken.getsockname()[1], free))
        monkeypatch.setattr("tests.controlplane.plane._UPWARD", ports)
        assert free_ports(1) == [free]


def test_the_api_servers_metrics_count_what_was_asked(
    plane: ControlPlane, cluster: Cluster
) -> None:
    before = _requests(plane.apiserver_metrics())
    for _ in range(5):
        cluster.get("Node", "absent")
    assert _requests(plane.apiserver_metrics()) >= before + 5


def _all_of(cluster: Cluster, pods: int) -> Objects:
    found = cluster.list("Pod", "default")
    return found if len(found) == pods else []


def _requests(metrics: dict[str, float]) -> float:
    return sum(
        value
        for name, value in metrics.items()
        if name.startswith("apiserver_request_total") and 'resource="nodes"' in name
    )
