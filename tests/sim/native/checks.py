"""N1 to N4: what must hold of native PodGroups after every step, by what a Corral has been told.

    N1    a gang starts with minCount pods at once; of a basic PodGroup any pod does
    N2    all pods are in one domain of the key, those that run included
    N3    no pod goes because a PodGroup changes or goes
    N4    the condition says what the pods are, and something new; once True it stays, and so do
          conditions of others

What an engine remembers is looked at only for what it holds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from app.kube.core.objects import NodeRecord, PodRecord
from app.state.effects import Effect, WriteStatus
from app.state.gang.gang import Gang
from tests.records import BLOCK, RACK
from tests.sim.arrivals import arrived_of
from tests.sim.corral import Corral
from tests.sim.faults import Hits
from tests.sim.isolation import Subject
from tests.sim.life import Life
from tests.sim.native.pod_group import (
    CONDITIONS,
    HOST,
    NATIVE_WORDS,
    NativeGroup,
    Words,
)
from tests.sim.objects import Objects
from tests.sim.starts import starts
from tests.sim.told import (
    are_together,
    domain,
    gone_by,
    is_live,
    life_of,
    members_of,
    pods_of,
    topologies_told,
)
from tests.sim.violation import require


@dataclass(slots=True)
class NativeChecks:
    """One for all Corrals."""

    objects: Objects
    hits: Hits
    words: Words = NATIVE_WORDS

    def taken(self, corral: Corral, subject: Subject, effects: Sequence[Effect]) -> None:
        """N3. Raises: Violation."""
        record: Any = getattr(subject, "record", None)
        if getattr(record, "kind", "") == self.words.kind:
            gone = gone_by(life_of(corral), effects)
            require(not gone, f"N3: PodGroup {record.name} changes, and {gone}")

    def decided(self, corral: Corral, effects: Sequence[Effect]) -> None:
        """Raises: Violation."""
        life = life_of(corral)
        for gang, members in starts(life, effects, self.words.source):
            self._starts_whole(life, gang, members)
        for effect in effects:
            if isinstance(effect, WriteStatus) and effect.path.startswith(self.words.path):
                self._condition(life, effect)

    def _starts_whole(self, life: Life, gang: Gang, members: Sequence[PodRecord]) -> None:
        its = self._group(life, gang.key.name)
        require(its is not None, f"N1: {gang.key} starts, and its PodGroup is not known")
        assert its is not None
        done = sum(pod.phase == "Succeeded" for pod in members)
        live = {pod.uid for pod in members if is_live(pod)}
        for what, uids in (("places", gang.plan.nodes), ("members", arrived_of(life, gang))):
            there = len(live & set(uids))
            require(
                there + done >= its.least,
                f"N1: {gang.key} starts with {there} {what} of {its.least}",
            )
        if its.key and len(live & gang.plan.nodes.keys()) > 1:
            self.hits.hit(f"W {self.words.source} in one domain")

    def _condition(self, life: Life, effect: WriteStatus) -> None:
        """N4."""
        told = (self.objects.told(each) for each in life.streams[self.words.kind].mirror.values())
        body = next((each for each in told if each["metadata"]["uid"] == effect.uid), None)
        require(body is not None, f"N4: {effect.path} is written, which has not been shown")
        assert body is not None
        before, its = (
            self.words.group_of(body),
            self.words.group_of({**body, "status": effect.status}),
        )
        kept = [name for name in before.conditions if name not in CONDITIONS]
        lost = [name for name in kept if before.conditions[name] != its.conditions.get(name)]
        require(not lost, f"N4: {effect.path} takes away {lost}")
        was, is_now = _told_by(before), _told_by(its)
        require(was != is_now, f"N4: {effect.path} says {is_now} once more")
        require(was[0] != "True", f"N4: {effect.path} takes back that it was scheduled: {is_now}")
        if effect.gang in life.engine.gangs.unreviewed:
            return
        pods = [pod for pod in pods_of(life) if self.words.group_name_of(pod) == its.name]
        having = sum(bool(pod.node) and is_live(pod) for pod in pods)
        having += sum(pod.phase == "Succeeded" for pod in pods)
        require(
            (is_now[0] == "True") == (having >= its.least),
            f"N4: {effect.path} says {is_now}, {having} of {its.least} pods have nodes",
        )

    def took(self, life: Life) -> None:
        """N2. Raises: Violation."""
        engine = life.engine
        for key in engine.gangs.planned:
            if key.source == self.words.source and key not in engine.gangs.unreviewed:
                gang = engine.gangs.by_key[key]
                self.together(life, gang, gang.plan.nodes)

    def together(self, life: Life, gang: Gang, places: Mapping[str, str]) -> None:
        """N2 of a gang whose pods have these nodes, by uid. Raises: Violation."""
        its = self._group(life, gang.key.name)
        if its is not None:
            live = [pod for pod in members_of(life, gang.key) if is_live(pod)]
            check_together(life, "N2", its, live, places)

    def _group(self, life: Life, name: str) -> NativeGroup | None:
        record = life.streams[self.words.kind].mirror.get(name)
        return None if record is None else self.words.group_of(self.objects.told(record))


class Packed(Protocol):
    """What has a level that all of its pods are in one domain of."""

    @property
    def name(self) -> str: ...

    @property
    def key(self) -> str: ...


def check_together(
    life: Life,
    rule: str,
    its: Packed,
    live: Sequence[PodRecord],
    places: Mapping[str, str],
    domain: Callable[[NodeRecord], str] | None = None,
) -> None:
    """Its pods that live, and those that have these nodes, by uid, are in one domain of its key.

    `domain`: that of a node by a Topology that it names; "": the node is in none.
    Raises: Violation.
    """
    if not its.key:
        return
    of = domain or partial(domain_of, key=its.key)
    nodes: Any = life.streams["Node"].mirror
    posted = {pod.uid: pod.node or life.posted.get(pod.uid, "") for pod in live}
    bound = {node for node in posted.values() if node} & nodes.keys()
    new = {(its.key, uid, on) for uid, on in places.items() if not posted.get(uid)}
    there = {of(nodes[each]) for each in bound}
    # Those that run are not together any more, or not with one that was planned beside some of
    # them: nothing says where the others belong, also once some of those are gone.
    placed = bound | ({on for _, _, on in new & life.apart} & nodes.keys())
    if bound and ("" in there or len({of(nodes[each]) for each in placed}) > 1):
        life.apart |= new
    planned = {on for _, _, on in new - life.apart} & nodes.keys()
    if not planned:
        return
    wanted = {of(nodes[each]) for each in planned}
    having = [nodes[each] for each in planned | bound]
    topologies = topologies_told(life)
    require(
        ("" not in wanted and len(wanted | there) == 1)
        or any(are_together(having, its.key, each) for each in topologies),
        f"{rule}: {its.name} requires one {its.key}: planned on {sorted(planned)},"
        f" bound on {sorted(bound)}",
    )


def _told_by(its: NativeGroup) -> tuple[str, ...]:
    """What Corral says of a PodGroup."""
    keys = ("status", "reason", "message", "observedGeneration")
    return tuple(str(its.said().get(key, "")) for key in keys)


def domain_of(node: NodeRecord, key: str) -> str:
    """The domain of a node by one key, inside those of the levels above it."""
    if not key:
        return ""
    return domain(node, key) if key in (BLOCK, RACK) else node.labels[HOST]
