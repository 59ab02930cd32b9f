"""V1 to V6: what must hold of PodGroups after every step, by what a Corral has been told.

    V1    a gang starts with all that its PodGroup needs at once: pods, of each task, sub-groups
    V2    its pods are in one HyperNode of the tier that it may span, each sub-group in its own,
          as the tree was when they were placed
    V3    a PodGroup without pods is let into its queue only where that has room
    V4    nothing is written on a PodGroup of another scheduler
    V5    no pod goes because HyperNodes change
    V6    the status that is written says what the pods are

What an engine remembers is looked at only for what it holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from app.kube.core.objects import PodRecord
from app.kube.watch.events import Kind
from app.state.effects import Delete, Effect, Evict, TryEviction, WriteStatus
from app.state.gang.gang import Gang
from tests.sim.api import HYPER_NODE, POD_GROUP, QUEUE, VCJOB, ApiServer
from tests.sim.corral import Corral
from tests.sim.faults import Hits
from tests.sim.isolation import Subject
from tests.sim.kube_scheduler import SCHEDULER
from tests.sim.life import Life
from tests.sim.objects import Json, Objects
from tests.sim.starts import placed_whole, starts
from tests.sim.told import is_live, life_of, members_of, pods_of
from tests.sim.violation import require
from tests.sim.volcano.reading import (
    ANYWHERE,
    Domains,
    Group,
    capability,
    domains_of,
    group_name_of,
    group_of,
)

SOURCE = "volcano"  # of the keys of such gangs
PATH = "/apis/scheduling.volcano.sh/"  # of PodGroups; of Queues nothing is written


@dataclass(slots=True)
class VolcanoChecks:
    """One for all Corrals."""

    api: ApiServer
    objects: Objects
    hits: Hits
    _tree: tuple[Life, tuple[int, int], Domains] | None = None
    """The last one, with when it was read."""

    # -- effects -------------------------------------------------------------------------------

    def decided(self, corral: Corral, effects: Sequence[Effect]) -> None:
        """Raises: Violation."""
        life = life_of(corral)
        for gang, members in starts(life, effects, SOURCE):
            self._starts_whole(life, gang, members)
        for effect in effects:
            if isinstance(effect, WriteStatus) and effect.path.startswith(PATH):
                self._status(life, effect)

    def taken(self, corral: Corral, subject: Subject, effects: Sequence[Effect]) -> None:
        """V5. Raises: Violation."""
        record: Any = getattr(subject, "record", None)
        if getattr(record, "kind", "") == HYPER_NODE:
            gone = [each for each in effects if isinstance(each, Delete | Evict | TryEviction)]
            require(not gone, f"V5: HyperNode {record.name} changes, and {gone}")

    def _starts_whole(self, life: Life, gang: Gang, members: Sequence[PodRecord]) -> None:
        group = self._group(life, gang.key.name)
        require(group is not None, f"V1: {gang.key} starts, and its PodGroup is not known")
        assert group is not None
        placed = placed_whole(life, gang, members, group.is_whole, "V1")
        parts = group.parts(placed)
        if any(part.tier < ANYWHERE and len(part.pods) > 1 for part in parts):
            self.hits.hit("W in one HyperNode")

    # -- statuses ------------------------------------------------------------------------------

    def _status(self, life: Life, effect: WriteStatus) -> None:
        told = self._told(life, POD_GROUP).values()
        body = next((each for each in told if each["metadata"]["uid"] == effect.uid), None)
        require(body is not None, f"V4: {effect.path} is written, which has not been shown")
        assert body is not None
        group = group_of(body)
        pods = [pod for pod in pods_of(life) if group_name_of(pod) == group.name]
        ours = [pod for pod in pods if pod.scheduler == SCHEDULER]
        require(
            bool(ours) or self._job_is_ours(life, body),
            f"V4: {effect.path} is written, and is another scheduler's",
        )
        said: Any = effect.status
        counted = (said["running"], said["succeeded"], said["failed"])
        is_settled = effect.gang not in life.engine.gangs.unreviewed
        require(
            counted == counts_of(ours) or not is_settled,
            f"V6: {effect.path} says {counted}, and its pods are {counts_of(ours)}",
        )
        if not ours:
            self._lets_in(life, group, said["phase"])

    def _waits_again(self, life: Life, group: Group) -> bool:
        waiting = life.engine.pools._waiting.values()
        return any(key.name == group.name for keys in waiting for key in keys)

    def _lets_in(self, life: Life, group: Group, phase: str) -> None:
        """What was let in and has not been shown since counts; of others it is looked at again."""
        life.let_in.pop(group.uid, None)
        if phase == "Pending":
            self.hits.hit("W queue full")
        if phase != "Inqueue" or not group.is_new:
            return
        mirror = life.streams[POD_GROUP].mirror
        shown = [(group_of(self.objects.told(each)), each.version) for each in mirror.values()]
        inside = [
            each
            for each, version in shown
            if is_in(each) or (each.is_new and life.let_in.get(each.uid) == version)
            # One that was refused again since, as its status never showed, has nothing.
            if each.uid == group.uid or not self._waits_again(life, each)
        ]
        queue = self._told(life, QUEUE).get(group.queue)
        lacks = "" if queue is None else short(group, inside, queue)
        require(not lacks, f"V3: PodGroup {group.name} is let in: {lacks}")
        life.let_in[group.uid] = mirror[group.name].version

    def _job_is_ours(self, life: Life, body: Json) -> bool:
        owners = body["metadata"].get("ownerReferences", ())
        jobs = self._told(life, VCJOB).values()
        return any(
            job["metadata"]["uid"] == owner["uid"] and job["spec"]["schedulerName"] == SCHEDULER
            for job in jobs
            for owner in owners
        )

    # -- places --------------------------------------------------------------------------------

    def took(self, life: Life) -> None:
        """V2. Raises: Violation."""
        engine = life.engine
        for key in engine.gangs.planned:
            if key.source == SOURCE and key not in engine.gangs.unreviewed:
                self._together(life, engine.gangs.by_key[key])

    def _together(self, life: Life, gang: Gang) -> None:
        group = self._group(life, gang.key.name)
        if group is None:
            return
        nodes: Any = life.streams["Node"].mirror
        live = [pod for pod in members_of(life, gang.key) if is_live(pod)]
        domains = self._domains(life)
        for part in group.parts(live):
            if part.tier >= ANYWHERE:
                continue
            bound = {_node_of(life, pod) for pod in part.pods} & nodes.keys()
            new = {
                (str(part.tier), pod.uid, gang.plan.nodes[pod.uid])
                for pod in part.pods
                if not _node_of(life, pod) and pod.uid in gang.plan.nodes
            }
            # Those that run are not together any more, or not with one that was planned beside some
            # of them: nothing says where the others belong, also once some of those are gone.
            placed = bound | {node for _, _, node in new & life.apart}
            if bound and domains.around(placed, part.tier) is None:
                life.apart |= new
            planned = {node for _, _, node in new - life.apart}
            require(
                not planned or domains.around(planned | bound, part.tier) is not None,
                f"V2: {part.name} may span tier {part.tier}: planned on {sorted(planned)},"
                f" bound on {sorted(bound)}",
            )

    def _domains(self, life: Life) -> Domains:
        nodes: Any = life.streams["Node"].mirror
        changed = (life.streams[HYPER_NODE].changed, life.streams["Node"].changed)
        if self._tree is None or self._tree[0] is not life or self._tree[1] != changed:
            self._tree = life, changed, domains_of(self._told(life, HYPER_NODE), nodes)
        return self._tree[2]

    def _told(self, life: Life, kind: Kind) -> dict[str, Json]:
        """The objects of a kind as the watch has shown them, by name."""
        mirror = life.streams[kind].mirror
        return {name: self.objects.told(record) for name, record in mirror.items()}

    def _group(self, life: Life, name: str) -> Group | None:
        record = life.streams[POD_GROUP].mirror.get(name)
        return None if record is None else group_of(self.objects.told(record))


def is_in(group: Group) -> bool:
    """Whether a PodGroup has what it wants of its queue, as its phase says."""
    return group.phase not in ("", "Pending", "Completed")


def short(group: Group, inside: Iterable[Group], queue: Json) -> str:
    """What a queue lacks for one more PodGroup beside those that are in it; "": nothing."""
    taken = Counter[str]()
    for each in inside:
        if each.queue == group.queue and each.uid != group.uid:
            taken.update(each.requests)
    for resource, most in capability(queue).items():
        wanted = group.requests.get(resource, 0)
        if wanted and taken[resource] + wanted > most:
            return f"{taken[resource]} of {most} {resource} are taken, it wants {wanted}"
    return ""


def counts_of(pods: Iterable[PodRecord]) -> tuple[int, int, int]:
    """How many of these pods are bound, have succeeded and have failed."""
    pods = list(pods)
    return (
        sum(bool(pod.node) and is_live(pod) for pod in pods),
        sum(pod.phase == "Succeeded" for pod in pods),
        sum(pod.phase == "Failed" for pod in pods),
    )


def _node_of(life: Life, pod: PodRecord) -> str:
    """Where the pod is bound, or is being bound to."""
    return pod.node or life.posted.get(pod.uid, "")
