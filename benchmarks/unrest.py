"""A cluster that never rests: gangs come and go, members are lost, nodes flap. Seeded.

    unrest = Unrest(cluster, chronicle, random.Random(0))
    while …: unrest.step(time.monotonic())          # ten times a second
    unrest.calm()                                   # every node is ready, no gang comes or goes

Gangs ask for one rack and whole nodes, every second one behind our gate. A node that is lost is
tainted as the node controller does; on half of them the pods are evicted, and their owner, this
module, creates them again under the same name. How long a gang is bound in part though there is
room for the rest in its rack is clocked here, from the history and the nodes alone.

With `has_jobs` half of the gangs without a gate are Jobs, of which Kubernetes' own controller makes
the pods. It takes longer with each pod that is lost, 10 s and more: a Job that lacks some for
longer is ended, and so is one that is not whole when all is calm.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from random import Random

from tests.cluster import GPU, RACK, Cluster, Object, Refused, collection, grid, job
from tests.controlplane import node_faults
from tests.controlplane.chronicle import JOB_PODS, Chronicle, Seen
from tests.workloads import asking, behind_gate, members

RACKS, NODES_PER_RACK, GPUS = 4, 8, 8
GANGS = 8  # names; each is used again and again
SMALLEST, LARGEST = 2, 6
LIFE_SECONDS = (2.0, 12.0)  # of a gang once it is whole
PAUSE_SECONDS = (0.0, 2.0)  # until its name is used again
FLAP_SECONDS = (1.0, 4.0)  # between two nodes that are lost
DOWN_SECONDS = (1.0, 6.0)
LOSS_SECONDS = (2.0, 6.0)  # between two members that are deleted on sound nodes
JOB_SECONDS = 5.0  # that a Job may lack pods
MOST_FAILURES = 10_000  # of a Job: more than are ever lost


@dataclass(slots=True)
class Owner:
    """What creates one gang's pods, and what it wants now."""

    name: str
    is_gated: bool
    is_job: bool = False
    size: int = 0  # 0: nothing
    ends_at: float = 0.0  # once whole; 0: not yet whole
    next_at: float = 0.0  # when it wants something again
    whole_at: float = 0.0  # of a Job: when all its pods were there last, or it was created


@dataclass(slots=True)
class Counts:
    """What happened."""

    started: int = 0  # gangs that were whole
    ended: int = 0
    members_lost: int = 0
    nodes_lost: int = 0
    longest_start: float = 0.0  # seconds from complete, with room for all in one rack, to whole
    longest_partial: float = 0.0  # seconds bound in part though there was room for the rest


@dataclass(slots=True)
class Unrest:
    cluster: Cluster
    chronicle: Chronicle
    random: Random
    counts: Counts = field(default_factory=Counts)
    has_jobs: bool = False
    owners: list[Owner] = field(default_factory=list)
    _down: dict[str, float] = field(default_factory=dict)  # node -> until when
    _helpable: dict[str, float] = field(default_factory=dict)  # gang -> since when
    _flap_at: float = 0.0
    _loss_at: float = 0.0

    def begin(self) -> None:
        """Creates the nodes."""
        self.cluster.create_all(grid(racks=RACKS, nodes=NODES_PER_RACK, gpus=GPUS))
        self.owners = [
            Owner(f"gang{number}", bool(number % 2), self.has_jobs and number % 4 == 0)
            for number in range(GANGS)
        ]

    def step(self, now: float) -> None:
        """Whatever is due."""
        gangs = self.chronicle.gangs()
        self.clock(gangs, now)
        self._flap(now)
        for owner in self.owners:
            pods = gangs.get(owner.name, [])
            if len(pods) == owner.size:
                owner.whole_at = now
            self._own(owner, pods, now)
        self._lose_a_member(gangs, now)

    def calm(self) -> None:
        """Every node is ready; gangs stay as they are, and are complete."""
        for name in list(self._down):
            node_faults.find_again(self.cluster, name)
            del self._down[name]

    def complete(self) -> None:
        """Creates the pods that are missing of gangs that are wanted, or ends their Job."""
        gangs = self.chronicle.gangs()
        for owner in self.owners:
            pods = gangs.get(owner.name, [])
            if not owner.is_job:
                self._create(owner, pods)
            elif len(pods) < owner.size:
                self._end(owner, pods)

    def end_all_but(self, names: Collection[str]) -> None:
        """Ends all gangs but those with these names."""
        gangs = self.chronicle.gangs()
        for owner in self.owners:
            if owner.name not in names:
                self._end(owner, gangs.get(owner.name, []))

    def clock(self, gangs: dict[str, list[Seen]], now: float) -> None:
        """Time gangs that are bound in part, or not at all, though there is room for the rest."""
        helpable = {}
        for owner in self.owners:
            pods = gangs.get(owner.name, [])
            if owner.size and len(pods) == owner.size and self._has_room(pods):
                is_partial = any(one.node for one in pods)
                since = self._helpable.get(f"{owner.name} {is_partial}", now)
                helpable[f"{owner.name} {is_partial}"] = since
                kind = "longest_partial" if is_partial else "longest_start"
                setattr(self.counts, kind, max(getattr(self.counts, kind), now - since))
        self._helpable = helpable

    def helpable(self) -> list[str]:
        """The gangs that wait though there is room for them."""
        return sorted(self._helpable)

    def free_nodes(self) -> dict[str, list[str]]:
        """Rack -> its nodes that are ready and without pods."""
        taken = {one.node for one in self.chronicle.pods()}
        free: dict[str, list[str]] = {}
        for rack in range(RACKS):
            names = [f"b0-r{rack}-n{place}" for place in range(NODES_PER_RACK)]
            free[f"b0-r{rack}"] = [
                name for name in names if name not in taken and name not in self._down
            ]
        return free

    def _has_room(self, pods: list[Seen]) -> bool:
        missing = sum(not one.node for one in pods)
        racks = {one.node.rpartition("-")[0] for one in pods if one.node}
        free = self.free_nodes()
        return missing > 0 and any(len(free[rack]) >= missing for rack in racks or free)

    # -- gangs ---------------------------------------------------------------------------------

    def _own(self, owner: Owner, pods: list[Seen], now: float) -> None:
        if not owner.size:
            if now >= owner.next_at and not pods:
                owner.size = self.random.randint(SMALLEST, LARGEST)
                owner.ends_at = 0.0
                if owner.is_job:
                    owner.whole_at = now
                    self._create_one(self._job(owner))
                else:
                    self._create(owner, pods)
        elif owner.ends_at and now >= owner.ends_at:
            owner.next_at = now + self.random.uniform(*PAUSE_SECONDS)
            self.counts.ended += 1
            self._end(owner, pods)
        elif len(pods) < owner.size:
            if not owner.is_job:
                self._create(owner, pods)
            elif now >= owner.whole_at + JOB_SECONDS:
                self._end(owner, pods)
        elif not owner.ends_at and all(one.node for one in pods):
            owner.ends_at = now + self.random.uniform(*LIFE_SECONDS)
            self.counts.started += 1

    def _create(self, owner: Owner, pods: list[Seen]) -> None:
        there = {one.name for one in pods}
        wanted = [
            one
            for one in members(
                owner.name, owner.size, requests={GPU: GPUS}, annotations=asking(required=RACK)
            )
            if one["metadata"]["name"] not in there
        ]
        for one in wanted:
            self._create_one(behind_gate(one) if owner.is_gated else one)

    def _job(self, owner: Owner) -> Object:
        made = job(
            owner.name,
            pods=owner.size,
            requests={GPU: GPUS},
            annotations={**asking(required=RACK), JOB_PODS: str(owner.size)},
        )
        made["spec"]["backoffLimit"] = MOST_FAILURES
        return made

    def _end(self, owner: Owner, pods: list[Seen]) -> None:
        """Deletes what is there of a gang."""
        if owner.is_job and owner.size:
            # Else the API server would leave it to the garbage collector, which is not there.
            where = f"{collection('Job', 'default')}/{owner.name}"
            self.cluster.request("DELETE", where, params={"propagationPolicy": "Background"})
        owner.size = 0
        self._delete(pods)

    def _create_one(self, thing: Object) -> None:
        try:
            self.cluster.create(thing)
        except Refused as refused:
            if refused.reason != "AlreadyExists":  # the history has not seen it yet
                raise

    def _delete(self, pods: list[Seen]) -> None:
        for one in pods:
            try:
                self.cluster.delete("Pod", one.name)
            except Refused as refused:
                if refused.status != 404:
                    raise

    def _lose_a_member(self, gangs: dict[str, list[Seen]], now: float) -> None:
        if now < self._loss_at:
            return
        self._loss_at = now + self.random.uniform(*LOSS_SECONDS)
        bound = sorted(
            (one for pods in gangs.values() for one in pods if one.node), key=lambda one: one.name
        )
        if bound:
            self.counts.members_lost += 1
            self._delete([self.random.choice(bound)])

    # -- nodes ---------------------------------------------------------------------------------

    def _flap(self, now: float) -> None:
        for name, until in list(self._down.items()):
            if now >= until:
                node_faults.find_again(self.cluster, name)
                del self._down[name]
        if now < self._flap_at:
            return
        self._flap_at = now + self.random.uniform(*FLAP_SECONDS)
        rack, place = self.random.randrange(RACKS), self.random.randrange(NODES_PER_RACK)
        name = f"b0-r{rack}-n{place}"
        if name in self._down:
            return
        node_faults.lose_contact(self.cluster, name)
        self._down[name] = now + self.random.uniform(*DOWN_SECONDS)
        self.counts.nodes_lost += 1
        if self.random.random() < 0.5:
            on_it = [one for one in self.chronicle.pods() if one.node == name]
            self.counts.members_lost += len(on_it)
            self._delete(on_it)
