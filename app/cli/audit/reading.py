"""Reads a cluster for the audit: nodes, then the objects of every vocabulary, then pods by pages.

A list that may not be read does not end the audit: what it would have said is not known. Without
pods there is nothing to audit.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from app.cli.audit.gathering import Gathering
from app.cli.audit.judging import Judge
from app.cli.audit.verdicts import Audited, Unread, Verdict
from app.cli.common.api_server import connected, records
from app.errors import DecodeError, Forbidden
from app.kube.client.transport import Transport
from app.kube.core.objects import NodeRecord, ObjectRecord, PodRecord, Record
from app.kube.watch.resource import Resource
from app.state.settings import EngineSettings

PROGRESS_SECONDS = 2.0
MOST_TOLD = 8  # objects that cannot be read

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Asked:
    """What the options say."""

    settings: EngineSettings
    kubeconfig: str | None = None
    context: str | None = None
    namespace: str = ""
    """"": all."""


def audit_cluster(asked: Asked, tell: Tell) -> Audited:
    """Read a cluster and judge every gang that runs; `tell` gets a sentence as it goes on.

    Raises: SettingsError, ApiError, DecodeError.
    """
    return asyncio.run(_audit(asked, tell))


async def _audit(asked: Asked, tell: Tell) -> Audited:
    gathering = Gathering(asked.settings)
    transport = await connected(asked.kubeconfig, asked.context)
    try:
        pods = await _Reading(transport, gathering, asked.namespace, tell).read()
    finally:
        await transport.close()
    return judged(gathering, pods)


def judged(gathering: Gathering, pods: int) -> Audited:
    """What there is to say of all that was gathered."""
    unread = gathering.unread.get("Node")
    books = gathering.books
    judge = Judge(books.nodes, books.topologies, "" if unread is None else unread.why)
    verdicts: list[Verdict] = []
    for gang in gathering.running():
        verdicts.extend(judge.verdicts(gang))
    verdicts.extend(judge.of_families())
    verdicts.sort(key=lambda each: (each.gang.namespace, each.gang.name, each.gang.source))
    return Audited(
        tuple(verdicts),
        tuple(gathering.unread.values()),
        tuple(_notes(gathering, judge)),
        gathering.waiting,
        pods,
        len(books.nodes),
    )


def _notes(gathering: Gathering, judge: Judge) -> list[str]:
    notes = [
        f"no topology has the level {level}: the label's value is taken for the domain;"
        " --levels says what is around it"
        for level in judge.levels_alone
    ]
    if gathering.managed:
        notes.append(f"{gathering.managed} pods are left out, since another controller plans them")
    if gathering.topologies.problem:
        notes.append(gathering.topologies.problem)
    unreadable = gathering.unreadable
    notes += unreadable[:MOST_TOLD]
    if len(unreadable) > MOST_TOLD:
        notes.append(f"{len(unreadable) - MOST_TOLD} more objects cannot be read")
    return notes


@dataclass(slots=True)
class _Reading:
    transport: Transport
    gathering: Gathering
    namespace: str
    tell: Tell
    _told_at: float = 0.0

    async def read(self) -> int:
        """Read all there is, the pods last; how many of these there are.

        Raises: ApiError, DecodeError.
        """
        self._told_at = time.monotonic()
        nodes, pods, objects = self.gathering.resources()
        for each in await self._all(nodes, ""):
            assert isinstance(each, NodeRecord)
            self.gathering.put_node(each)
        for resource in objects:
            found = await self._all(resource, self.namespace)
            kept = [each for each in found if isinstance(each, ObjectRecord)]
            self.gathering.put_objects(resource.kind, kept)
        count = 0
        async for pod in records(self.transport, pods, self.namespace):
            count += 1
            self._progress("pods", count)
            if isinstance(pod, PodRecord):
                self.gathering.put_pods((pod,))
            else:
                self.gathering.unreadable.append(str(pod))
        return count

    async def _all(self, resource: Resource, namespace: str) -> list[Record]:
        """Every object of a kind that can be read; none where the list cannot.

        Raises: ApiError where the API server does not answer.
        """
        found: list[Record] = []
        try:
            async for each in records(self.transport, resource, namespace):
                if isinstance(each, DecodeError):
                    self.gathering.unreadable.append(str(each))
                else:
                    found.append(each)
                self._progress(f"{resource.kind} objects", len(found))
        except Forbidden as refused:
            self.gathering.unread[resource.kind] = Unread(resource.kind, str(refused))
        return found

    def _progress(self, what: str, count: int) -> None:
        now = time.monotonic()
        if now >= self._told_at + PROGRESS_SECONDS:
            self._told_at = now
            self.tell(f"{count:,} {what} read")
