"""How the loop treats an extender, and what it tells about it.

Source: kubernetes pkg/scheduler/extender.go and schedule_one.go (v1.36).
"""

from __future__ import annotations

import asyncio
import re
import time
from functools import partial
from typing import Any

import orjson
import pytest

from app.sandbox import ExtenderConfig, Sandbox
from app.sandbox.apiserver.rules.pod_actions import bind
from app.sandbox.apiserver.storage.kinds import (
    DEVICE_CLAIM,
    DISRUPTION_BUDGET,
    EVENT,
    NODE,
    POD,
    PRIORITY_CLASS,
    VOLUME_CLAIM,
    Kind,
)
from tests.app.sandbox.http import MERGE, until
from tests.app.sandbox.objects import (
    add_pod,
    condition_of,
    event_texts,
    fill,
    narrowed_to,
    node,
    node_of,
    pod,
    pod_of,
)
from tests.app.sandbox.scripted import ScriptedExtender, held_until, pin, reject

CLAIMS = "no new claims to deallocate,"
NOT_HELPFUL = "Preemption is not helpful for scheduling"


def bound(sandbox: Sandbox) -> list[str]:
    return [
        stored.body["metadata"]["name"]
        for stored in sandbox.store.values(POD)
        if stored.body["spec"].get("nodeName")
    ]


def annotate(sandbox: Sandbox, name: str) -> None:
    change = {"metadata": {"annotations": {"woken": str(sandbox.store.version)}}}
    sandbox.registry.patch(POD, ("default", name), change, MERGE)


# --- claims -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "spec", "told"),
    [
        pytest.param(
            VOLUME_CLAIM,
            {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]},
            'persistentvolumeclaim "data" not found',
            id="volume",
        ),
        pytest.param(
            DEVICE_CLAIM,
            {"resourceClaims": [{"name": "gpu", "resourceClaimName": "data"}]},
            'resourceclaim "data" not found',
            id="device",
        ),
    ],
)
async def test_a_pod_whose_claim_is_not_there_waits_for_it_and_no_extender_is_asked(
    sandbox: Sandbox, extender: ScriptedExtender, kind: Kind, spec: dict[str, Any], told: str
) -> None:
    fill(sandbox, 2)
    await sandbox.schedule_with(extender.config("filter"))
    add_pod(sandbox, pod("a", **spec))
    await until(lambda: told in condition_of(sandbox, "a").get("message", ""))
    assert extender.calls("filter") == []
    sandbox.registry.create(kind, "default", {"metadata": {"name": "data"}, "spec": {}})
    await until(lambda: bound(sandbox) == ["a"])
    assert extender.pods_filtered() == ["a"]


# --- without an extender -------------------------------------------------------------------------


async def test_pods_are_bound_where_they_fit_and_told_so(sandbox: Sandbox) -> None:
    fill(sandbox, 2, cpu="1")
    await sandbox.schedule_with()
    for name in ("a", "b"):
        add_pod(sandbox, pod(name))
    await until(lambda: len(bound(sandbox)) == 2)
    assert {node_of(sandbox, "a"), node_of(sandbox, "b")} == {"n0", "n1"}
    text = f"Successfully assigned default/a to {node_of(sandbox, 'a')}"
    await until(lambda: event_texts(sandbox, "a", "Scheduled") == [text])
    assert condition_of(sandbox, "a")["status"] == "True"


async def test_only_pods_of_its_profiles_are_scheduled(sandbox: Sandbox) -> None:
    fill(sandbox, 1)
    await sandbox.schedule_with(profiles={"corral": 100})
    add_pod(sandbox, pod("theirs"))
    add_pod(sandbox, pod("ours", scheduler="corral"))
    await until(lambda: bound(sandbox))
    assert bound(sandbox) == ["ours"]


async def test_a_pod_waits_for_its_gates_and_then_for_its_nodes(sandbox: Sandbox) -> None:
    fill(sandbox, 3)
    await sandbox.schedule_with()
    add_pod(sandbox, pod("gated", gates=("g",)))
    add_pod(sandbox, pod("free"))
    await until(lambda: bound(sandbox) == ["free"])
    change = {
        "spec": {
            "schedulingGates": [{"name": "g", "$patch": "delete"}],
            "affinity": narrowed_to("n2"),
        }
    }
    strategic = "application/strategic-merge-patch+json"
    sandbox.registry.patch(POD, ("default", "gated"), change, strategic)
    await until(lambda: node_of(sandbox, "gated") == "n2")


async def test_the_event_counts_every_reason(sandbox: Sandbox) -> None:
    fill(sandbox, 2, cpu="500m")
    sandbox.registry.create(NODE, "", node("closed", is_closed=True))
    await sandbox.schedule_with()
    add_pod(sandbox, pod("a"))
    await until(lambda: event_texts(sandbox, "a", "FailedScheduling"))
    text = (
        "0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu."
        f" {CLAIMS} preemption: 0/3 nodes are available: 3 {NOT_HELPFUL}."
    )
    assert event_texts(sandbox, "a", "FailedScheduling") == [text]
    assert condition_of(sandbox, "a")["reason"] == "Unschedulable"
    assert condition_of(sandbox, "a")["message"] == text


async def test_nodes_outside_the_narrowing_are_told_as_such(sandbox: Sandbox) -> None:
    fill(sandbox, 3, cpu="500m")
    await sandbox.schedule_with()
    add_pod(sandbox, pod("a", on=("n1",)))
    await until(lambda: event_texts(sandbox, "a", "FailedScheduling"))
    (text,) = event_texts(sandbox, "a", "FailedScheduling")
    assert text.startswith(
        "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s)"
        " [NodeAffinity]."
    )


async def test_clients_in_go_can_read_the_events(sandbox: Sandbox) -> None:
    """`kubectl describe` shows none at all where one has a time that is no MicroTime."""
    fill(sandbox, 1, cpu="1")
    await sandbox.schedule_with()
    add_pod(sandbox, pod("a"))
    await until(lambda: event_texts(sandbox, "a", "Scheduled"))
    (event,) = (stored.body for stored in sandbox.store.values(EVENT))
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", event["eventTime"])


async def test_a_pod_without_room_comes_when_room_comes(sandbox: Sandbox) -> None:
    fill(sandbox, 1, cpu="1")
    await sandbox.schedule_with()
    add_pod(sandbox, pod("first"))
    await until(lambda: bound(sandbox) == ["first"])
    add_pod(sandbox, pod("second"))
    await until(lambda: condition_of(sandbox, "second"))
    sandbox.registry.delete(POD, ("default", "first"))
    await until(lambda: bound(sandbox) == ["second"])


async def test_a_finished_pod_gives_its_room_back(sandbox: Sandbox) -> None:
    fill(sandbox, 1, cpu="1")
    await sandbox.schedule_with()
    add_pod(sandbox, pod("first"))
    add_pod(sandbox, pod("second"))
    await until(lambda: condition_of(sandbox, "second"))
    change = {"status": {"phase": "Succeeded"}}
    sandbox.registry.patch(POD, ("default", "first"), change, MERGE, "status")
    await until(lambda: node_of(sandbox, "second") == "n0")


async def test_the_important_pod_preempts_and_is_nominated(sandbox: Sandbox) -> None:
    fill(sandbox, 1, cpu="1")
    sandbox.registry.create(PRIORITY_CLASS, "", {"metadata": {"name": "high"}, "value": 9})
    await sandbox.schedule_with()
    add_pod(sandbox, pod("low"))
    await until(lambda: bound(sandbox) == ["low"])
    add_pod(sandbox, pod("high", priorityClassName="high"))
    await until(lambda: bound(sandbox) == ["high"])
    assert event_texts(sandbox, "low", "Preempted")
    assert "nominatedNodeName" not in pod_of(sandbox, "high")["status"]


# --- /filter and /prioritize ---------------------------------------------------------------------


async def test_the_filter_body_is_what_go_writes(
    sandbox: Sandbox, extender: ScriptedExtender
) -> None:
    fill(sandbox, 3)
    await sandbox.schedule_with(extender.config("filter"))
    add_pod(sandbox, pod("a"))
    await until(lambda: bound(sandbox))
    (_, raw) = extender.raw[0]
    args = orjson.loads(raw)
    assert raw.startswith(b'{"Pod":{"metadata":')
    assert b',"Nodes":null,"NodeNames":["n' in raw
    assert list(args) == ["Pod", "Nodes", "NodeNames"]
    assert sorted(args["NodeNames"]) == ["n0", "n1", "n2"]
    assert not {"kind", "apiVersion", "managedFields"} & args["Pod"].keys()
    assert "nodeName" not in args["Pod"]["spec"]


async def test_without_node_cache_the_nodes_themselves_are_sent(
    sandbox: Sandbox, extender: ScriptedExtender
) -> None:
    fill(sandbox, 2)
    extender.on_filter = lambda args: {"Nodes": {"items": args["Nodes"]["items"][:1]}}
    await sandbox.schedule_with(extender.config("filter", node_cache_capable=False))
    add_pod(sandbox, pod("a"))
    await until(lambda: bound(sandbox))
    (args,) = extender.calls("filter")
    assert args["NodeNames"] is None
    assert node_of(sandbox, "a") == args["Nodes"]["items"][0]["metadata"]["name"]
    assert args["Nodes"]["items"][0]["status"]["allocatable"]["cpu"] == "8"


async def test_one_node_left_is_taken_without_prioritize(
    sandbox: Sandbox, extender: ScriptedExtender
) -> None:
    fill(sandbox, 5)
    extender.on_filter = pin("n3")
    await sandbox.schedule_with(extender.config("filter", "prioritize"))
    add_pod(sandbox, pod("a"))
    await until(lambda: bound(sandbox))
    assert node_of(sandbox, "a") == "n3"
    assert extender.calls("prioritize") == []


async def test_scores_count_weight_times_ten_and_decide(
    sandbox: Sandbox, extender: ScriptedExtender
) -> None:
    fill(sandbox, 5)
    extender.on_prioritize = lambda args: [
        {"Host": name, "Score": 10 if name == "n2" else 0} for name in args["NodeNames"]
    ]
    await sandbox.schedule_with(extender.config("filter", "prioritize", weight=3))
    for place in range(4):
        add_pod(sandbox, pod(f"p{place}"))
    await until(lambda: len(bound(sandbox)) == 4)
    assert {node_of(sandbox, f"p{place}") for place in range(4)} == {"n2"}
    assert len(extender.calls("prioritize")) == 4


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param([{"Host": "n0", "Score": 5.0}], id="a_float_score"),
        pytest.param((500, {}), id="an_error"),
        pytest.param(b"not json", id="no_json"),
    ],
)
async def test_a_failing_prioritize_gives_no_score_and_no_error(
    sandbox: Sandbox, extender: ScriptedExtender, answer: Any
) -> None:
    fill(sandbox, 2)
    extender.on_prioritize = lambda args: answer
    await sandbox.schedule_with(extender.config("filter", "prioritize"))
    add_pod(sandbox, pod("a"))
    await until(lambda: bound(sandbox))
    assert event_texts(sandbox, "a", "FailedScheduling") == []


async def test_the_order_of_names_differs_from_call_to_call(
    sandbox: Sandbox, extender: ScriptedExtender
) -> None:
    fill(sandbox, 30)
    await sandbox.schedule_with(extender.config("filter"))
    for place in range(3):
        add_pod(sandbox, pod(f"p{place}"))
    await until(lambda: len(bound(sandbox)) == 3)
    orders = [tuple(args["NodeNames"]) for args in extender.calls("filter")]
    assert len(set(orders)) == 3
    assert len({frozenset(order) for order in orders}) == 1


async def test_successive_samples_show_different_nodes(
    sandbox: Sandbox, extender: ScriptedExtender
) -> None:
    fill(sandbox, 300)
    await sandbox.schedule_with(extender.config("filter"), percentage_of_nodes_to_score=40)
    for place in range(3):
        add_pod(sandbox, pod(f"p{place}"))
    await until(lambda: len(bound(sandbox)) == 3)
    samples = [set(args["NodeNames"]) for args in extender.calls("filter")]
    assert [len(sample) for sample in samples] == [120, 120, 120]
    assert not samples[0] & samples[1]
    assert samples[0] | samples[1] | samples[2] == {f"n{place}" for place in range(300)}


async def test_a_narrowed_pod_shows_only_its_nodes(
    sandbox: Sandbox, extender: ScriptedExtender
) -> None:
    fill(sandbox, 200)
    await sandbox.schedule_with(extender.config("filter"), percentage_of_nodes_to_score=5)
    add_pod(sandbox, pod("a", on=("n7", "n150", "gone")))
    await until(lambda: bound(sandbox))
    (args,) = extender.calls("filter")
    assert sorted(args["NodeNames"]) == ["n150", "n7"]


async def test_a_nominated_node_is_tried_alone_and_then_all_of_them(
    sandbox: Sandbox, extender: ScriptedExtender
) -> None:
    fill(sandbox, 3)
    extender.on_filter = lambda args: {
        "NodeNames": [] if len(args["NodeNames"]) == 1 else args["NodeNames"][:1]
    }
    add_pod(sandbox, pod("a"))
    change = {"status": {"nominatedNodeName": "n1"}}
    sandbox.registry.patch(POD, ("default", "a"), change, MERGE, "status")
    await sandbox.schedule_with(extender.config("filter"))
    await until(lambda: bound(sandbox))
    probes = [args["NodeNames"] for args in extender.calls("filter")]
    assert probes[0] == ["n1"]
    assert sorted(probes[1]) == ["n0", "n1", "n2"]


async def test_a_node_no_filter_passes_is_never_sent(
    sandbox: Sandbox, extender: ScriptedExtender
) -> None:
    fill(sandbox, 2, cpu="500m")
    await sandbox.schedule_with(extender.config("filter"))
    add_pod(sandbox, pod("a"))
    await until(lambda: condition_of(sandbox, "a"))
    assert extender.raw == []


async def test_managed_resources_keep_other_pods_away(
    sandbox: Sandbox, extender: ScriptedExtender
) -> None:
    fill(sandbox, 2, **{"corral.dev/marker": "9"})
    config = extender.config("filter", managed_resources=frozenset({"corral.dev/marker"}))
    await sandbox.schedule_with(config)
    add_pod(sandbox, pod("stranger"))
    add_pod(sandbox, pod("member", limits={"corral.dev/marker": "1"}))
    await until(lambda: len(bound(sandbox)) == 2)
    assert extender.pods_filtered() == ["member"]


async def test_a_resource_that_is_ignored_is_one_no_node_needs(
    sandbox: Sandbox, extender: ScriptedExtender
) -> None:
    fill(sandbox, 2)
    names = frozenset({"corral.dev/marker"})
    config = extender.config("filter", managed_resources=names, ignored_resources=names)
    await sandbox.schedule_with(config)
    add_pod(sandbox, pod("member", limits={"corral.dev/marker": "1"}))
    await until(lambda: bound(sandbox))
    assert extender.pods_filtered() == ["member"]


# --- rejection, error, and coming back -----------------------------------------------------------


async def test_a_rejected_pod_rests_and_is_told_why_once_per_version(
    sandbox: Sandbox, extender: ScriptedExtender
) -> None:
    fill(sandbox, 3)
    extender.on_filter = reject("gang waits for members")
    scheduler = await sandbox.schedule_with(extender.config("filter"))
    add_pod(sandbox, pod("a"))
    uid = pod_of(sandbox, "a")["metadata"]["uid"]
    await until(lambda: condition_of(sandbox, "a"))
    # The first condition is a change of the pod and brings it back once; the same text does not.
    await until(lambda: len(extender.raw) == 2 and scheduler.queue.place_of(uid) == "unschedulable")
    text = (
        "0/3 nodes are available: 3 gang waits for members."
        f" {CLAIMS} preemption: 0/3 nodes are available: 3 {NOT_HELPFUL}."
    )
    # Twice in the same words: the condition of the first try made a new version of the pod.
    assert event_texts(sandbox, "a", "FailedScheduling") == [text, text]
    assert condition_of(sandbox, "a")["reason"] == "Unschedulable"


@pytest.mark.parametrize("answer", [{}, {"NodeNames": None}, {"NodeNames": []}, None])
async def test_an_answer_without_nodes_rejects_them_all_without_a_word(
    sandbox: Sandbox, extender: ScriptedExtender, answer: Any
) -> None:
    fill(sandbox, 2)
    extender.on_filter = lambda args: answer
    await sandbox.schedule_with(extender.config("filter"))
    add_pod(sandbox, pod("a"))
    await until(lambda: condition_of(sandbox, "a"))
    assert condition_of(sandbox, "a")["message"] == (
        f"0/2 nodes are available: {CLAIMS} preemption: 0/2 nodes are available: 2 {NOT_HELPFUL}."
    )


async def test_a_patched_annotation_wakes_a_rejected_pod(
    sandbox: Sandbox, extender: ScriptedExtender
) -> None:
    fill(sandbox, 2)
    extender.on_filter = reject("not yet")
    scheduler = await sandbox.schedule_with(extender.config("filter"))
    add_pod(sandbox, pod("a"))
    uid = pod_of(sandbox, "a")["metadata"]["uid"]
    await until(lambda: len(extender.raw) == 2 and scheduler.queue.place_of(uid) == "unschedulable")
    extender.on_filter = pin("n1")
    annotate(sandbox, "a")
    await until(lambda: node_of(sandbox, "a") == "n1")


async def test_the_creation_of_another_pod_does_not_wake_a_rejected_one_but_its_binding_does(
    sandbox: Sandbox, extender: ScriptedExtender
) -> None:
    fill(sandbox, 2)
    extender.on_filter = reject("not yet")
    scheduler = await sandbox.schedule_with(extender.config("filter"))
    add_pod(sandbox, pod("a"))
    uid = pod_of(sandbox, "a")["metadata"]["uid"]
    await until(lambda: len(extender.raw) == 2 and scheduler.queue.place_of(uid) == "unschedulable")
    add_pod(sandbox, pod("other", scheduler="another-scheduler"))
    assert scheduler.queue.place_of(uid) == "unschedulable"
    bind(sandbox.registry, "default", "other", {"target": {"name": "n0"}})
    await until(lambda: len(extender.raw) == 3)
    assert extender.pods_filtered() == ["a", "a", "a"]


async def test_a_rejected_pod_is_tried_again_after_five_minutes(
    sandbox: Sandbox, extender: ScriptedExtender
) -> None:
    fill(sandbox, 2)
    extender.on_filter = reject("not yet")
    await sandbox.schedule_with(extender.config("filter"), speed=5_000.0)
    add_pod(sandbox, pod("a"))
    began = time.monotonic()
    await until(lambda: len(extender.raw) == 3)
    assert time.monotonic() - began > 300 / 5_000.0


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        pytest.param({"Error": "lists are not in yet"}, "lists are not in yet", id="said_so"),
        pytest.param((500, {"Error": "x"}), "failed filter with extender at URL", id="code_500"),
        pytest.param((202, {"NodeNames": ["n0"]}), ", code 202", id="code_202"),
        pytest.param(b"", "EOF", id="empty"),
        pytest.param(b"[1]", "cannot unmarshal", id="no_object"),
        pytest.param(
            {"NodeNames": ["elsewhere"]}, "not found in the input node list", id="a_foreign_node"
        ),
    ],
)
async def test_an_error_is_a_scheduler_error_and_backs_off(
    sandbox: Sandbox, extender: ScriptedExtender, answer: Any, text: str
) -> None:
    fill(sandbox, 2)
    extender.on_filter = lambda args: answer
    scheduler = await sandbox.schedule_with(extender.config("filter"))
    add_pod(sandbox, pod("a"))
    uid = pod_of(sandbox, "a")["metadata"]["uid"]
    await until(lambda: condition_of(sandbox, "a"))
    assert condition_of(sandbox, "a")["reason"] == "SchedulerError"
    assert text in condition_of(sandbox, "a")["message"]
    assert scheduler.queue.place_of(uid) == "error"
    annotate(sandbox, "a")
    assert scheduler.queue.place_of(uid) == "error"


async def test_a_slow_extender_times_out_as_an_error(
    sandbox: Sandbox, extender: ScriptedExtender
) -> None:
    fill(sandbox, 2)
    extender.on_filter = held_until(asyncio.Event(), {})
    await sandbox.schedule_with(extender.config("filter", http_timeout=0.05))
    add_pod(sandbox, pod("a"))
    await until(lambda: condition_of(sandbox, "a"))
    assert "Client.Timeout exceeded" in condition_of(sandbox, "a")["message"]


async def test_an_error_is_retried_after_its_back_off(
    sandbox: Sandbox, extender: ScriptedExtender
) -> None:
    fill(sandbox, 2)
    answers = [{"Error": "not yet"}, {"Error": "not yet"}, {"NodeNames": ["n1"]}]
    extender.on_filter = lambda args: answers.pop(0)
    await sandbox.schedule_with(extender.config("filter"), speed=100.0)
    add_pod(sandbox, pod("a"))
    await until(lambda: node_of(sandbox, "a") == "n1")
    assert set(event_texts(sandbox, "a", "FailedScheduling")) == {"not yet"}


async def test_an_ignorable_extender_that_fails_is_skipped(sandbox: Sandbox) -> None:
    fill(sandbox, 2)
    dead = ExtenderConfig("http://127.0.0.1:1", filter_verb="filter", ignorable=True)
    await sandbox.schedule_with(dead)
    add_pod(sandbox, pod("a"))
    await until(lambda: bound(sandbox))
    assert event_texts(sandbox, "a", "FailedScheduling") == []


async def test_a_dead_extender_stops_the_pods_it_manages(sandbox: Sandbox) -> None:
    fill(sandbox, 2)
    await sandbox.schedule_with(ExtenderConfig("http://127.0.0.1:1", filter_verb="filter"))
    add_pod(sandbox, pod("a"))
    await until(lambda: condition_of(sandbox, "a"))
    assert condition_of(sandbox, "a")["reason"] == "SchedulerError"


async def test_the_loop_is_serial_while_an_extender_thinks(
    sandbox: Sandbox, extender: ScriptedExtender
) -> None:
    fill(sandbox, 2)
    gate = asyncio.Event()
    extender.on_filter = held_until(gate, {"NodeNames": ["n0"]})
    await sandbox.schedule_with(extender.config("filter"))
    for name in ("a", "b", "c"):
        add_pod(sandbox, pod(name))
    await until(lambda: extender.raw)
    await asyncio.sleep(0.02)
    assert len(extender.raw) == 1
    gate.set()
    await until(lambda: len(bound(sandbox)) == 3)


# --- FailedNodes, and preemption ------------------------------------------------------------------


async def test_failed_nodes_make_candidates_of_nodes_with_lesser_pods(
    sandbox: Sandbox, extender: ScriptedExtender
) -> None:
    fill(sandbox, 1)
    sandbox.registry.create(PRIORITY_CLASS, "", {"metadata": {"name": "high"}, "value": 9})
    await sandbox.schedule_with(extender.config("filter"))
    add_pod(sandbox, pod("low"))
    await until(lambda: bound(sandbox) == ["low"])
    extender.on_filter = lambda args: {"NodeNames": [], "FailedNodes": {"n0": "no"}}
    add_pod(sandbox, pod("high", priorityClassName="high"))
    await until(lambda: condition_of(sandbox, "high"))
    assert condition_of(sandbox, "high")["message"] == (
        '0/1 nodes are available: 1 no. preemption: expected at least one victim pod on node "n0"'
    )
    assert node_of(sandbox, "low") == "n0"


async def test_preempt_is_asked_with_uids_and_may_say_no(
    sandbox: Sandbox, extender: ScriptedExtender
) -> None:
    fill(sandbox, 1, cpu="1")
    sandbox.registry.create(PRIORITY_CLASS, "", {"metadata": {"name": "high"}, "value": 9})
    extender.on_preempt = lambda args: {"NodeNameToMetaVictims": {}}
    await sandbox.schedule_with(extender.config("filter", "preempt"))
    add_pod(sandbox, pod("low"))
    await until(lambda: bound(sandbox) == ["low"])
    add_pod(sandbox, pod("high", priorityClassName="high"))
    await until(lambda: condition_of(sandbox, "high"))
    uid = pod_of(sandbox, "low")["metadata"]["uid"]
    args = extender.calls("preempt")[0]
    assert args["NodeNameToVictims"] is None
    assert args["NodeNameToMetaVictims"]["n0"]["Pods"] == [{"UID": uid}]
    assert "no candidate node for preemption" in condition_of(sandbox, "high")["message"]


def labelled(body: dict[str, Any], app: str) -> dict[str, Any]:
    return body | {"metadata": body["metadata"] | {"labels": {"app": app}}}


async def preempted(sandbox: Sandbox, started: dict[str, str], **budgets: int) -> str:
    """On each of two nodes runs a pod; the name of the one that goes for an important one.

    `started`: when each began to run. `budgets`: how many pods with the label app=NAME may go.
    """
    fill(sandbox, 2, cpu="1")
    sandbox.registry.create(PRIORITY_CLASS, "", {"metadata": {"name": "high"}, "value": 9})
    for name, allowed in budgets.items():
        selector = {"matchLabels": {"app": name}} if name != "empty" else {}
        body = {"metadata": {"name": name}, "spec": {"minAvailable": 1, "selector": selector}}
        sandbox.registry.create(DISRUPTION_BUDGET, "default", body)
        change = {"status": {"disruptionsAllowed": allowed}}
        sandbox.registry.patch(DISRUPTION_BUDGET, ("default", name), change, MERGE, "status")
    await sandbox.schedule_with()
    for name, at in started.items():
        add_pod(sandbox, labelled(pod(name), name))
        await until(partial(node_of, sandbox, name))
        change = {"status": {"startTime": at, "phase": "Running"}}
        sandbox.registry.patch(POD, ("default", name), change, MERGE, "status")
    add_pod(sandbox, pod("high", priorityClassName="high"))
    await until(lambda: node_of(sandbox, "high"))
    (gone,) = set(started) - set(bound(sandbox))
    return gone


@pytest.mark.parametrize(
    ("started", "gone"),
    [
        ({"a": "2026-01-01T00:00:00Z", "b": "2026-01-02T00:00:00Z"}, "b"),
        ({"a": "2026-01-02T00:00:00Z", "b": "2026-01-01T00:00:00Z"}, "a"),
    ],
)
async def test_of_two_alike_the_one_that_started_later_is_preempted(
    sandbox: Sandbox, started: dict[str, str], gone: str
) -> None:
    assert await preempted(sandbox, started) == gone


@pytest.mark.parametrize(
    ("budgets", "gone"),
    [
        pytest.param({"b": 0}, "a", id="protected"),
        pytest.param({"b": 1}, "b", id="allowed"),
        pytest.param({"empty": 0}, "b", id="an_empty_selector_protects_nobody"),
        pytest.param({"a": 0, "b": 0}, "b", id="both_protected"),
    ],
)
async def test_a_budget_is_preferred_to_all_else_and_is_no_wall(
    sandbox: Sandbox, budgets: dict[str, int], gone: str
) -> None:
    started = {"a": "2026-01-01T00:00:00Z", "b": "2026-01-02T00:00:00Z"}
    assert await preempted(sandbox, started, **budgets) == gone


async def test_preempt_is_told_how_many_budgets_would_be_violated(
    sandbox: Sandbox, extender: ScriptedExtender
) -> None:
    fill(sandbox, 1, cpu="2")
    sandbox.registry.create(PRIORITY_CLASS, "", {"metadata": {"name": "high"}, "value": 9})
    spec = {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}}
    sandbox.registry.create(
        DISRUPTION_BUDGET, "default", {"metadata": {"name": "web"}, "spec": spec}
    )
    change = {"status": {"disruptionsAllowed": 1}}
    sandbox.registry.patch(DISRUPTION_BUDGET, ("default", "web"), change, MERGE, "status")
    extender.on_preempt = lambda args: {"NodeNameToMetaVictims": {}}
    await sandbox.schedule_with(extender.config("filter", "preempt"))
    for name in ("one", "two"):
        add_pod(sandbox, labelled(pod(name), "web"))
    await until(lambda: bound(sandbox) == ["one", "two"])
    add_pod(sandbox, pod("high", cpu="2", priorityClassName="high"))
    await until(lambda: condition_of(sandbox, "high"))
    victims = extender.calls("preempt")[0]["NodeNameToMetaVictims"]["n0"]
    assert len(victims["Pods"]) == 2
    assert victims["NumPDBViolations"] == 1


# --- /bind ---------------------------------------------------------------------------------------


def bind_for_real(sandbox: Sandbox, args: dict[str, Any]) -> dict[str, str]:
    binding = {"metadata": {"uid": args["PodUID"]}, "target": {"name": args["Node"]}}
    bind(sandbox.registry, args["PodNamespace"], args["PodName"], binding)
    return {"Error": ""}


async def test_a_binder_gets_names_uid_and_node(
    sandbox: Sandbox, extender: ScriptedExtender
) -> None:
    fill(sandbox, 1)
    extender.on_bind = lambda args: bind_for_real(sandbox, args)
    await sandbox.schedule_with(extender.config("filter", "bind"))
    add_pod(sandbox, pod("a"))
    await until(lambda: event_texts(sandbox, "a", "Scheduled"))
    (args,) = extender.calls("bind")
    assert args == {
        "PodName": "a",
        "PodNamespace": "default",
        "PodUID": pod_of(sandbox, "a")["metadata"]["uid"],
        "Node": "n0",
    }


async def test_held_bindings_do_not_stop_the_loop_and_their_pods_count(
    sandbox: Sandbox, extender: ScriptedExtender
) -> None:
    fill(sandbox, 4, cpu="1")
    gate = asyncio.Event()

    async def bind_later(args: dict[str, Any]) -> dict[str, str]:
        await asyncio.wait_for(gate.wait(), 5)
        return bind_for_real(sandbox, args)

    extender.on_bind = bind_later
    scheduler = await sandbox.schedule_with(extender.config("filter", "bind", http_timeout=5.0))
    for place in range(4):
        add_pod(sandbox, pod(f"p{place}"))
    await until(lambda: len(extender.calls("bind")) == 4)
    assert bound(sandbox) == []
    assert scheduler.pods_binding == 4
    assert {args["Node"] for args in extender.calls("bind")} == {"n0", "n1", "n2", "n3"}
    gate.set()
    await until(lambda: len(bound(sandbox)) == 4)


async def test_a_refused_binding_is_an_error_and_frees_the_node(
    sandbox: Sandbox, extender: ScriptedExtender
) -> None:
    fill(sandbox, 1, cpu="1")
    extender.on_bind = lambda args: {"Error": "the gang lost a member"}
    await sandbox.schedule_with(extender.config("filter", "bind"))
    add_pod(sandbox, pod("a"))
    await until(lambda: condition_of(sandbox, "a"))
    assert condition_of(sandbox, "a")["reason"] == "SchedulerError"
    assert condition_of(sandbox, "a")["message"] == "the gang lost a member"
    extender.on_bind = lambda args: bind_for_real(sandbox, args)
    add_pod(sandbox, pod("b"))
    await until(lambda: node_of(sandbox, "b") == "n0")


async def test_a_binding_whose_answer_is_lost_is_told_as_failed_but_not_tried_again(
    sandbox: Sandbox, extender: ScriptedExtender
) -> None:
    fill(sandbox, 1)

    async def bind_and_hang(args: dict[str, Any]) -> dict[str, str]:
        bind_for_real(sandbox, args)
        await asyncio.sleep(1)
        return {"Error": ""}

    extender.on_bind = bind_and_hang
    scheduler = await sandbox.schedule_with(extender.config("filter", "bind", http_timeout=0.05))
    add_pod(sandbox, pod("a"))
    await until(lambda: event_texts(sandbox, "a", "FailedScheduling"))
    assert node_of(sandbox, "a") == "n0"
    assert condition_of(sandbox, "a")["status"] == "False"
    assert pod_of(sandbox, "a")["metadata"]["uid"] not in scheduler.queue


async def test_success_without_a_binding_loses_the_pod(
    sandbox: Sandbox, extender: ScriptedExtender
) -> None:
    fill(sandbox, 1, cpu="1")
    await sandbox.schedule_with(extender.config("filter", "bind"))
    add_pod(sandbox, pod("a"))
    await until(lambda: event_texts(sandbox, "a", "Scheduled"))
    annotate(sandbox, "a")
    add_pod(sandbox, pod("b"))
    await until(lambda: condition_of(sandbox, "b"))
    assert "Insufficient cpu" in condition_of(sandbox, "b")["message"]
    assert len(extender.calls("bind")) == 1


async def test_an_ignorable_binder_that_fails_leaves_the_binding_to_the_scheduler(
    sandbox: Sandbox, extender: ScriptedExtender
) -> None:
    fill(sandbox, 1)
    extender.on_bind = lambda args: {"Error": "no"}
    await sandbox.schedule_with(extender.config("filter", "bind", ignorable=True))
    add_pod(sandbox, pod("a"))
    await until(lambda: node_of(sandbox, "a") == "n0")
    assert len(extender.calls("bind")) == 1


async def test_an_extender_may_bind_a_waiting_pod_by_itself(
    sandbox: Sandbox, extender: ScriptedExtender
) -> None:
    fill(sandbox, 1)
    extender.on_filter = reject("not yet")
    scheduler = await sandbox.schedule_with(extender.config("filter"))
    add_pod(sandbox, pod("a"))
    await until(lambda: condition_of(sandbox, "a"))
    bind(sandbox.registry, "default", "a", {"target": {"name": "n0"}})
    assert pod_of(sandbox, "a")["metadata"]["uid"] not in scheduler.queue


@pytest.mark.slow
async def test_a_gang_of_256_is_held_and_bound_at_once(
    sandbox: Sandbox, extender: ScriptedExtender
) -> None:
    fill(sandbox, 32)
    gate = asyncio.Event()

    async def bind_later(args: dict[str, Any]) -> dict[str, str]:
        await asyncio.wait_for(gate.wait(), 20)
        return bind_for_real(sandbox, args)

    extender.on_bind = bind_later
    await sandbox.schedule_with(extender.config("filter", "bind", http_timeout=20.0))
    for place in range(256):
        add_pod(sandbox, pod(f"p{place}"))
    await until(lambda: len(extender.calls("bind")) == 256, seconds=20)
    gate.set()
    await until(lambda: len(bound(sandbox)) == 256, seconds=20)
    assert len(extender.calls("filter")) == 256
