"""Jobs and JobSets.

Source: kubernetes pkg/controller/job (v1.36), and for what a Job says in `scheduling` KEP-5547
(v1.37); jobset pkg/controllers/jobset_controller.go (v0.12).
"""

from __future__ import annotations

from collections.abc import Iterator

from app.dialects.making.parts import (
    Object,
    Part,
    listed,
    made,
    mapping,
    name_of,
    number,
    numbered,
    pod,
    text,
    texts,
)
from app.dialects.native import pod_groups
from app.dialects.native.scheduling import GROUP
from app.dialects.workloads import job_set as keys
from app.dialects.workloads.job import COMPLETION_INDEX

JOB = ("batch/v1", "Job")
POD_GROUP = (f"{GROUP}/{pod_groups.BETA}", "PodGroup")
_SCHEDULING = "spec.scheduling."
_OF_POD_GROUP = ("schedulingConstraints", "disruptionMode", "resourceClaims")
_JOB_NAME, _CONTROLLER = "batch.kubernetes.io/job-name", "batch.kubernetes.io/controller-uid"


def job(of: Object) -> Iterator[Part]:
    """A Job, its PodGroup if it says what that is, and the pods that it runs at once."""
    yield Part(of)
    yield from pods_of(of)


def pods_of(of: Object, most: int | None = None) -> Iterator[Part]:
    """The pods of a Job, or the first few, and before them the PodGroup that it has for them."""
    pods = _pods(of)
    is_indexed = text(of, "spec.completionMode") == "Indexed"
    template, name = mapping(of, "spec.template"), name_of(of)
    group = _pod_group(of)
    if group is not None:
        yield Part(group)
        in_it = {"schedulingGroup": {"podGroupName": name_of(group)}}
        template = {**template, "spec": {**mapping(of, "spec.template.spec"), **in_it}}
    own = {_JOB_NAME: name, "job-name": name, _CONTROLLER: text(of, "metadata.uid")}
    for at in range(pods if most is None else min(pods, most)):
        index = {COMPLETION_INDEX: str(at)} if is_indexed else {}
        labels = {**own, **index}
        yield pod(of, template, f"{name}-{at}", labels, index, "spec.template.")


def _pod_group(of: Object) -> Object | None:
    """The PodGroup that is made of what a Job says in `scheduling`.

    None: it says nothing there, or its pods are in another one.
    Source: kubernetes pkg/controller/job/job_scheduling_manager.go (v1.36); KEP-5547 "Job API
    Changes" (v1.37).
    """
    said, pods_say = mapping(of, "spec").get("scheduling"), mapping(of, "spec.template.spec")
    if said is None or pods_say.get("schedulingGroup"):
        return None
    whole, pods = mapping(of, "spec.scheduling"), number(of, "spec.parallelism", 1)
    policy = {**mapping(whole, "schedulingPolicy", _SCHEDULING)}
    if not policy:
        policy = {"gang": {}} if _is_fixed(of, pods) else {"basic": {}}
    if policy.get("gang") is not None:
        gang = mapping(policy, "gang", f"{_SCHEDULING}schedulingPolicy.")
        least = gang.get("minCount")
        policy["gang"] = {**gang, "minCount": pods if least is None else least}
    name = f"{name_of(of)}-{name_of(of)}-pgt-0"
    spec = {key: value for key, value in whole.items() if key in _OF_POD_GROUP}
    return made(of, POD_GROUP, name, {"spec": {**spec, "schedulingPolicy": policy}, "status": {}})


def _is_fixed(of: Object, pods: int) -> bool:
    """Whether the pods of a Job start together if it does not say, as it may never have others."""
    is_indexed = text(of, "spec.completionMode") == "Indexed"
    return is_indexed and pods > 1 and number(of, "spec.completions", 0) == pods


def _pods(of: Object) -> int:
    """How many pods a Job runs at once."""
    pods = number(of, "spec.parallelism", 1)
    completions = mapping(of, "spec").get("completions")
    return pods if completions is None else min(pods, number(of, "spec.completions", 1))


def job_set(of: Object) -> Iterator[Part]:
    """A JobSet, those of its Jobs that are made at once, and their pods."""
    yield Part(of)
    parts = list(numbered(listed(of, "spec.replicatedJobs"), "spec.replicatedJobs"))
    in_order = text(of, "spec.startupPolicy.startupPolicyOrder") == "InOrder"
    everyone = sum(_replicas(each, where) for where, each in parts)
    replicas = {text(each, "name", where): _replicas(each, where) for where, each in parts}
    for where, each in parts:
        if any(replicas.get(text(on, "name")) != 0 for on in listed(each, "dependsOn", where)):
            continue  # made once others run, or have ended
        has_pods = False
        for at in range(_replicas(each, where)):
            made_job = _job(of, where, each, at, everyone)
            yield Part(made_job)
            said = texts(made_job, "metadata.annotations")
            is_led = keys.EXCLUSIVE in said and keys.NODE_SELECTOR not in said
            yield from pods_of(made_job, 1 if is_led else None)
            has_pods = has_pods or _pods(made_job) > 0
        if in_order and has_pods:
            return  # the others once these are ready, as Jobs without pods are at once


def _replicas(part: Object, where: str) -> int:
    return number(part, "replicas", 1, where)


def _job(of: Object, where: str, part: Object, at: int, everyone: int) -> Object:
    name, name_of_part = name_of(of), text(part, "name", where)
    labels = {
        keys.NAME: name,
        keys.UID: text(of, "metadata.uid"),
        keys.RESTART: "0",
        keys.REPLICATED_JOB: name_of_part,
        keys.REPLICAS: str(_replicas(part, where)),
        keys.GLOBAL_REPLICAS: str(everyone),
        keys.JOB_INDEX: str(at),
    }
    written = mapping(part, "template", where)
    whole = texts(of, "metadata.annotations")
    exclusive = {key: whole[key] for key in (keys.EXCLUSIVE, keys.NODE_SELECTOR) if key in whole}
    own = {**labels, **exclusive}
    spec = {**mapping(written, "spec", f"{where}template.")}
    spec["completionMode"] = spec.get("completionMode") or "Indexed"  # as its webhook has it
    template = {**mapping(spec, "template", f"{where}template.spec.")}
    inside = f"{where}template.spec.template."
    template["metadata"] = {
        **mapping(template, "metadata", inside),
        "labels": {**texts(template, "metadata.labels", inside), **labels},
        "annotations": {**texts(template, "metadata.annotations", inside), **own},
    }
    spec["template"] = template
    said = {**texts(written, "metadata.annotations", f"{where}template."), **own}
    labelled = {**texts(written, "metadata.labels", f"{where}template."), **labels}
    return made(of, JOB, f"{name}-{name_of_part}-{at}", {"spec": spec}, labelled, said)
