"""Who reads /v1 beyond loopback: the real API server says whose a token is and what he may list."""

from __future__ import annotations

import json
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.api.access.permissions import ANSWER_SECONDS
from app.api.following.events import RECHECK_SECONDS
from tests.certificates import pair
from tests.cluster import RACK, Cluster, Object, Refused, grid
from tests.controlplane.plane import ControlPlane, free_ports
from tests.controlplane.seen import START_SECONDS
from tests.corral_process import CorralProcess
from tests.workloads import asking, members

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

OWN, OTHER = "team-a", "team-b"
LATE_SECONDS = 3 * ANSWER_SECONDS  # the API server believes itself for as long, of tokens
HOME, LEASE = "corral-system", "corral-scheduler"
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{HOME}/leases"
RBAC = "rbac.authorization.k8s.io"


def address() -> str:
    """One of this machine that is not loopback; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has no address but loopback")
        return str(probe.getsockname()[0])


class People:
    """The port of a Corral, reached from beyond loopback."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        certificate, key = pair("first").write(folder)
        (port,) = free_ports(1)
        self.plane, self.host, self.port = plane, address(), port
        self.corral = CorralProcess(
            plane.kubeconfig("corral"), folder, scheduler_name="",
            api_listen=f"0.0.0.0:{port}", api_cert=str(certificate), api_key=str(key),
            log_level="debug", journal=str(folder / "journal"),
        )  # fmt: skip
        self.folder = folder
        trusting: ssl.SSLContext = pair("first").client()
        trusting.check_hostname = False  # it is for 127.0.0.1
        self._client = httpx.Client(verify=trusting, trust_env=False, timeout=20.0)

    def get(self, path: str, token: str = "", **more: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return self._client.get(
            f"https://{self.host}:{self.port}/v1{path}", headers=headers, **more
        )

    @contextmanager
    def stream(self, path: str, token: str) -> Iterator[Iterator[tuple[str, Any]]]:
        """The events that come, of a kind and with data each."""
        headers = {"Authorization": f"Bearer {token}"}
        url = f"https://{self.host}:{self.port}/v1{path}"
        with self._client.stream("GET", url, headers=headers) as answer:
            assert answer.status_code == 200
            yield _events(answer.iter_lines())

    def close(self) -> None:
        self._client.close()


def _events(lines: Iterator[str]) -> Iterator[tuple[str, Any]]:
    kind = ""
    for line in lines:
        if line.startswith("event: "):
            kind = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield kind, json.loads(line.removeprefix("data: "))


@pytest.fixture
def people(plane: ControlPlane, cluster: Cluster, tmp_path: Path) -> Iterator[People]:
    """A gang in each of two namespaces that does not fit, and a Corral that may ask."""
    made: list[tuple[str, str]] = [("Namespace", OWN), ("Namespace", OTHER)]
    for _, name in made:
        cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    plane.nodes(grid(racks=1, nodes=2, gpus=8))
    for name in (OWN, OTHER):
        pods = members("wide", 4, annotations=asking(required=RACK))
        for each in pods:
            each["metadata"]["namespace"] = name
        cluster.create_all(pods)
    with plane.granted("corral-readers"):
        found = People(plane, tmp_path)
        with found.corral:
            yield found
            found.close()
            assert found.corral.bugs() == {}
    for name in (OWN, OTHER):
        cluster.delete_all("Pod", name)


def account(cluster: Cluster, name: str) -> str:
    """A new ServiceAccount in the namespace of the tenant; its token."""
    cluster.apply(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": OWN}}
    )
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    path = f"/api/v1/namespaces/{OWN}/serviceaccounts/{name}/token"
    token = cluster.request("POST", path, body=asked).json()["status"]["token"]
    return str(token)


def allow(cluster: Cluster, name: str, resource: str, namespace: str = "") -> None:
    """The ServiceAccount may list these objects; namespace "": of all."""
    kind = "Role" if namespace else "ClusterRole"
    metadata: Object = {"name": f"{name}-{resource}"}
    if namespace:
        metadata["namespace"] = namespace
    rule = {"apiGroups": [""], "resources": [resource], "verbs": ["list"]}
    api = f"{RBAC}/v1"
    cluster.apply({"apiVersion": api, "kind": kind, "metadata": metadata, "rules": [rule]})
    cluster.apply(
        {
            "apiVersion": api, "kind": f"{kind}Binding", "metadata": metadata,
            "roleRef": {"apiGroup": RBAC, "kind": kind, "name": metadata["name"]},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": OWN}],
        }
    )  # fmt: skip


def test_a_service_account_reads_what_it_may_list_and_no_more(
    plane: ControlPlane, cluster: Cluster, people: People
) -> None:
    tenant, auditor, stranger = (account(cluster, one) for one in ("tenant", "auditor", "none"))
    allow(cluster, "tenant", "pods", OWN)
    allow(cluster, "auditor", "pods")
    cases = [
        (tenant, f"/gangs?namespace={OWN}", 200),
        (tenant, f"/gangs/{OWN}/wide", 200),
        (tenant, f"/gangs/{OWN}/wide/explanation", 200),
        (tenant, "/gangs", 403),
        (tenant, f"/gangs?namespace={OTHER}", 403),
        (tenant, f"/gangs/{OTHER}/wide", 403),
        (tenant, f"/gangs/{OTHER}/wide/explanation", 403),
        (auditor, "/gangs", 200),
        (auditor, f"/gangs/{OTHER}/wide", 200),
        (stranger, f"/gangs?namespace={OWN}", 403),
        ("", f"/gangs?namespace={OWN}", 401),
        ("no-token-at-all", f"/gangs?namespace={OWN}", 401),
        (tenant[:-9] + "AAAAAAAAA", f"/gangs?namespace={OWN}", 401),
    ]
    for token, path, status in cases:
        answer = people.get(path, token)
        assert answer.status_code == status, (path, answer.text)
    seen = {each["namespace"] for each in people.get("/gangs", auditor).json()["gangs"]}
    assert seen >= {OWN, OTHER}
    told = people.get("/gangs", tenant).json()["detail"]
    assert f"system:serviceaccount:{OWN}:tenant" in told
    assert "namespace=" in told
    # On loopback, as before, without any token.
    local = httpx.get(f"{people.corral.url}/v1/gangs", trust_env=False).json()
    assert {each["namespace"] for each in local["gangs"]} >= {OWN, OTHER}
    # Nothing of a token is kept.
    people.corral.terminate()
    for file in ("corral.log", "journal"):
        text = (people.folder / file).read_bytes()
        for token in (tenant, auditor, stranger, "no-token-at-all"):
            assert token.encode()[-40:] not in text
    people.corral.start()


def test_a_token_ends_with_its_account_and_a_right_with_its_binding(
    plane: ControlPlane, cluster: Cluster, people: People
) -> None:
    leaver, demoted = account(cluster, "leaver"), account(cluster, "demoted")
    for name in ("leaver", "demoted"):
        allow(cluster, name, "pods", OWN)
    path = f"/gangs?namespace={OWN}"
    assert [people.get(path, each).status_code for each in (leaver, demoted)] == [200, 200]
    cluster.request("DELETE", f"/api/v1/namespaces/{OWN}/serviceaccounts/leaver")
    binding = f"/apis/{RBAC}/v1/namespaces/{OWN}/rolebindings/demoted-pods"
    cluster.request("DELETE", binding)
    since = time.monotonic()
    while (found := people.get(path, demoted).status_code) == 200:
        assert time.monotonic() < since + LATE_SECONDS
        time.sleep(0.2)
    assert found == 403
    while (found := people.get(path, leaver).status_code) == 200:
        assert time.monotonic() < since + LATE_SECONDS
        time.sleep(0.2)
    assert found == 401


def test_without_the_api_server_or_the_right_to_ask_nobody_is_answered(
    plane: ControlPlane, cluster: Cluster, people: People
) -> None:
    late = account(cluster, "late")
    allow(cluster, "late", "pods", OWN)
    path = f"/gangs?namespace={OWN}"
    plane.stop_apiserver()
    try:
        answer = people.get(path, late)
        assert (answer.status_code, "API server" in answer.json()["detail"]) == (503, True)
    finally:
        plane.start_apiserver()
    cluster.wait(lambda: people.get(path, late).status_code == 200, START_SECONDS, "an answer")

    cluster.delete("ClusterRoleBinding", "corral-readers-corral")
    try:
        other = account(cluster, "other")
        deadline = time.monotonic() + START_SECONDS
        while "corral-readers" not in (answer := people.get(path, other)).text:
            assert time.monotonic() < deadline, answer.text
            time.sleep(0.2)
        assert answer.status_code == 503
    finally:
        assert plane.denials()
        cluster.apply(
            {
                "apiVersion": f"{RBAC}/v1", "kind": "ClusterRoleBinding",
                "metadata": {"name": "corral-readers-corral"},
                "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "corral-readers"},
                "subjects": [],
            }
        )  # fmt: skip


def test_who_follows_gets_his_gangs_until_his_right_ends(
    plane: ControlPlane, cluster: Cluster, people: People
) -> None:
    token = account(cluster, "follower")
    allow(cluster, "follower", "pods", OWN)
    assert people.get("/events", token).status_code == 403
    with people.stream(f"/events?namespace={OWN}", token) as said:
        assert [kind for kind, _ in _until(said, "synced")] == ["gang", "synced"]
        more = members("more", 2, requests={"cpu": "1"})
        for each in more:
            each["metadata"]["namespace"] = OWN
        cluster.create_all(more)
        name = ""
        while name != "more":
            kind, data = next(said)
            name = data["name"]
            assert (kind, data["namespace"]) == ("gang", OWN)
        path = f"/apis/{RBAC}/v1/namespaces/{OWN}/rolebindings/follower-pods"
        cluster.request("DELETE", path)
        ends = time.monotonic() + RECHECK_SECONDS + LATE_SECONDS
        (_, last) = _until(said, "end")[-1]
        assert "follower may not" in last["reason"]
        assert time.monotonic() < ends


def test_a_corral_that_does_not_lead_names_the_pod_that_does(
    plane: ControlPlane, cluster: Cluster, tmp_path: Path
) -> None:
    with CorralProcess(
        plane.kubeconfig("corral"), tmp_path, neighbour_lease=f"{HOME}/{LEASE}", pod_name="corral-0"
    ) as corral:

        def leader() -> str | None:
            answer = httpx.get(f"{corral.url}/v1/gangs", trust_env=False)
            return answer.headers.get("Corral-Leader")

        hold(cluster, "corral-7_0a1b")
        cluster.wait(lambda: leader() == "corral-7", START_SECONDS, "the Lease to be read")
        hold(cluster, "corral-0_0a1b")
        cluster.wait(lambda: leader() is None, START_SECONDS, "the Lease to be read again")
    cluster.request("DELETE", f"{LEASES}/{LEASE}")


def hold(cluster: Cluster, holder: str) -> None:
    """The Lease of kube-scheduler is this one's."""
    with suppress(Refused):
        cluster.request("DELETE", f"{LEASES}/{LEASE}")
    lease = {
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": LEASE, "namespace": HOME},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15},
    }  # fmt: skip
    cluster.request("POST", LEASES, body=lease)


def _until(said: Iterator[tuple[str, Any]], last: str) -> list[tuple[str, Any]]:
    """The events up to one of this kind."""
    found = []
    for kind, data in said:
        found.append((kind, data))
        if kind == last:
            break
    return found
