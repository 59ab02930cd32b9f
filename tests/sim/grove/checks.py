"""G1 to G6: what must hold of PodGangs after every step, by what a Corral has been told.

    G1    a gang starts with minReplicas pods of each of its pod groups at once
    G2    its pods are in one domain of the level that it requires, those of a group of pod groups
          in one of its own inside that, and those of a pod group; beside those that run
    G3    no plan is made by a level that the topology does not have
    G4    no pod goes because a PodGang or a ClusterTopology changes or goes
    G5    the status that is written says what the pods are, and something new, and is not fought
          over; conditions of others stay
    G6    the gate of a pod is Grove's to lift

What an engine remembers is looked at only for what it holds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.kube.core.objects import NodeRecord, PodRecord
from app.state.effects import Bind, Effect, Ungate, WriteStatus
from app.state.gang.gang import Gang
from tests.sim.api import CLUSTER_TOPOLOGY, POD_GANG
from tests.sim.clock import Clock
from tests.sim.corral import Corral
from tests.sim.faults import Hits
from tests.sim.grove.pod_clique_set import POD_GANG as POD_GANG_LABEL
from tests.sim.grove.reading import (
    Levels,
    PodGang,
    Scope,
    domain_of,
    levels_of,
    pod_gang_of,
)
from tests.sim.isolation import Subject
from tests.sim.life import Life
from tests.sim.objects import Objects
from tests.sim.starts import placed_whole, starts
from tests.sim.told import gone_by, is_live, key_of, life_of, members_of, pods_of
from tests.sim.violation import require

SOURCE = "grove"  # of the keys of such gangs
OWN = ("Scheduled", "Ready", "Unhealthy")  # conditions that Corral writes
MOST_WRITES, WRITES_SECONDS = 20, 5.0  # of one status: more are a fight with its other writer


@dataclass(slots=True)
class GroveChecks:
    """One for all Corrals."""

    clock: Clock
    objects: Objects
    hits: Hits
    _written: dict[tuple[str, str], deque[float]] = field(default_factory=dict)
    """When each Corral has written the status of a PodGang, the last times."""

    # -- effects -------------------------------------------------------------------------------

    def taken(self, corral: Corral, subject: Subject, effects: Sequence[Effect]) -> None:
        """G4. Raises: Violation."""
        self._note_plans(life_of(corral))
        _note_pods(life_of(corral), subject)
        record: Any = getattr(subject, "record", None)
        if getattr(record, "kind", "") in (POD_GANG, CLUSTER_TOPOLOGY):
            gone = gone_by(life_of(corral), effects)
            require(not gone, f"G4: {record.kind} {record.name} changes, and {gone}")

    def decided(self, corral: Corral, effects: Sequence[Effect]) -> None:
        """Raises: Violation."""
        life = life_of(corral)
        for gang, members in starts(life, effects, SOURCE):
            self._starts_whole(life, gang, members)
        bound = {effect.uid for effect in effects if isinstance(effect, Bind)}
        for effect in effects:
            if isinstance(effect, WriteStatus) and "/podgangs/" in effect.path:
                self._status(life, effect, bound)
                self._not_too_often(corral, effect)
            elif isinstance(effect, Ungate):
                pod: Any = life.streams["Pod"].mirror.get(effect.name)
                require(
                    pod is None or POD_GANG_LABEL not in pod.labels,
                    f"G6: {effect} of a pod of Grove's",
                )

    def _starts_whole(self, life: Life, gang: Gang, members: Sequence[PodRecord]) -> None:
        its = self._pod_gang(life, gang.key.name)
        require(its is not None, f"G1: {gang.key} starts, and its PodGang is not known")
        assert its is not None
        placed = placed_whole(life, gang, members, its.is_whole, "G1")
        self._count_start(its, placed)

    def _count_start(self, its: PodGang, pods: Sequence[PodRecord]) -> None:
        scopes = [each for each in its.scope(pods).each() if each.level and len(each.pods) > 1]
        if scopes:
            self.hits.hit("W packed")
        if len({each.level for each in scopes}) > 1:
            self.hits.hit("W packed twice")

    # -- statuses ------------------------------------------------------------------------------

    def _status(self, life: Life, effect: WriteStatus, binds: set[str]) -> None:
        told = (self.objects.told(each) for each in life.streams[POD_GANG].mirror.values())
        body = next((each for each in told if each["metadata"]["uid"] == effect.uid), None)
        require(body is not None, f"G5: {effect.path} is written, which has not been shown")
        assert body is not None
        before = body.get("status") or {}
        its = pod_gang_of({**body, "status": {**before, **effect.status}})
        told_of = pod_gang_of(body)
        others = told_of.conditions.keys() - set(OWN)
        lost = [name for name in others if told_of.conditions[name] != its.conditions.get(name)]
        require(not lost, f"G5: {effect.path} takes away {lost}")
        require(_said(its) != _said(told_of), f"G5: {effect.path} says {_said(its)} once more")
        if effect.gang in life.engine.gangs.unreviewed:
            return
        pods = [pod for pod in pods_of(life) if its.has(pod)]
        is_whole = its.is_whole(having_nodes(pods))
        gang = life.engine.gangs.by_key.get(effect.gang) if effect.gang is not None else None
        planned = () if gang is None else gang.plan.nodes.keys()
        # A pod that was begun to be bound before its PodGang named it joins when that has ended.
        begun = binds.union(life.posted).difference(life.engine.claims.waiting)
        waits = not any(not pod.node and pod.uid in begun.union(planned) for pod in pods)
        # What was true stays until it is known whether those that have places are enough.
        is_true = its.phase == "Running" if waits else its.is_scheduled == "True"
        require(
            (its.phase == "Running") <= is_whole and (its.is_scheduled == "True") == is_true,
            f"G5: {effect.path} says {_said(its)}, and its pods are {_shown(pods)}",
        )
        is_ready = its.is_whole([pod for pod in pods if is_live(pod) and pod.health == "ready"])
        require(
            (its.says("Ready") == "True") <= (is_whole and is_ready)
            and its.says("Unhealthy") != "True",
            f"G5: {effect.path} says {_said(its)}, and its pods are {_shown(pods)}",
        )
        require(
            its.score is None or 0.0 <= its.score <= 1.0, f"G5: {effect.path} scores {its.score}"
        )
        is_any = any(is_live(pod) and (pod.node or pod.uid in begun) for pod in pods)
        wanted = ("Starting", "Running") if is_any else ("Pending",)
        if not pods and gang is not None and begun.intersection(gang.members):
            wanted = ("Pending", "Starting")  # those of one of its name that has gone
        require(
            its.phase in wanted, f"G5: {effect.path} is {its.phase}, and its pods {_shown(pods)}"
        )

    def _not_too_often(self, corral: Corral, effect: WriteStatus) -> None:
        if not corral.is_leading:
            return  # it writes nothing, and may see many versions of the object at once
        times = self._written.setdefault((corral.name, effect.uid), deque(maxlen=MOST_WRITES))
        is_full = len(times) == MOST_WRITES
        seconds = self.clock.now - times[0] if is_full else WRITES_SECONDS
        require(
            seconds >= WRITES_SECONDS,
            f"G5: {effect.path} is written {MOST_WRITES} times in {seconds:.1f} s",
        )
        times.append(self.clock.now)

    # -- places --------------------------------------------------------------------------------

    def took(self, life: Life) -> None:
        """G2, G3. Raises: Violation."""
        engine = life.engine
        for key in engine.gangs.planned:
            if key.source == SOURCE and key not in engine.gangs.unreviewed:
                self._together(life, engine.gangs.by_key[key])

    def _note_plans(self, life: Life) -> None:
        """Remember what is planned while its levels are known: a plan may come with no effect."""
        for key, gang in life.engine.gangs.by_key.items():
            # Also one that runs: a place may be held for a pod that it has lost.
            is_planned = key.source == SOURCE and gang.plan.nodes
            its = self._pod_gang(life, key.name) if is_planned else None
            if its is not None:
                levels = self._levels(life, its)
                live = [pod for pod in members_of(life, key) if is_live(pod)]
                if all(scope.level in levels for scope in its.scope(live).each() if scope.level):
                    self._note(life, gang, live)

    def _note(self, life: Life, gang: Gang, live: Sequence[PodRecord]) -> None:
        planned = frozenset(gang.plan.nodes.items())
        life.planned[gang.key] = planned | {(pod.uid, pod.node) for pod in live if pod.node}

    def _together(self, life: Life, gang: Gang) -> None:
        its = self._pod_gang(life, gang.key.name)
        if its is None:
            return
        nodes: Any = life.streams["Node"].mirror
        live = [pod for pod in members_of(life, gang.key) if is_live(pod)]
        levels = self._levels(life, its)
        scopes = [scope for scope in its.scope(live).each() if scope.level]
        unknown = [scope.level for scope in scopes if scope.level not in levels]
        planned = frozenset(gang.plan.nodes.items())
        if unknown:
            # A lost pod's place is its replacement's, which has another uid; and where others of
            # the gang run is in every domain that they are in.
            before = {node for _, node in life.planned.get(gang.key, frozenset())}
            before |= {pod.node for pod in live if pod.node} | life.ran_on.get(gang.key, set())
            require(
                {node for _, node in planned} <= before,
                f"G3: {gang.key} is planned on {sorted(planned)}, and no {unknown} is known",
            )
            return
        self._note(life, gang, live)
        for scope in scopes:
            _kept(scope, gang.plan.nodes, life, nodes, levels)

    def together(self, life: Life, gang: Gang, places: Mapping[str, str]) -> None:
        """G2 of a gang whose pods have these nodes, by uid. Raises: Violation."""
        its = self._pod_gang(life, gang.key.name)
        if its is None:
            return
        nodes: Any = life.streams["Node"].mirror
        live = [pod for pod in members_of(life, gang.key) if is_live(pod)]
        levels = self._levels(life, its)
        for scope in its.scope(live).each():
            if scope.level in levels:
                _kept(scope, places, life, nodes, levels)

    def _levels(self, life: Life, its: PodGang) -> Levels:
        record = life.streams[CLUSTER_TOPOLOGY].mirror.get(its.topology)
        return levels_of(None if record is None else self.objects.told(record))

    def _pod_gang(self, life: Life, name: str) -> PodGang | None:
        record = life.streams[POD_GANG].mirror.get(name)
        return None if record is None else pod_gang_of(self.objects.told(record))


def _kept(
    scope: Scope,
    places: Mapping[str, str],
    life: Life,
    nodes: Mapping[str, NodeRecord],
    levels: Levels,
) -> None:
    posted = {pod.uid: pod.node or life.posted.get(pod.uid, "") for pod in scope.pods}
    bound = {node for node in posted.values() if node} & nodes.keys()
    new = {
        (scope.level, uid, places[uid])
        for uid, node in posted.items()
        if not node and uid in places
    }
    there = {domain_of(nodes[each], scope.level, levels) for each in bound}
    # Those that run are not together any more, or not with one that was planned beside some of
    # them: nothing says where the others belong, also once some of those are gone.
    placed = bound | ({on for _, _, on in new & life.apart} & nodes.keys())
    if bound and len({domain_of(nodes[each], scope.level, levels) for each in placed}) > 1:
        life.apart |= new
        # A binding whose end nobody has heard of may count as none later on.
        life.apart |= {
            (scope.level, pod.uid, posted[pod.uid])
            for pod in scope.pods
            if not pod.node and posted[pod.uid]
        }
    planned = {node for _, _, node in new - life.apart}
    if not planned:
        return
    wanted = {domain_of(nodes[each], scope.level, levels) for each in planned & nodes.keys()}
    require(
        len(wanted | there) <= 1,
        f"G2: {scope.name} requires one {scope.level}: planned on {sorted(planned)},"
        f" bound on {sorted(bound)}",
    )


def _note_pods(life: Life, subject: Subject) -> None:
    """Remember where pods run: the place of a lost one is known, whether or not its levels are."""
    records: Any = getattr(subject, "records", None) or (getattr(subject, "record", None),)
    for pod in records:
        if isinstance(pod, PodRecord) and pod.node and is_live(pod):
            key = key_of(life, pod.uid)
            if key is not None and key.source == SOURCE:
                life.ran_on.setdefault(key, set()).add(pod.node)


def having_nodes(pods: Iterable[PodRecord]) -> list[PodRecord]:
    """Those that run, or have succeeded."""
    return [pod for pod in pods if pod.phase == "Succeeded" or (pod.node and is_live(pod))]


def _said(its: PodGang) -> tuple[str, ...]:
    """What Corral says of a PodGang."""
    own = [its.conditions.get(name, {}) for name in OWN]
    said = (str(each.get(key, "")) for each in own for key in ("status", "reason", "message"))
    return (its.phase, str(its.score), *said)


def _shown(pods: Iterable[PodRecord]) -> list[tuple[str, str, str, str]]:
    return [(pod.name, pod.node, pod.phase, pod.health) for pod in pods]
