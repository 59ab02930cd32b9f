"""Requests and streams: every failure is one of app.errors, every wait has an end."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import msgspec
import pytest
from aiohttp import web

from app.errors import (
    ApiError,
    Conflict,
    Forbidden,
    Gone,
    NotFound,
    NotListening,
    TooLong,
    TooManyRequests,
    Unreachable,
)
from app.kube.client.transport import LONGEST_OBJECT, Transport
from tests.app.kube.apiserver import refusal, reply
from tests.app.kube.conftest import LocalAccess


async def lines_of(transport: Transport, read_timeout: float = 5.0) -> list[bytes]:
    async with aclosing(transport.stream("/watch", {"watch": "true"}, read_timeout)) as lines:
        return [line async for line in lines]


async def test_a_request_says_who_and_what_it_is(server, transport):
    server.script = [reply(201, {"ok": True})]
    body = await transport.request("POST", "/api/v1/things", params={"a": "b c"}, body={"x": 1})
    (asked,) = server.asked
    assert body == b'{"ok": true}'
    assert (asked.method, asked.path, asked.query) == ("POST", "/api/v1/things", {"a": "b c"})
    assert asked.body == {"x": 1}
    assert asked.headers["Authorization"] == "Bearer local"
    assert asked.headers["User-Agent"] == "corral"
    assert asked.headers["Accept-Encoding"] == "identity"
    assert asked.headers["Content-Type"] == "application/json"


async def test_a_request_without_a_body_says_nothing_of_one(server, transport):
    server.script = [reply(200, {})]
    await transport.request("GET", "/version")
    assert not {"Content-Type", "Content-Length"} & set(server.asked[0].headers)


async def test_a_body_that_is_bytes_is_sent_as_it_is(server, transport):
    server.script = [reply(200, {})]
    await transport.request("PATCH", "/api/v1/things/a", body=b'{"x": 1}')
    assert server.asked[0].body == {"x": 1}


async def test_an_escaped_path_stays_as_it_is(server, transport):
    server.script = [reply(200, {})]
    await transport.request("GET", "/api/v1/pods/a%2Fb%2E%2E", params={"limit": "1"})
    assert server.asked[0].path == "/api/v1/pods/a%2Fb%2E%2E"


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (400, ApiError),
        (401, ApiError),
        (403, Forbidden),
        (404, NotFound),
        (409, Conflict),
        (410, Gone),
        (429, TooManyRequests),
        (500, ApiError),
        (302, ApiError),
    ],
)
async def test_each_status_has_its_error(server, transport, status, expected):
    server.script = [refusal(status, "Because")]
    with pytest.raises(ApiError) as refused:
        await transport.request("GET", "/x")
    assert type(refused.value) is expected
    assert refused.value.status == status
    assert refused.value.reason == "Because"
    assert refused.value.message == "because Because"


@pytest.mark.parametrize("status", [200, 201, 202, 299])
async def test_every_status_of_success_is_an_answer(server, transport, status):
    server.script = [reply(status, {"ok": 1})]
    assert await transport.request("GET", "/x") == b'{"ok": 1}'


async def test_the_date_of_an_answer_is_its_header(server, transport):
    server.script = [reply(200, {}, Date="Thu, 26 Nov 2026 08:00:00 GMT")]
    assert await transport.date_of("/version") == "Thu, 26 Nov 2026 08:00:00 GMT"
    server.script = [reply(403, {"reason": "Forbidden"})]
    with pytest.raises(Forbidden):
        await transport.date_of("/version")


async def test_a_redirect_is_not_followed_with_our_token(server, transport):
    server.script = [refusal(302, "Found", Location="/elsewhere"), reply(200, {})]
    with pytest.raises(ApiError):
        await transport.request("GET", "/x")
    assert len(server.asked) == 1


async def test_a_stream_checks_its_status(server, transport):
    server.script = [refusal(410, "Expired")]
    with pytest.raises(Gone):
        await lines_of(transport)


async def test_a_refusal_that_is_no_status_object_is_quoted(server, transport):
    server.script = [reply(502, "<html>bad gateway</html>")]
    with pytest.raises(ApiError, match="bad gateway") as refused:
        await transport.request("GET", "/x")
    assert refused.value.status == 502


@pytest.mark.parametrize(
    ("body", "reason", "message"),
    [
        pytest.param({"reason": "Gone", "message": "too old"}, "Gone", "too old", id="a_status"),
        pytest.param({}, "Not Found", "", id="an_empty_one"),
        pytest.param({"reason": None, "message": None}, "Not Found", "", id="nulls"),
        pytest.param("", "Not Found", "", id="nothing"),
        pytest.param("x" * 300, "Not Found", "x" * 200, id="a_page_of_a_proxy"),
        pytest.param("[" * 50_000, "Not Found", "[" * 200, id="deep"),
    ],
)
async def test_a_refusal_says_what_it_can(server, transport, body, reason, message):
    server.script = [reply(404, body)]
    with pytest.raises(NotFound) as refused:
        await transport.request("GET", "/x")
    assert (refused.value.status, refused.value.reason) == (404, reason)
    assert (refused.value.message, refused.value.retry_after) == (message, None)


async def test_a_refusal_that_comes_in_parts_is_read_whole_and_its_connection_used_again(
    server, transport
):
    connections = set()

    async def in_parts(request: web.Request) -> web.StreamResponse:
        connections.add(request.transport)
        answer = web.StreamResponse(status=409)
        await answer.prepare(request)
        for part in (b'{"reason": "AlreadyExists",', b'"message": "it is there"}'):
            await answer.write(part)
            await asyncio.sleep(0.05)
        return answer

    server.script = [in_parts, in_parts]
    for _ in range(2):
        with pytest.raises(Conflict, match="it is there") as refused:
            await transport.request("POST", "/x")
        assert refused.value.reason == "AlreadyExists"
    assert len(connections) == 1


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7.0),
        pytest.param("9" * 5_000, 300.0, id="beyond_all_numbers"),
        ("-1", None),
        ("soon", None),
        ("\u00b2", None),
        pytest.param("\u0667", None, id="a_seven_in_arabic"),
    ],
)
async def test_retry_after_is_read_in_seconds(server, transport, header, seconds):
    server.script = [refusal(429, "Slow", Retry_After=header)]
    with pytest.raises(TooManyRequests) as refused:
        await transport.request("GET", "/x")
    assert refused.value.retry_after == seconds


async def test_an_identity_that_is_refused_is_renewed(server, transport, access):
    server.script = [refusal(401, "Unauthorized")]
    with pytest.raises(ApiError):
        await transport.request("GET", "/x")
    assert access.refusals == ["expired"]


async def test_a_request_whose_credentials_take_long_ends_at_its_timeout(server):
    class Slow(LocalAccess):
        async def headers(self):
            await asyncio.Event().wait()

    transport = Transport(Slow(server.url))
    async with asyncio.timeout(5):
        for asked in (
            transport.request("GET", "/x", timeout=0.05),
            transport.date_of("/x", timeout=0.05),
        ):
            with pytest.raises(Unreachable):
                await asked
    await transport.close()
    assert server.asked == []


async def test_a_request_without_an_answer_ends_at_its_timeout(server, transport):
    with pytest.raises(Unreachable, match="GET /x: TimeoutError") as cut:
        await transport.request("GET", "/x", timeout=0.05)
    assert isinstance(cut.value.__cause__, TimeoutError)


async def test_a_closed_port_is_unreachable_as_nothing_listens(unused_tcp_port):
    connected = Transport(LocalAccess(f"http://127.0.0.1:{unused_tcp_port}"))
    with pytest.raises(NotListening):
        await connected.request("GET", "/x")
    with pytest.raises(NotListening):
        await anext(connected.stream("/watch", {}, 5.0))
    await connected.close()


async def test_a_connection_that_ends_without_an_answer_is_not_taken_for_a_closed_port(
    unused_tcp_port,
):
    async def hang_up(_reader, writer):
        writer.close()

    async with await asyncio.start_server(hang_up, "127.0.0.1", unused_tcp_port):
        connected = Transport(LocalAccess(f"http://127.0.0.1:{unused_tcp_port}"))
        with pytest.raises(Unreachable) as ended:
            await connected.request("GET", "/x")
        await connected.close()
    assert type(ended.value) is Unreachable


async def test_many_requests_run_at_once(server, transport):
    everyone_is_here = asyncio.Event()

    async def answer_when_all_have_come(request):
        if len(server.asked) == 100:
            everyone_is_here.set()
        await everyone_is_here.wait()
        return await reply(200, {})(request)

    server.script = [answer_when_all_have_come] * 100
    async with asyncio.timeout(10):
        bodies = await asyncio.gather(*(transport.request("POST", "/bind") for _ in range(100)))
    assert bodies == [b"{}"] * 100


async def test_a_stream_yields_lines_whatever_the_chunks(server, transport):
    server.script = [server.watch([b"on", b"e\ntw", b"o\n", b"thr", b"ee\n"])]
    assert await lines_of(transport) == [b"one", b"two", b"three"]


async def test_a_last_line_without_an_end_is_not_a_line(server, transport):
    server.script = [server.watch([b"one\n", b"tw"])]
    assert await lines_of(transport) == [b"one"]


async def test_a_cut_stream_is_unreachable_after_its_whole_lines(server, transport):
    server.script = [server.watch([b"one\n", b"tw"], then="cut")]
    stream = transport.stream("/watch", {}, 5.0)
    assert await anext(stream) == b"one"
    with pytest.raises(Unreachable):
        await anext(stream)


async def test_a_silent_stream_is_unreachable(server, transport):
    server.script = [server.watch([b"one\n"], then="hold")]
    with pytest.raises(Unreachable):
        await lines_of(transport, read_timeout=0.05)


async def test_a_line_without_end_is_refused(server, transport):
    server.script = [server.watch([b"x" * 2**20] * 17, then="hold")]
    with pytest.raises(TooLong, match=str(LONGEST_OBJECT)):
        await lines_of(transport)


@pytest.mark.slow
async def test_only_lines_are_bounded_and_not_all_of_them_together(server, transport):
    half = b"x" * (LONGEST_OBJECT // 2 + 1)
    server.script = [server.watch([half, b"\n", half, b"\n" + half, b"\n"])]
    assert await lines_of(transport) == [half] * 3


@pytest.mark.slow
async def test_a_line_may_be_as_long_as_the_longest_object(server, transport):
    longest = b"x" * LONGEST_OBJECT
    server.script = [server.watch([longest, b"\n"]), server.watch([longest, b"x"], then="hold")]
    assert await lines_of(transport) == [longest]
    with pytest.raises(TooLong):
        await lines_of(transport)


async def test_the_largest_object_the_api_server_can_send_is_a_line(server, transport):
    """1.5 MiB in etcd, of which Go's JSON makes seven times as much at the worst."""
    long = b"x" * (7 * 3 * 2**19)
    server.script = [server.watch([b"one\n", long, b"\ntwo\n"])]
    assert await lines_of(transport) == [b"one", long, b"two"]


def blown_up(name: str) -> bytes:
    """A pod with 1.5 MB of what JSON makes six bytes of, and no newline."""
    escape = b"\\u003c" * 1_500_000
    return b'{"metadata":{"name":"%b"},"spec":{"args":["%b"]}}' % (name.encode(), escape)


async def test_lines_that_json_has_blown_up_are_shorter_and_others_as_they_were(server, transport):
    long = blown_up("a")
    split = [long[at : at + 99_999] for at in range(0, len(long), 99_999)]
    quotes = b'{"a":"%b"}' % (b'\\"' * 1_500_000)
    server.script = [server.watch([b"one\n", *split, b"\n", quotes, b"\n"])]
    one, shorter, as_it_was = await lines_of(transport)
    assert (one, as_it_was) == (b"one", quotes)
    assert len(shorter) < len(long) / 1.5
    assert msgspec.json.decode(shorter)["metadata"] == {"name": "a"}


async def test_an_answer_that_json_has_blown_up_is_shorter(server, transport):
    page = b'{"items":[%b,%b]}' % (blown_up("a"), blown_up("b"))
    server.script = [server.watch([page])] * 2
    body = await transport.request("GET", "/pods", most_bytes=len(page))
    assert len(body) < len(page) / 1.5
    assert [each["metadata"]["name"] for each in msgspec.json.decode(body)["items"]] == ["a", "b"]
    with pytest.raises(TooLong):
        await transport.request("GET", "/pods", most_bytes=len(page) - 1)


async def test_an_answer_is_read_up_to_the_bytes_that_are_asked_for(server, transport):
    server.script = [reply(200, "x" * 1_000)] * 2
    assert len(await transport.request("GET", "/pods", most_bytes=1_000)) == 1_000
    with pytest.raises(TooLong, match="GET /pods: answer over 999 bytes"):
        await transport.request("GET", "/pods", most_bytes=999)


async def test_an_answer_without_end_is_given_up(server, transport):
    server.script = [server.watch([b"x" * 2**20] * 17, then="hold")]
    with pytest.raises(TooLong):
        await transport.request("GET", "/pods")


def test_what_is_told_of_no_answer_has_no_status_that_nothing_sent():
    assert str(Unreachable("GET /version: refused")) == "Unreachable: GET /version: refused"
    refused = ApiError(404, "Not Found", "404 page not found\n")
    assert str(refused) == "404 Not Found: 404 page not found"
