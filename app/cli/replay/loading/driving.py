"""Brings pods to an extender as kube-scheduler does, at a rate of its own."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson

from app.cli.replay.loading.client import Client, NoAnswer
from app.cli.replay.loading.figures import (
    BIND_MEMBER,
    BIND_ORDINARY,
    FILTER_MEMBER,
    FILTER_ORDINARY,
    PRIORITIZE,
    READER,
    Figures,
)
from app.cli.replay.loading.work import Arriving
from app.sandbox.apiserver.storage.store import Stored
from app.sandbox.scheduler.cycle.filters import filter_nodes
from app.sandbox.scheduler.facts.node_table import Columns, NodeTable
from app.sandbox.scheduler.facts.pod_facts import PodFacts, facts_of

VERB_SECONDS = 30.0
READ_EVERY = 0.5  # seconds between two looks at the gangs
SAY_EVERY = 5.0


@dataclass(frozen=True, slots=True)
class Pace:
    """How much load, and its bounds.

    rate: pods per second, evenly. in_flight: pods at one time; more are not sent, and counted.
    grace: seconds for what is in flight after the last pod. binds: whether /bind is asked.
    """

    rate: float
    in_flight: int = 1_000
    grace: float = 30.0
    binds: bool = True
    reads: bool = True


class Load:
    """One load. `pods`: by uid, as the API server has them; `nodes`: likewise."""

    def __init__(
        self,
        client: Client,
        nodes: Sequence[dict[str, Any]],
        bound: Sequence[dict[str, Any]],
        pods: Mapping[str, dict[str, Any]],
        pace: Pace,
        say: Callable[[str], None],
    ) -> None:
        self.figures = Figures(len(nodes), rate=pace.rate)
        self._client, self._pods, self._pace, self._say = client, pods, pace, say
        self._table = NodeTable()
        self._table.set_nodes([Stored(each, 0) for each in nodes])
        for each in bound:
            facts = facts_of(Stored(each, 0))
            if facts.node and not facts.is_finished:
                self._table.add_pod(facts, facts.node)
        self._every: Columns = np.arange(len(self._table), dtype=np.intp)
        self._in_flight: set[asyncio.Task[None]] = set()

    async def run(self, arriving: Sequence[Arriving]) -> Figures:
        """Bring every pod when it is due, and wait for what is in flight, within bounds."""
        self.figures.pods_due = len(arriving)
        made = {each.uid: self._prepared(each) for each in arriving}
        with _uncollected():
            return await self._bring_all(arriving, made)

    async def _bring_all(
        self, arriving: Sequence[Arriving], made: Mapping[str, tuple[PodFacts, bytes]]
    ) -> Figures:
        figures, pace = self.figures, self._pace
        people = [asyncio.create_task(each()) for each in self._people()]
        began = last_said = time.perf_counter()
        for at, each in enumerate(arriving):
            due = began + at / pace.rate
            # To sleep is to be woken late: the lateness is in the latency, and is said.
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            figures.late = max(figures.late, time.perf_counter() - due)
            if len(self._in_flight) >= pace.in_flight:
                figures.shed += 1
                continue
            task = asyncio.create_task(self._bring(each, *made[each.uid], due))
            self._in_flight.add(task)
            task.add_done_callback(self._in_flight.discard)
            if due - last_said >= SAY_EVERY:
                last_said = due
                self._say(f"{at + 1} of {len(arriving)} pods came, {figures.bound} are bound")
        if self._in_flight:
            await asyncio.wait(self._in_flight, timeout=pace.grace)
        figures.seconds = time.perf_counter() - began
        figures.unfinished = len(self._in_flight)
        left = (*self._in_flight, *people)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        return figures

    def _prepared(self, pod: Arriving) -> tuple[PodFacts, bytes]:
        body = self._pods[pod.uid]
        return facts_of(Stored(body, 0)), orjson.dumps(body)

    async def _bring(self, pod: Arriving, facts: PodFacts, raw: bytes, due: float) -> None:
        """One pod through the verbs."""
        feasible = filter_nodes(self._table, facts, self._every, len(self._table)).feasible
        if not feasible.size:
            self.figures.unschedulable += 1
            return
        names = [self._table.names[column] for column in feasible]
        row = FILTER_MEMBER if pod.gang else FILTER_ORDINARY
        answer = await self._ask(row, "/filter", _args(raw, names), due)
        chosen = (answer or {}).get("NodeNames") or []
        if not chosen:
            self.figures.rows[row].refused += answer is not None
            return
        if len(chosen) > 1:
            chosen = await self._ranked(raw, chosen)
        # kube-scheduler asks for one pod at a time: here another may have come in between.
        node = next((name for name in chosen if pod.gang or self._fits(facts, name)), None)
        if node is None:
            self.figures.unschedulable += 1
            return
        # As kube-scheduler assumes it: the next pod counts this one.
        self._table.add_pod(facts, node)
        if self._pace.binds:
            await self._bind(pod, node)

    async def _ranked(self, raw: bytes, names: list[str]) -> list[str]:
        """The nodes, those with the best scores first."""
        answer = await self._ask(PRIORITIZE, "/prioritize", _args(raw, names), time.perf_counter())
        if not answer:
            return names
        ranked = sorted(answer, key=lambda each: each["Score"], reverse=True)
        return [str(each["Host"]) for each in ranked]

    def _fits(self, facts: PodFacts, name: str) -> bool:
        column = self._table.column_of.get(name)
        if column is None:
            return False
        return bool(
            filter_nodes(self._table, facts, self._every[column : column + 1], 1).feasible.size
        )

    async def _bind(self, pod: Arriving, node: str) -> None:
        row = BIND_MEMBER if pod.gang else BIND_ORDINARY
        body = {
            "PodName": pod.name,
            "PodNamespace": pod.namespace,
            "PodUID": pod.uid,
            "Node": node,
        }
        answer = await self._ask(row, "/bind", orjson.dumps(body), time.perf_counter())
        if answer is None:
            return
        if answer.get("Error"):
            self.figures.rows[row].refused += 1
            self.figures.problems[str(answer["Error"])[:120]] += 1
        else:
            self.figures.bound += 1

    async def _ask(self, row: str, path: str, body: bytes, since: float) -> Any:
        """The answer, and how long it took since then; None: there is none."""
        timings = self.figures.rows[row]
        seconds = VERB_SECONDS if path != "/bind" else VERB_SECONDS + self._pace.grace
        try:
            raw = await self._client.request("POST", path, body, seconds=seconds)
        except NoAnswer as wrong:
            timings.failed += 1
            self.figures.problems[str(wrong)[:120]] += 1
            return None
        timings.seconds.append(time.perf_counter() - since)
        return orjson.loads(raw)

    def _people(self) -> tuple[Callable[[], Coroutine[Any, Any, None]], ...]:
        """Who looks on meanwhile."""
        return (self._read, self._follow) if self._pace.reads else ()

    async def _follow(self) -> None:
        """A person follows what changes about the gangs, where that is served."""

        def count(line: bytes) -> None:
            self.figures.followed += line.startswith(b"event: gang")

        with suppress(NoAnswer):
            await self._client.follow("/v1/events", count)

    async def _read(self) -> None:
        """A person looks at the gangs, again and again."""
        timings = self.figures.rows[READER]
        while True:
            began = time.perf_counter()
            try:
                await self._client.request("GET", "/v1/gangs", seconds=VERB_SECONDS)
            except NoAnswer:
                timings.failed += 1
            else:
                timings.seconds.append(time.perf_counter() - began)
            await asyncio.sleep(READ_EVERY)


@contextmanager
def _uncollected() -> Iterator[None]:
    """No pauses of this process in the latencies; it is over in minutes."""
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _args(pod: bytes, names: list[str]) -> bytes:
    return b'{"Pod":%b,"Nodes":null,"NodeNames":%b}' % (pod, orjson.dumps(names))
