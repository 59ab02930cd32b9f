"""Grove's operator: PodGangs of the pods that exist, and the gates of those that they name.

    pod, behind the gate ──▶ PodGang names it ──▶ gate lifted
                                   │                 └─ of a scaled PodGang: once the base runs
                                   └──▶ all named: status Pending, Initialized

A gate is lifted pod by pod, whether or not the others of the gang are there. The status is written
whole, also later on, when pods have come again.
Source: grove operator/internal/controller/podclique/components/pod/syncflow.go,
podcliqueset/components/podgang/syncflow.go (v0.1.0-alpha.8).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

import msgspec

from app.kube.core.objects import Owner, PodRecord
from tests.sim.api import POD_GANG, ApiServer
from tests.sim.clock import Clock, History
from tests.sim.faults import Hits
from tests.sim.grove import pod_clique_set as sets
from tests.sim.grove.pod_clique_set import BASE, PodCliqueSet
from tests.sim.kinds import Template, Workload
from tests.sim.objects import Json, Objects
from tests.sim.owners import Said

SYNC_SECONDS = (0.02, 1.0)  # until the PodGang names a pod
LATE_SHARE, LATE_SECONDS = 0.1, (2.0, 8.0)
EARLY_SHARE = 0.3  # of PodCliqueSets: PodGangs are there before the pods, as newer operators do
LIFT_SECONDS = (0.005, 0.8)  # until a gate is lifted
WAIT_SECONDS = (1.0, 5.0)  # until it is looked at again whether the base gang runs
REWRITES_SHARE = 0.5  # of the times that pods have come again
TOPOLOGY = "grove-topology"


class GroveOperator:
    """The owner of PodCliqueSets, as `owners.py` is that of the others."""

    def __init__(
        self,
        clock: Clock,
        api: ApiServer,
        objects: Objects,
        rng: Random,
        history: History,
        hits: Hits,
    ) -> None:
        self.levels: Sequence[str] = tuple(sets.KEYS)  # of the ClusterTopology, as it has read it
        self._clock, self._api, self._objects = clock, api, objects
        self._rng, self._history, self._hits = rng, history, hits
        self._of_uid: dict[str, Workload] = {}
        self._seen: dict[str, None] = {}  # uids of pods that were seen
        api.subscribe("Pod", self._pod_changed)

    # -- as owners.py --------------------------------------------------------------------------

    def create(self, _api: ApiServer, made: Workload) -> None:
        """Begin with no pods; sometimes the PodGangs are there first."""
        made.owner_uid = self._api.new_uid()
        self._of_uid[made.owner_uid] = made
        if self._rng.random() < EARLY_SHARE:
            for gang in _set(made).gangs():
                self._write(made, gang)

    def may_make(self, _api: ApiServer, made: Workload, _template: Template) -> bool:
        return True

    def remove(self, _api: ApiServer, made: Workload) -> None:
        """Delete its PodGangs."""
        for name in self._objects.of(POD_GANG):
            if name.partition("-")[0] == made.name:
                self._objects.remove(POD_GANG, name)

    def tell_status(self, _api: ApiServer, made: Workload, _pods: Iterable[PodRecord]) -> None:
        """Make PodGangs again that are gone, of pods that are there."""
        for gang in _set(made).gangs():
            if self._objects.get(POD_GANG, f"{made.name}-{gang}") is None and self._pods(
                made, gang
            ):
                self._sync(made, gang, made.epoch)

    def said_on(self, made: Workload, name: str, template: Template) -> Said:
        """What one pod says about where it belongs."""
        clique = f"{made.name}-{template.part}"
        owner = Owner("grove.io/v1alpha1", "PodClique", clique, made.owner_uid)
        if _set(made).is_by_reference:
            return {}, {}, owner
        gang = _set(made).gang_of(template.part)
        labels = {sets.POD_GANG: f"{made.name}-{gang}", sets.POD_CLIQUE: clique}
        if gang != BASE:
            labels[sets.BASE_GANG] = f"{made.name}-{BASE}"
        return {}, labels, owner

    def as_created(self, _made: Workload, pod: PodRecord) -> PodRecord:
        """Behind the operator's gate."""
        return msgspec.structs.replace(pod, gates=(sets.GATE,))

    # -- PodGangs ------------------------------------------------------------------------------

    def _pod_changed(self) -> None:
        change = self._api.changes["Pod"][-1]
        pod: Any = change.record
        made = self._of_uid.get(pod.owner.uid) if pod.owner is not None else None
        if change.is_deleted or made is None or pod.uid in self._seen:
            return
        self._seen[pod.uid] = None
        gang = _gang_of(made, pod)
        is_late = self._rng.random() < LATE_SHARE
        seconds = self._rng.uniform(*(LATE_SECONDS if is_late else SYNC_SECONDS))
        self._clock.after(seconds, partial(self._sync, made, gang, made.epoch))

    def sync_all(self, made: Iterable[Workload]) -> None:
        """Write all PodGangs that differ from what they are to be."""
        for workload in made:
            for gang in _set(workload).gangs():
                if self._objects.get(POD_GANG, f"{workload.name}-{gang}") is not None:
                    self._write(workload, gang)

    def _sync(self, made: Workload, gang: str, epoch: int) -> None:
        if made.is_over or made.epoch != epoch or gang not in _set(made).gangs():
            return
        self._write(made, gang)
        may_start = gang == BASE or self._base_runs(made)
        for pod in self._pods(made, gang):
            if may_start and pod.gates:
                seconds = self._rng.uniform(*LIFT_SECONDS)
                self._clock.after(seconds, partial(self._lift, made, pod.name, pod.uid))
        if not may_start:
            seconds = self._rng.uniform(*WAIT_SECONDS)
            self._clock.after(seconds, partial(self._sync, made, gang, epoch))

    def _write(self, made: Workload, gang: str) -> None:
        """The PodGang with the pods that exist, and its status once it has all of them."""
        name, pods = f"{made.name}-{gang}", self._pods(made, gang)
        parts = _set(made).gangs()[gang]
        named = {each.name: [pod.name for pod in pods if _part(pod) == each.name] for each in parts}
        spec = _set(made).spec(made.name, gang, self.levels, named)
        annotations = {sets.TOPOLOGY_NAME: TOPOLOGY} if _is_constrained(spec) else {}
        there = self._objects.get(POD_GANG, name)
        if there is None:
            self._history.say(f"PodGang {name}: {spec}")
            metadata = {"annotations": annotations}
            there = self._objects.create(POD_GANG, name, metadata=metadata, spec=spec, status={})
        elif there["spec"] != spec:
            self._history.say(f"PodGang {name} changes: {spec}")
            metadata = {**there["metadata"], "annotations": annotations}
            self._objects.change(POD_GANG, name, metadata=metadata, spec=spec)
        else:
            return
        is_whole = all(
            len(named[each.part]) >= each.pods for each in made.templates if each.part in named
        )
        conditions = there["status"].get("conditions") or []
        is_new = all(each["type"] != "Initialized" for each in conditions)
        if is_whole and pods and (is_new or self._rng.random() < REWRITES_SHARE):
            self._hits.hit("F13 PodGang rewritten" if conditions else "W PodGang initialized")
            if any(not each.clique.least for each in parts):
                self._hits.hit("W no minimum")
            self._objects.change(POD_GANG, name, status=_initialized(self._clock.wall_time()))

    def _base_runs(self, made: Workload) -> bool:
        """Whether the base gang has of each clique as many pods ready as it needs."""
        running = [
            _part(pod)
            for pod in self._api.pods.values()
            if pod.uid in made.uids and pod.phase in ("Running", "Succeeded")
        ]
        parts = _set(made).gangs()[BASE]
        return all(running.count(each.name) >= each.clique.least for each in parts)

    def _lift(self, made: Workload, name: str, uid: str) -> None:
        """Take every gate off a pod: a merge patch of schedulingGates to null."""
        pod = self._api.pods.get(name)
        if pod is None or pod.uid != uid or not pod.gates:
            return
        gang = _gang_of(made, pod)
        if _set(made).is_by_reference:
            self._hits.hit("W by reference")
        if gang in _set(made).gangs():
            lifted = [_part(each) for each in self._pods(made, gang) if not each.gates]
            parts = _set(made).gangs()[gang]
            if any(lifted.count(each.name) + 1 < each.clique.least for each in parts):
                self._hits.hit("W ungated early")
        if gang != BASE:
            self._hits.hit("W scaled gang")
        self._api.change("Pod", name, gates=())

    def _pods(self, made: Workload, gang: str) -> list[PodRecord]:
        """The pods of a PodGang that exist and have not ended."""
        return [
            pod
            for _, pod in sorted(self._api.pods.items())
            if pod.uid in made.uids and _gang_of(made, pod) == gang
            if not pod.is_finished and not pod.is_terminating
        ]

    # -- scaling -------------------------------------------------------------------------------

    def scale_clique(self, made: Workload, more: int) -> list[str]:
        """One pod more or less of a clique that is not scaled in a group, never below its minimum.

        Returns the names of the pods that are to be deleted.
        """
        alone = [each for each in _set(made).gangs()[BASE] if each.replica is None]
        part = self._rng.choice(alone)
        template = next(each for each in made.templates if each.part == part.name)
        if template.pods + more < max(part.clique.least, 1):
            return []
        changed = replace(template, pods=template.pods + more)
        self._resize(made, tuple(changed if each is template else each for each in made.templates))
        its = [name for name, of in made.names.items() if of.part == part.name]
        for name in its:
            made.names[name] = changed
        if more > 0:
            made.names[_next_name(made)] = changed
            return []
        del made.names[its[-1]]
        return its[-1:]

    def scale_group(self, made: Workload, more: int) -> list[str]:
        """One replica of the scaling group more or less, never below its minimum.

        Returns the names of the pods that are to be deleted.
        """
        before = _set(made)
        if not before.replicas or before.replicas + more < before.least:
            return []
        made.pod_clique_set = after = replace(before, replicas=before.replicas + more)
        if more > 0:
            first = {each.part: each for each in made.templates}
            for part, like in zip(after.replica(before.replicas), before.replica(0), strict=True):
                template = replace(first[like.name], part=part.name)
                self._resize(made, (*made.templates, template))
                for _ in range(template.pods):
                    made.names[_next_name(made)] = template
            return []
        (gone,) = before.gangs().keys() - after.gangs().keys()
        parts = {each.name for each in before.gangs()[gone]}
        self._objects.remove(POD_GANG, f"{made.name}-{gone}")
        self._resize(made, tuple(each for each in made.templates if each.part not in parts))
        names = [name for name, template in made.names.items() if template.part in parts]
        for name in names:
            del made.names[name]
        return names

    def _resize(self, made: Workload, templates: tuple[Template, ...]) -> None:
        made.templates = templates
        made.declared = sum(each.pods for each in templates)


def _set(made: Workload) -> PodCliqueSet:
    assert made.pod_clique_set is not None, made.kind
    return made.pod_clique_set


def _part(pod: PodRecord) -> str:
    """The pod group of a pod, without the name of its PodCliqueSet."""
    assert pod.owner is not None, pod
    return pod.owner.name.partition("-")[2]


def _gang_of(made: Workload, pod: PodRecord) -> str:
    """The PodGang of a pod, without the name of its PodCliqueSet; "": there is none any more."""
    label = pod.labels.get(sets.POD_GANG, "")
    if label:
        return label.partition("-")[2]
    gangs = _set(made).gangs().items()
    return next((gang for gang, parts in gangs if _part(pod) in {each.name for each in parts}), "")


def _next_name(made: Workload) -> str:
    number = 1 + max(int(name.rpartition("-")[2]) for name in (*made.names, *made.made, "-0"))
    return f"{made.name}-{number}"


def _is_constrained(spec: Json) -> bool:
    parts = [spec, *spec["podgroups"], *spec.get("topologyConstraintGroupConfigs", ())]
    return any("topologyConstraint" in each for each in parts)


def _initialized(now: str) -> Json:
    condition = {
        "type": "Initialized",
        "status": "True",
        "reason": "PodGangPodsCreated",
        "message": "",
        "lastTransitionTime": now,
    }
    return {"phase": "Pending", "conditions": [condition]}
