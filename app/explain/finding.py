"""Which gangs are meant: a page of all of them, or those of a name.

There may be ten thousands, so both are looked up in steps, between which others have the event
loop. A gang that comes, goes or changes meanwhile is shown as it was before or as it is after that.
The last step yields what was found; those before it yield None.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from urllib.parse import quote, unquote

from app.dialects.spec import GangKey
from app.explain.elsewhere import LED, of_follower
from app.explain.gangs import reason_of, view
from app.explain.view import GangPage, GangView
from app.kube.core.objects import PodRecord
from app.state.engine import Engine
from app.state.gang.gang import Gang, Phase
from app.state.gang.reasons import Reason
from app.state.turns.pieces import pieces

MOST_LOOKED_AT = 5_000  # pods, for one of some name: 2 ms
GANGS_A_STEP = 512  # of which more is asked than the key: a millisecond
KEYS_A_STEP = 4_096
VIEWS_A_STEP = 64

_Place = tuple[str, ...]


def listed(
    engine: Engine,
    now: float,
    *,
    namespace: str = "",
    phase: Phase | None = None,
    reason: Reason | None = None,
    after: str = "",
    limit: int,
    whose: str = "",
) -> Iterator[GangPage | None]:
    """The first gangs after one, in the order of namespaces, names and sources.

    `whose`: the Lease, in words, if another Corral leads.
    """
    led = LED if whose else ()
    last = _place_in(after)
    first: list[tuple[_Place, GangKey]] = []
    for gangs in _gangs(engine, tuple(engine.gangs.by_key)):
        found = (
            (place, gang.key)
            for gang in gangs
            if namespace in ("", gang.key.namespace)
            and (place := _place(gang.key)) > last
            and phase in (None, gang.phase)
            and (
                reason is None
                or reason is (Reason.NOT_LEADING if gang.phase in led else reason_of(gang, now))
            )
        )
        first = heapq.nsmallest(limit + 1, (*first, *found))
        yield None
    page: list[GangView] = []
    for some in pieces(first[:limit], VIEWS_A_STEP):
        page += [
            of_follower(view(engine.gangs.by_key[key], now, engine.books), whose)
            for _, key in some
            if key in engine.gangs.by_key
        ]
        yield None
    more = _text_of(first[limit - 1][0]) if len(first) > limit else ""
    yield GangPage(gangs=tuple(page), next=more)


def _place(key: GangKey) -> _Place:
    """Where its gang comes in a list."""
    return key.namespace, key.name, key.source, key.epoch


def _text_of(place: _Place) -> str:
    """A place as a page is asked for by it; an epoch and a name may have slashes."""
    return "/".join(quote(each, safe="") for each in place)


def _place_in(text: str) -> _Place:
    """The same, read back; "": before all places."""
    return tuple(unquote(each) for each in text.split("/")) if text else ()


def _gangs(engine: Engine, keys: Sequence[GangKey]) -> Iterator[list[Gang]]:
    """Those of these gangs that are still there, a few at a time."""
    for some in pieces(keys, GANGS_A_STEP):
        yield [engine.gangs.by_key[key] for key in some if key in engine.gangs.by_key]


def named(
    engine: Engine, namespace: str, name: str, source: str = ""
) -> Iterator[list[Gang] | None]:
    """The gangs of this name, or of a pod or an owner of this name; the newest epoch of each.

    `source`: of one vocabulary's kind alone; "": of all. MOST_LOOKED_AT pods are looked at: first
    those of gangs whose name the pod's begins with, as it mostly is.
    """
    keys: list[GangKey] = []
    likely: list[GangKey] = []
    meant: dict[GangKey, None] = {}
    for some in pieces(tuple(engine.gangs.by_key), KEYS_A_STEP):
        here = [key for key in some if key.namespace == namespace]
        keys += here
        likely += [key for key in here if name.startswith(key.name)]
        meant |= {key: None for key in here if key.name == name}
        yield None
    if not meant:
        for more in _with_pod_or_owner(engine, keys, likely, name):
            meant |= more
            yield None
    newest: dict[tuple[str, str], Gang] = {}
    for key in meant:
        gang, at = engine.gangs.by_key.get(key), (key.name, key.source)
        if gang is None or source not in ("", key.source):
            continue
        if at not in newest or gang.number > newest[at].number:
            newest[at] = gang
    yield [newest[at] for at in sorted(newest)]


def _with_pod_or_owner(
    engine: Engine, keys: Sequence[GangKey], likely: Sequence[GangKey], name: str
) -> Iterator[dict[GangKey, None]]:
    """The gangs with a pod of this name, or with pods that an owner of this name has made."""
    # Pods of a gang have one owner, or a few: the first says which, for all gangs alike.
    for gangs in _gangs(engine, keys):
        firsts = ((gang, next(iter(gang.members.values()), None)) for gang in gangs)
        yield {gang.key: None for gang, each in firsts if each and _is_of(each.pod, name)}
    pods_left = MOST_LOOKED_AT
    for gangs in chain(_gangs(engine, likely), _gangs(engine, keys)):
        members = ((gang.key, each.pod) for gang in gangs for each in gang.members.values())
        looked_at = list(islice(members, pods_left))
        yield {key: None for key, pod in looked_at if _is_of(pod, name)}
        pods_left -= len(looked_at)
        if not pods_left:
            return


def _is_of(pod: PodRecord, name: str) -> bool:
    return pod.name == name or (pod.owner is not None and pod.owner.name == name)
