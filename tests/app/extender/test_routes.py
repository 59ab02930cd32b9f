"""The port over real HTTP: what kube-scheduler sees, and that nothing it can send is a 5xx."""

from __future__ import annotations

import asyncio
import gzip
import json
import threading

import httpx
import pytest

from app.kube.core.aside import LARGE_BYTES
from app.state.effects import Bind, Bound, RejectBind, Requeue
from app.state.filter_result import Failed, Passed, Pinned, Rejected
from tests.app.extender.port import (
    ScriptedEngine,
    answer_of,
    args,
    dumped,
    http,
    pod,
    running_port,
)
from tests.app.polling import until
from tests.app.state.world import World, four_racks
from tests.cluster import GPU, node

FILTER_KEYS = ["Nodes", "NodeNames", "FailedNodes", "FailedAndUnresolvableNodes", "Error"]
BINDING = {"PodName": "p", "PodNamespace": "ns", "PodUID": "u", "Node": "n1"}
VICTIMS = {"n1": {"Pods": [{"UID": "u1"}], "NumPDBViolations": 0}}
PREEMPTION = {"Pod": pod(), "NodeNameToVictims": None, "NodeNameToMetaVictims": VICTIMS}
VERBS = ("filter", "prioritize", "preempt", "bind")


async def post(url, verb, content, **headers):
    async with httpx.AsyncClient() as client:
        return await client.post(f"{url}/{verb}", content=content, headers=headers)


async def test_filter_answers_a_member_with_its_one_node():
    async with running_port(ScriptedEngine(answer=Pinned("n2"))) as port:
        answer = await post(port.url, "filter", args(["n1", "n2"]))
    assert answer.status_code == 200
    assert answer.headers["content-length"] == str(len(answer.content))
    assert "transfer-encoding" not in answer.headers
    assert list(answer.json()) == FILTER_KEYS
    assert answer.json()["NodeNames"] == ["n2"]
    assert port.engine.asked[0].uid == "uid-trainer-0"


@pytest.mark.parametrize("verb", ["filter", "prioritize", "preempt"])
@pytest.mark.parametrize("is_large", [False, True])
async def test_a_large_pod_is_read_beside_the_loop(verb, is_large):
    on = set()

    def keep(_key):
        on.add(threading.get_ident())
        return True

    asked = pod()
    asked["metadata"]["annotations"] = {"note": "x" * (LARGE_BYTES if is_large else 1)}
    bodies = {
        "filter": args(["n1"], Pod=asked),
        "prioritize": args(["n1"], Pod=asked),
        "preempt": dumped({**PREEMPTION, "Pod": asked}),
    }
    async with running_port(ScriptedEngine(), keep=keep) as port:
        answer = await post(port.url, verb, bodies[verb])
    assert answer.status_code == 200
    assert len(on) == 1
    assert (threading.get_ident() not in on) == is_large


async def test_filter_echoes_the_bytes_of_a_stranger():
    names = b'["n1", "n2" ,\n"n3"]'
    body = b'{"Pod":' + dumped(pod()) + b',"Nodes":null,"NodeNames":' + names + b"}"
    async with running_port() as port:
        answer = await post(port.url, "filter", body)
    assert names in answer.content
    assert answer.json()["Error"] == ""


async def test_filter_hands_on_what_has_to_be_done():
    wake = Requeue("team", "trainer-1", "uid-trainer-1")
    async with running_port(ScriptedEngine(answer=Rejected("waits"), effects=[wake])) as port:
        answer = await post(port.url, "filter", args(["n1"]))
        assert port.fed == [wake]
    assert answer.json()["FailedAndUnresolvableNodes"] == {"n1": "waits"}


async def test_answers_are_counted_by_kind_and_timed():
    async with running_port(ScriptedEngine(answer=Failed("not ready"))) as port:
        await post(port.url, "filter", args(["n1"]))
        async with httpx.AsyncClient() as client:
            text = (await client.get(f"{port.url}/metrics")).text
    assert 'corral_filter_answers_total{answer="failed"} 1.0' in text
    assert 'corral_extender_request_seconds_count{verb="filter"} 1.0' in text


async def test_a_bug_of_ours_is_an_error_answer_that_tells_nothing_of_it():
    async with running_port(ScriptedEngine(answer=RuntimeError("secret detail"))) as port:
        answer = await post(port.url, "filter", args(["n1"]))
    assert answer.status_code == 200
    assert answer.json()["Error"]
    assert "secret" not in answer.text


@pytest.mark.parametrize("verb", VERBS)
async def test_a_corral_that_does_not_lead_says_who_does_and_ends_the_connection(verb):
    body = {
        "filter": args(["n1"]),
        "prioritize": args(["n1"]),
        "preempt": dumped(PREEMPTION),
        "bind": dumped(BINDING),
    }[verb]
    leads = ["pod corral-b holds Lease home/corral"]
    async with running_port(ScriptedEngine(answer=Pinned("n1")), whose=lambda: leads[0]) as port:
        refused = await post(port.url, verb, body)
        assert port.engine.asked == []
        leads[0] = ""
        answered = await post(port.url, "filter", args(["n1"]))
    assert refused.status_code == 200
    assert refused.headers["connection"] == "close"
    if verb in ("filter", "bind"):  # the others have no place for an error
        assert "pod corral-b holds Lease home/corral" in refused.json()["Error"]
    assert answered.json()["NodeNames"] == ["n1"]
    assert "connection" not in answered.headers


async def test_a_corral_that_does_not_lead_takes_no_pod_its_nominated_node():
    waits = {**pod(), "status": {"nominatedNodeName": "n1"}}
    whose = "pod corral-b holds Lease home/corral"
    async with running_port(ScriptedEngine(answer=Pinned("n1")), whose=lambda: whose) as port:
        answer = await post(port.url, "filter", args(["n1"], Pod=waits))
        assert port.engine.asked == []
    assert answer.json()["Error"] == ""
    assert answer.json()["NodeNames"] == []
    assert whose in answer.json()["FailedAndUnresolvableNodes"]["n1"]
    assert answer.headers["connection"] == "close"


async def test_prioritize_scores_every_name_in_order():
    async with running_port(ScriptedEngine(scores=[0, 7, 10])) as port:
        answer = await post(port.url, "prioritize", args(["n1", "n2", "n3"]))
    assert answer.content == (
        b'[{"Host":"n1","Score":0},{"Host":"n2","Score":7},{"Host":"n3","Score":10}]'
    )


async def test_prioritize_keeps_scores_within_what_kube_scheduler_expects():
    async with running_port(ScriptedEngine(scores=[-3, 99])) as port:
        answer = await post(port.url, "prioritize", args(["n1", "n2"]))
    assert [host["Score"] for host in answer.json()] == [0, 10]


# -- simulators ------------------------------------------------------------------------------------


def template(name, gpus):
    return node(name, gpus=gpus, labels={"cluster-autoscaler.kubernetes.io/template-node": ""})


def simulated(*nodes, **more):
    asked = {"Pod": pod(), "Nodes": {"metadata": {}, "items": nodes}, "NodeNames": None}
    asked["Pod"]["spec"]["containers"][0]["resources"] = {"requests": {GPU: 8}}
    return dumped({**asked, **more})


async def test_a_simulator_is_answered_without_an_input_of_the_engine_and_counted():
    world = World(four_racks())
    body = simulated(*(template(f"t{i}", gpus=8 if i % 2 else 4) for i in range(50)))
    async with running_port(hypothetical=world.engine.hypothetical) as port:
        answer = (await post(port.url, "filter", body)).json()
        scores = (await post(port.url, "prioritize", body)).json()
        async with httpx.AsyncClient() as client:
            text = (await client.get(f"{port.url}/metrics")).text
        assert port.engine.asked == []
        assert port.fed == []
    fitting = [f"t{i}" for i in range(1, 50, 2)]
    assert [each["metadata"]["name"] for each in answer["Nodes"]["items"]] == fitting
    assert set(answer["FailedAndUnresolvableNodes"].values()) == {f"insufficient {GPU}"}
    assert scores == [{"Host": f"t{i}", "Score": 0} for i in range(50)]
    assert 'corral_filter_answers_total{answer="hypothetical"} 1.0' in text
    assert 'corral_extender_request_seconds_count{verb="filter"} 1.0' in text


async def test_kube_scheduler_is_answered_by_the_engine_also_if_it_sends_whole_nodes():
    world = World(four_racks())
    async with running_port(hypothetical=world.engine.hypothetical) as port:
        await post(port.url, "filter", simulated(node("n00"), node("n01")))
        await post(port.url, "filter", args(["n00", "n01"]))
        assert len(port.engine.asked) == 2


@pytest.mark.parametrize(
    ("more", "says"),
    [
        pytest.param({"filter_body_bytes": 1_000}, "over 1000 bytes", id="larger_than_allowed"),
        pytest.param({"full_nodes": False}, "not accepted", id="whole_nodes_refused"),
    ],
)
async def test_a_simulator_has_the_limits_of_every_request(more, says):
    engine = World(four_racks()).engine
    body = simulated(*(template(f"t{i}", gpus=8) for i in range(50)))
    async with running_port(hypothetical=engine.hypothetical, **more) as port:
        answer = (await post(port.url, "filter", body)).json()
    assert says in answer["Error"]
    assert (answer["Nodes"], answer["NodeNames"]) == (None, None)


async def test_a_node_that_cannot_be_read_is_an_error_that_names_it():
    engine = World(four_racks()).engine
    bad = template("bad", gpus=8)
    bad["spec"]["taints"] = "none"
    async with running_port(hypothetical=engine.hypothetical) as port:
        answer = (await post(port.url, "filter", simulated(bad))).json()
    assert "Node bad" in answer["Error"]


async def test_a_request_that_takes_long_is_answered_beside_the_loop():
    engine = World(four_racks()).engine
    body = simulated(*(template(f"t{i}", gpus=8) for i in range(1_000)))
    async with running_port(hypothetical=engine.hypothetical) as port:
        asked = asyncio.create_task(post(port.url, "filter", body))
        times = 0
        while not asked.done():
            await asyncio.sleep(0.001)
            times += 1
        assert len((await asked).json()["Nodes"]["items"]) == 1_000
    assert times > 3


# -- other verbs -----------------------------------------------------------------------------------


async def test_preempt_answers_with_nodes_and_victims_and_hands_on_what_has_to_be_done():
    event = Requeue("team", "trainer-1", "uid-trainer-1")
    async with running_port(ScriptedEngine(effects=[event])) as port:
        answer = await post(port.url, "preempt", dumped(PREEMPTION))
    assert answer.json() == {"NodeNameToMetaVictims": VICTIMS}
    assert port.engine.asked[0].uid == "uid-trainer-0"
    assert port.fed == [event]


async def test_bind_answers_when_the_api_server_has_confirmed():
    async with running_port() as port:
        request = asyncio.create_task(post(port.url, "bind", dumped(BINDING)))
        await until(lambda: port.engine.arrived)
        assert not request.done()
        port.desk.finished(Bind("ns", "p", "u", "n1"), Bound())
        answer = await request
    assert port.engine.arrived == [("ns", "p", "u", "n1")]
    assert answer.content == b'{"Error":""}'


async def test_bind_answers_a_refusal_with_its_sentence():
    async with running_port() as port:
        request = asyncio.create_task(post(port.url, "bind", dumped(BINDING)))
        await until(lambda: port.engine.arrived)
        port.desk.refuse(RejectBind("u", "the gang waits"))
        assert (await request).json() == {"Error": "the gang waits"}


async def test_a_client_that_leaves_a_held_bind_leaves_no_trace_in_the_log(capfd, caplog):
    async with running_port() as port:
        reader, writer = await asyncio.open_connection(*port.address)
        writer.write(http("/bind", dumped(BINDING)))
        await until(lambda: port.engine.arrived)
        writer.transport.abort()
        await until(lambda: not port.connections())
        port.desk.refuse_all("over")
        await until(lambda: not port.requests())
        assert await answer_of(reader) == (0, b"")
    assert capfd.readouterr() == ("", "")
    assert caplog.records == []


async def test_a_client_that_leaves_in_the_middle_of_a_body_leaves_no_trace_in_the_log(
    capfd, caplog
):
    async with running_port() as port:
        _, writer = await asyncio.open_connection(*port.address)
        writer.write(http("/filter", args(["n1"]))[:-5])
        await writer.drain()
        writer.transport.abort()
        assert (await post(port.url, "filter", args(["n1"]))).status_code == 200
    assert capfd.readouterr() == ("", "")
    assert caplog.records == []


async def test_probes():
    unready = "the cluster has not been read yet"
    async with running_port(unready=unready) as port, httpx.AsyncClient() as client:
        alive = await client.get(f"{port.url}/healthz")
        ready = await client.get(f"{port.url}/readyz")
    assert (alive.status_code, alive.text) == (200, "ok")
    assert (ready.status_code, ready.text) == (503, "the cluster has not been read yet")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/filter", 405),
        ("PUT", "/bind", 405),
        ("POST", "/filter/", 404),
        ("POST", "/", 404),
        ("GET", "/../etc/passwd", 404),
        ("GET", "/docs", 404),
        ("GET", "/openapi.json", 404),
    ],
)
async def test_nothing_else_is_served_and_nothing_redirects(method, path, status):
    async with running_port() as port, httpx.AsyncClient() as client:
        answer = await client.request(method, port.url + path)
    assert answer.status_code == status


HOSTILE = {
    "empty": b"",
    "cut": args(["n1"])[:-9],
    "not_json": b"hello",
    "number": b"7",
    "string": b'"Pod"',
    "null": b"null",
    "array": b"[]",
    "nulls": dumped({"Pod": None, "NodeNames": None, "PodUID": None, "Node": None}),
    "wrong_types": dumped({"Pod": [], "NodeNames": 1, "PodName": {}, "NodeNameToMetaVictims": 1}),
    "wrong_metadata": dumped(
        {"Pod": {"metadata": 1}, "NodeNames": [], "NodeNameToVictims": {"n": {"Pods": [1]}}}
    ),
    "nan": b'{"Pod":NaN,"PodName":NaN}',
    "huge_number": b'{"Pod":1' + b"0" * 5000 + b',"NumPDBViolations":1}',
    "deep": b'{"Pod":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "deep_objects": b'{"Pod":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"}",
    "lone_surrogate": (
        b'{"Pod":{"metadata":{"name":"\\ud800"}},"NodeNames":["n1"],"PodName":"\\ud800"}'
    ),
    "not_utf8": b'{"Pod":{"metadata":{"name":"\xff"}},"NodeNames":["n1"],"PodName":"\xff"}',
    "control_character": b'{"Pod":{"metadata":{"name":"\x01"}},"NodeNames":[],"PodName":"\x01"}',
    "name_not_utf8": b'{"Pod":{},"NodeNames":["\xff"],"PodName":"\xff"}',
    "half_a_value": args(["n1"]) + b"}",
}


@pytest.mark.parametrize(
    ("verb", "body"),
    [
        pytest.param(verb, body, id=f"{verb}-{name}")
        for verb in VERBS
        for name, body in HOSTILE.items()
        if (verb, name) != ("preempt", "name_not_utf8")  # no name in it concerns victims
    ],
)
async def test_what_cannot_be_meant_is_answered_200_with_an_error(verb, body):
    async with running_port() as port:
        answer = await post(port.url, verb, body)
        alive = await post(port.url, "filter", args(["n1"]))
    assert answer.status_code == 200
    assert answer.json()["Error"].startswith(f"/{verb}: ")
    assert len(answer.content) < 1200
    assert alive.json()["NodeNames"] == ["n1"]
    malformed = ("corral_broken_requests_total", {"reason": "malformed"})
    assert port.metrics.registry.get_sample_value(*malformed) == 1
    timed = ("corral_extender_request_seconds_count", {"verb": verb})
    assert port.metrics.registry.get_sample_value(*timed) == (2 if verb == "filter" else 1)


ODD = {
    "duplicate_keys": b'{"Pod":{},"Pod":' + dumped(pod()) + b',"NodeNames":["n1"]}',
    "duplicate_names": args(["n1", "n1"]),
    "unknown_keys": args(["n1"], Later={"a": [1]}),
    "no_names": args([]),
    "empty_name": args([""]),
    "long_name": args(["n" * 254]),
    "path_as_name": args(["../../etc"]),
    "nul_in_name": args(["n\0"]),
    "right_to_left": args(["\u202en1", "e\u0301", "\u00e9"]),
    "empty_pod": dumped({"Pod": {}, "NodeNames": ["n1"]}),
    "hostile_quantity": dumped(
        {
            "Pod": {
                "spec": {"containers": [{"resources": {"requests": {"cpu": "1e1000000"}}}]},
            },
            "NodeNames": ["n1"],
        }
    ),
    "ten_thousand_containers": dumped(
        {"Pod": {"spec": {"containers": [{"name": "c"}] * 10_000}}, "NodeNames": ["n1"]}
    ),
    "extreme_priority": dumped({"Pod": {"spec": {"priority": -(2**31)}}, "NodeNames": ["n1"]}),
}


@pytest.mark.parametrize("verb", ["filter", "prioritize"])
@pytest.mark.parametrize("body", ODD.values(), ids=ODD.keys())
@pytest.mark.parametrize("answer", [Passed(), Rejected("waits")], ids=["passed", "rejected"])
async def test_what_is_merely_odd_gets_a_whole_answer(verb, body, answer):
    async with running_port(ScriptedEngine(answer=answer)) as port:
        given = await post(port.url, verb, body)
    assert given.status_code == 200
    assert isinstance(json.loads(given.content), dict if verb == "filter" else list)


@pytest.mark.parametrize("verb", VERBS)
async def test_a_body_over_the_limit_is_refused_before_it_is_read(verb):
    bounds = {"filter_body_bytes": 2048, "preempt_body_bytes": 2048, "bind_body_bytes": 2048}
    async with running_port(**bounds) as port:
        reader, writer = await asyncio.open_connection(*port.address)
        writer.write(f"POST /{verb} HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n".encode())
        status, content = await answer_of(reader)
        writer.close()
    assert status == 200
    assert "over 2048 bytes" in json.loads(content)["Error"]


async def test_a_body_that_grows_over_the_limit_without_a_length_is_refused():
    async def chunks():
        for _ in range(10):
            yield b" " * 1000

    async with running_port(filter_body_bytes=2048) as port:
        answer = await post(port.url, "filter", chunks())
    assert answer.status_code == 200
    assert "over 2048 bytes" in answer.json()["Error"]


async def test_the_largest_body_within_the_limit_is_read():
    body = args(["n1"])
    async with running_port(filter_body_bytes=len(body)) as port:
        whole = await post(port.url, "filter", body)
        over = await post(port.url, "filter", body + b" ")
    assert whole.json()["Error"] == ""
    assert "over" in over.json()["Error"]


async def test_the_largest_body_in_chunks_within_the_limit_is_read():
    body = args(["n1"])

    async def chunks(whole):
        for at in range(0, len(whole), 100):
            yield whole[at : at + 100]

    async with running_port(filter_body_bytes=len(body)) as port:
        whole = await post(port.url, "filter", chunks(body))
        over = await post(port.url, "filter", chunks(body + b" "))
    assert whole.json()["Error"] == ""
    assert "over" in over.json()["Error"]


@pytest.mark.parametrize("encoding", ["identity", "Identity"])
async def test_a_body_that_says_it_is_not_compressed_is_read(encoding):
    async with running_port() as port:
        answer = await post(port.url, "filter", args(["n1"]), **{"Content-Encoding": encoding})
    assert answer.json()["NodeNames"] == ["n1"]


@pytest.mark.parametrize("verb", VERBS)
async def test_a_compressed_body_is_refused_not_unpacked(verb):
    bomb = gzip.compress(b" " * 1_000_000)
    async with running_port() as port:
        answer = await post(port.url, verb, bomb, **{"Content-Encoding": "gzip"})
    assert answer.status_code == 200
    assert "Content-Encoding" in answer.json()["Error"]


async def test_any_content_type_is_json():
    async with running_port() as port:
        answer = await post(port.url, "filter", args(["n1"]), **{"Content-Type": "text/html"})
    assert answer.json()["NodeNames"] == ["n1"]
