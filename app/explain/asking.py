"""All that an explanation depends on, copied while the event loop waits: milliseconds.

    making_room ──crowd: in steps──▶ Crowd ──asking: at once, with the books──▶ Asking

What is searched on it may take a hundred times as long, and runs in a thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from heapq import nsmallest
from itertools import islice

from app.dialects.nvlink import level_value
from app.dialects.spec import GangKey
from app.explain.gangs import domains_in, view
from app.explain.topology.usage import why_closed
from app.explain.view import Attempt, GangView, RunsOn
from app.kube.core.objects import NodeRecord
from app.kube.core.turns import turn
from app.state.engine import Engine
from app.state.gang.gang import PLANNABLE, Gang, Phase
from app.state.plan.exclusions import Told
from app.state.plan.question.parts import PartRequests
from app.state.plan.question.request import SearchRequest, copied
from app.state.preempt.room import RoomRequest
from app.state.preempt.standing import Crowd
from topology.fit.view import Visits

MOST_NAMED = 5  # pods or nodes
MOST_SHOWN = 8  # nodes and domains of a gang that runs
MOST_READ = 1_000  # of its pods, for the levels that they name
UNSTARTED = (*PLANNABLE, Phase.PLACED)


@dataclass(frozen=True, slots=True)
class Asking:
    """One gang's question, on books of its own."""

    gang: GangView
    retry_seconds: float | None
    attempts: tuple[Attempt, ...]
    runs_on: RunsOn | None
    awaited: tuple[str, ...]
    """Pods that kube-scheduler has not brought, some of them by name."""
    searches: tuple[Told, ...]
    """On each topology that may serve it; none: it waits for something else than a place."""
    parts: PartRequests | None
    """Of a gang that is placed on all of these at once: the same requests."""
    room: RoomRequest | None
    """Who would have to go."""
    held_for: Mapping[str, GangKey]
    """By uid: of pods, and of pods to come, that a place is held for."""
    nodes: Mapping[str, NodeRecord]
    names_in: str = ""
    """The one namespace whose pods and gangs are named; "": those of all."""

    def away(self) -> Mapping[str, str]:
        """Nodes that take no pods now, by name, and why: a look at every node."""
        return {name: why for name, node in self.nodes.items() if (why := why_closed(node))}

    def unlabelled(self, told: Told) -> tuple[str, ...]:
        """Nodes that lack a label of the topology of a search, some of them by name."""
        has = told.request.tree.slot_of
        return tuple(islice((name for name in self.nodes if name not in has), MOST_NAMED))

    def gang_of(self) -> Mapping[str, GangKey]:
        """By uid: of pods of gangs that run or that a place is held for."""
        standing = None if self.room is None else self.room.standing
        found = dict(self.held_for)
        for each in () if standing is None else standing.gangs:
            turn()
            found.update(dict.fromkeys(each.uids, each.key))
        return found


def asking(
    engine: Engine, gang: Gang, now: float, names_in: str = "", crowd: Crowd | None = None
) -> Asking:
    """The gang's question as things are now; `names_in` as of `Asking`.

    `crowd`: a part of it that was copied before, in steps; None: it is copied now.
    """
    shown = view(gang, now, engine.books)
    pause = gang.back_off.not_before - now
    retry_seconds = pause if pause > 0 and gang.phase in PLANNABLE else None
    attempts, awaited = tuple(_attempts(gang, now)), tuple(_awaited(gang, now))
    runs_on = _runs_on(engine, gang)
    if gang.phase not in PLANNABLE:
        of_gang = shown, retry_seconds, attempts, runs_on, awaited
        return Asking(*of_gang, (), None, None, {}, {}, names_in)
    engine.planner.refresh()
    told, parts = engine.planner.told(gang)
    searches = tuple(replace(each, request=_apart(each)) for each in told)
    if parts is not None:
        parts = replace(parts, requests=tuple(each.request for each in searches))
    room = engine.making_room.question(gang, now, crowd) if searches else None
    return Asking(
        shown,
        retry_seconds,
        attempts,
        runs_on,
        awaited,
        searches,
        parts,
        room,
        held_for(engine),
        dict(engine.books.nodes),
        names_in,
    )


def held_for(engine: Engine) -> dict[str, GangKey]:
    """Whose the places are that are held, by the uid of a pod or of a placeholder."""
    key_of = engine.gangs.key_of
    found = {uid: key_of[uid] for uid in engine.books.held if uid in key_of}
    for key in engine.gangs.with_placeholders:
        found.update(dict.fromkeys(engine.gangs.by_key[key].placeholders, key))
    return found


def _runs_on(engine: Engine, gang: Gang) -> RunsOn | None:
    """Where its pods are that have nodes, as its topology is now; else by the labels of those."""
    bound = gang.membership.bound
    names = {member.pod.node for member in bound}
    if not names:
        return None
    levels = {
        level
        for member in bound[:MOST_READ]
        for level in (member.constraint.required, member.constraint.preferred)
        if level
    }
    spec = gang.membership.spec
    if spec is not None:
        levels |= {each for each in (spec.root.constraint.required,) if each}
    named = None if spec is None else spec.topology
    nodes = [engine.books.nodes[name] for name in names if name in engine.books.nodes]
    domains = set[str]()
    for level in levels:
        found = set(domains_in(engine.books, level, names, named))
        labels = (level_value(each.labels, level) for each in nodes if not found)
        domains |= found or {f"{level}={value}" for value in labels if value}
    return RunsOn(
        nodes=len(names),
        examples=tuple(nsmallest(MOST_SHOWN, names)),
        domains=tuple(nsmallest(MOST_SHOWN, domains)),
        more_domains=max(0, len(domains) - MOST_SHOWN),
    )


def _awaited(gang: Gang, now: float) -> Iterator[str]:
    """Pods that /filter or /bind waits for: of a plan, or before the next one is made."""
    missing = gang.binding.awaited if gang.binding.awaits_members(now) else set[str]()
    if gang.phase is Phase.PLACED:
        missing = gang.plan.nodes.keys() - gang.binding.arrived
    pods = (gang.members[uid].pod for uid in missing if uid in gang.members)
    yield from nsmallest(MOST_NAMED, (f"{pod.namespace}/{pod.name}" for pod in pods))


def _attempts(gang: Gang, now: float) -> Iterator[Attempt]:
    """What was tried for a gang that has not started; nothing of one that runs."""
    for each in reversed(gang.reporting.attempts if gang.phase in UNSTARTED else ()):
        yield Attempt(
            reason=each.reason,
            message=each.sentence,
            times=each.times,
            first_seconds_ago=max(0.0, now - each.first_at),
            last_seconds_ago=max(0.0, now - each.last_at),
        )


def _apart(told: Told) -> SearchRequest:
    """The search on books of its own; what it looks at is not counted for the gang's namespace."""
    request = copied(told.request)
    return replace(request, options=replace(request.options, visits=Visits()))
