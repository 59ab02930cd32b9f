"""What a connection may cost. Raw sockets, since no HTTP client is this rude."""

from __future__ import annotations

import asyncio
import time

import pytest

from app.extender.guard import HEADER_BYTES, Joined
from tests.app.extender.port import ScriptedEngine, answer_of, args, dumped, http, running_port
from tests.app.polling import until

BINDING = dumped({"PodName": "p", "PodNamespace": "ns", "PodUID": "u", "Node": "n1"})


async def closed(reader: asyncio.StreamReader, seconds: float = 5.0) -> bytes:
    """What arrives until the other side closes; fails if it does not within the bound."""
    async with asyncio.timeout(seconds):
        try:
            return await reader.read(-1)
        except ConnectionError:
            return b""


def receiving(port) -> int:
    """How many connections have sent a part of a request."""
    return sum(each._is_receiving for each in port.server.server_state.connections)


def broken(port, reason: str) -> float:
    return port.metrics.registry.get_sample_value(
        "corral_broken_requests_total", {"reason": reason}
    )


@pytest.mark.parametrize(
    "opening",
    [
        pytest.param(b"P", id="one_letter"),
        pytest.param(b"POST /filter HTTP/1.1\r\n", id="half_a_header"),
        pytest.param(b"POST /filter HTTP/1.1\r\nContent-Length: 9\r\n\r\n{", id="half_a_body"),
        pytest.param(
            b"POST /filter HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n",
            id="half_of_the_chunks",
        ),
        pytest.param(b"POST /bind HTTP/1.1\r\nContent-Length: 99\r\n\r\n", id="no_body_at_all"),
    ],
)
async def test_a_request_that_does_not_end_is_closed_at_the_deadline(opening):
    async with running_port(receive_seconds=0.1) as port:
        reader, writer = await asyncio.open_connection(*port.address)
        began = time.monotonic()
        writer.write(opening)
        assert await closed(reader) == b""
        assert time.monotonic() - began >= 0.1
        assert broken(port, "late") == 1
        writer.close()


@pytest.mark.slow
async def test_a_byte_now_and_then_does_not_move_the_deadline():
    async with running_port(receive_seconds=0.3) as port:
        reader, writer = await asyncio.open_connection(*port.address)
        began = time.monotonic()
        writer.write(b"POST /filter HTTP/1.1\r\nContent-Length: 999\r\n\r\n")
        async with asyncio.timeout(5):
            while not reader.at_eof() and reader.exception() is None:
                writer.write(b" ")
                await asyncio.wait((asyncio.create_task(reader.read(1)),), timeout=0.02)
                if writer.transport.is_closing() or broken(port, "late"):
                    break
        assert 0.3 <= time.monotonic() - began < 3
        assert broken(port, "late") == 1
        writer.close()


@pytest.mark.slow
async def test_a_request_in_pieces_ends_nothing_later():
    async with running_port(receive_seconds=0.3) as port:
        reader, writer = await asyncio.open_connection(*port.address)
        request = http("/filter", args(["n1"]))
        for piece in (request[:9], request[9:60], request[60:70], request[70:]):
            writer.write(piece)
            await asyncio.sleep(0.002)
        assert (await answer_of(reader))[0] == 200
        with pytest.raises(TimeoutError):
            await closed(reader, seconds=0.4)
        assert broken(port, "late") == 0
        writer.close()


@pytest.mark.slow
async def test_a_client_that_leaves_in_the_middle_of_a_request_is_not_late():
    async with running_port(receive_seconds=0.2) as port:
        _, writer = await asyncio.open_connection(*port.address)
        writer.write(b"POST /filter HTTP/1.1\r\n")
        await until(lambda: receiving(port) == 1)
        writer.close()
        await asyncio.sleep(0.3)
        assert broken(port, "late") == 0


@pytest.mark.slow
async def test_each_request_of_a_connection_has_the_deadline():
    async with running_port(receive_seconds=0.3) as port:
        reader, writer = await asyncio.open_connection(*port.address)
        request = http("/filter", args(["n1"]))
        for _ in range(2):
            writer.write(request[:30])
            await asyncio.sleep(0.002)
            writer.write(request[30:])
            assert (await answer_of(reader))[0] == 200
        writer.write(request[:30])
        assert await closed(reader) == b""
        assert broken(port, "late") == 1
        writer.close()


async def test_a_silent_connection_is_idle_not_slow():
    async with running_port(receive_seconds=0.02) as port:
        reader, writer = await asyncio.open_connection(*port.address)
        with pytest.raises(TimeoutError):
            await closed(reader, seconds=0.1)
        writer.write(http("/filter", args(["n1"])))
        assert (await answer_of(reader))[0] == 200
        writer.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    "opening",
    [
        pytest.param(b"", id="nothing_sent"),
        pytest.param(http("/filter", args(["n1"])), id="after_an_answer"),
        pytest.param(b"\r\n\r\n", id="blank_lines"),
    ],
)
async def test_an_idle_connection_is_closed_after_the_keep_alive(opening):
    async with running_port(keep_alive_seconds=1) as port:
        reader, writer = await asyncio.open_connection(*port.address)
        began = time.monotonic()
        writer.write(opening)
        await closed(reader)
        assert 0.9 <= time.monotonic() - began < 4
        writer.close()


async def test_many_requests_use_one_connection():
    async with running_port() as port:
        reader, writer = await asyncio.open_connection(*port.address)
        for _ in range(20):
            writer.write(http("/filter", args(["n1"])))
            assert (await answer_of(reader))[0] == 200
        assert len(port.engine.asked) == 20
        writer.close()


async def test_a_held_bind_outlives_the_receive_deadline():
    async with running_port(receive_seconds=0.05, answer_seconds=0.15) as port:
        reader, writer = await asyncio.open_connection(*port.address)
        writer.write(http("/bind", BINDING))
        status, content = await answer_of(reader)
        assert status == 200
        assert b"in time" in content
        writer.close()


@pytest.mark.parametrize(
    "header",
    [
        pytest.param(b"X-Large: " + b"a" * 5_000_000, id="one_of_5_MB"),
        pytest.param(b"\r\n".join(b"X-%d: a" % i for i in range(500_000)), id="500_000_small_ones"),
        pytest.param(b"a" * 5_000_000 + b": x", id="long_name"),
    ],
)
async def test_a_large_header_is_refused_long_before_its_end(header):
    async with running_port() as port:
        reader, writer = await asyncio.open_connection(*port.address)
        writer.write(b"POST /filter HTTP/1.1\r\n" + header)
        answer = await closed(reader)
        assert answer == b"" or answer.split(b" ")[1] in (b"431", b"400")
        assert port.engine.asked == []
        writer.close()


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(b"X: " + b"a" * 100_000 + b"\r\n", id="one_line"),
        pytest.param(b"X: aaaaaaa\r\n" * 10_000, id="many_lines"),
    ],
)
async def test_a_large_header_that_comes_in_one_piece_is_refused(lines):
    async with running_port() as port:
        reader, writer = await asyncio.open_connection(*port.address)
        writer.write(b"POST /filter HTTP/1.1\r\n" + lines + b"Content-Length: 0\r\n\r\n")
        answer = await closed(reader)
        assert answer == b"" or answer.split(b" ")[1] in (b"431", b"400")
        assert port.requests() == 0
        writer.close()


@pytest.mark.parametrize("earlier", [b"", http("/filter", args(["n1"]))], ids=["first", "second"])
async def test_a_header_that_has_not_ended_may_have_64_kib_and_no_byte_more(earlier):
    async with running_port() as port:
        reader, writer = await asyncio.open_connection(*port.address)
        if earlier:
            writer.write(earlier)
            assert (await answer_of(reader))[0] == 200
        begun = b"POST /filter HTTP/1.1\r\nX: "
        writer.write(begun.ljust(HEADER_BYTES, b"a"))
        with pytest.raises(TimeoutError):
            await closed(reader, seconds=0.05)
        assert broken(port, "header") == 0
        writer.write(b"a")
        assert (await closed(reader)).startswith(b"HTTP/1.1 431 ")
        assert broken(port, "header") == 1
        writer.close()


@pytest.mark.parametrize(("more", "statuses"), [(0, (b"200", b"200")), (1, (b"200", b"400"))])
async def test_the_names_and_values_of_a_whole_header_may_have_64_kib(more, statuses):
    named = len("/filter") + len("Content-Length0") + len("X")
    value = b"a" * (HEADER_BYTES - named + more)
    async with running_port() as port:
        reader, writer = await asyncio.open_connection(*port.address)
        for header, status in zip((b"a", value), statuses, strict=True):
            lines = b"X: " + header + b"\r\nContent-Length: 0\r\n\r\n"
            writer.write(b"POST /filter HTTP/1.1\r\n" + lines)
            if status == b"200":  # each header is counted by itself
                assert (await answer_of(reader))[0] == 200
            else:
                answer = await closed(reader)
                assert answer == b"" or answer.split(b" ")[1] == status
        writer.close()


async def test_a_long_request_line_is_refused():
    async with running_port() as port:
        reader, writer = await asyncio.open_connection(*port.address)
        writer.write(b"POST /" + b"a" * 1_000_000 + b" HTTP/1.1\r\n\r\n")
        answer = await closed(reader)
        assert answer == b"" or answer.split(b" ")[1] in (b"431", b"400")
        writer.close()


async def test_a_body_is_not_swallowed_beyond_the_largest_limit():
    async with running_port(filter_body_bytes=2048, preempt_body_bytes=4096) as port:
        reader, writer = await asyncio.open_connection(*port.address)
        writer.write(b"POST /filter HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n")
        assert (await answer_of(reader))[0] == 200
        writer.write(b" " * 1_000_000)
        assert await closed(reader) == b""
        assert broken(port, "body") == 1
        writer.close()


async def test_a_body_in_chunks_may_be_as_large_as_the_largest_limit():
    most = 4096
    body = args(["n1"]).ljust(most)
    async with running_port(filter_body_bytes=most, preempt_body_bytes=most) as port:
        reader, writer = await asyncio.open_connection(*port.address)
        writer.write(b"POST /filter HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")
        writer.write(b"%x\r\n%b\r\n" % (most, body))
        await until(lambda: port.taken.body_bytes == most)
        writer.write(b"0\r\n\r\n")
        assert (await answer_of(reader))[0] == 200
        writer.close()


async def test_connections_over_the_bound_are_closed_while_all_others_are_being_answered():
    async with running_port(max_connections=2, answer_seconds=0.5) as port:
        first = await asyncio.open_connection(*port.address)
        second = await asyncio.open_connection(*port.address)
        for name, (_, writer) in (("p", first), ("q", second)):
            body = {"PodName": name, "PodNamespace": "ns", "PodUID": name, "Node": "n1"}
            writer.write(http("/bind", dumped(body)))
        second[1].write(b"POST /filter HTTP/1.1\r\n")  # begun, and it waits for that answer
        await until(lambda: len(port.engine.arrived) == 2)
        third = await asyncio.open_connection(*port.address)
        assert await closed(third[0]) == b""
        assert broken(port, "connections") == 1
        for reader, writer in (first, second):
            assert (await answer_of(reader))[0] == 200
            writer.close()
        third[1].close()


@pytest.mark.parametrize("begun", [1, 2])
async def test_a_new_connection_takes_the_place_of_the_request_that_came_first_and_has_not_ended(
    begun,
):
    async with running_port(max_connections=2) as port:
        first = await asyncio.open_connection(*port.address)
        second = await asyncio.open_connection(*port.address)
        for at, (_, writer) in enumerate((first, second)[:begun], 1):
            writer.write(b"POST /filter HTTP/1.1\r\n")
            await until(lambda at=at: receiving(port) == at)
        if begun == 1:  # the other one has sent nothing, and that was after it
            second[1].close()
            await until(lambda: len(port.server.server_state.connections) == 1)
            second = await asyncio.open_connection(*port.address)
        third = await asyncio.open_connection(*port.address)
        assert await closed(first[0]) == b""
        assert (broken(port, "idle"), broken(port, "connections")) == (0, 1)
        rest = http("/filter", args(["n1"])).partition(b"\r\n")[2]
        second[1].write(rest if begun == 2 else http("/filter", args(["n1"])))
        third[1].write(http("/filter", args(["n1"])))
        for reader, _ in (second, third):
            assert (await answer_of(reader))[0] == 200
        for _, writer in (first, second, third):
            writer.close()


async def test_an_answer_before_the_end_of_its_request_leaves_a_connection_that_may_go():
    async with running_port(max_connections=1, bind_body_bytes=100) as port:
        first = await asyncio.open_connection(*port.address)
        first[1].write(b"POST /bind HTTP/1.1\r\nContent-Length: 200\r\n\r\n" + b" " * 100)
        assert (await answer_of(first[0]))[0] == 200
        first[1].write(b" " * 100)
        await until(lambda: receiving(port) == 0)
        second = await asyncio.open_connection(*port.address)
        assert await closed(first[0]) == b""
        second[1].write(http("/filter", args(["n1"])))
        assert (await answer_of(second[0]))[0] == 200
        for _, writer in (first, second):
            writer.close()


async def test_a_new_connection_takes_the_place_of_the_one_that_is_idle_longest():
    async with running_port(max_connections=2) as port:
        first = await asyncio.open_connection(*port.address)
        second = await asyncio.open_connection(*port.address)
        first[1].write(http("/filter", args(["n1"])))
        assert (await answer_of(first[0]))[0] == 200
        third = await asyncio.open_connection(*port.address)
        assert await closed(second[0]) == b""
        assert (broken(port, "idle"), broken(port, "connections")) == (1, 0)
        for reader, writer in (first, third):
            writer.write(http("/filter", args(["n1"])))
            assert (await answer_of(reader))[0] == 200
        for _, writer in (first, second, third):
            writer.close()


def unfinished(body_bytes: int) -> bytes:
    """A /filter request that lacks its last byte."""
    head = f"POST /filter HTTP/1.1\r\nContent-Length: {body_bytes + 1}\r\n\r\n"
    return head.encode() + b" " * body_bytes


async def test_bodies_under_way_share_one_budget_and_a_small_one_finds_room():
    budget, body = 1_000_000, 200_000
    async with running_port(under_way_bytes=budget) as port:
        greedy = [await asyncio.open_connection(*port.address) for _ in range(30)]
        for number, (_, writer) in enumerate(greedy):
            writer.write(unfinished(body))
            if number == 1:  # two fit beside each other
                await until(lambda: port.taken.body_bytes >= 2 * body)
        await until(lambda: broken(port, "busy") >= 20)
        assert port.taken.body_bytes <= budget
        assert broken(port, "busy") <= 28
        reader, writer = await asyncio.open_connection(*port.address)
        writer.write(http("/filter", args(["n1"])))
        assert (await answer_of(reader))[0] == 200
        for _, each in (*greedy, (reader, writer)):
            each.close()
        await until(lambda: port.taken.body_bytes == 0)


async def test_one_connection_has_at_most_half_of_the_budget():
    async with running_port(under_way_bytes=1_000_000) as port:
        reader, writer = await asyncio.open_connection(*port.address)
        writer.write(http("/filter", b" " * 499_000))
        assert (await answer_of(reader))[0] == 200
        writer.write(unfinished(501_000))
        assert (await closed(reader)).startswith(b"HTTP/1.1 503 ")
        assert broken(port, "busy") == 1
        writer.close()
        await until(lambda: port.taken.body_bytes == 0)


async def test_what_is_answered_is_under_way_no_longer():
    async with running_port(bind_body_bytes=1024) as port:
        reader, writer = await asyncio.open_connection(*port.address)
        names = [f"n{i}" for i in range(5)]
        writer.write(b"".join(http("/filter", args([name])) for name in names))
        for _ in names:
            await answer_of(reader)
        assert port.taken.body_bytes == 0
        writer.write(b"POST /bind HTTP/1.1\r\nContent-Length: 9999\r\n\r\n" + b" " * 2000)
        assert b"1024 bytes" in (await answer_of(reader))[1]
        writer.write(b" " * 7000)
        await until(lambda: port.taken.body_bytes == 0)
        writer.close()


async def test_a_held_bind_is_under_way_until_its_answer():
    async with running_port(answer_seconds=0.2) as port:
        reader, writer = await asyncio.open_connection(*port.address)
        writer.write(http("/bind", BINDING))
        await until(lambda: port.engine.arrived)
        assert port.taken.body_bytes == len(BINDING)
        await answer_of(reader)
        assert port.taken.body_bytes == 0
        writer.close()


async def test_a_few_pipelined_requests_are_answered_in_order():
    async with running_port() as port:
        reader, writer = await asyncio.open_connection(*port.address)
        names = [f"n{i}" for i in range(5)]
        writer.write(b"".join(http("/filter", args([name])) for name in names))
        answers = [await answer_of(reader) for _ in names]
        assert [status for status, _ in answers] == [200] * 5
        assert all(name.encode() in body for name, (_, body) in zip(names, answers, strict=True))
        writer.close()


async def test_pipelining_without_end_is_cut():
    async with running_port() as port:
        reader, writer = await asyncio.open_connection(*port.address)
        writer.write(http("/bind", BINDING) + http("/filter", args(["n1"])) * 1000)
        assert b" 500 " not in await closed(reader)
        assert port.engine.asked == []
        writer.close()


@pytest.mark.parametrize(
    "request_bytes",
    [
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc", id="tls_hello"),
        pytest.param(b"GET / HTTP/9.9\r\n\r\n", id="unknown_version"),
        pytest.param(b"POST /filter HTTP/1.1\r\nContent-Length: -1\r\n\r\n", id="negative_length"),
        pytest.param(
            b"POST /filter HTTP/1.1\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n",
            id="length_of_5000_digits",
        ),
        pytest.param(
            b"POST /filter HTTP/1.1\r\nContent-Length: 3\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            id="two_lengths",
        ),
    ],
)
async def test_what_is_no_http_is_closed(request_bytes):
    async with running_port() as port:
        reader, writer = await asyncio.open_connection(*port.address)
        writer.write(request_bytes)
        answer = await closed(reader)
        assert answer == b"" or answer.split(b" ")[1] == b"400"
        assert port.engine.asked == []
        writer.close()


@pytest.mark.slow
async def test_two_hundred_idle_connections_do_not_slow_a_request():
    async with running_port(ScriptedEngine()) as port:
        idle = [await asyncio.open_connection(*port.address) for _ in range(200)]
        reader, writer = await asyncio.open_connection(*port.address)
        writer.write(http("/filter", args(["n1"])))
        assert (await answer_of(reader, seconds=2))[0] == 200
        for _, other in [*idle, (reader, writer)]:
            other.close()


class Recorded(asyncio.Transport):
    """What reaches the kernel, write by write."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.is_over = False

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def close(self) -> None:
        self.is_over = True

    def abort(self) -> None:
        self.is_over = True

    def is_closing(self) -> bool:
        return self.is_over


async def test_what_is_written_in_one_turn_of_the_loop_leaves_as_one_and_in_order():
    below = Recorded()
    joined = Joined(below, asyncio.get_running_loop())
    for part in (b"head", b"body"):
        joined.write(part)
    assert below.written == []
    await asyncio.sleep(0)
    assert below.written == [b"headbody"]
    joined.write(b"next")
    await asyncio.sleep(0)
    assert below.written == [b"headbody", b"next"]


async def test_a_connection_closes_when_everything_is_written_and_aborts_without():
    closing, aborted = Recorded(), Recorded()
    for below, end in ((closing, Joined.close), (aborted, lambda each: each.abort())):
        joined = Joined(below, asyncio.get_running_loop())
        joined.write(b"last")
        end(joined)
        await asyncio.sleep(0)
    assert closing.written == [b"last"]
    assert aborted.written == []
    assert closing.is_over
    assert aborted.is_over
