"""What a client may rely on when it reads and writes objects."""

from __future__ import annotations

import asyncio
from pathlib import Path

import aiohttp
import pytest
import yaml

from app.sandbox import Sandbox
from app.sandbox.apiserver.storage.kinds import NAMESPACE, POD, PRIORITY_CLASS
from tests.app.sandbox.http import MERGE, NODES, PODS, STRATEGIC, Client, client_of
from tests.app.sandbox.objects import fill, narrowed_to, node, pod

TOPOLOGIES = "/apis/kueue.x-k8s.io/v1beta2/topologies"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"


async def test_a_request_without_the_token_is_401(sandbox: Sandbox) -> None:
    async with client_of(sandbox, token="wrong") as stranger:
        assert (await stranger.get(NODES)).status == 401
        assert (await stranger.get("/readyz")).body == "ok"
        assert (await stranger.get("/version")).body["minor"] == "36"


async def test_the_kubeconfig_names_this_port_and_token(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.write_kubeconfig(tmp_path / "config")
    content = yaml.safe_load((tmp_path / "config").read_text())
    assert content["clusters"][0]["cluster"]["server"] == sandbox.url
    assert content["users"][0]["user"]["token"] == sandbox.token
    assert (tmp_path / "config").stat().st_mode & 0o077 == 0


async def test_created_objects_get_uid_time_version_and_generation(client: Client) -> None:
    created = await client.create(PODS, pod("a"))
    metadata = created.body["metadata"]
    assert created.status == 201
    assert metadata["generation"] == 1
    assert len(metadata["uid"]) == 36
    assert metadata["creationTimestamp"].endswith("Z")
    assert int(metadata["resourceVersion"]) > 0
    assert created.body["status"]["phase"] == "Pending"


async def test_every_write_has_a_higher_version_and_no_change_has_none(client: Client) -> None:
    first = await client.create(NODES, node("n0"))
    second = await client.patch(f"{NODES}/n0", {"metadata": {"labels": {"a": "b"}}})
    same = await client.patch(f"{NODES}/n0", {"metadata": {"labels": {"a": "b"}}})
    assert int(second.version) > int(first.version)
    assert same.version == second.version


@pytest.mark.parametrize(
    ("path", "body", "status", "reason"),
    [
        pytest.param(f"{PODS}", pod("p0"), 409, "AlreadyExists", id="the_name_is_taken"),
        pytest.param(f"{PODS}", pod("Not_A_Name"), 422, "Invalid", id="the_name_is_no_name"),
        pytest.param(
            "/api/v1/namespaces/nowhere/pods", pod("a"), 404, "NotFound", id="no_such_namespace"
        ),
        pytest.param(f"{PODS}", pod("a", priority=7), 403, "Forbidden", id="a_bare_priority"),
        pytest.param(
            f"{PODS}", pod("a", priorityClassName="none"), 403, "Forbidden", id="no_such_class"
        ),
        pytest.param(
            f"{PODS}", pod("a", cpu="2", limits={"cpu": "1"}), 422, "Invalid", id="above_limit"
        ),
        pytest.param(f"{PODS}", pod("a", cpu="1 core"), 422, "Invalid", id="no_quantity"),
        pytest.param(f"{PODS}", pod("a", gates=("x", "x")), 422, "Invalid", id="a_gate_twice"),
        pytest.param(
            f"{PODS}", pod("a", gates=("x",), nodeName="n0"), 422, "Invalid", id="gated_and_bound"
        ),
    ],
)
async def test_a_bad_create_is_refused_with_a_status(
    client: Client, path: str, body: dict[str, object], status: int, reason: str
) -> None:
    await client.create(PODS, pod("p0"))
    answer = await client.create(path, body)
    assert answer.status == status
    assert answer.body["kind"] == "Status"
    assert (answer.body["code"], answer.reason) == (status, reason)
    assert answer.message


@pytest.mark.parametrize(
    ("metadata", "status", "said"),
    [
        pytest.param({"labels": {"a": "x y"}}, 422, "a valid label must be", id="label"),
        pytest.param({"labels": {"a": "x" * 64}}, 422, "no more than 63", id="long_label"),
        pytest.param({"labels": {"A b": "x"}}, 422, "name part must consist of", id="key"),
        pytest.param({"annotations": {"UP/a": "x"}}, 200, "", id="annotations_ignore_case"),
        pytest.param({"annotations": {"a/b/c": "x"}}, 422, "prefix part", id="prefix"),
        pytest.param({"annotations": {"a": "x" * 2**18}}, 422, "Too long", id="annotations"),
        pytest.param({"annotations": {"a": 1}}, 400, "cannot unmarshal", id="no_text"),
        pytest.param(
            {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "a"}]},
            422,
            "must not be empty",
            id="owner_without_uid",
        ),
    ],
)
async def test_metadata_that_the_api_does_not_take_is_refused_new_and_later(
    client: Client, metadata: dict[str, object], status: int, said: str
) -> None:
    await client.create(PODS, pod("a"))
    patched = await client.patch(f"{PODS}/a", {"metadata": metadata}, MERGE)
    assert patched.status == status
    body = pod("b")
    body["metadata"] |= metadata
    created = await client.create(PODS, body)
    assert created.status == (201 if status == 200 else status)
    if said:
        assert said in patched.message
        assert said in created.message


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        pytest.param({"nodeSelector": {"a": "x y"}}, "a valid label must be", id="selector"),
        pytest.param({"key": "a", "operator": "In"}, "must be specified when", id="no_values"),
        pytest.param({"key": "a b", "operator": "Exists"}, "name part", id="key"),
        pytest.param(
            {"key": "a", "operator": "Is"}, "not a valid selector operator", id="operator"
        ),
        pytest.param({"key": "a", "operator": "Exists", "values": ["b"]}, "may not", id="values"),
    ],
)
async def test_what_no_node_can_be_chosen_by_is_refused(
    client: Client, spec: dict[str, object], said: str
) -> None:
    fields = {"affinity": _terms([spec])} if "operator" in spec else spec
    answer = await client.create(PODS, pod("a", **fields))
    assert answer.status == 422
    assert said in answer.message


async def test_an_extended_resource_needs_a_limit(client: Client) -> None:
    body = pod("a")
    body["spec"]["containers"][0]["resources"]["requests"]["nvidia.com/gpu"] = "1"
    answer = await client.create(PODS, body)
    assert answer.status == 422
    assert "Limit must be set for non overcommitable resources" in answer.message


async def test_a_priority_class_gives_a_pod_its_priority(sandbox: Sandbox) -> None:
    sandbox.registry.create(PRIORITY_CLASS, "", {"metadata": {"name": "high"}, "value": 50})
    created = sandbox.registry.create(POD, "default", pod("a", priorityClassName="high"))
    assert created.body["spec"]["priority"] == 50


async def test_limits_are_taken_for_missing_requests(client: Client) -> None:
    body = pod("a", limits={"cpu": "2", "nvidia.com/gpu": "1"})
    created = await client.create(PODS, body)
    requests = created.body["spec"]["containers"][0]["resources"]["requests"]
    assert requests == {"cpu": "1", "nvidia.com/gpu": "1"}


async def test_an_object_that_is_not_there_is_404(client: Client) -> None:
    answer = await client.get(f"{PODS}/a")
    assert (answer.status, answer.message) == (404, 'pods "a" not found')


async def test_list_items_of_built_in_kinds_carry_no_kind(client: Client) -> None:
    await client.create(PODS, pod("a"))
    listed = await client.get(PODS)
    assert listed.body["kind"] == "PodList"
    assert "kind" not in listed.body["items"][0]
    assert (await client.get(f"{PODS}/a")).body["kind"] == "Pod"


async def test_a_missing_crd_is_404_and_an_installed_one_is_served(client: Client) -> None:
    missing = await client.get(TOPOLOGIES)
    assert (missing.status, missing.body) == (404, "404 page not found\n")
    async with Sandbox(has_topology_crd=True) as other, client_of(other) as its_client:
        levels = [{"nodeLabel": "rack"}]
        body = {"kind": "Topology", "metadata": {"name": "default"}, "spec": {"levels": levels}}
        assert (await its_client.create(TOPOLOGIES, body)).status == 201
        listed = await its_client.get(TOPOLOGIES)
        assert listed.body["items"][0]["kind"] == "Topology"
        assert listed.body["items"][0]["spec"]["levels"] == levels
        patched = await its_client.patch(f"{TOPOLOGIES}/default", {"spec": {}}, STRATEGIC)
        assert patched.status == 415


@pytest.mark.parametrize(
    ("query", "names"),
    [
        pytest.param("labelSelector=app=x", ["a"], id="label_equals"),
        pytest.param("labelSelector=app!=x", ["b", "c"], id="label_differs_or_is_missing"),
        pytest.param("labelSelector=app+in+(x,y)", ["a", "b"], id="label_in_a_set"),
        pytest.param("labelSelector=app+notin+(x)", ["b", "c"], id="label_not_in_a_set"),
        pytest.param("labelSelector=!app", ["c"], id="label_missing"),
        pytest.param("labelSelector=app,app!=x", ["b"], id="both"),
        pytest.param("fieldSelector=metadata.name=b", ["b"], id="by_name"),
        pytest.param("fieldSelector=spec.nodeName=n1", ["c"], id="by_node"),
        pytest.param("fieldSelector=spec.nodeName=", ["a", "b"], id="unbound"),
        pytest.param("fieldSelector=status.phase!=Pending", [], id="by_phase"),
    ],
)
async def test_selectors_pick(client: Client, query: str, names: list[str]) -> None:
    for name, labels in (("a", {"app": "x"}), ("b", {"app": "y"}), ("c", {})):
        body = pod(name)
        body["metadata"]["labels"] = labels
        await client.create(PODS, body)
    await client.create(f"{PODS}/c/binding", {"target": {"name": "n1"}})
    listed = await client.get(f"{PODS}?{query}")
    assert [item["metadata"]["name"] for item in listed.body["items"]] == names


async def test_an_unknown_field_label_is_400(client: Client) -> None:
    answer = await client.get(f"{PODS}?fieldSelector=spec.colour=red")
    assert (answer.status, answer.message) == (400, "field label not supported: spec.colour")


async def test_pages_show_one_version_whatever_happens_between_them(client: Client) -> None:
    for name in "abcde":
        await client.create(PODS, pod(name))
    first = await client.get(f"{PODS}?limit=2")
    token = first.body["metadata"]["continue"]
    assert first.body["metadata"]["remainingItemCount"] == 3
    await client.delete(f"{PODS}/c")
    await client.create(PODS, pod("bb"))
    await client.patch(f"{PODS}/d", {"metadata": {"labels": {"late": "yes"}}})
    second = await client.get(f"{PODS}?limit=10&continue={token}")
    items = second.body["items"]
    assert [item["metadata"]["name"] for item in items] == ["c", "d", "e"]
    assert "labels" not in items[1]["metadata"]
    assert second.version == first.version
    assert "continue" not in second.body["metadata"]


async def test_a_page_behind_the_compaction_is_410(sandbox: Sandbox, client: Client) -> None:
    fill(sandbox, 3)
    first = await client.get(f"{NODES}?limit=1")
    fill_more = await client.create(NODES, node("later"))
    sandbox.faults.compact()
    again = await client.get(f"{NODES}?limit=1&continue={first.body['metadata']['continue']}")
    assert fill_more.status == 201
    assert (again.status, again.reason) == (410, "Expired")


async def test_a_list_of_the_future_is_504(client: Client) -> None:
    assert (await client.get(f"{PODS}?resourceVersion=999999")).status == 504


async def test_a_put_with_an_old_version_is_409(client: Client) -> None:
    lease = {"metadata": {"name": "l"}, "spec": {"holderIdentity": "a"}}
    created = (await client.create(LEASES, lease)).body
    taken = await client.call("PUT", f"{LEASES}/l", created | {"spec": {"holderIdentity": "b"}})
    stale = await client.call("PUT", f"{LEASES}/l", created | {"spec": {"holderIdentity": "c"}})
    unnamed = await client.call("PUT", f"{LEASES}/l", lease)
    assert taken.status == 200
    assert (stale.status, stale.reason) == (409, "Conflict")
    assert "the object has been modified" in stale.message
    assert unnamed.status == 422


async def test_a_lease_may_be_created_by_a_put_and_a_pod_may_not(client: Client) -> None:
    lease = {"metadata": {"name": "l"}, "spec": {"holderIdentity": "a"}}
    assert (await client.call("PUT", f"{LEASES}/l", lease)).status == 201
    assert (await client.call("PUT", f"{PODS}/a", pod("a"))).status == 404


async def test_default_tolerations_come_back_when_an_update_drops_them(client: Client) -> None:
    created = await client.create(PODS, pod("a"))
    patched = await client.patch(f"{PODS}/a", {"spec": {"tolerations": []}}, MERGE)
    assert patched.body["spec"]["tolerations"] == created.body["spec"]["tolerations"]
    assert patched.version == created.version


async def test_a_patch_with_an_old_version_is_409_and_a_foreign_uid_is_422(client: Client) -> None:
    await client.create(PODS, pod("a"))
    by_version = {"metadata": {"resourceVersion": "1", "labels": {"a": "b"}}}
    by_uid = {"metadata": {"uid": "other", "labels": {"a": "b"}}}
    assert (await client.patch(f"{PODS}/a", by_version, MERGE)).status == 409
    answer = await client.patch(f"{PODS}/a", by_uid, MERGE)
    assert (answer.status, answer.reason) == (422, "Invalid")


async def test_status_is_written_only_through_its_subresource(client: Client) -> None:
    await client.create(PODS, pod("a"))
    await client.patch(f"{PODS}/a", {"status": {"phase": "Running"}})
    assert (await client.get(f"{PODS}/a")).body["status"]["phase"] == "Pending"
    change = {"status": {"phase": "Running"}, "spec": {"nodeName": "n0"}}
    await client.patch(f"{PODS}/a/status", change)
    after = (await client.get(f"{PODS}/a")).body
    assert after["status"]["phase"] == "Running"
    assert "nodeName" not in after["spec"]
    assert after["metadata"]["generation"] == 1


async def test_ungating_and_narrowing_go_in_one_patch_and_foreign_gates_stay(
    client: Client,
) -> None:
    await client.create(PODS, pod("a", gates=("ours", "theirs")))
    change = {
        "metadata": {"annotations": {"note": "x"}},
        "spec": {
            "schedulingGates": [{"name": "ours", "$patch": "delete"}],
            "affinity": narrowed_to("n1", "n2"),
        },
    }
    patched = await client.patch(f"{PODS}/a", change)
    spec = patched.body["spec"]
    assert patched.status == 200
    assert spec["schedulingGates"] == [{"name": "theirs"}]
    assert spec["affinity"] == narrowed_to("n1", "n2")
    assert patched.body["metadata"]["generation"] == 2
    assert patched.body["metadata"]["annotations"] == {"note": "x"}


async def test_removing_the_last_gate_leaves_no_list(client: Client) -> None:
    await client.create(PODS, pod("a", gates=("ours",)))
    change = {"spec": {"schedulingGates": [{"name": "ours", "$patch": "delete"}]}}
    assert "schedulingGates" not in (await client.patch(f"{PODS}/a", change)).body["spec"]


async def test_a_gated_pod_says_so_in_its_condition(client: Client) -> None:
    created = await client.create(PODS, pod("a", gates=("ours",)))
    assert created.body["status"]["conditions"][0]["reason"] == "SchedulingGated"


@pytest.mark.parametrize(
    ("gates", "change"),
    [
        pytest.param((), {"schedulingGates": [{"name": "new"}]}, id="a_gate_cannot_be_added"),
        pytest.param((), {"affinity": narrowed_to("n1")}, id="an_ungated_pod_is_not_narrowed"),
        pytest.param((), {"nodeSelector": {"a": "b"}}, id="an_ungated_pod_gets_no_selector"),
        pytest.param((), {"schedulerName": "other"}, id="the_scheduler_stays"),
        pytest.param(("g",), {"schedulerName": "other"}, id="the_scheduler_stays_when_gated"),
        pytest.param((), {"tolerations": []}, id="tolerations_are_not_taken_away"),
    ],
)
async def test_a_spec_change_after_creation_is_422(
    client: Client, gates: tuple[str, ...], change: dict[str, object]
) -> None:
    tolerations = [{"key": "k", "operator": "Exists"}]
    await client.create(PODS, pod("a", gates=gates, tolerations=tolerations))
    answer = await client.patch(f"{PODS}/a", {"spec": change})
    assert (answer.status, answer.reason) == (422, "Invalid")


async def test_required_affinity_is_narrowed_inside_its_terms_only(client: Client) -> None:
    wanted = {"key": "zone", "operator": "In", "values": ["z"]}
    rack = {"key": "rack", "operator": "Exists"}
    await client.create(PODS, pod("a", gates=("g",), affinity=_terms([wanted])))
    two_terms = await client.patch(f"{PODS}/a", {"spec": {"affinity": _terms([wanted], [rack])}})
    inside = await client.patch(f"{PODS}/a", {"spec": {"affinity": _terms([wanted, rack])}})
    assert two_terms.status == 422
    assert inside.status == 200


def _terms(*terms: list[dict[str, object]]) -> dict[str, object]:
    listed = [{"matchExpressions": term} for term in terms]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": listed}}
    return {"nodeAffinity": required}


async def test_a_field_selector_takes_exactly_one_value(client: Client) -> None:
    affinity = narrowed_to("n1")
    terms = affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    terms["nodeSelectorTerms"][0]["matchFields"][0]["values"] = ["n1", "n2"]
    answer = await client.create(PODS, pod("a", affinity=affinity))
    assert answer.status == 422
    assert "must be only one value" in answer.message


async def test_a_pod_vanishes_at_once_unless_a_finalizer_holds_it(client: Client) -> None:
    await client.create(PODS, pod("a"))
    held = pod("b")
    held["metadata"]["finalizers"] = ["example.org/hold"]
    await client.create(PODS, held)
    await client.delete(f"{PODS}/a")
    await client.delete(f"{PODS}/b")
    assert (await client.get(f"{PODS}/a")).status == 404
    going = await client.get(f"{PODS}/b")
    assert going.body["metadata"]["deletionTimestamp"]
    await client.patch(f"{PODS}/b", {"metadata": {"finalizers": None}})
    assert (await client.get(f"{PODS}/b")).status == 404


async def test_a_delete_with_another_uid_is_409(client: Client) -> None:
    await client.create(PODS, pod("a"))
    answer = await client.delete(f"{PODS}/a", {"preconditions": {"uid": "other"}})
    assert (answer.status, answer.reason) == (409, "Conflict")


async def test_an_eviction_removes_the_pod(client: Client) -> None:
    await client.create(PODS, pod("a"))
    assert (await client.create(f"{PODS}/a/eviction", {})).status == 201
    assert (await client.get(f"{PODS}/a")).status == 404


async def test_an_event_is_the_same_under_both_names(client: Client) -> None:
    regarding = {"kind": "Pod", "namespace": "default", "name": "a"}
    body = {
        "metadata": {"name": "a.1"},
        "regarding": regarding,
        "note": "hello",
        "reason": "Told",
        "type": "Normal",
    }
    path = "namespaces/default/events"
    created = await client.create(f"/apis/events.k8s.io/v1/{path}", body)
    assert created.body["note"] == "hello"
    core = await client.get(f"/api/v1/{path}?fieldSelector=involvedObject.name=a")
    assert core.body["items"][0]["message"] == "hello"
    assert core.body["items"][0]["involvedObject"] == regarding


EVENTS = "/api/v1/namespaces/default/events"
MICRO = "2026-01-01T00:00:00.000000Z"
NEW = {"eventTime": MICRO, "action": "Try", "reportingComponent": "x", "reportingInstance": "x-0"}


def event(namespace: str = "default", reason: str = "Told", **more: object) -> dict[str, object]:
    about = {"kind": "Pod", "namespace": namespace, "name": "a"}
    return {"metadata": {"name": "a.1"}, "involvedObject": about, "reason": reason} | more


@pytest.mark.parametrize(
    ("body", "status"),
    [
        pytest.param(event(), 201, id="of_old"),
        pytest.param(event(""), 201, id="about_what_has_no_namespace"),
        pytest.param(event("other"), 422, id="in_another_namespace"),
        pytest.param(event(**NEW), 201, id="of_today"),
        pytest.param(event(**NEW, message="x" * 1025), 422, id="too_long"),
        pytest.param(event(**NEW | {"action": ""}), 422, id="without_an_action"),
        pytest.param(event(**NEW | {"eventTime": "2026-01-01T00:00:00Z"}), 400, id="no_micro_time"),
    ],
)
async def test_events_that_the_api_does_not_take_are_refused(
    client: Client, body: dict[str, object], status: int
) -> None:
    assert (await client.create(EVENTS, body)).status == status


@pytest.mark.parametrize(
    ("spec", "status"),
    [
        pytest.param({"renewTime": MICRO, "leaseDurationSeconds": 15}, 201, id="good"),
        pytest.param({"renewTime": "2026-01-01T00:00:00Z"}, 400, id="no_micro_time"),
        pytest.param({"leaseDurationSeconds": 0}, 422, id="no_duration"),
    ],
)
async def test_leases_that_the_api_does_not_take_are_refused(
    client: Client, spec: dict[str, object], status: int
) -> None:
    assert (await client.create(LEASES, {"metadata": {"name": "a"}, "spec": spec})).status == status


async def test_two_sandboxes_of_one_seed_give_the_same_uids() -> None:
    uids = []
    for _ in range(2):
        async with Sandbox(seed=3) as sandbox:
            uids.append(sandbox.registry.read(NAMESPACE, ("", "default")).body["metadata"]["uid"])
    assert uids[0] == uids[1]


async def test_nothing_listens_after_the_end() -> None:
    async with Sandbox() as sandbox:
        url = sandbox.url
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientConnectorError):
            await session.get(url)
    assert len(asyncio.all_tasks()) == 1
