"""What must hold of gangs that ask for nodes: who is marked, how often, and what is kept for whom.

M1  a member is marked only if all that its gang starts with are there
M2  a mark is not sent again at once, for as long as the watch shows the pod as it was
M3  no node is kept for two gangs, none that was there before its gang asked or only came back, none
    for a gang of which no pod waits, and none for ever
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
    start_of,
)
from tests.sim.violation import require

MOST_AT_ONCE = 3  # marks of a pod as it was, within `UNSEEN_SECONDS`: its gang may ask anew
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

    sent: dict[tuple[str, bool], list[tuple[float, str]]] = field(default_factory=dict)
    """When a pod was marked, or unmarked, and at which version; by uid."""
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
        members = members_of(life, key)
        is_known = any(claim_of(pod) is not None for pod in members)
        if not is_known or has_started(life, members) or key in life.engine.gangs.unreviewed:
            return
        ready = [pod for pod in members if is_waiting(pod)]
        needed = start_of(life, key, members)
        require(
            len(ready) >= needed.together,
            f"M1: {mark.name} is marked, {len(ready)} of {needed.together} members are there",
        )

    def _not_again(self, corral: Corral, life: Life, mark: Mark) -> None:
        sent = self._of(life).sent.setdefault((mark.uid, bool(mark.sentence)), [])
        sent.append((corral.now, mark.version))
        recent = [
            version
            for at, version in sent
            if at > corral.now - UNSEEN_SECONDS and version == mark.version
        ]
        del sent[: -MOST_AT_ONCE - 1]
        require(
            len(recent) <= MOST_AT_ONCE,
            f"M2: {mark.name} at version {mark.version} is marked {len(recent)} times at once",
        )

    # -- nodes -----------------------------------------------------------------------------------

    def took(self, corral: Corral, life: Life) -> None:
        """Raises: Violation."""
        seen = self._of(life)
        self._note_nodes(corral, life, seen)
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
            self._is_new(life, seen, key, mark.nodes)
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

    def _is_new(self, life: Life, seen: Seen, key: GangKey, nodes: Iterable[str]) -> None:
        gang = life.engine.gangs.by_key.get(key)
        if gang is None:
            return  # its nodes are anybody's at the next look
        asked_at = gang.need.opened_at
        for node in nodes:
            if node not in seen.nodes:
                continue  # so are those that have gone just now
            made = seen.made.get(node, -math.inf)
            require(
                made >= asked_at, f"M3: {node} is kept for {key}, which asked when it was there"
            )
            gone = seen.gone.get(node, -math.inf)
            is_back = asked_at <= gone and made < gone + BACK_SECONDS
            require(not is_back, f"M3: {node} is kept for {key}, and only came back")

    def _ends(self, corral: Corral, life: Life, seen: Seen) -> None:
        most = MOST_PROLONGED * corral.settings.needs_nodes_hold_seconds
        late = REVIEW_SECONDS + corral.tick_seconds + SLACK
        idle = [key for key in seen.kept_since if not any(map(is_waiting, members_of(life, key)))]
        seen.idle_since = {key: seen.idle_since.get(key, corral.now) for key in idle}
        if self._clock.now < life.slept_until + late:
            return
        for key, since in seen.kept_since.items():
            age = corral.now - since
            require(age <= most + late, f"M3: nodes are kept for {key} for {age:.0f} s")
        for key, since in seen.idle_since.items():
            age = corral.now - since
            require(age <= late, f"M3: nodes are kept for {key}, of which no pod waits")


def check_marks(api: ApiServer, is_hopeless: Callable[[PodRecord], bool]) -> None:
    """M4, for gangs of which the pods say what they are. Raises: Violation."""
    for key, members in gangs(api).items():
        claims = [claim for pod in members if (claim := claim_of(pod)) is not None]
        number = declared(api, key, members)
        if len(claims) < len(members) or is_early(api, key, claims) or not number:
            continue
        live = list(filter(is_live, members))
        marked = [pod.name for pod in live if pod.is_marked]
        require(
            not marked or len(live) >= number,
            f"M4: {marked} are marked, and {len(live)} of {number} pods of {key} are there",
        )
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
