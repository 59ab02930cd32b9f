"""What goes with its owner."""

from __future__ import annotations

from typing import Any

from app.sandbox import Sandbox
from app.sandbox.apiserver.storage.kinds import POD, POD_TEMPLATE, Kind, Object
from tests.app.sandbox.http import PODS, Client
from tests.app.sandbox.objects import pod

REQUEST = "/apis/example.com/v1/namespaces/default/requests"
DEFINITION: dict[str, Any] = {
    "metadata": {"name": "requests.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"plural": "requests", "kind": "Request"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object"}},
            }
        ],
    },
}


def owned(name: str, *owners: Object) -> Object:
    """The metadata of an object that these own."""
    references = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": each["metadata"]["name"],
            "uid": each["metadata"]["uid"],
        }
        for each in owners
    ]
    return {"name": name, "ownerReferences": references}


def add(sandbox: Sandbox, kind: Kind, name: str, *owners: Object) -> Object:
    body = {"metadata": owned(name, *owners)}
    body |= {"spec": pod(name)["spec"]} if kind is POD else {"template": pod(name)}
    return sandbox.registry.create(kind, "default", body).body


def names(sandbox: Sandbox, kind: Kind) -> list[str]:
    return sorted(each.body["metadata"]["name"] for each in sandbox.store.values(kind))


async def test_what_an_object_owns_goes_with_it_and_what_that_owns(sandbox: Sandbox) -> None:
    root = add(sandbox, POD, "root")
    middle = add(sandbox, POD_TEMPLATE, "middle", root)
    add(sandbox, POD, "leaf", middle)
    add(sandbox, POD, "another")
    sandbox.registry.delete(POD, ("default", "root"))
    assert (names(sandbox, POD), names(sandbox, POD_TEMPLATE)) == (["another"], [])


async def test_the_last_owner_takes_it_along(sandbox: Sandbox) -> None:
    first, second = add(sandbox, POD, "first"), add(sandbox, POD, "second")
    add(sandbox, POD_TEMPLATE, "both", first, second)
    sandbox.registry.delete(POD, ("default", "first"))
    assert names(sandbox, POD_TEMPLATE) == ["both"]
    sandbox.registry.delete(POD, ("default", "second"))
    assert names(sandbox, POD_TEMPLATE) == []


async def test_custom_resources_own_and_are_owned(sandbox: Sandbox, client: Client) -> None:
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert (await client.create(path, DEFINITION)).status == 201
    request = (await client.create(REQUEST, {"kind": "Request", "metadata": {"name": "a"}})).body
    add(sandbox, POD_TEMPLATE, "of-a", request)
    lower = {"kind": "Request", "metadata": owned("b", add(sandbox, POD, "p"))}
    assert (await client.create(REQUEST, lower)).status == 201
    await client.delete(f"{REQUEST}/a")
    await client.delete(f"{PODS}/p")
    assert names(sandbox, POD_TEMPLATE) == []
    assert (await client.get(REQUEST)).body["items"] == []
