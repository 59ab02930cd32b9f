"""Volcano's controllers: the PodGroups of vcjobs and of plain pods, and what is on the pods.

    vcjob ──▶ PodGroup, status {} ──phase neither "" nor Pending──▶ pods
    plain pod ──▶ PodGroup of its owner, status Pending ──▶ its name on the pod

Some jobs are other schedulers': theirs is the PodGroup's phase, and their pods are not played.
Source: volcano pkg/controllers/job/job_controller_actions.go, job_controller_util.go,
pkg/controllers/podgroup/pg_controller_handler.go (v1.14.1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from random import Random
from typing import Any

from app.kube.core.objects import Owner, PodRecord
from tests.sim.api import POD_GROUP, VCJOB, ApiServer
from tests.sim.clock import Clock, History
from tests.sim.kinds import Template, Workload
from tests.sim.kube_scheduler import SCHEDULER
from tests.sim.objects import Json, Objects
from tests.sim.owners import Said
from tests.sim.volcano.pod_group import (
    GROUP_NAME,
    HIGHEST_TIER,
    MIN_MEMBER,
    MODE,
    PARTITION,
    TASK,
    TASK_INDEX,
    PodGroup,
)

GROUP_SECONDS = (0.05, 1.0)  # until a vcjob has its PodGroup
BY_HAND_SECONDS = (0.0, 3.0)  # until the user makes the PodGroup of pods
ADOPTED_SECONDS = (0.005, 1.5)  # until a plain pod names its PodGroup
WITHOUT_PODS = ("", "Pending")  # phases in which none are made
VOLCANO_SCHEDULER = "volcano"


class VolcanoController:
    """The owner of Volcano's workloads, as `owners.py` is that of the others."""

    def __init__(
        self, clock: Clock, api: ApiServer, objects: Objects, rng: Random, history: History
    ) -> None:
        self._clock, self._api, self._objects = clock, api, objects
        self._rng, self._history = rng, history
        self._adopted: dict[str, None] = {}  # uids of plain pods that were seen
        self._of_pods: dict[str, PodGroup] = {}  # by the uid of their owner
        api.subscribe("Pod", self._pod_changed)

    def create(self, _api: ApiServer, made: Workload) -> None:
        """Make the vcjob; its PodGroup, or that of pods made by hand, a moment later."""
        group = _group(made)
        made.owner_uid = self._api.new_uid()
        if group.made_for == "pods":
            self._of_pods[made.owner_uid] = group
            return  # their PodGroup follows from them
        seconds = BY_HAND_SECONDS
        if group.made_for == "job":
            seconds = GROUP_SECONDS
            self._create_job(made.name, SCHEDULER, made.owner_uid)
        self._clock.after(
            self._rng.uniform(*seconds), partial(self._create_group, made, made.epoch)
        )

    def _create_job(self, name: str, scheduler: str, uid: str) -> None:
        metadata = {"uid": uid}
        self._objects.create(VCJOB, name, metadata=metadata, spec={"schedulerName": scheduler})

    def _create_group(self, made: Workload, epoch: int) -> None:
        if made.is_over or made.epoch != epoch:
            return
        name, group = group_name(made), _group(made)
        self._history.say(f"PodGroup {name}: {group.spec()}")
        metadata = _owned_by(made.name, made.owner_uid) if group.made_for == "job" else {}
        self._objects.create(POD_GROUP, name, metadata=metadata, spec=group.spec(), status={})

    def may_make(self, _api: ApiServer, made: Workload, _template: Template) -> bool:
        """Whether pods are made: of a vcjob not before its PodGroup is let into its queue."""
        if _group(made).made_for != "job":
            return True
        body = self._objects.get(POD_GROUP, group_name(made))
        return body is not None and body["status"].get("phase", "") not in WITHOUT_PODS

    def remove(self, _api: ApiServer, made: Workload) -> None:
        """Delete the vcjob and the PodGroup."""
        self._objects.remove(VCJOB, made.name)
        self._objects.remove(POD_GROUP, group_name(made))

    def tell_status(self, _api: ApiServer, made: Workload, _pods: Iterable[PodRecord]) -> None:
        """Make a PodGroup again that is gone though its vcjob is there."""
        if (
            _group(made).made_for == "job"
            and self._objects.get(POD_GROUP, group_name(made)) is None
        ):
            self._create_group(made, made.epoch)

    def said_on(self, made: Workload, name: str, template: Template) -> Said:
        """What one pod says about where it belongs."""
        group, number = _group(made), made.number(name)
        if group.made_for == "pods":
            return _asked(group), {}, Owner("apps/v1", "ReplicaSet", made.name, made.owner_uid)
        where = {TASK: template.part, TASK_INDEX: str(number)}
        labels = dict(where)
        if group.partitions is not None and group.partitions.task == template.part:
            labels[PARTITION] = str(number // group.partitions.size)
        annotations = {**where, GROUP_NAME: group_name(made)}
        owner: Owner | None = None
        if group.made_for == "job":
            owner = Owner("batch.volcano.sh/v1alpha1", "Job", made.name, made.owner_uid)
        return annotations, labels, owner

    def as_created(self, _made: Workload, pod: PodRecord) -> PodRecord:
        """The pod as it is."""
        return pod

    # -- plain pods ----------------------------------------------------------------------------

    def _pod_changed(self) -> None:
        change = self._api.changes["Pod"][-1]
        pod: Any = change.record
        is_new = not change.is_deleted and pod.uid not in self._adopted
        if is_new and MIN_MEMBER in pod.annotations:
            self._adopted[pod.uid] = None
            seconds = self._rng.uniform(*ADOPTED_SECONDS)
            self._clock.after(seconds, partial(self._adopt, pod.name, pod.uid))

    def _adopt(self, name: str, uid: str) -> None:
        """Make the PodGroup of a plain pod's owner, if it has none, and name it on the pod."""
        pod = self._api.pods.get(name)
        if pod is None or pod.uid != uid or pod.owner is None:
            return
        its, group = f"podgroup-{pod.owner.uid}", self._of_pods[pod.owner.uid]
        if self._objects.get(POD_GROUP, its) is None:
            self._history.say(f"PodGroup {its}: {group.spec()}")
            self._objects.create(POD_GROUP, its, spec=group.spec(), status={"phase": "Pending"})
        self._api.annotate(name, uid, {GROUP_NAME: its})

    # -- jobs of other schedulers --------------------------------------------------------------

    def create_foreign(self, name: str, group: PodGroup) -> Callable[[], None]:
        """A vcjob of vc-scheduler's, which lets it in; returns what deletes it."""
        uid = self._api.new_uid()
        self._create_job(name, VOLCANO_SCHEDULER, uid)
        its = f"{name}-{uid}"
        self._history.say(f"PodGroup {its} of another scheduler: {group.spec()}")
        self._objects.create(
            POD_GROUP, its, metadata=_owned_by(name, uid), spec=group.spec(), status={}
        )

        def let_in() -> None:
            if self._objects.get(POD_GROUP, its) is not None:
                self._objects.change(POD_GROUP, its, status={"phase": "Inqueue"})

        def delete() -> None:
            self._objects.remove(VCJOB, name)
            self._objects.remove(POD_GROUP, its)

        self._clock.after(self._rng.uniform(0.5, 5.0), let_in)
        return delete


def group_name(made: Workload) -> str:
    """The name of a workload's PodGroup."""
    match _group(made).made_for:
        case "job":
            return f"{made.name}-{made.owner_uid}"
        case "pods":
            return f"podgroup-{made.owner_uid}"
    return made.name


def _group(made: Workload) -> PodGroup:
    assert made.pod_group is not None, made.kind
    return made.pod_group


def _asked(group: PodGroup) -> dict[str, str]:
    """What plain pods say, of which their PodGroup follows."""
    asked = {MIN_MEMBER: str(group.least)}
    if group.topology is not None:
        asked[MODE] = group.topology["mode"]
    if group.topology is not None and "highestTierAllowed" in group.topology:
        asked[HIGHEST_TIER] = str(group.topology["highestTierAllowed"])
    return asked


def _owned_by(job: str, uid: str) -> Json:
    kind = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job"}
    return {"ownerReferences": [{**kind, "name": job, "uid": uid, "controller": True}]}
