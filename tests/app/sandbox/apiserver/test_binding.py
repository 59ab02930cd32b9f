"""What a binding does, and when it is refused."""

from __future__ import annotations

from typing import Any

import pytest

from app.sandbox import Sandbox
from app.sandbox.apiserver.storage.kinds import POD
from tests.app.sandbox.http import PODS, Client, client_of, until
from tests.app.sandbox.objects import condition_of, node_of, pod, pod_of


def binding(name: str, node: str, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name} | metadata,
        "target": {"kind": "Node", "name": node},
    }


async def test_a_binding_sets_node_condition_and_annotations(
    sandbox: Sandbox, client: Client
) -> None:
    body = pod("a")
    body["metadata"]["annotations"] = {"kept": "yes", "plan": "old"}
    await client.create(PODS, body)
    answer = await client.create(
        f"{PODS}/a/binding", binding("a", "n1", annotations={"plan": "new"})
    )
    assert (answer.status, answer.body["status"]) == (201, "Success")
    assert node_of(sandbox, "a") == "n1"
    assert condition_of(sandbox, "a")["status"] == "True"
    assert pod_of(sandbox, "a")["metadata"]["annotations"] == {"kept": "yes", "plan": "new"}
    assert pod_of(sandbox, "a")["status"]["phase"] == "Pending"


async def test_a_bound_pod_is_not_bound_again_not_even_to_its_node(client: Client) -> None:
    await client.create(PODS, pod("a"))
    await client.create(f"{PODS}/a/binding", binding("a", "n1"))
    again = await client.create(f"{PODS}/a/binding", binding("a", "n1"))
    assert (again.status, again.reason) == (409, "Conflict")
    assert 'pod a is already assigned to node "n1"' in again.message


async def test_a_binding_for_another_uid_is_409(client: Client) -> None:
    await client.create(PODS, pod("a"))
    answer = await client.create(f"{PODS}/a/binding", binding("a", "n1", uid="other"))
    assert (answer.status, answer.reason) == (409, "Conflict")
    assert "UID in precondition: other" in answer.message


async def test_a_gated_pod_is_not_bound(client: Client) -> None:
    await client.create(PODS, pod("a", gates=("g",)))
    answer = await client.create(f"{PODS}/a/binding", binding("a", "n1"))
    assert answer.status == 409
    assert "non-empty .spec.schedulingGates" in answer.message


async def test_a_pod_that_is_going_is_not_bound(client: Client) -> None:
    body = pod("a")
    body["metadata"]["finalizers"] = ["example.org/hold"]
    await client.create(PODS, body)
    await client.delete(f"{PODS}/a")
    answer = await client.create(f"{PODS}/a/binding", binding("a", "n1"))
    assert answer.status == 409
    assert "is being deleted" in answer.message


@pytest.mark.parametrize(
    ("name", "status"),
    [
        pytest.param("b", 404, id="no_such_pod"),
        pytest.param("a", 400, id="another_name_in_the_body"),
    ],
)
async def test_a_binding_must_name_its_pod(client: Client, name: str, status: int) -> None:
    await client.create(PODS, pod("a"))
    in_body = name if status == 404 else "other"
    answer = await client.create(f"{PODS}/{name}/binding", binding(in_body, "n1"))
    assert answer.status == status


async def test_bound_pods_run_only_where_asked() -> None:
    async with Sandbox(run_pods=True) as sandbox, client_of(sandbox) as client:
        await client.create(PODS, pod("a"))
        await client.create(f"{PODS}/a/binding", binding("a", "n1"))
        await until(lambda: pod_of(sandbox, "a")["status"]["phase"] == "Running")
        assert sandbox.registry.read(POD, ("default", "a")).body["status"]["startTime"]
