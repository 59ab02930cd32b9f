"""What is written to the API server, byte for byte where it matters."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

import pytest

from app.errors import (
    ApiError,
    Conflict,
    NotFound,
    NotLeading,
    TooManyRequests,
    Unreachable,
)
from app.kube.client.writes import Client
from tests.app.kube.apiserver import refusal, reply


@dataclass(frozen=True)
class About:
    """The subject of an event."""

    api_version: str = "v1"
    kind: str = "Pod"
    namespace: str = "team"
    name: str = "worker-0"
    uid: str = "u1"


NOON = datetime(2026, 11, 21, 13, 0, tzinfo=timezone(timedelta(hours=1)))


async def test_a_binding_names_node_and_uid_and_carries_annotations(server, transport):
    server.script = [reply(201, {"kind": "Status", "status": "Success"})]
    await Client(transport).bind("team", "worker-0", "u1", "n1", {"corral.dev/rank": "3"})
    (asked,) = server.asked
    assert (asked.method, asked.path) == (
        "POST",
        "/api/v1/namespaces/team/pods/worker-0/binding",
    )
    assert asked.body == {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {
            "namespace": "team",
            "name": "worker-0",
            "uid": "u1",
            "annotations": {"corral.dev/rank": "3"},
        },
        "target": {"apiVersion": "v1", "kind": "Node", "name": "n1"},
    }


@pytest.mark.parametrize(("status", "expected"), [(409, Conflict), (404, NotFound)])
async def test_a_refused_binding_is_asked_once(server, transport, status, expected):
    server.script = [refusal(status, "No"), reply(201, {})]
    with pytest.raises(expected):
        await Client(transport).bind("team", "worker-0", "u1", "n1", {})
    assert len(server.asked) == 1


async def test_a_binding_cut_off_before_its_answer_is_asked_once(server, transport):
    async def cut(request):
        request.transport.close()
        return await reply(201, {})(request)

    server.script = [cut, reply(201, {})]
    with pytest.raises(Unreachable):
        await Client(transport).bind("team", "worker-0", "u1", "n1", {})
    assert len(server.asked) == 1


async def test_a_mark_is_one_condition_of_the_version_that_was_seen(server, transport):
    server.script = [reply(200, {})]
    await Client(transport).mark_pod(
        "team", "p", "u1", "17", reason="Unschedulable", message="needs nodes", at=NOON
    )
    (asked,) = server.asked
    assert (asked.method, asked.path) == ("PATCH", "/api/v1/namespaces/team/pods/p/status")
    assert asked.headers["Content-Type"] == "application/strategic-merge-patch+json"
    assert asked.body == {
        "metadata": {"uid": "u1", "resourceVersion": "17"},
        "status": {
            "conditions": [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "reason": "Unschedulable",
                    "message": "needs nodes",
                    "lastTransitionTime": "2026-11-21T12:00:00Z",
                }
            ]
        },
    }


async def test_annotating_is_a_merge_patch_that_names_the_uid(server, transport):
    server.script = [reply(200, {})]
    await Client(transport).annotate_pod("team", "p", "u1", {"corral.dev/a": "1", "b": None})
    (asked,) = server.asked
    assert (asked.method, asked.path) == ("PATCH", "/api/v1/namespaces/team/pods/p")
    assert asked.headers["Content-Type"] == "application/merge-patch+json"
    assert asked.body == {
        "metadata": {"uid": "u1", "annotations": {"corral.dev/a": "1", "b": None}}
    }


@pytest.mark.parametrize("node", ["n1", None])
async def test_nominating_is_a_merge_patch_of_the_status_that_names_the_uid(
    server, transport, node
):
    server.script = [reply(200, {})]
    await Client(transport).nominate_pod("team", "p", "u1", node, {"corral.dev/a": node})
    (asked,) = server.asked
    assert (asked.method, asked.path) == ("PATCH", "/api/v1/namespaces/team/pods/p/status")
    assert asked.headers["Content-Type"] == "application/merge-patch+json"
    assert asked.body == {
        "metadata": {"uid": "u1", "annotations": {"corral.dev/a": node}},
        "status": {"nominatedNodeName": node},
    }


async def test_an_object_is_made_where_it_is_absent(server, transport):
    client, path = Client(transport), "/apis/toys.example.org/v1/boxes"
    server.script = [refusal(404, "NotFound"), reply(200, {}), reply(201, {})]
    assert not await client.exists(path, "a/b")
    assert await client.exists(path, "large")
    await client.create(path, {"metadata": {"name": "large"}})
    assert [(each.method, each.path) for each in server.asked] == [
        ("GET", f"{path}/a%2Fb"),
        ("GET", f"{path}/large"),
        ("POST", path),
    ]


BOXES = "/apis/toys.example.org/v1/boxes"


async def test_a_change_of_an_object_names_the_uid_and_the_version_that_it_means(server, transport):
    server.script = [reply(200, {}), refusal(409, "Conflict"), reply(422, OTHER_UID)]
    client, patch = Client(transport), {"metadata": {"labels": {"a": "b"}}, "spec": {"size": 1}}
    await client.change(BOXES, "a/b", "u1", "7", patch)
    for _ in range(2):
        with pytest.raises(Conflict):
            await client.change(BOXES, "large", "u1", "7", patch)
    asked = server.asked[0]
    assert (asked.method, asked.path) == ("PATCH", f"{BOXES}/a%2Fb")
    assert asked.headers["Content-Type"] == "application/merge-patch+json"
    assert asked.body == {
        "metadata": {"uid": "u1", "resourceVersion": "7", "labels": {"a": "b"}},
        "spec": {"size": 1},
    }


async def test_a_deletion_of_an_object_names_the_uid_and_the_version_that_it_means(
    server, transport
):
    server.script = [reply(200, {}), refusal(409, "Conflict"), refusal(404, "NotFound")]
    client = Client(transport)
    await client.delete(BOXES, "large", "u1", "7")
    for error in (Conflict, NotFound):
        with pytest.raises(error):
            await client.delete(BOXES, "large", "u1", "7")
    asked = server.asked[0]
    assert (asked.method, asked.path) == ("DELETE", f"{BOXES}/large")
    assert asked.body == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": "u1", "resourceVersion": "7"},
    }


async def test_a_pod_is_read_as_a_record(server, transport):
    labels = {"gang": "a", "noise": "b"}
    server.script = [reply(200, {"metadata": {"namespace": "team", "name": "p", "labels": labels}})]
    record = await Client(transport, keep=lambda key: key == "gang").get_pod("team", "p")
    assert record is not None
    assert (record.key, record.labels) == ("team/p", {"gang": "a"})


async def test_of_a_pods_labels_others_may_be_kept_than_of_its_annotations(server, transport):
    keys = {"gang": "a", "part": "b"}
    server.script = [reply(200, {"metadata": {"labels": keys, "annotations": keys}})]
    client = Client(transport, keep=lambda key: key == "gang", keep_label=lambda key: True)
    record = await client.get_pod("team", "p")
    assert record is not None
    assert (record.labels, record.annotations) == (keys, {"gang": "a"})


async def test_a_pod_that_is_gone_is_none(server, transport):
    server.script = [refusal(404, "NotFound")]
    assert await Client(transport).get_pod("team", "p") is None


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("../../secrets", "/api/v1/namespaces/team/pods/..%2F..%2Fsecrets"),
        ("a?b=c#d", "/api/v1/namespaces/team/pods/a%3Fb%3Dc%23d"),
        ("a%2Fb", "/api/v1/namespaces/team/pods/a%252Fb"),
    ],
)
async def test_a_hostile_name_stays_one_segment(server, transport, name, path):
    server.script = [reply(200, {})]
    await Client(transport).get_pod("team", name)
    assert server.asked[0].path == path


@pytest.mark.parametrize("name", ["", ".", ".."])
async def test_a_name_no_object_can_have_is_not_found_without_asking(server, transport, name):
    with pytest.raises(NotFound):
        await Client(transport).bind("team", name, "u1", "n1", {})
    assert server.asked == []


async def test_an_event_says_what_about_which_object_and_when(server, transport):
    server.script = [reply(201, {})]
    client = Client(transport)
    await client.record_event(About(), "Placed", "in one rack", is_warning=False, at=NOON)
    (asked,) = server.asked
    assert (asked.method, asked.path) == ("POST", "/api/v1/namespaces/team/events")
    name = asked.body["metadata"].pop("name")
    assert name.startswith("worker-0.")
    assert asked.body == {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"namespace": "team"},
        "involvedObject": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": "team",
            "name": "worker-0",
            "uid": "u1",
        },
        "reason": "Placed",
        "message": "in one rack",
        "type": "Normal",
        "source": {"component": "corral-extender"},
        "reportingComponent": "corral-extender",
        "firstTimestamp": "2026-11-21T12:00:00Z",
        "lastTimestamp": "2026-11-21T12:00:00Z",
        "count": 1,
    }


async def test_a_long_event_is_cut_to_what_the_api_takes(server, transport):
    server.script = [reply(201, {}), reply(201, {})]
    client = Client(transport)
    for about in (About(name="n" * 253), About(name="n" * 199 + "-tail")):
        await client.record_event(about, "R" * 200, "\u00e9" * 1000, is_warning=True, at=NOON)
    assert len(server.asked) == 2
    for asked in server.asked:
        name = asked.body["metadata"]["name"]
        assert len(name) <= 253
        assert "-." not in name
        assert asked.body["message"] == "\u00e9" * 512
        assert len(asked.body["reason"]) == 128
        assert asked.body["type"] == "Warning"


async def test_an_event_about_a_node_goes_to_the_default_namespace(server, transport):
    server.script = [reply(201, {})]
    about = About(kind="Node", namespace="", name="n1")
    await Client(transport).record_event(about, "R", "m", is_warning=True, at=NOON)
    assert server.asked[0].path == "/api/v1/namespaces/default/events"


async def test_events_have_names_of_their_own(server, transport):
    server.script = [reply(201, {}), reply(201, {})]
    client = Client(transport)
    await client.record_event(About(), "R", "m", is_warning=True, at=NOON)
    await client.record_event(About(), "R", "m", is_warning=True, at=NOON)
    assert len({asked.body["metadata"]["name"] for asked in server.asked}) == 2


OTHER_UID = {
    "kind": "Status",
    "reason": "Invalid",
    "message": 'Pod "p" is invalid: metadata.uid: Invalid value: "u1": field is immutable',
}


async def test_a_pod_of_another_uid_is_a_conflict_however_the_server_puts_it(server, transport):
    """kube-apiserver 1.36 answers 422: to it, the patch changes an immutable field."""
    client = Client(transport)
    for write in (
        lambda: client.annotate_pod("team", "p", "u1", {"corral.dev/a": "1"}),
        lambda: client.nominate_pod("team", "p", "u1", "n1", {}),
        lambda: client.ungate_pod("team", "p", "u1", "corral.dev/gang"),
    ):
        server.script += [reply(422, OTHER_UID), refusal(409, "Conflict")]
        for _ in range(2):
            with pytest.raises(Conflict):
                await write()


async def test_ungating_is_one_strategic_patch_of_our_gate_affinity_and_annotations(
    server, transport
):
    server.script = [reply(200, {})]
    await Client(transport).ungate_pod(
        "team",
        "p",
        "u1",
        "corral.dev/gang",
        nodes=("n1", "n2"),
        annotations={"corral.dev/narrowed": "nodes"},
    )
    (asked,) = server.asked
    assert (asked.method, asked.path) == ("PATCH", "/api/v1/namespaces/team/pods/p")
    assert asked.headers["Content-Type"] == "application/strategic-merge-patch+json"
    required = {
        "nodeSelectorTerms": [
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
            for node in ("n1", "n2")
        ]
    }
    assert asked.body == {
        "metadata": {"uid": "u1", "annotations": {"corral.dev/narrowed": "nodes"}},
        "spec": {
            "schedulingGates": [{"$patch": "delete", "name": "corral.dev/gang"}],
            "affinity": {
                "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}
            },
        },
    }


async def test_ungating_touches_neither_affinity_nor_selector_unless_asked(server, transport):
    server.script = [reply(200, {}), reply(200, {})]
    client = Client(transport)
    await client.ungate_pod("team", "p", "u1", "corral.dev/gang")
    await client.ungate_pod("team", "p", "u1", "corral.dev/gang", selector={"rack": "r1"})
    bare, selecting = (asked.body for asked in server.asked)
    gone = [{"$patch": "delete", "name": "corral.dev/gang"}]
    assert bare == {"metadata": {"uid": "u1"}, "spec": {"schedulingGates": gone}}
    assert selecting["spec"] == {"schedulingGates": gone, "nodeSelector": {"rack": "r1"}}


async def test_a_change_of_the_pod_that_is_not_allowed_is_no_conflict(server, transport):
    server.script = [refusal(422, "Invalid")]
    with pytest.raises(ApiError) as error:
        await Client(transport).ungate_pod("team", "p", "u1", "corral.dev/gang", nodes=("n1",))
    assert error.value.status == 422
    assert not isinstance(error.value, Conflict)


async def test_an_eviction_names_the_uid_it_means(server, transport):
    server.script = [reply(201, {})]
    await Client(transport).evict_pod("team", "p", "u1")
    (asked,) = server.asked
    assert (asked.method, asked.path) == ("POST", "/api/v1/namespaces/team/pods/p/eviction")
    assert asked.body == {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"namespace": "team", "name": "p"},
        "deleteOptions": {"preconditions": {"uid": "u1"}},
    }


async def test_an_eviction_may_be_tried(server, transport):
    server.script = [reply(201, {})]
    await Client(transport).evict_pod("team", "p", "u1", is_dry_run=True)
    (asked,) = server.asked
    assert asked.body["deleteOptions"] == {"preconditions": {"uid": "u1"}, "dryRun": ["All"]}


async def test_a_disruption_budget_that_says_no_is_too_many_requests(server, transport):
    server.script = [refusal(429, "TooManyRequests", Retry_After="10")]
    with pytest.raises(TooManyRequests) as error:
        await Client(transport).evict_pod("team", "p", "u1")
    assert error.value.retry_after == 10.0


async def test_a_deletion_names_the_uid_and_leaves_the_grace_period_alone(server, transport):
    server.script = [reply(200, {}), refusal(409, "Conflict")]
    client = Client(transport)
    await client.delete_pod("team", "p", "u1")
    with pytest.raises(Conflict):
        await client.delete_pod("team", "p", "u1")
    asked = server.asked[0]
    assert (asked.method, asked.path) == ("DELETE", "/api/v1/namespaces/team/pods/p")
    assert asked.body == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": "u1"},
    }


async def test_an_object_that_is_ensured_is_made_or_the_one_that_is_there(server, transport):
    made, there = ({"metadata": {"name": "c", "uid": uid}} for uid in ("u1", "u2"))
    server.script = [reply(201, made), refusal(409, "AlreadyExists"), reply(200, there)]
    client, body = Client(transport), {"metadata": {"name": "c"}}
    assert await client.ensure("/apis/a/v1/bs", "c", body) == "u1"
    assert await client.ensure("/apis/a/v1/bs", "c", body) == "u2"
    asked = [(each.method, each.path) for each in server.asked]
    assert asked == [
        ("POST", "/apis/a/v1/bs"),
        ("POST", "/apis/a/v1/bs"),
        ("GET", "/apis/a/v1/bs/c"),
    ]


async def test_a_change_and_a_deletion_may_mean_any_version_of_an_object(server, transport):
    server.script = [reply(200, {}), reply(200, {})]
    client = Client(transport)
    await client.change("/apis/a/v1/bs", "c", "u1", "", {"metadata": {"labels": {"a": "b"}}})
    await client.delete("/apis/a/v1/bs", "c", "u1", "")
    change, deletion = server.asked
    assert change.body == {"metadata": {"labels": {"a": "b"}, "uid": "u1"}}
    assert deletion.body["preconditions"] == {"uid": "u1"}


async def test_a_pod_is_read_whole_if_it_is_there(server, transport):
    server.script = [reply(200, {"spec": {"anything": 1}}), refusal(404, "NotFound")]
    client = Client(transport)
    assert json.loads(await client.read_pod("team", "p") or b"") == {"spec": {"anything": 1}}
    assert await client.read_pod("team", "p") is None


WRITES = {
    "bind": lambda client: client.bind("team", "worker-0", "u1", "n1", {}),
    "annotate": lambda client: client.annotate_pod("team", "worker-0", "u1", {"a": "b"}),
    "nominate": lambda client: client.nominate_pod("team", "worker-0", "u1", "n1", {}),
    "ungate": lambda client: client.ungate_pod("team", "worker-0", "u1", "corral.dev/gang"),
    "evict": lambda client: client.evict_pod("team", "worker-0", "u1"),
    "delete": lambda client: client.delete_pod("team", "worker-0", "u1"),
    "status": lambda client: client.patch_status("/apis/a/v1/namespaces/n/b/c", "u1", {}),
    "create": lambda client: client.create("/apis/a/v1/bs", {"metadata": {"name": "c"}}),
    "ensure": lambda client: client.ensure("/apis/a/v1/bs", "c", {"metadata": {"name": "c"}}),
    "change": lambda client: client.change("/apis/a/v1/bs", "c", "u1", "7", {}),
    "delete_object": lambda client: client.delete("/apis/a/v1/bs", "c", "u1", "7"),
    "event": lambda client: client.record_event(About(), "R", "m", is_warning=True, at=NOON),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
async def test_nothing_is_written_while_another_pair_may_lead(server, transport, write):
    may = [False, True]

    async def may_write():
        return may.pop(0)

    client = Client(transport, may_write=may_write)
    with pytest.raises(NotLeading):
        await write(client)
    assert server.asked == []
    server.script = [reply(200, {})]
    await write(client)
    assert len(server.asked) == 1


def test_every_write_is_held_back():
    pods = {"bind", "annotate_pod", "nominate_pod", "ungate_pod", "mark_pod", "evict_pod"}
    pods |= {"delete_pod"}
    public = {name for name in vars(Client) if not name.startswith("_")}
    others = {"create", "ensure", "change", "delete", "patch_status", "record_event"}
    reads = {"get_pod", "read_pod", "exists"}
    assert public == pods | others | reads
