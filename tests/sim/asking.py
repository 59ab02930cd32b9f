"""What must hold of gangs that ask for nodes: who is marked, how often, and what is kept for whom.

M1  a member is marked only if all that its gang starts with are there; once they are not, its mark
    is taken back
M2  a mark is not sent again at once, for as long as the watch shows the pod as it was
M3  no node is kept for two gangs, none that was there before its gang asked or only came back, none
    for a gang of which no pod waits and none was lost, and none for ever
M4  when all is quiet no member of a gang that gathers is marked, and every member of a gang that
    would not fit if no pod ran

That others get no place on a node that is kept is judged by `bypass.py`, as of earmarks.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from random import Random

from app.dialects import corral as own
from app.dialects.spec import GangKey
from app.kube.core.objects import PodRecord
from app.state.autoscaling.marks import UNSEEN_SECONDS
from app.state.autoscaling.new_nodes import BACK_SECONDS, MOST_PROLONGED, REVIEW_SECONDS
from app.state.effects import Effect, Mark
from tests.sim.api import ApiServer
from tests.sim.clock import Clock
from tests.sim.corral import Corral
from tests.sim.life import Life
from tests.sim.liveness import declared, gangs, is_early
from tests.sim.oracle import Remaining, Taken, place, wanted
from tests.sim.told import (
    claim_of,
    has_started,
    is_live,
    is_waiting,
    key_of,
    life_of,
    members_of,
    pods_of,
    start_of,
)
from tests.sim.violation import require

TAKEN_BACK_SECONDS = 5.0  # from when a gang gathers again until its marks are sent for
LOOK_SECONDS = 1.0  # between two looks at who is marked
SLACK = 1.0  # seconds a deadline may be seen late, beside the tick
HOLD_SECONDS = (600.0, 600.0, 30.0, 10.0)
PATIENCE_SECONDS = (30.0, 5.0)


def asking_of(seed: int) -> dict[str, float]:
    """The settings of a world for gangs that ask; numbers of its own."""
    rng = Random(f"asking {seed}")
    return {
        "needs_nodes_hold_seconds": rng.choice(HOLD_SECONDS),
        "needs_nodes_seconds": rng.choice(PATIENCE_SECONDS),
    }


@dataclass(slots=True)
class Seen:
    """What one process has been told, and what it has done since it began."""

    sent: dict[tuple[str, bool], tuple[float, str]] = field(default_factory=dict)
    """When a pod was marked, or unmarked, last, and at which version; by uid."""
    unwarranted: dict[str, float] = field(default_factory=dict)  # marked pods: uid -> since when
    looked_at: float = -math.inf
    nodes: set[str] = field(default_factory=set)
    nodes_at: int = -1  # as of so many changes of its mirror
    made: dict[str, float] = field(default_factory=dict)
    gone: dict[str, float] = field(default_factory=dict)
    kept_since: dict[GangKey, float] = field(default_factory=dict)
    idle_since: dict[GangKey, float] = field(default_factory=dict)


@dataclass(slots=True)
class AskingChecks:
    """Looks on at one Corral or several."""

    _clock: Clock
    _seen: dict[int, tuple[Life, Seen]] = field(default_factory=dict)

    def _of(self, life: Life) -> Seen:
        found = self._seen.get(id(life))
        if found is None or found[0] is not life:
            found = self._seen[id(life)] = life, Seen()
        return found[1]

    # -- marks -----------------------------------------------------------------------------------

    def decided(self, corral: Corral, effects: Sequence[Effect]) -> None:
        """Raises: Violation."""
        life = life_of(corral)
        for mark in effects:
            if isinstance(mark, Mark):
                if mark.sentence:
                    self._whole(life, mark)
                self._not_again(corral, life, mark)

    def _whole(self, life: Life, mark: Mark) -> None:
        key = key_of(life, mark.uid)
        require(key is not None, f"M1: {mark.name} is marked, which is in no gang")
        assert key is not None
        if key not in life.engine.gangs.unreviewed:
            lacks = _lacks(life, key)
            require(not lacks, f"M1: {mark.name} is marked, and {lacks} of its gang")

    def _not_again(self, corral: Corral, life: Life, mark: Mark) -> None:
        sent, now = self._of(life).sent, corral.now
        at, version = sent.get((mark.uid, bool(mark.sentence)), (-math.inf, ""))
        sent[mark.uid, bool(mark.sentence)] = now, mark.version
        gang = life.engine.gangs.of_pod(mark.uid)
        if not mark.sentence or gang is None:
            return
        if max(gang.need.opened_at, gang.binding.moved_at) > at:
            return  # it asks anew, or had a plan meanwhile
        require(
            version != mark.version or now >= at + UNSEEN_SECONDS,
            f"M2: {mark.name} at version {version} is marked again after {now - at:.1f} s",
        )

    def _taken_back(self, corral: Corral, life: Life, seen: Seen) -> None:
        """Judge who is marked though its gang gathers."""
        now = corral.now
        if now < seen.looked_at + LOOK_SECONDS:
            return
        seen.looked_at = now
        marked = [pod for pod in pods_of(life) if pod.is_marked and is_waiting(pod)]
        keys = {pod.uid: key_of(life, pod.uid) for pod in marked}
        lacking = {key: _lacks(life, key) for key in keys.values() if key is not None}
        gathering = [pod for pod in marked if lacking.get(keys[pod.uid])]
        seen.unwarranted = {pod.uid: seen.unwarranted.get(pod.uid, now) for pod in gathering}
        if self._clock.now < life.slept_until + TAKEN_BACK_SECONDS or life.engine.is_draining:
            return  # one that ends begins nothing; the next one takes them back
        for pod in gathering:
            since = seen.unwarranted[pod.uid]
            if now >= since + TAKEN_BACK_SECONDS:
                at, _ = seen.sent.get((pod.uid, False), (-math.inf, ""))
                marked_at, _ = seen.sent.get((pod.uid, True), (-math.inf, ""))
                is_under_way = marked_at < at and now < at + UNSEEN_SECONDS
                require(
                    is_under_way or at >= since - LOOK_SECONDS,
                    f"M1: {pod.name} stays marked, and {lacking[keys[pod.uid]]}",
                )

    # -- nodes -----------------------------------------------------------------------------------

    def took(self, corral: Corral, life: Life) -> None:
        """Raises: Violation."""
        seen = self._of(life)
        self._note_nodes(corral, life, seen)
        if life.engine.is_synced:
            self._taken_back(corral, life, seen)
        kept = life.engine.new_nodes.of
        if not (kept or seen.kept_since):
            return
        twice = [
            node
            for node, times in Counter(
                node for each in kept.values() for node in each.nodes
            ).items()
            if times > 1
        ]
        require(not twice, f"M3: {sorted(twice)} are kept for two gangs")
        seen.kept_since = {key: seen.kept_since.get(key, corral.now) for key in kept}
        for key, mark in kept.items():
            self._is_new(corral, life, seen, key, mark.nodes)
        self._ends(corral, life, seen)

    def _note_nodes(self, corral: Corral, life: Life, seen: Seen) -> None:
        """Note which nodes have come and gone since the last input."""
        stream = life.streams["Node"]
        if stream.changed == seen.nodes_at:
            return
        seen.nodes_at = stream.changed
        now, there = corral.now, set(stream.mirror)
        for name in seen.nodes - there:
            seen.gone[name] = now
            seen.made.pop(name, None)
        for name in there - seen.nodes if life.engine.is_synced else ():
            seen.made[name] = now
        seen.nodes = there

    def _is_new(
        self, corral: Corral, life: Life, seen: Seen, key: GangKey, nodes: Iterable[str]
    ) -> None:
        gang = life.engine.gangs.by_key.get(key)
        if gang is None or not gang.need.opened_at:
            return  # it is gone, maybe made again: its nodes are anybody's at the next look
        asked_at = gang.need.opened_at
        if corral.now < asked_at + REVIEW_SECONDS + SLACK:
            return  # it may have asked before as well: until the next look
        for node in nodes:
            if node not in seen.nodes:
                continue  # so are those that have gone just now
            made = seen.made.get(node, -math.inf)
            require(
                made >= asked_at, f"M3: {node} is kept for {key}, which asked when it was there"
            )
            gone = seen.gone.get(node, -math.inf)
            is_back = asked_at <= gone and made < gone + BACK_SECONDS
            if corral.now <= made + SLACK:
                continue  # it has gone and come in one list: until the next look
            require(not is_back, f"M3: {node} is kept for {key}, and only came back")

    def _ends(self, corral: Corral, life: Life, seen: Seen) -> None:
        most = MOST_PROLONGED * corral.settings.needs_nodes_hold_seconds
        late = REVIEW_SECONDS + corral.tick_seconds + SLACK
        idle = [
            key
            for key in seen.kept_since
            if not any(map(is_waiting, members_of(life, key))) and not _awaits_lost(life, key)
        ]
        seen.idle_since = {key: seen.idle_since.get(key, corral.now) for key in idle}
        if self._clock.now < life.slept_until + late:
            return
        for key, since in seen.kept_since.items():
            age = corral.now - since
            require(age <= most + late, f"M3: nodes are kept for {key} for {age:.0f} s")
        for key, since in seen.idle_since.items():
            age = corral.now - since
            require(age <= late, f"M3: nodes are kept for {key}, of which no pod waits")


def _awaits_lost(life: Life, key: GangKey) -> bool:
    """Whether a lost pod is to come again: its controller may take its time."""
    gang = life.engine.gangs.by_key.get(key)
    return gang is not None and any(each.instead_of for each in gang.placeholders.values())


def _lacks(life: Life, key: GangKey) -> str:
    """What a gang that has not started lacks to start with; "": nothing, for all we know."""
    members = members_of(life, key)
    if has_started(life, members) or any(claim_of(pod) is None for pod in members):
        return ""
    ready, needed = sum(map(is_waiting, members)), start_of(life, key, members).together
    return "" if ready >= needed else f"{ready} of {needed} are there"


def check_marks(api: ApiServer, is_hopeless: Callable[[PodRecord], bool]) -> None:
    """M4, for gangs of which the pods say what they are. Raises: Violation."""
    for key, members in gangs(api).items():
        claims = [claim for pod in members if (claim := claim_of(pod)) is not None]
        number = declared(api, key, members)
        if len(claims) < len(members) or is_early(api, key, claims) or not number:
            continue
        live = list(filter(is_live, members))
        marked = [pod.name for pod in live if pod.is_marked]
        gone = api.succeeded_and_gone.get(key, Counter[str]()).total()
        gathers = not any(pod.node for pod in live)  # one that runs asks for what it lacks
        require(
            not (marked and gathers) or len(live) >= number - gone,
            f"M4: {marked} are marked, and {len(live)} of {number} pods of {key} are there",
        )
        if gone:
            continue  # a Corral that began after that may not know of them
        if any(claim.said.slices for claim in claims):
            continue  # what is left of it may not divide into them
        is_whole = len(live) == number and all(map(_waits_for_us, live))
        if not is_whole or len(marked) == number or any(map(is_hopeless, members)):
            continue
        empty = Remaining(api.nodes, {})
        require(
            place(empty, key, list(map(wanted, live)), [], Taken(frozenset())) is not None,
            f"M4: {len(marked)} of {number} pods of {key} are marked, which fits nowhere",
        )


def _waits_for_us(pod: PodRecord) -> bool:
    return not pod.node and tuple(pod.gates) == (own.GATE,)
