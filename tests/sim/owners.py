"""What a workload's controller writes: its own objects, and what it puts on each of its pods."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Protocol

import msgspec

from app.dialects.kueue.annotations import POD_SET_GROUP, ROLE_HASH
from app.dialects.kueue.driver_sets import SETS
from app.dialects.kueue.pod_groups import ROLE, SPARES
from app.dialects.workloads import WorkloadRecord
from app.dialects.workloads.job_set import NAME as JOB_SET
from app.kube.core.objects import Owner, PodRecord
from tests.records import GPU, GROUP, group, job
from tests.sim.api import ApiServer
from tests.sim.kinds import Template, Workload
from tests.workload_pods import COMPLETION_INDEX, LWS, POD_INDEX, job_set_labels, workload

Said = tuple[dict[str, str], dict[str, str], Owner | None]
"""Annotations, labels and controller of a pod."""


class Owners(Protocol):
    """Who makes the objects of some workloads, and says what is on their pods."""

    def create(self, api: ApiServer, made: Workload, /) -> None: ...

    def may_make(self, api: ApiServer, made: Workload, template: Template, /) -> bool: ...

    def remove(self, api: ApiServer, made: Workload, /) -> None: ...

    def tell_status(self, api: ApiServer, made: Workload, pods: Iterable[PodRecord], /) -> None: ...

    def said_on(self, made: Workload, name: str, template: Template, /) -> Said: ...

    def as_created(self, made: Workload, pod: PodRecord, /) -> PodRecord: ...


def create(api: ApiServer, made: Workload) -> None:
    """Make the workload's own objects; of a JobSet the first Job."""
    made.owner_uid = api.new_uid()
    match made.kind:
        case "job":
            record = job(made.name, made.declared, completions=made.declared)
            record = msgspec.structs.replace(record, failures_left=made.failures_left)
            api.create("Job", msgspec.structs.replace(record, uid=made.owner_uid))
        case "jobset":
            create_job(api, made, made.templates[0].part)
        case "statefulset":
            record = workload("StatefulSet", made.name, {"": made.declared})
            api.create(
                "StatefulSet",
                msgspec.structs.replace(record, uid=made.owner_uid, is_gradual=made.is_gradual),
            )


def create_job(api: ApiServer, made: Workload, part: str) -> None:
    """Make one Job of a JobSet; its controller takes its time between two."""
    name, uid = _jobs(made)[part], _uid_of_job(made, part)
    pods = sum(each.pods for each in made.templates if each.part == part)
    record = workload("Job", name, {"": pods}, completions=pods, labels=_job_set_labels(made, part))
    owner = Owner("jobset.x-k8s.io/v1alpha2", "JobSet", made.name, made.owner_uid)
    api.create("Job", msgspec.structs.replace(record, uid=uid, owner=owner))


def may_make(api: ApiServer, made: Workload, template: Template) -> bool:
    """Whether the object is there that makes such pods, and is not suspended."""
    if made.kind == "job":
        return not is_suspended(api, made)
    return made.kind != "jobset" or _jobs(made)[template.part] in api.objects["Job"]


def is_suspended(api: ApiServer, made: Workload) -> bool:
    """Whether the workload is a Job that has no pods for now."""
    record: Any = api.objects["Job"].get(made.name) if made.kind == "job" else None
    return record is not None and record.is_suspended


def remove(api: ApiServer, made: Workload) -> None:
    """Delete them."""
    for kind, name in _objects(made):
        if name in api.objects[kind]:
            api.remove(kind, name)


def tell_status(api: ApiServer, made: Workload, pods: Iterable[PodRecord]) -> None:
    """Write on each Job how many of its pods have succeeded."""
    for kind, name in _objects(made):
        record: Any = api.objects[kind].get(name)
        if kind != "Job" or record is None:
            continue
        succeeded = sum(
            each.phase == "Succeeded" and each.owner is not None and each.owner.uid == record.uid
            for each in pods
        )
        if record.succeeded != succeeded:
            api.change("Job", name, succeeded=succeeded)


def said_on(made: Workload, name: str, template: Template) -> Said:
    """What one pod says about where it belongs."""
    wishes = dict(made.annotations)
    match made.kind:
        case "group":
            return {**group(made.name, made.declared), **wishes}, {}, None
        case "driver" if template.part == "driver":
            return {GROUP: made.name, SETS: _sets(made), **wishes}, {}, None
        case "driver":
            wishes.pop(SPARES, None)
            return wishes, {GROUP: made.name, ROLE: template.part}, None
        case "job":
            owner = Owner("batch/v1", "Job", made.name, made.owner_uid)
            return wishes, {COMPLETION_INDEX: str(made.number(name))}, owner
        case "jobset":
            job_name, uid = _jobs(made)[template.part], _uid_of_job(made, template.part)
            owner = Owner("batch/v1", "Job", job_name, uid)
            labels = _job_set_labels(made, template.part)
            return wishes, {**labels, COMPLETION_INDEX: str(made.number(name))}, owner
        case "lws":
            return _group_of_leader(made, name, template, wishes)
        case "statefulset":
            owner = Owner("apps/v1", "StatefulSet", made.name, made.owner_uid)
            return wishes, {POD_INDEX: str(made.number(name))}, owner
        case "plain" if made.is_owned:
            return wishes, {}, Owner("apps/v1", "ReplicaSet", made.name, made.owner_uid)
    return wishes, {}, None


def as_created(_made: Workload, pod: PodRecord) -> PodRecord:
    """The pod with what is said elsewhere than in its annotations and labels: nothing here."""
    return pod


def _objects(made: Workload) -> list[tuple[Any, str]]:
    if made.kind == "jobset":
        return [("Job", name) for name in _jobs(made).values()]
    return [("StatefulSet" if made.kind == "statefulset" else "Job", made.name)]


def _jobs(made: Workload) -> dict[str, str]:
    """The Job of each part of a JobSet."""
    return {each.part: f"{made.name}-{each.part or 'all'}" for each in made.templates}


def _uid_of_job(made: Workload, part: str) -> str:
    return f"{made.owner_uid}-{part}"


def _job_set_labels(made: Workload, part: str) -> dict[str, str]:
    labels = job_set_labels(made.name, part, 0, 1, len(made.templates))
    return {**labels, f"{JOB_SET.rpartition('/')[0]}/jobset-uid": made.owner_uid}


def _group_of_leader(made: Workload, name: str, template: Template, wishes: dict[str, str]) -> Said:
    labels = {
        f"{LWS}name": made.name,
        f"{LWS}group-index": "0",
        f"{LWS}worker-index": name.rpartition("-")[2],
    }
    annotations = {**wishes, f"{LWS}size": str(made.declared)}
    if template.part:
        annotations[ROLE_HASH] = template.part
    if made.is_led:
        annotations[POD_SET_GROUP] = "led"
    return annotations, labels, None


def _sets(made: Workload) -> str:
    """The pod sets that a driver declares: itself, and its workers with their template."""
    workers = made.templates[1]
    shape = workers.shape
    requests = {"cpu": f"{workers.cpu}m", **({GPU: str(workers.gpus)} if workers.gpus else {})}
    spec = {
        "containers": [{"name": "w", "resources": {"requests": requests}}],
        "nodeSelector": dict(shape.selector),
        "tolerations": [{"key": each.key, "operator": each.operator} for each in shape.tolerations],
    }
    return json.dumps(
        [
            {"name": "driver", "count": 1},
            {"name": workers.part, "count": workers.pods, "template": {"spec": spec}},
        ]
    )


def declared_by(made: Iterable[WorkloadRecord]) -> int:
    """How many pods these objects want to run now, together."""
    return sum(
        each.pods
        if each.completions is None
        else min(each.pods, max(each.completions - each.succeeded, 0))
        for each in made
    )
