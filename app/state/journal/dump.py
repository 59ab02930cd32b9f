"""What an engine knows now, as the beginning of a journal: its settings, and a list of each kind.

    copied(engine) ──in steps of milliseconds──▶ Known ──beginning(known)──▶ lines, in pieces

An engine that plays it is one that has restarted in this cluster. Exact are the settings, nodes,
objects, the pods of gangs, and what every pod takes of its node. Not in it is what an engine knows
only of itself: plans that are not bound yet, back-offs, refusals, nodes kept free, who is to be
evicted. Of pods outside gangs an engine keeps little; they are written with that, and with nothing
where nothing is kept: their own selectors and tolerations, and whose they are.
The whole past is in a journal that was written from the start, and in nothing else.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import msgspec

from app.kube.core.objects import (
    NodeRecord,
    ObjectRecord,
    Owner,
    PodRecord,
    Record,
    Shape,
)
from app.kube.watch.events import Kind
from app.state.cache.books import Booking
from app.state.engine import Engine
from app.state.gang.members.member import Member
from app.state.journal.lines import ENCODER, first_line
from app.state.pods.arrivals import WaitingPod
from app.state.pods.nominations import Nomination
from app.state.pods.occupants import PENDING, Occupant
from app.state.settings import EngineSettings

RECORDS_PER_PIECE = 250  # half a millisecond of work
NO_SHAPE = Shape()


@dataclass(frozen=True, slots=True)
class Known:
    """References to all of it, as it was at one moment."""

    settings: EngineSettings
    now: float
    nodes: Sequence[NodeRecord]
    objects: Mapping[str, ObjectRecord]
    members: Sequence[Member]
    unclaimed: Sequence[PodRecord]
    bound: Mapping[str, Booking]
    occupants: Mapping[str, Occupant]
    names: Mapping[str, str]
    waiting: Mapping[str, WaitingPod]
    nominated: Mapping[str, Nomination]
    lasting: Mapping[str, None]
    edition: int


def known(engine: Engine, now: float) -> Known:
    """A copy of what an engine knows: shallow, and all of it as it is now."""
    return finished(copied(engine, now))


def finished(steps: Generator[None, None, Known]) -> Known:
    """What the steps come to that are still to be taken."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: Known = end.value
            return found


def copied(engine: Engine, now: float) -> Generator[None, None, Known]:
    """The same in steps of at most some milliseconds, between which the engine may go on.

    What a pod takes of its node is that of the last steps: a member that was bound since is there.
    """
    nodes, objects = tuple(engine.books.nodes.values()), dict(engine.objects.by_uid)
    edition = engine.kept_keys.labels.edition
    yield
    members = [each for gang in engine.gangs.by_key.values() for each in gang.members.values()]
    unclaimed = tuple(engine.named_pods.unclaimed.values())
    yield
    waiting = {uid: pod for uid in engine.arrivals.uids if (pod := engine.arrivals.of(uid))}
    nominations = engine.nominations
    nominated = {uid: each for uid in nominations.uids if (each := nominations.of(uid))}
    yield
    bound = dict(engine.books.bound)
    yield
    lasting = dict(engine.books.lasting)
    yield
    occupants = dict(engine.occupants.by_uid)
    yield
    return Known(
        engine.settings,
        now,
        nodes,
        objects,
        members,
        unclaimed,
        bound,
        occupants,
        dict(engine.occupants.names),
        waiting,
        nominated,
        lasting,
        edition,
    )


def beginning(known: Known) -> Iterator[bytes]:
    """The lines, in pieces of which each is made in a moment."""
    yield first_line(known.settings) + b"\n"
    others = [kind for kind in known.settings.kinds if kind not in ("Node", "Pod")]
    by_kind: dict[Kind, list[ObjectRecord]] = {kind: [] for kind in others}
    for record in known.objects.values():
        by_kind.setdefault(record.kind, []).append(record)
    for kind in others:
        yield from _listed(known.now, kind, iter(by_kind[kind]))
    yield from _listed(known.now, "Node", iter(known.nodes))
    yield from _listed(known.now, "Pod", _pods(known), known.edition)


def _listed(now: float, kind: Kind, records: Iterator[Record], edition: int = 0) -> Iterator[bytes]:
    """One line: what `Listed` events of a journal look like."""
    head = ENCODER.encode(["listed", kind])[:-1]
    piece = b'{"line":"in","now":%b,"call":"apply","args":[[' % ENCODER.encode(now)
    piece += head[1:] + b",["
    for taken, record in enumerate(records, start=1):
        piece += (b"," if taken > 1 else b"") + ENCODER.encode(record)
        if taken % RECORDS_PER_PIECE == 0:
            yield piece
            piece = b""
    yield piece + b"],%d]]}\n" % edition


def _pods(known: Known) -> Iterator[PodRecord]:
    """Every pod once: its record where one is kept, else one with what is known of it."""
    told: set[str] = set()
    for record in chain((each.pod for each in known.members), known.unclaimed):
        if record.uid not in told:
            told.add(record.uid)
            booked = known.bound.get(record.uid)
            if booked is not None and not record.node:
                record = msgspec.structs.replace(record, node=booked.node)
            yield record
    for uid, booking in known.bound.items():
        if uid not in told and uid in known.occupants and uid in known.names:
            told.add(uid)
            lasts = uid in known.lasting
            yield _running(uid, known.names[uid], known.occupants[uid], booking, lasts=lasts)
    scheduler = known.settings.scheduler_name.split(",")[0].strip()
    for uid, pod in known.waiting.items():
        if uid not in told:
            told.add(uid)
            yield _waiting(uid, pod, scheduler)
    for uid, nomination in known.nominated.items():
        if uid not in told:
            yield _nominated(uid, nomination)


def _running(
    uid: str, name: str, occupant: Occupant, booking: Booking, *, lasts: bool
) -> PodRecord:
    return PodRecord(
        namespace=occupant.namespace,
        name=name,
        uid=uid,
        node=booking.node,
        phase="Running" if occupant.has_begun else PENDING,
        scheduler="",
        priority=occupant.priority,
        request=booking.request,
        shape=NO_SHAPE,
        gates=(),
        is_terminating=occupant.is_terminating,
        created=occupant.created,
        labels=dict(occupant.labels),
        annotations={},
        owner=_owner(occupant, lasts=lasts),
        nominated_node="",
        version="",
        grace_seconds=occupant.grace_seconds,
    )


def _owner(occupant: Occupant, *, lasts: bool) -> Owner | None:
    """One of a kind that says the same of the pod as the owner it has."""
    if not occupant.owner:
        return None
    if not lasts:
        kind = ("batch/v1", "Job")
    else:
        kind = ("apps/v1", "ReplicaSet" if occupant.may_go else "DaemonSet")
    return Owner(*kind, "", occupant.owner)


def _waiting(uid: str, pod: WaitingPod, scheduler: str) -> PodRecord:
    return PodRecord(
        namespace=pod.namespace,
        name=pod.name,
        uid=uid,
        node="",
        phase=PENDING,
        scheduler=scheduler,
        priority=pod.priority,
        request=pod.request,
        shape=NO_SHAPE,
        gates=("unknown",) if pod.is_gated else (),
        is_terminating=False,
        created="",
        labels={},
        annotations={},
        owner=None,
        nominated_node=pod.nominated_node,
        version="",
    )


def _nominated(uid: str, nomination: Nomination) -> PodRecord:
    """Of another scheduler's pod that waits, only where it is nominated is kept."""
    return PodRecord(
        namespace="",
        name="",
        uid=uid,
        node="",
        phase=PENDING,
        scheduler="another",
        priority=nomination.priority,
        request=nomination.request,
        shape=NO_SHAPE,
        gates=(),
        is_terminating=False,
        created="",
        labels={},
        annotations={},
        owner=None,
        nominated_node=nomination.node,
        version="",
    )
