"""What a Corral has been told: its streams' mirrors, which is all that it can know."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from app.dialects import corral as own
from app.dialects.grove.topology import ClusterTopologyRecord
from app.dialects.kai.topology import TopologyRecord
from app.dialects.spec import Claim, GangKey
from app.dialects.workloads import WorkloadRecord
from app.dialects.workloads.job_set import GLOBAL_REPLICAS as JOBS_OF_ALL
from app.kube.core.objects import NodeRecord, ObjectRecord, PodRecord
from app.kube.watch.events import Deleted, Event, Kind, Listed
from app.state.effects import Delete, Effect, Evict, TryEviction
from app.state.gang.gang import Gang
from app.state.gang.lost_nodes import lacks_lost_pods
from tests.records import BLOCK, RACK
from tests.sim.api import CLUSTER_TOPOLOGY, KAI_TOPOLOGY, NATIVE_GROUP, POD_GANG
from tests.sim.dialects import DIALECTS
from tests.sim.life import Life
from tests.sim.node_filters import Totals, counts, totals_by_node
from tests.sim.owners import declared_by

if TYPE_CHECKING:
    from tests.sim.corral import Corral

Role = tuple[object, ...]
NAMING: tuple[Kind, ...] = (POD_GANG, NATIVE_GROUP)  # beside a pod, which gang it is of
OWNERS: tuple[Kind, ...] = ("Job", "StatefulSet")
MOST_RECORDS = 20_000  # remembered, of which no field ever changes
_claims: dict[int, tuple[PodRecord, Claim | None]] = {}
_roles: dict[int, tuple[PodRecord, Role]] = {}
_keys: dict[int, tuple[ObjectRecord, tuple[GangKey, ...]]] = {}


def life_of(corral: Corral) -> Life:
    assert corral.life is not None
    return corral.life


def pods_of(life: Life) -> Iterator[PodRecord]:
    for pod in life.streams["Pod"].mirror.values():
        assert isinstance(pod, PodRecord)
        yield pod


def key_of(life: Life, uid: str) -> GangKey | None:
    return life.engine.gangs.key_of.get(uid)


def taken_by_pods(life: Life) -> dict[str, Totals]:
    """What the pods on each node request."""
    changed = life.streams["Pod"].changed
    if life.taken_at != changed:
        runs = [(pod.node, pod.request) for pod in pods_of(life) if counts(pod)]
        life.taken, life.taken_at = totals_by_node(runs), changed
    return life.taken


def members_of(life: Life, key: GangKey) -> list[PodRecord]:
    """The gang's pods that are there, ended ones too."""
    streams = (life.streams.get(kind) for kind in ("Pod", *NAMING))
    changed = tuple(0 if each is None else each.changed for each in streams)
    if life.members_at != changed:
        life.members, life.members_at = _by_gang(life), changed
    return list(life.members.get(key, ()))


def _by_gang(life: Life) -> dict[GangKey, list[PodRecord]]:
    found: dict[GangKey, list[PodRecord]] = {}
    pod_gangs, groups = (_told_of(life, kind) for kind in NAMING)
    named = named_by(pod_gangs.values())
    for pod in pods_of(life):
        if pod.scheduler != life.engine.settings.scheduler_name:
            continue
        key = gang_of(pod, named)
        if key is not None:
            found.setdefault(outermost(key, pod, groups), []).append(pod)
    return found


def _told_of(life: Life, kind: Kind) -> Mapping[str, Any]:
    stream = life.streams.get(kind)
    return {} if stream is None else stream.mirror


def outermost_told(life: Life, key: GangKey, pod: PodRecord) -> GangKey:
    """The gang of a pod that says this one, as far as has been told."""
    return outermost(key, pod, _told_of(life, NATIVE_GROUP))


def named_by(pod_gangs: Iterable[Any]) -> dict[str, GangKey]:
    """The gang of each pod that one of these PodGangs names, by the name of the pod."""
    return {
        name: GangKey(each.namespace, each.name, "grove")
        for each in pod_gangs
        for name in each.pods
    }


def gang_of(pod: PodRecord, named: Mapping[str, GangKey]) -> GangKey | None:
    """The gang that a pod says, or that a PodGang says which names it."""
    claim = claim_of(pod)
    if claim is not None:
        return claim.gang
    return named.get(pod.name) if DIALECTS.claim(pod) is None else None


def outermost(key: GangKey, pod: PodRecord, groups: Mapping[str, Any]) -> GangKey:
    """The gang of a pod that says this one: that of what its PodGroup is inside, if that is known.

    `groups`: the native PodGroups that are, by name. Composites are not inside one another here.
    """
    group = groups.get(pod.pod_group)
    return (None if group is None else DIALECTS.inside(group)) or key


def is_live(pod: PodRecord) -> bool:
    return not pod.is_finished and not pod.is_terminating


def is_waiting(pod: PodRecord) -> bool:
    """Whether nothing but our own gate keeps it back."""
    return is_live(pod) and not pod.node and all(gate == own.GATE for gate in pod.gates)


def gone_by(life: Life, effects: Iterable[Effect]) -> list[Delete | Evict | TryEviction]:
    """The effects by which pods go, but for those whose gang is losing a pod already."""
    found = [each for each in effects if isinstance(each, Delete | Evict | TryEviction)]
    return [each for each in found if not _loses_any(life, key_of(life, each.uid))]


def note_losses(life: Life) -> None:
    """Remember which gangs may end whatever comes next: that has them looked at.

    A pod went for another pod, which may be gone by now, and the roll call is still owed; or pods
    were lost with a node, and not all of them have been searched a place since.
    """
    gangs = life.engine.gangs
    known = (gangs.by_key[key] for key in gangs.unreviewed if key in gangs.by_key)
    ending = {gang.key for gang in known if gang.preempted is not None}
    with_failed = (gang for gang in gangs.by_key.values() if gang.failed_nodes)
    ending.update(gang.key for gang in with_failed if lacks_lost_pods(gang))
    life.losing = frozenset(ending)


def _loses_any(life: Life, key: GangKey | None) -> bool:
    if key is None:
        return False
    return key in life.losing or any(pod.is_terminating for pod in members_of(life, key))


def has_started(life: Life, members: list[PodRecord]) -> bool:
    return any(is_live(pod) and (pod.node or pod.uid in life.posted) for pod in members)


@dataclass(frozen=True, slots=True)
class Start:
    """What it takes to start a gang."""

    together: int  # members that have to be there
    places: int  # that have to be held, for those and for others that are to come


def start_of(life: Life, key: GangKey, members: list[PodRecord]) -> Start:
    """How many members have to start together, and how many places there must be."""
    claims = [claim for pod in members if is_live(pod) and (claim := claim_of(pod)) is not None]
    is_early = any(claim.said.reserves_all or claim.said.leaves for claim in claims)
    if key.source in ("job", "jobset", "statefulset"):
        made = [
            record
            for kind in OWNERS
            for record in life.streams[kind].mirror.values()
            if isinstance(record, WorkloadRecord) and key in keys_of(record)
        ]
        # What an owner declared that is gone is not known any more: then one is enough. Of a
        # JobSet whose Jobs are not all there it is more than what those declare.
        declared = declared_by(made) + (not is_known(key, made))
        is_early |= any(each.is_gradual for each in made)
    else:
        declared = next((each.said.pods for each in claims if each.said.pods is not None), 1)
        if key.source != "pod":
            declared -= sum(each.phase == "Succeeded" for each in members)
            # At most: what ended and went while no Corral looked is not known.
            declared -= life.succeeded_and_gone.get(key, Counter()).total()
    return Start(1 if is_early else declared, declared)


def claim_of(pod: PodRecord) -> Claim | None:
    """What the pod says about its gang; read once of each record."""
    known = _claims.get(id(pod))
    if known is not None and known[0] is pod:
        return known[1]
    claim = DIALECTS.claim(pod)
    found = None if claim is None or claim.flaw else claim
    if len(_claims) >= MOST_RECORDS:
        _claims.clear()
    _claims[id(pod)] = (pod, found)
    return found


def keys_of(record: ObjectRecord) -> tuple[GangKey, ...]:
    """The gangs that an object says something of; read once of each record."""
    known = _keys.get(id(record))
    if known is not None and known[0] is record:
        return known[1]
    found = tuple(DIALECTS.keys_of(record))
    if len(_keys) >= MOST_RECORDS:
        _keys.clear()
    _keys[id(record)] = (record, found)
    return found


def is_known(key: GangKey, made: Sequence[WorkloadRecord]) -> bool:
    """Whether all objects are there that say how large the gang is."""
    wanted = {int(each.labels[JOBS_OF_ALL]) for each in made if JOBS_OF_ALL in each.labels}
    return bool(made) and (key.source != "jobset" or wanted == {len(made)})


def roles_of(life: Life, gang: Gang) -> list[list[PodRecord]]:
    """Live members that have a constraint between them."""
    by_role: dict[object, list[PodRecord]] = {}
    for pod in members_of(life, gang.key):
        if is_live(pod):
            by_role.setdefault(role_of(pod), []).append(pod)
    return list(by_role.values())


def places_held(gang: Gang) -> int:
    """Places held for members, spares not among them."""
    return sum(
        not (uid in gang.placeholders and gang.placeholders[uid].is_spare)
        for uid in gang.plan.nodes
    )


def role_of(pod: PodRecord) -> Role:
    """Members of a gang of which this is the same have a constraint between them.

    Those of a leaf that has a name, else those that are alike.
    """
    known = _roles.get(id(pod))
    if known is not None and known[0] is pod:
        return known[1]
    claim = claim_of(pod)
    role = role_in(claim.leaf if claim else "", pod)
    if len(_roles) >= MOST_RECORDS:
        _roles.clear()
    _roles[id(pod)] = (pod, role)
    return role


def role_in(leaf: str, pod: PodRecord) -> Role:
    """The same of a pod in this leaf, which may not exist yet."""
    return (leaf,) if leaf else ("", pod.request, own.own_shape(pod)[0])


def domain(node: NodeRecord, level: str) -> str:
    """The node's domain of a level, by its path."""
    block, rack = node.labels.get(BLOCK, ""), node.labels.get(RACK, "")
    return block if level == BLOCK else f"{block}/{rack}"


def has_levels(node: NodeRecord) -> bool:
    """Whether the node is in a topology: one that has just come may not have its labels."""
    return BLOCK in node.labels and RACK in node.labels


def topologies_told(life: Life) -> list[tuple[str, ...]]:
    """The levels of every topology that may have served a plan, widest first; those set lead.

    A gang that names none is placed on any that has its levels. A plan stays when the topology
    that it was made on has other levels or goes, so those that were told before count as well.
    """
    for kind in (CLUSTER_TOPOLOGY, KAI_TOPOLOGY):
        for record in _told_of(life, kind).values():
            assert isinstance(record, ClusterTopologyRecord | TopologyRecord)
            life.levels_told[record.levels] = None
    return [(BLOCK, RACK), *life.levels_told]


def are_together(nodes: Iterable[NodeRecord], level: str, levels: tuple[str, ...]) -> bool:
    """Whether all are in one domain of a level by a topology of these levels."""
    if level not in levels:
        return False
    above = levels[: levels.index(level) + 1]
    paths = {tuple(node.labels.get(key, "") for key in above) for node in nodes}
    return len(paths) <= 1 and all(map(all, paths))


def named(event: Event) -> str:
    if isinstance(event, Listed):
        return f"list of {event.kind}"
    kind = "deletion" if isinstance(event, Deleted) else "event"
    return f"{kind} of {event.record.name}"
