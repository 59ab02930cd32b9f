"""What a Corral has been told: its streams' mirrors, which is all that it can know."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from app import dialects
from app.dialects import corral as own
from app.dialects.membership import GangKey, Membership
from app.kube.events import Deleted, Event, Listed
from app.kube.objects import NodeRecord, PodRecord
from app.state.engine import Engine
from app.state.gangs import Gang
from tests.records import BLOCK, RACK
from tests.sim.corral import Corral
from tests.sim.life import Life


def life_of(corral: Corral) -> Life:
    assert corral.life is not None
    return corral.life


def pods_of(life: Life) -> Iterator[PodRecord]:
    for pod in life.streams["Pod"].mirror.values():
        assert isinstance(pod, PodRecord)
        yield pod


def key_of(life: Life, uid: str) -> GangKey | None:
    return life.engine.ledger.gang_of.get(uid)


def members_of(life: Life, key: GangKey) -> list[PodRecord]:
    """The gang's pods that are there, ended ones too."""
    found = []
    for pod in pods_of(life):
        claim = dialects.read(pod) if pod.scheduler == life.engine.settings.scheduler_name else None
        if claim is not None and claim.gang == key:
            found.append(pod)
    return found


def is_live(pod: PodRecord) -> bool:
    return not pod.is_finished and not pod.is_terminating


def is_waiting(pod: PodRecord) -> bool:
    """Whether nothing but our own gate keeps it back."""
    return is_live(pod) and not pod.node and all(gate == own.GATE for gate in pod.gates)


def has_started(life: Life, members: list[PodRecord]) -> bool:
    return any(is_live(pod) and (pod.node or pod.uid in life.posted) for pod in members)


def declared_by(life: Life, key: GangKey, members: list[PodRecord]) -> int:
    """How many members have to start together."""
    if key.source == "job":
        job: Any = life.streams["Job"].mirror.get(key.name)
        if job is None or job.uid != key.epoch:
            return 1  # the Job is gone: what it declared is not known any more
        left = job.completions - job.succeeded if job.completions is not None else job.parallelism
        return int(min(job.parallelism, max(left, 0)))
    for pod in members:
        claim = dialects.read(pod)
        if is_live(pod) and isinstance(claim, Membership) and claim.declared is not None:
            ended = sum(each.phase == "Succeeded" for each in members)
            return claim.declared.members - (ended if key.source == "group" else 0)
    return 1


def roles_of(life: Life, gang: Gang) -> list[list[PodRecord]]:
    """Live members that are identical to the placement."""
    by_role: dict[object, list[PodRecord]] = {}
    for pod in members_of(life, gang.key):
        if is_live(pod):
            by_role.setdefault((pod.request, own.own_shape(pod)[0]), []).append(pod)
    return list(by_role.values())


def domain(node: NodeRecord, level: str) -> str:
    """The node's domain of a level, by its path."""
    block, rack = node.labels.get(BLOCK, ""), node.labels.get(RACK, "")
    return block if level == BLOCK else f"{block}/{rack}"


def amounts_of(engine: Engine, request: Sequence[int]) -> tuple[tuple[str, int], ...]:
    names = engine.cluster.axis.names
    return tuple((names[row], amount) for row, amount in enumerate(request) if amount)


def named(event: Event) -> str:
    if isinstance(event, Listed):
        return f"list of {event.kind}"
    kind = "deletion" if isinstance(event, Deleted) else "event"
    return f"{kind} of {event.record.name}"
