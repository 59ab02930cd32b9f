"""Admission webhooks: who is asked about what, and what their answers do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from app.sandbox import Sandbox
from app.sandbox.apiserver.storage.kinds import JOB, POD
from tests.app.sandbox.http import MERGE, NODES, PODS, Client, until
from tests.app.sandbox.objects import node, pod
from tests.app.sandbox.webhook import (
    EVERY_POD,
    MUTATING,
    VALIDATING,
    ScriptedWebhook,
    patching,
    refusing,
    scripted_webhook,
)

LABEL = {"op": "add", "path": "/metadata/labels", "value": {"touched": "yes"}}
GATE = {"op": "add", "path": "/spec/schedulingGates", "value": [{"name": "example.org/gate"}]}


@pytest.fixture
async def webhook(tmp_path: Path) -> AsyncIterator[ScriptedWebhook]:
    async with scripted_webhook(tmp_path) as running:
        yield running


async def mutating(client: Client, webhook: ScriptedWebhook, *hooks: dict[str, Any]) -> None:
    answer = await client.create(MUTATING, webhook.configuration("m", *hooks))
    assert answer.status == 201, answer.body


async def validating(client: Client, webhook: ScriptedWebhook, *hooks: dict[str, Any]) -> None:
    answer = await client.create(VALIDATING, webhook.configuration("v", *hooks))
    assert answer.status == 201, answer.body


async def test_a_mutating_webhook_changes_what_is_created(
    client: Client, webhook: ScriptedWebhook
) -> None:
    webhook.answers["/mutate"] = patching(LABEL, GATE)
    await mutating(client, webhook, webhook.hook("/mutate"))
    created = await client.create(PODS, pod("a"))
    assert created.status == 201
    assert created.body["metadata"]["labels"] == {"touched": "yes"}
    assert created.body["spec"]["schedulingGates"] == [{"name": "example.org/gate"}]
    assert created.body["status"]["conditions"][0]["reason"] == "SchedulingGated"
    assert (await client.get(f"{PODS}/a")).body == created.body


async def test_a_webhook_is_sent_the_request_as_the_api_server_sees_it(
    client: Client, webhook: ScriptedWebhook
) -> None:
    await mutating(client, webhook, webhook.hook("/mutate"))
    await client.create(PODS, pod("a"))
    (asked,) = webhook.asked_at("/mutate")
    assert (asked["operation"], asked["namespace"], asked["name"]) == ("CREATE", "default", "a")
    assert asked["kind"] == {"group": "", "version": "v1", "kind": "Pod"}
    assert asked["resource"] == {"group": "", "version": "v1", "resource": "pods"}
    assert asked["requestKind"] == asked["kind"]
    assert asked["oldObject"] is None
    assert asked["dryRun"] is False
    sent = asked["object"]
    assert (sent["kind"], sent["apiVersion"]) == ("Pod", "v1")
    assert sent["metadata"] == {"name": "a", "namespace": "default"}
    assert sent["spec"]["restartPolicy"] == "Always"  # defaults are there already


async def test_a_validating_webhook_sees_what_the_mutating_ones_made_of_it(
    client: Client, webhook: ScriptedWebhook
) -> None:
    webhook.answers["/mutate"] = patching(LABEL)
    await mutating(client, webhook, webhook.hook("/mutate"))
    await validating(client, webhook, webhook.hook("/validate"))
    created = await client.create(PODS, pod("a") | {"metadata": {"generateName": "a-"}})
    (asked,) = webhook.asked_at("/validate")
    assert asked["object"]["metadata"]["labels"] == {"touched": "yes"}
    assert asked["object"]["metadata"]["uid"] == created.body["metadata"]["uid"]
    assert "name" not in webhook.asked_at("/mutate")[0]["object"]["metadata"]


async def test_configurations_are_called_in_the_order_of_their_names(
    client: Client, webhook: ScriptedWebhook
) -> None:
    for name in ("b", "a"):
        hooks = webhook.hook(f"/{name}1"), webhook.hook(f"/{name}2")
        await client.create(MUTATING, webhook.configuration(name, *hooks))
    await client.create(PODS, pod("p"))
    assert [path for path, _ in webhook.asked] == ["/a1", "/a2", "/b1", "/b2"]


async def test_a_webhook_is_asked_again_if_needed_after_a_later_one_changed_the_object(
    client: Client, webhook: ScriptedWebhook
) -> None:
    webhook.answers["/second"] = patching(LABEL)
    hooks = [
        webhook.hook("/first", reinvocationPolicy="IfNeeded"),
        webhook.hook("/never"),
        webhook.hook("/second", reinvocationPolicy="IfNeeded"),
    ]
    await mutating(client, webhook, *hooks)
    await client.create(PODS, pod("p"))
    assert [path for path, _ in webhook.asked] == ["/first", "/never", "/second", "/first"]
    assert webhook.asked[-1][1]["object"]["metadata"]["labels"] == {"touched": "yes"}


@pytest.mark.parametrize(
    ("status", "code", "message"),
    [
        pytest.param({"message": "no", "code": 422}, 422, ": no", id="code_and_message"),
        pytest.param({"reason": "Unwanted", "code": 403}, 403, ": Unwanted", id="a_reason"),
        pytest.param({"message": "no", "code": 200}, 400, ": no", id="no_code_of_a_refusal"),
        pytest.param({}, 400, " without explanation", id="nothing"),
    ],
)
async def test_a_refusal_is_passed_on_in_the_words_of_kube_apiserver(
    client: Client, webhook: ScriptedWebhook, status: dict[str, Any], code: int, message: str
) -> None:
    webhook.answers["/validate"] = refusing(**status)
    await validating(client, webhook, webhook.hook("/validate"))
    answer = await client.create(PODS, pod("a"))
    denied = 'admission webhook "validate.example.org" denied the request'
    assert (answer.status, answer.message) == (code, denied + message)
    assert answer.body["code"] == code
    assert answer.body["status"] == "Failure"
    assert (await client.get(f"{PODS}/a")).status == 404


async def test_the_causes_of_a_refusal_are_passed_on(
    client: Client, webhook: ScriptedWebhook
) -> None:
    causes = [{"reason": "FieldValueInvalid", "message": "m", "field": "spec"}]
    details = {"name": "a", "kind": "Pod", "causes": causes}
    webhook.answers["/mutate"] = refusing(code=422, reason="Invalid", message="m", details=details)
    await mutating(client, webhook, webhook.hook("/mutate"))
    answer = await client.create(PODS, pod("a"))
    assert (answer.status, answer.reason, answer.body["details"]) == (422, "Invalid", details)


@pytest.mark.parametrize(
    ("rule", "is_asked"),
    [
        pytest.param({}, True, id="this_very_resource"),
        pytest.param({"resources": ["*"]}, True, id="any_resource"),
        pytest.param({"resources": ["*/*"]}, True, id="any_resource_and_subresource"),
        pytest.param({"resources": ["pods/*"]}, True, id="with_its_subresources"),
        pytest.param({"resources": ["pods/status"]}, False, id="only_its_subresource"),
        pytest.param({"resources": ["nodes"]}, False, id="another_resource"),
        pytest.param({"apiGroups": ["*"], "apiVersions": ["*"]}, True, id="any_group"),
        pytest.param({"apiGroups": ["batch"]}, False, id="another_group"),
        pytest.param({"apiVersions": ["v2"]}, False, id="another_version"),
        pytest.param({"operations": ["UPDATE"]}, False, id="another_operation"),
        pytest.param({"operations": ["UPDATE", "CREATE"]}, True, id="among_the_operations"),
        pytest.param({"scope": "Namespaced"}, True, id="namespaced"),
        pytest.param({"scope": "Cluster"}, False, id="cluster_scoped"),
    ],
)
async def test_rules_say_who_is_asked(
    client: Client, webhook: ScriptedWebhook, rule: dict[str, Any], is_asked: bool
) -> None:
    hook = webhook.hook("/mutate", rules=[EVERY_POD | {"operations": ["CREATE"]} | rule])
    await mutating(client, webhook, hook)
    await client.create(PODS, pod("a"))
    assert bool(webhook.asked) == is_asked


@pytest.mark.parametrize(
    ("selectors", "is_asked"),
    [
        pytest.param({"namespaceSelector": {"matchLabels": {"team": "a"}}}, True, id="namespace"),
        pytest.param(
            {
                "namespaceSelector": {
                    "matchExpressions": [
                        {
                            "key": "kubernetes.io/metadata.name",
                            "operator": "NotIn",
                            "values": ["default"],
                        }
                    ]
                }
            },
            False,
            id="not_this_namespace",
        ),
        pytest.param({"objectSelector": {"matchLabels": {"app": "x"}}}, True, id="object"),
        pytest.param({"objectSelector": {"matchLabels": {"app": "y"}}}, False, id="other_object"),
    ],
)
async def test_selectors_say_who_is_asked(
    client: Client, webhook: ScriptedWebhook, selectors: dict[str, Any], is_asked: bool
) -> None:
    await client.patch("/api/v1/namespaces/default", {"metadata": {"labels": {"team": "a"}}}, MERGE)
    await mutating(client, webhook, webhook.hook("/mutate", **selectors))
    body = pod("a")
    body["metadata"]["labels"] = {"app": "x"}
    await client.create(PODS, body)
    assert bool(webhook.asked) == is_asked


async def test_a_namespace_selector_does_not_concern_cluster_scoped_objects(
    client: Client, webhook: ScriptedWebhook
) -> None:
    rule = EVERY_POD | {"resources": ["nodes"], "scope": "Cluster"}
    selector = {"matchLabels": {"no": "namespace"}}
    await mutating(client, webhook, webhook.hook("/m", rules=[rule], namespaceSelector=selector))
    await client.create(NODES, node("n0"))
    (asked,) = webhook.asked_at("/m")
    assert asked["name"] == "n0"
    assert "namespace" not in asked


async def test_an_update_is_validated_against_the_stored_object(
    client: Client, webhook: ScriptedWebhook
) -> None:
    await client.create(PODS, pod("a"))
    webhook.answers["/validate"] = refusing(message="frozen", code=403)
    rule = EVERY_POD | {"operations": ["UPDATE"]}
    await validating(client, webhook, webhook.hook("/validate", rules=[rule]))
    refused = await client.patch(f"{PODS}/a", {"metadata": {"labels": {"x": "y"}}}, MERGE)
    by_status = await client.patch(f"{PODS}/a/status", {"status": {"message": "m"}}, MERGE)
    (asked,) = webhook.asked
    assert (refused.status, by_status.status) == (403, 200)
    assert asked[1]["operation"] == "UPDATE"
    assert asked[1]["object"]["metadata"]["labels"] == {"x": "y"}
    assert "labels" not in asked[1]["oldObject"]["metadata"]
    assert "labels" not in (await client.get(f"{PODS}/a")).body["metadata"]


async def test_a_status_write_asks_those_who_name_the_subresource(
    client: Client, webhook: ScriptedWebhook
) -> None:
    await client.create(PODS, pod("a"))
    rule = EVERY_POD | {"resources": ["pods/status"]}
    await validating(client, webhook, webhook.hook("/validate", rules=[rule]))
    await client.patch(f"{PODS}/a/status", {"status": {"phase": "Running"}}, MERGE)
    (asked,) = webhook.asked_at("/validate")
    assert (asked["subResource"], asked["object"]["status"]["phase"]) == ("status", "Running")


async def test_an_update_that_was_overtaken_while_a_webhook_thought_is_made_again(
    client: Client, webhook: ScriptedWebhook, sandbox: Sandbox
) -> None:
    await client.create(PODS, pod("a"))

    def change_meanwhile(asked: dict[str, Any]) -> dict[str, Any]:
        if len(webhook.asked) == 1:
            change = {"metadata": {"labels": {"first": "yes"}}}
            sandbox.registry.patch(POD, ("default", "a"), change, MERGE)
        return {"allowed": True}

    webhook.answers["/validate"] = change_meanwhile
    await validating(client, webhook, webhook.hook("/validate"))
    patched = await client.patch(f"{PODS}/a", {"metadata": {"labels": {"second": "yes"}}}, MERGE)
    assert patched.body["metadata"]["labels"] == {"first": "yes", "second": "yes"}
    assert len(webhook.asked) == 2


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(500, id="an_error"),
        pytest.param({"uid": "other", "allowed": True}, id="another_uid"),
        pytest.param({"allowed": True, "patch": "e30="}, id="a_patch_without_type"),
        pytest.param(
            {"allowed": True, "patchType": "JSONPatch", "patch": "e30="}, id="no_json_patch"
        ),
    ],
)
@pytest.mark.parametrize("policy", ["Ignore", "Fail", None])
async def test_what_a_failing_webhook_means_is_its_failure_policy(
    client: Client, webhook: ScriptedWebhook, policy: str | None, answer: Any
) -> None:
    webhook.answers["/mutate"] = lambda _: answer
    fields = {} if policy is None else {"failurePolicy": policy}
    await mutating(client, webhook, webhook.hook("/mutate", **fields))
    created = await client.create(PODS, pod("a"))
    if policy == "Ignore":
        assert created.status == 201
    else:
        assert (created.status, created.reason) == (500, "InternalError")
        said = 'Internal error occurred: failed calling webhook "mutate.example.org": '
        assert created.message.startswith(said)


async def test_a_patch_that_does_not_apply_is_an_error_whatever_the_policy(
    client: Client, webhook: ScriptedWebhook
) -> None:
    webhook.answers["/mutate"] = patching({"op": "remove", "path": "/metadata/labels/none"})
    await mutating(client, webhook, webhook.hook("/mutate", failurePolicy="Ignore"))
    assert (await client.create(PODS, pod("a"))).status == 500


@pytest.mark.parametrize("is_known", [True, False], ids=["by_service", "by_url"])
async def test_nobody_there_is_a_failure_too(
    client: Client, webhook: ScriptedWebhook, is_known: bool
) -> None:
    service = {"namespace": "default", "name": "gone", "path": "/mutate"}
    there = {"service": service} if is_known else {"url": "https://127.0.0.1:9/mutate"}
    await mutating(client, webhook, webhook.hook("/mutate", clientConfig=there))
    answer = await client.create(PODS, pod("a"))
    assert answer.status == 500
    assert ('service "gone" not found' in answer.message) == is_known


async def test_a_certificate_of_another_authority_is_not_trusted(
    client: Client, webhook: ScriptedWebhook
) -> None:
    hook = webhook.hook("/mutate")
    del hook["clientConfig"]["caBundle"]
    await mutating(client, webhook, hook)
    assert (await client.create(PODS, pod("a"))).status == 500
    assert webhook.asked == []


@pytest.mark.slow
async def test_a_webhook_has_its_timeout(client: Client, webhook: ScriptedWebhook) -> None:
    never = asyncio.Event()

    async def hang() -> dict[str, Any]:
        await never.wait()
        return {"allowed": True}

    webhook.answers["/mutate"] = lambda _: hang()
    await mutating(client, webhook, webhook.hook("/mutate", timeoutSeconds=1))
    async with asyncio.timeout(5):
        answer = await client.create(PODS, pod("a"))
    never.set()
    assert answer.status == 500
    assert "context deadline exceeded" in answer.message


async def test_a_dry_run_asks_the_webhooks_and_stores_nothing(
    client: Client, webhook: ScriptedWebhook, sandbox: Sandbox
) -> None:
    webhook.answers["/mutate"] = patching(LABEL)
    await mutating(client, webhook, webhook.hook("/mutate"))
    before = sandbox.store.version
    tried = await client.create(f"{PODS}?dryRun=All", pod("a"))
    assert (tried.status, tried.body["metadata"]["labels"]) == (201, {"touched": "yes"})
    assert webhook.asked_at("/mutate")[0]["dryRun"] is True
    assert (await client.get(f"{PODS}/a")).status == 404
    assert sandbox.store.version == before


async def test_every_write_of_an_object_may_be_a_dry_run(client: Client, sandbox: Sandbox) -> None:
    stored = (await client.create(PODS, pod("a"))).body
    before = sandbox.store.version
    path = f"{PODS}/a?dryRun=All"
    patched = await client.patch(path, {"metadata": {"labels": {"x": "y"}}}, MERGE)
    put = await client.call("PUT", path, stored | {"spec": stored["spec"] | {"hostname": "h"}})
    deleted = await client.delete(path)
    bound = await client.create(f"{PODS}/a/binding?dryRun=All", {"target": {"name": "n0"}})
    other = await client.create(f"{PODS}?dryRun=Some", pod("b"))
    assert patched.body["metadata"]["labels"] == {"x": "y"}
    assert patched.version == stored["metadata"]["resourceVersion"]
    assert (put.status, deleted.status) == (422, 200)
    assert (bound.status, other.status) == (400, 422)
    assert sandbox.store.version == before


async def test_the_pods_of_a_job_pass_the_webhooks(
    client: Client, webhook: ScriptedWebhook, sandbox: Sandbox
) -> None:
    webhook.answers["/mutate"] = patching(GATE)
    await mutating(client, webhook, webhook.hook("/mutate"))
    spec = {"parallelism": 3, "completions": 3, "completionMode": "Indexed"}
    template = {"spec": pod("t")["spec"]}
    job = {"metadata": {"name": "train"}, "spec": spec | {"template": template}}
    sandbox.registry.create(JOB, "default", job)

    def active() -> int:
        job = sandbox.registry.read(JOB, ("default", "train")).body
        return int(job["status"].get("active", 0))

    await until(lambda: active() == 3)
    assert all("schedulingGates" in each.body["spec"] for each in sandbox.store.values(POD))
    assert len(webhook.asked) == len(sandbox.store.values(POD)) == 3


async def test_a_job_whose_pods_are_refused_is_stored_all_the_same(
    client: Client, webhook: ScriptedWebhook, sandbox: Sandbox
) -> None:
    webhook.answers["/mutate"] = refusing(message="no")
    await mutating(client, webhook, webhook.hook("/mutate"))
    job = {"metadata": {"name": "train"}, "spec": {"template": {"spec": pod("t")["spec"]}}}
    answer = await client.create("/apis/batch/v1/namespaces/default/jobs", job)
    await until(lambda: webhook.asked)
    assert answer.status == 201
    assert sandbox.store.values(POD) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param({"sideEffects": None}, "webhooks[0].sideEffects: Required value", id="none"),
        pytest.param({"sideEffects": "Some"}, 'Unsupported value: "Some"', id="side_effects"),
        pytest.param({"admissionReviewVersions": []}, "must specify one of v1, v1beta1", id="v1"),
        pytest.param(
            {"clientConfig": {}}, "exactly one of url or service is required", id="no_address"
        ),
        pytest.param(
            {"clientConfig": {"url": "http://127.0.0.1/x"}},
            "'https' is the only allowed URL scheme",
            id="plain_http",
        ),
        pytest.param({"timeoutSeconds": 60}, "between 1 and 30 seconds", id="too_long"),
    ],
)
async def test_an_unsound_configuration_is_422(
    client: Client, webhook: ScriptedWebhook, change: dict[str, Any], said: str
) -> None:
    body = webhook.configuration("v", webhook.hook("/validate") | change)
    answer = await client.create(VALIDATING, body)
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert said in answer.message


async def test_the_api_server_fills_in_what_a_configuration_leaves_out(
    client: Client, webhook: ScriptedWebhook
) -> None:
    await mutating(client, webhook, webhook.hook("/mutate"))
    (stored,) = (await client.get(MUTATING)).body["items"]
    hook = stored["webhooks"][0]
    assert stored["metadata"]["generation"] == 1
    assert (hook["failurePolicy"], hook["timeoutSeconds"]) == ("Fail", 10)
    assert (hook["reinvocationPolicy"], hook["matchPolicy"]) == ("Never", "Equivalent")
    assert hook["rules"][0]["scope"] == "*"
