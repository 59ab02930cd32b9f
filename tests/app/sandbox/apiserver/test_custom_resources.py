"""A definition of a custom resource makes the API serve it; without it the path is not there."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from app.sandbox import Sandbox
from tests.app.sandbox.http import MERGE, PODS, STRATEGIC, Client, until
from tests.app.sandbox.objects import pod

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = "toys.example.org"
FLEETS = f"/apis/{GROUP}/v1/namespaces/default/fleets"
JSON_PATCH = "application/json-patch+json"


def version(name: str, **more: Any) -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {"name": name, "served": True, "storage": False, "schema": schema} | more


def definition(
    *versions: dict[str, Any],
    plural: str = "fleets",
    kind: str = "Fleet",
    scope: str = "Namespaced",
    has_status: bool = True,
) -> dict[str, Any]:
    subresources = {"subresources": {"status": {}}} if has_status else {}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {"plural": plural, "kind": kind, "shortNames": ["fl"]},
            "scope": scope,
            "versions": list(versions) or [version("v1", storage=True, **subresources)],
        },
    }


def fleet(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Fleet",
        "metadata": {"name": name},
        "spec": spec,
    }


async def defined(client: Client, **choices: Any) -> None:
    answer = await client.create(DEFINITIONS, definition(**choices))
    assert answer.status == 201, answer.body


async def test_an_object_is_404_until_its_kind_is_defined(client: Client) -> None:
    before = await client.create(FLEETS, fleet("a"))
    await defined(client)
    after = await client.create(FLEETS, fleet("a", ships=2))
    assert (before.status, before.body) == (404, "404 page not found\n")
    assert after.status == 201
    assert (after.body["kind"], after.body["apiVersion"]) == ("Fleet", f"{GROUP}/v1")
    assert after.body["spec"] == {"ships": 2}
    assert after.body["metadata"]["generation"] == 1


async def test_a_definition_is_established_at_once_and_says_what_it_accepted(
    client: Client,
) -> None:
    await defined(client)
    (stored,) = (await client.get(DEFINITIONS)).body["items"]
    conditions = {each["type"]: each["status"] for each in stored["status"]["conditions"]}
    names = {
        "plural": "fleets",
        "singular": "fleet",
        "kind": "Fleet",
        "listKind": "FleetList",
        "shortNames": ["fl"],
    }
    assert conditions == {"NamesAccepted": "True", "Established": "True"}
    assert stored["status"]["acceptedNames"] == stored["spec"]["names"] == names
    assert stored["status"]["storedVersions"] == ["v1"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param(
            {"metadata": {"name": "fleets"}}, 'must be spec.names.plural+"."+spec.group', id="name"
        ),
        pytest.param(
            {"spec": {"versions": [version("v1")]}},
            "must have exactly one version marked as storage version",
            id="no_storage_version",
        ),
        pytest.param(
            {"spec": {"versions": [version("v1", storage=True, schema=None)]}},
            "spec.versions[0].schema.openAPIV3Schema: Required value",
            id="no_schema",
        ),
        pytest.param(
            {"spec": {"scope": "Everywhere"}},
            'Unsupported value: "Everywhere": supported values: "Cluster", "Namespaced"',
            id="no_such_scope",
        ),
        pytest.param({"spec": {"group": ""}}, "spec.group: Required value", id="no_group"),
        pytest.param(
            {"spec": {"names": {"plural": "fleets"}}},
            "spec.names.kind: Required value",
            id="no_kind",
        ),
    ],
)
async def test_an_unsound_definition_is_422(
    client: Client, change: dict[str, Any], said: str
) -> None:
    body = definition()
    for part, fields in change.items():
        body[part] = body[part] | fields
    answer = await client.create(DEFINITIONS, body)
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert said in answer.message


async def test_discovery_shows_a_defined_kind_and_forgets_it(client: Client) -> None:
    await defined(client)
    groups = {each["name"]: each for each in (await client.get("/apis")).body["groups"]}
    group = (await client.get(f"/apis/{GROUP}")).body
    resources = (await client.get(f"/apis/{GROUP}/v1")).body["resources"]
    assert groups[GROUP]["preferredVersion"]["groupVersion"] == f"{GROUP}/v1"
    assert (group["kind"], group["name"]) == ("APIGroup", GROUP)
    assert [each["name"] for each in resources] == ["fleets", "fleets/status"]
    assert (resources[0]["singularName"], resources[0]["shortNames"]) == ("fleet", ["fl"])
    assert resources[0]["namespaced"]
    assert (await client.delete(f"{DEFINITIONS}/fleets.{GROUP}")).status == 200
    assert GROUP not in {each["name"] for each in (await client.get("/apis")).body["groups"]}
    assert (await client.get(f"/apis/{GROUP}/v1")).status == 404


async def test_a_cluster_scoped_kind_is_served_without_a_namespace(client: Client) -> None:
    await defined(client, scope="Cluster", plural="oceans", kind="Ocean")
    path = f"/apis/{GROUP}/v1/oceans"
    created = await client.create(path, {"kind": "Ocean", "metadata": {"name": "blue"}})
    assert created.status == 201
    assert "namespace" not in created.body["metadata"]
    assert (await client.get(f"{path}/blue")).body["kind"] == "Ocean"
    assert (await client.get(f"/apis/{GROUP}/v1/namespaces/default/oceans")).status == 404


async def test_all_served_versions_show_the_same_object_and_an_unserved_one_is_404(
    client: Client,
) -> None:
    versions = version("v1beta1"), version("v1", storage=True), version("v2", served=False)
    body = definition(*versions)
    assert (await client.create(DEFINITIONS, body)).status == 201
    await client.create(FLEETS, fleet("a", ships=1))
    old = await client.get(FLEETS.replace("/v1/", "/v1beta1/") + "/a")
    assert (old.body["apiVersion"], old.body["spec"]) == (f"{GROUP}/v1beta1", {"ships": 1})
    assert (await client.get(FLEETS.replace("/v1/", "/v2/"))).status == 404
    group = (await client.get(f"/apis/{GROUP}")).body
    assert [each["version"] for each in group["versions"]] == ["v1", "v1beta1"]
    assert group["preferredVersion"]["version"] == "v1"


async def test_a_later_version_is_served_once_the_definition_names_it(client: Client) -> None:
    await defined(client)
    await client.create(FLEETS, fleet("a"))
    more = [version("v1", storage=True), version("v2")]
    change = {"spec": {"versions": more}}
    patched = await client.patch(f"{DEFINITIONS}/fleets.{GROUP}", change, MERGE)
    assert patched.body["metadata"]["generation"] == 2
    listed = await client.get(FLEETS.replace("/v1/", "/v2/"))
    assert [each["apiVersion"] for each in listed.body["items"]] == [f"{GROUP}/v2"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        pytest.param(
            fleet("a") | {"apiVersion": f"{GROUP}/v2"},
            f"the API version in the data ({GROUP}/v2) does not match the expected API version"
            f" ({GROUP}/v1)",
            id="another_version",
        ),
        pytest.param(
            {"metadata": {"name": "a"}},
            "the object provided is unrecognized (must be of type Fleet): Object 'Kind' is missing",
            id="no_kind",
        ),
    ],
)
async def test_a_custom_object_says_what_it_is(
    client: Client, body: dict[str, Any], said: str
) -> None:
    await defined(client)
    answer = await client.create(FLEETS, body)
    assert (answer.status, answer.reason, answer.message) == (400, "BadRequest", said)


async def test_custom_objects_are_listed_in_pages_with_their_kind(client: Client) -> None:
    await defined(client)
    for name in "abc":
        await client.create(FLEETS, fleet(name))
    first = await client.get(f"{FLEETS}?limit=2")
    token = first.body["metadata"]["continue"]
    second = await client.get(f"{FLEETS}?limit=2&continue={token}")
    assert first.body["kind"] == "FleetList"
    assert first.body["metadata"]["remainingItemCount"] == 1
    items = first.body["items"] + second.body["items"]
    assert [each["metadata"]["name"] for each in items] == ["a", "b", "c"]
    assert {each["kind"] for each in items} == {"Fleet"}
    everywhere = await client.get(f"/apis/{GROUP}/v1/fleets")
    assert len(everywhere.body["items"]) == 3


async def test_a_list_kind_of_another_name_is_used(client: Client) -> None:
    body = definition()
    body["spec"]["names"]["listKind"] = "Armada"
    await client.create(DEFINITIONS, body)
    assert (await client.get(FLEETS)).body["kind"] == "Armada"


async def test_a_kind_that_is_called_like_a_built_in_one_is_not_taken_for_it(
    client: Client,
) -> None:
    await defined(client, plural="pods", kind="Pod", has_status=False)
    path = f"/apis/{GROUP}/v1/namespaces/default/pods"
    body = {"kind": "Pod", "metadata": {"name": "a"}, "spec": {"peas": 5}}
    created = await client.create(path, body)
    assert (created.status, created.body["spec"]) == (201, {"peas": 5})
    assert (await client.create(f"{path}/a/binding", {"target": {"name": "n"}})).status == 404
    refused = await client.get(f"{path}?fieldSelector=spec.nodeName=x")
    assert (refused.status, refused.message) == (400, "field label not supported: spec.nodeName")


async def test_a_watch_shows_custom_objects_and_ends_with_their_definition(
    client: Client, sandbox: Sandbox
) -> None:
    await defined(client)
    watching = asyncio.create_task(client.watch(FLEETS, f"resourceVersion={sandbox.store.version}"))
    await until(lambda: sandbox.faults.open_watches)
    await client.create(FLEETS, fleet("a", ships=1))
    await client.patch(f"{FLEETS}/a", {"spec": {"ships": 2}}, MERGE)
    await client.delete(f"{DEFINITIONS}/fleets.{GROUP}")
    async with asyncio.timeout(5):
        events = await watching
    assert [each["type"] for each in events] == ["ADDED", "MODIFIED", "DELETED"]
    assert {each["object"]["kind"] for each in events} == {"Fleet"}
    assert [each["object"]["spec"]["ships"] for each in events] == [1, 2, 2]


async def test_definitions_themselves_are_watched(client: Client, sandbox: Sandbox) -> None:
    begin = sandbox.store.version
    await defined(client)
    await client.delete(f"{DEFINITIONS}/fleets.{GROUP}")
    query = f"resourceVersion={begin}&timeoutSeconds=1"
    watching = asyncio.create_task(client.watch(DEFINITIONS, query))
    await until(lambda: sandbox.faults.open_watches)
    sandbox.faults.cut_watches()
    assert [each["type"] for each in await watching] == ["ADDED", "DELETED"]


async def test_deleting_the_definition_removes_the_objects_for_good(
    client: Client, sandbox: Sandbox
) -> None:
    await defined(client)
    held = fleet("held")
    held["metadata"]["finalizers"] = ["example.org/hold"]
    for body in (fleet("a"), held):
        await client.create(FLEETS, body)
    await client.delete(f"{DEFINITIONS}/fleets.{GROUP}")
    gone = await client.get(FLEETS)
    await defined(client)
    assert (gone.status, gone.body) == (404, "404 page not found\n")
    assert (await client.get(FLEETS)).body["items"] == []


@pytest.mark.parametrize(
    ("content_type", "change", "status"),
    [
        pytest.param(MERGE, {"spec": {"ships": None, "flag": "x"}}, 200, id="merge"),
        pytest.param(
            JSON_PATCH,
            [
                {"op": "add", "path": "/spec/flag", "value": "x"},
                {"op": "remove", "path": "/spec/ships"},
            ],
            200,
            id="json_patch",
        ),
        pytest.param(STRATEGIC, {"spec": {}}, 415, id="strategic_is_for_built_in_kinds"),
        pytest.param("application/apply-patch+yaml", {"spec": {}}, 415, id="apply_is_left_out"),
    ],
)
async def test_a_custom_object_takes_the_patch_formats_of_custom_objects(
    client: Client, content_type: str, change: Any, status: int
) -> None:
    await defined(client)
    await client.create(FLEETS, fleet("a", ships=1))
    answer = await client.patch(f"{FLEETS}/a", change, content_type)
    assert answer.status == status
    assert status != 200 or answer.body["spec"] == {"flag": "x"}


async def test_a_write_of_an_object_leaves_its_status_alone(client: Client) -> None:
    await defined(client)
    created = await client.create(FLEETS, fleet("a", ships=1) | {"status": {"afloat": 1}})
    change = {"spec": {"ships": 2}, "status": {"afloat": 2}}
    patched = await client.patch(f"{FLEETS}/a", change, MERGE)
    put = await client.call("PUT", f"{FLEETS}/a", patched.body | {"status": {"afloat": 3}})
    assert "status" not in created.body
    assert "status" not in patched.body
    assert "status" not in put.body
    assert patched.body["metadata"]["generation"] == 2
    assert put.version == patched.version


@pytest.mark.parametrize("verb", ["PATCH", "PUT"])
async def test_a_status_write_leaves_the_rest_alone(client: Client, verb: str) -> None:
    await defined(client)
    created = (await client.create(FLEETS, fleet("a", ships=1))).body
    change = {
        "metadata": {"labels": {"late": "yes"}},
        "spec": {"ships": 9},
        "status": {"afloat": 1},
    }
    if verb == "PUT":
        body = created | {"spec": {"ships": 9}, "status": {"afloat": 1}}
        body["metadata"] = created["metadata"] | {"labels": {"late": "yes"}}
        answer = await client.call("PUT", f"{FLEETS}/a/status", body)
    else:
        answer = await client.patch(f"{FLEETS}/a/status", change, MERGE)
    assert answer.status == 200
    assert (answer.body["spec"], answer.body["status"]) == ({"ships": 1}, {"afloat": 1})
    assert "labels" not in answer.body["metadata"]
    assert answer.body["metadata"]["generation"] == 1
    assert (await client.get(f"{FLEETS}/a/status")).body == answer.body


async def test_without_the_subresource_status_is_a_field_like_any_other(client: Client) -> None:
    await defined(client, has_status=False)
    await client.create(FLEETS, fleet("a") | {"status": {"afloat": 0}})
    patched = await client.patch(f"{FLEETS}/a", {"status": {"afloat": 1}}, MERGE)
    assert patched.body["status"] == {"afloat": 1}
    assert patched.body["metadata"]["generation"] == 2
    assert (await client.get(f"{FLEETS}/a/status")).status == 404


async def test_metadata_does_not_count_as_a_generation_and_any_other_field_does(
    client: Client,
) -> None:
    await defined(client)
    await client.create(FLEETS, fleet("a"))
    labelled = await client.patch(f"{FLEETS}/a", {"metadata": {"labels": {"x": "y"}}}, MERGE)
    beside = await client.patch(f"{FLEETS}/a", {"cargo": "tea"}, MERGE)
    assert labelled.body["metadata"]["generation"] == 1
    assert beside.body["metadata"]["generation"] == 2


@pytest.mark.parametrize("path", ["a", "a/status"])
async def test_a_stale_version_is_409_in_a_put_and_in_a_patch(client: Client, path: str) -> None:
    await defined(client)
    created = (await client.create(FLEETS, fleet("a"))).body
    await client.patch(f"{FLEETS}/a", {"spec": {"ships": 1}}, MERGE)
    stale = {"metadata": {"resourceVersion": created["metadata"]["resourceVersion"]}}
    change = stale | {"spec": {"ships": 2}, "status": {"afloat": 1}}
    by_patch = await client.patch(f"{FLEETS}/{path}", change, MERGE)
    by_put = await client.call("PUT", f"{FLEETS}/{path}", created)
    unversioned = await client.call("PUT", f"{FLEETS}/{path}", fleet("a"))
    assert (by_patch.status, by_patch.reason) == (409, "Conflict")
    assert "the object has been modified" in by_patch.message
    assert by_put.status == 409
    assert unversioned.status == 422


async def test_a_subresource_takes_its_own_verbs_only(client: Client) -> None:
    await client.create(PODS, pod("a"))
    for verb, path in (("DELETE", "status"), ("GET", "binding"), ("PATCH", "eviction")):
        answer = await client.call(verb, f"{PODS}/a/{path}", {})
        assert (answer.status, answer.reason) == (405, "MethodNotAllowed")
    assert (await client.get(f"{PODS}/a")).status == 200
