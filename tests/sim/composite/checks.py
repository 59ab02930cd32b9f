"""C1 to C4: what must hold of CompositePodGroups after every step, by what a Corral has been told.

    C1    a gang starts with minGroupCount groups at once, each with minCount pods
    C2    all pods are in one domain of the composite's key, those of a group in one of its key
    C3    no pod goes because an object changes or goes
    C4    each condition says what the pods are, and something new; once True it stays, and so do
          conditions of others

A gang is named as its composite: groups are one deep.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from app.kube.core.objects import PodRecord
from app.state.effects import Effect, WriteStatus
from app.state.gang.gang import Gang
from tests.sim.api import COMPOSITE, NATIVE_GROUP, WITH_COMPOSITES
from tests.sim.composite.tree import PATH, SOURCE, Told, told_by
from tests.sim.corral import Corral
from tests.sim.faults import Hits
from tests.sim.isolation import Subject
from tests.sim.life import Life
from tests.sim.native.checks import check_together
from tests.sim.native.pod_group import CONDITIONS, group_of
from tests.sim.objects import Json, Objects
from tests.sim.starts import placed_whole, starts
from tests.sim.told import gone_by, is_live, life_of, members_of, pods_of
from tests.sim.violation import require


@dataclass(slots=True)
class CompositeChecks:
    """One for all Corrals."""

    objects: Objects
    hits: Hits

    def taken(self, corral: Corral, subject: Subject, effects: Sequence[Effect]) -> None:
        """C3. Raises: Violation."""
        record: Any = getattr(subject, "record", None)
        if getattr(record, "kind", "") in WITH_COMPOSITES:
            gone = gone_by(life_of(corral), effects)
            require(not gone, f"C3: {record.kind} {record.name} changes, and {gone}")

    def decided(self, corral: Corral, effects: Sequence[Effect]) -> None:
        """Raises: Violation."""
        life = life_of(corral)
        for gang, members in starts(life, effects, SOURCE):
            self._starts_whole(life, gang, members)
        for effect in effects:
            if isinstance(effect, WriteStatus) and effect.path.startswith(PATH):
                self._condition(life, effect)

    def took(self, life: Life) -> None:
        """C2. Raises: Violation."""
        engine = life.engine
        for key in engine.gangs.planned:
            if key.source == SOURCE and key not in engine.gangs.unreviewed:
                self._together(life, engine.gangs.by_key[key])

    def _starts_whole(self, life: Life, gang: Gang, members: Sequence[PodRecord]) -> None:
        """C1."""
        its = self._told(life, gang.key.name)
        require(its is not None, f"C1: {gang.key} starts, and its composite is not known")
        assert its is not None
        placed = placed_whole(life, gang, members, its.is_whole, "C1")
        if its.key and len(placed) > 1:
            self.hits.hit("W composite in one domain")
        if len({pod.pod_group for pod in placed}) < len(its.groups):
            self.hits.hit("W composite of some")

    def _together(self, life: Life, gang: Gang) -> None:
        its = self._told(life, gang.key.name)
        if its is None:
            return
        live = [pod for pod in members_of(life, gang.key) if is_live(pod)]
        check_together(life, "C2", its, live, gang.plan.nodes)
        for group in its.groups.values():
            inside = [pod for pod in live if pod.pod_group == group.name]
            places = {
                pod.uid: gang.plan.nodes[pod.uid] for pod in inside if pod.uid in gang.plan.nodes
            }
            check_together(life, "C2", group, inside, places)

    def _condition(self, life: Life, effect: WriteStatus) -> None:
        """C4."""
        kind = COMPOSITE if "/compositepodgroups/" in effect.path else NATIVE_GROUP
        body = self._body(life, kind, effect.uid)
        require(body is not None, f"C4: {effect.path} is written, which has not been shown")
        assert body is not None
        before, now = said_by(body), said_by({**body, "status": effect.status})
        lost = [name for name in others_of(body) if name not in str(effect.status)]
        require(not lost, f"C4: {effect.path} takes away {lost}")
        require(before != now, f"C4: {effect.path} says {now} once more")
        require(before[0] != "True", f"C4: {effect.path} takes back that it was scheduled: {now}")
        if effect.gang in life.engine.gangs.unreviewed:
            return
        pods = [
            pod for pod in pods_of(life) if pod.phase == "Succeeded" or (pod.node and is_live(pod))
        ]
        is_whole = self._is_whole(life, kind, body, pods)
        require(
            (now[0] == "True") == is_whole,
            f"C4: {effect.path} says {now}, and its pods are {'' if is_whole else 'not '}whole",
        )

    def _is_whole(self, life: Life, kind: str, body: Json, pods: Sequence[PodRecord]) -> bool:
        """Whether these are as many as an object takes."""
        name = body["metadata"]["name"]
        if kind == COMPOSITE:
            its = self._told(life, name)
            return its is not None and its.is_whole(pods)
        return Counter(pod.pod_group for pod in pods)[name] >= group_of(body).least

    def _told(self, life: Life, name: str) -> Told | None:
        record = life.streams[COMPOSITE].mirror.get(name)
        if record is None:
            return None
        groups = map(self.objects.told, life.streams[NATIVE_GROUP].mirror.values())
        return told_by(self.objects.told(record), groups)

    def _body(self, life: Life, kind: str, uid: str) -> Json | None:
        told = (self.objects.told(each) for each in life.streams[kind].mirror.values())
        return next((each for each in told if each["metadata"]["uid"] == uid), None)


def said_by(body: Json) -> tuple[str, ...]:
    """What Corral says of an object."""
    keys = ("status", "reason", "message", "observedGeneration")
    found = next((each for each in _conditions(body) if _is_ours(each)), {})
    return tuple(str(found.get(key, "")) for key in keys)


def others_of(body: Json) -> list[str]:
    """The types of conditions that others have written."""
    return [each["type"] for each in _conditions(body) if not _is_ours(each)]


def _conditions(body: Json) -> list[Json]:
    return list((body.get("status") or {}).get("conditions") or ())


def _is_ours(condition: Json) -> bool:
    return str(condition["type"]).removeprefix("Composite") in CONDITIONS
