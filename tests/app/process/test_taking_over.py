"""A Corral leads once its watch shows what the API server had when the Lease became its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from app.dialects.corral import GATE
from app.errors import ApiError, TooLong
from app.process.taking_over import MOST_LISTS, SHOWN_SECONDS, TakingOver
from tests.app.polling import until
from tests.app.state.world import World, four_racks, members
from tests.records import pod


class Lease:
    """One that changes hands when it is told to."""

    def __init__(self) -> None:
        self.names_us = False
        self.on_read: Callable[[], None] = lambda: None
        self.reads = 0
        self.overlap_seconds = 0.0
        self.term: object = 1

    def is_read(self, *, names_us: bool, term: object = 1) -> None:
        self.names_us, self.term = names_us, term
        self.on_read()

    async def confirm(self) -> bool:
        self.reads += 1
        return self.names_us


class Server:
    """Lists these pods; `page`: so many at once."""

    def __init__(self) -> None:
        self.pods: dict[str, dict[str, Any]] = {}
        self.page = 500
        self.fails = 0
        self.asked: list[dict[str, str]] = []

    def has(
        self,
        *records: Any,
        gates: tuple[str, ...] | None = None,
        version: str = "opaque",
        **spec: object,
    ) -> None:
        """These pods, without a node; `gates`: not their own."""
        for each in records:
            names = each.gates if gates is None else gates
            self.pods[each.uid] = {
                "metadata": {"uid": each.uid, "name": each.name, "resourceVersion": version},
                "spec": {
                    "schedulerName": each.scheduler,
                    "schedulingGates": [{"name": name} for name in names],
                    **spec,
                },
                "status": {"phase": each.phase},
            }

    async def request(self, method: str, path: str, **more: Any) -> bytes:
        assert (method, path) == ("GET", "/api/v1/pods")
        self.asked.append(dict(more["params"]))
        if self.fails:
            self.fails -= 1
            raise ApiError(429, "TooManyRequests", "later")
        assert more["params"]["fieldSelector"] == "spec.nodeName="
        begin = int(more["params"].get("continue", "0"))
        end = begin + min(self.page, int(more["params"]["limit"]))
        every = list(self.pods.values())
        metadata = {"continue": str(end)} if end < len(every) else {}
        answer = msgspec.json.encode({"metadata": metadata, "items": every[begin:end]})
        if len(answer) > more["most_bytes"]:
            raise TooLong(f"{method} {path}: answer over {more['most_bytes']} bytes")
        return answer


class Succession:
    """A Corral whose watch is fed by hand; its time passes ten times as fast."""

    def __init__(self, *pods: Any) -> None:
        self.world = World(four_racks(), pods, scheduler_name="corral")
        self.lease, self.server = Lease(), Server()
        self.told: list[bool] = []
        self.watched = "opaque"
        self.now = 0.0
        self.part = TakingOver(
            self.lease,  # type: ignore[arg-type]
            self.server,
            self.world.engine,
            self.told.append,
            lambda: self.watched,
            clock=lambda: self.now,
            sleep=self.sleep,
        )

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        await asyncio.sleep(seconds / 10)


@asynccontextmanager
async def running(*pods: Any) -> AsyncIterator[Succession]:
    succession = Succession(*pods)
    task = asyncio.create_task(succession.part.run())
    try:
        yield succession
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


GATED = members("g", 2, gates=(GATE,))


async def test_it_follows_until_the_lease_is_its_own_and_again_when_it_is_not():
    async with running(*GATED) as its:
        its.server.has(*GATED)
        assert its.told == [False]
        its.lease.is_read(names_us=True)
        await until(lambda: its.told == [False, True])
        its.lease.is_read(names_us=True)
        its.lease.is_read(names_us=False)
        assert its.told == [False, True, False]
        its.lease.is_read(names_us=True)
        await until(lambda: its.told == [False, True, False, True])


async def test_who_has_it_back_after_another_one_led_catches_up_first():
    async with running(*GATED) as its:
        its.server.has(*GATED)
        its.lease.is_read(names_us=True)
        await until(lambda: its.told == [False, True])
        its.lease.is_read(names_us=True, term=3)
        assert its.told == [False, True, False]
        lists = len(its.server.asked)
        await until(lambda: its.told == [False, True, False, True])
        assert len(its.server.asked) > lists


async def test_who_has_it_back_while_it_catches_up_begins_again():
    async with running(*GATED) as its:
        its.lease.is_read(names_us=True)
        await until(lambda: bool(its.server.asked))
        its.lease.is_read(names_us=True, term=3)
        its.server.has(*GATED)
        await asyncio.sleep(0.3)
        assert its.told == [False]
        lists = len(its.server.asked)
        its.lease.is_read(names_us=True, term=3)
        await until(lambda: its.told == [False, True])
        assert len(its.server.asked) > lists


@pytest.mark.parametrize(
    ("listed", "shown"),
    [
        pytest.param({"gates": ()}, members("g", 2), id="a_gate_is_gone"),
        pytest.param({"gates": ("other/gate",)}, members("g", 2, gates=("other/gate",)), id="one"),
        pytest.param(None, [pod("g0", on="n00"), pod("g1", on="n01")], id="they_have_nodes"),
    ],
)
async def test_it_waits_for_what_the_watch_does_not_show_yet(listed, shown):
    async with running(*members("g", 2, gates=(GATE, "other/gate"))) as its:
        if listed is not None:
            its.server.has(*GATED, **listed)
        its.lease.is_read(names_us=True)
        await until(lambda: len(its.server.asked) >= 2)
        assert its.told == [False]
        its.world.put(*shown)
        await until(lambda: its.told == [False, True])


async def test_pods_of_many_bytes_do_not_put_it_off():
    async with running(*GATED) as its:
        its.server.has(*GATED)
        bystanders = [pod(f"long-{each}", scheduler="default-scheduler") for each in range(600)]
        its.server.has(*bystanders, hostname="h" * 150_000)
        its.lease.is_read(names_us=True)
        await until(lambda: its.told == [False, True])
        assert its.now < SHOWN_SECONDS


async def test_a_pod_that_the_watch_never_shows_puts_it_off_for_one_list():
    async with running(*GATED) as its:
        its.server.has(*GATED, pod("endless"))
        its.lease.is_read(names_us=True)
        await until(lambda: its.told == [False, True])
        assert len(its.server.asked) == 2
        assert SHOWN_SECONDS <= its.now < 1.1 * SHOWN_SECONDS


async def test_a_watch_that_has_come_past_a_pod_has_left_it_out():
    async with running(*GATED) as its:
        its.watched = "1000"
        its.server.has(*GATED, pod("endless"), version="1000")
        its.lease.is_read(names_us=True)
        await until(lambda: its.told == [False, True])
        assert its.now < SHOWN_SECONDS


@pytest.mark.parametrize(
    "behind",
    [
        pytest.param("999", id="that_is_late"),
        pytest.param("", id="that_lists"),
    ],
)
async def test_a_pod_is_awaited_from_a_watch(behind):
    async with running(*GATED) as its:
        its.watched = behind
        its.server.has(*GATED, *members("born", 1), version="1000")
        its.lease.is_read(names_us=True)
        await until(lambda: its.now > 3.0 * SHOWN_SECONDS)
        assert its.told == [False]
        its.world.put(*members("born", 1))
        its.watched = "1000"
        await until(lambda: its.told == [False, True])


async def test_a_pod_that_was_created_meanwhile_is_awaited():
    async with running(*GATED) as its:
        its.server.has(*GATED, *members("born", 1))
        its.lease.is_read(names_us=True)
        await until(lambda: its.now > 0.5)
        assert its.told == [False]
        its.world.put(*members("born", 1))
        await until(lambda: its.told == [False, True])
        assert len(its.server.asked) == 1


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(pod("x", scheduler="default-scheduler"), id="of_another_scheduler"),
        pytest.param(pod("x", phase="Failed"), id="that_has_ended"),
    ],
)
async def test_pods_that_take_no_place_are_not_awaited(other):
    async with running(*GATED) as its:
        its.server.has(*GATED, other)
        its.lease.is_read(names_us=True)
        await until(lambda: its.told == [False, True])
        assert its.now < SHOWN_SECONDS


async def test_a_watch_that_is_ahead_of_the_list_is_no_reason_to_wait():
    shown = [*members("g", 1), pod("h", on="n00"), pod("lonely")]
    async with running(*shown) as its:
        its.server.has(*members("g", 1, gates=(GATE,)), pod("h"), pod("lonely"))
        its.lease.is_read(names_us=True)
        await until(lambda: its.told == [False, True])
        assert its.now < SHOWN_SECONDS


async def test_every_page_is_read():
    pods = members("g", 7, gates=(GATE,))
    async with running(*pods) as its:
        its.server.page = 3
        its.server.has(*pods[:-1])
        its.server.has(pods[-1], gates=())
        its.lease.is_read(names_us=True)
        await until(lambda: its.now > 0.5)
        assert its.told == [False]
        assert [each.get("continue", "") for each in its.server.asked] == ["", "3", "6"]


async def test_a_lease_that_is_lost_meanwhile_ends_it():
    async with running(*GATED) as its:
        its.server.has(*GATED, gates=())
        its.lease.is_read(names_us=True)
        await until(lambda: its.now > 0.5)
        its.lease.is_read(names_us=False)
        its.world.put(*members("g", 2))
        for _ in range(10):
            await asyncio.sleep(0)
        assert its.told == [False]


async def test_a_list_that_is_refused_is_asked_for_again():
    async with running(*GATED) as its:
        its.server.fails = 3
        its.server.has(*GATED)
        its.lease.is_read(names_us=True)
        await until(lambda: its.told == [False, True])
        assert len(its.server.asked) == 4


async def test_after_so_many_lists_it_leads_all_the_same():
    async with running(*GATED) as its:
        its.server.fails = 10**6
        its.lease.is_read(names_us=True)
        await until(lambda: its.told == [False, True])
        assert len(its.server.asked) == MOST_LISTS


async def test_a_request_that_only_who_leads_gets_has_the_lease_read():
    async with running(*GATED) as its:
        its.server.has(*GATED)
        its.part.asked()
        await until(lambda: its.lease.reads == 1)
        its.lease.is_read(names_us=True)
        await until(lambda: its.told == [False, True])
        its.part.asked()
        for _ in range(10):
            await asyncio.sleep(0)
        assert its.lease.reads == 1


async def test_nothing_is_listed_before_the_cluster_has_been_read(monkeypatch):
    async with running(*GATED) as its:
        its.server.has(*GATED)
        is_synced = False
        synced = property(lambda _engine: is_synced)
        monkeypatch.setattr(type(its.world.engine), "is_synced", synced)
        its.lease.is_read(names_us=True)
        await until(lambda: its.now > 2.0 * SHOWN_SECONDS)
        assert (its.server.asked, its.told) == ([], [False])
        is_synced = True
        await until(lambda: its.told == [False, True])


async def test_what_the_one_before_writes_until_it_knows_is_listed_as_well():
    async with running(*GATED) as its:
        its.lease.overlap_seconds = 2.0
        its.lease.is_read(names_us=True)
        await until(lambda: its.server.asked)
        assert 2.0 <= its.now < 2.5
