"""The part of the Job controller that gang workloads need.

    pod ends ─▶ counted, its finalizer goes ─┬─ failed too often ──▶ FailureTarget ─▶ Failed
                                             ├─ enough succeeded ──▶ Complete
                                             └─ else ─▶ missing pods are made, too many deleted

A pod that anybody but this controller deletes counts as failed, as upstream: to evict the pods of a
job may end it. No pause before a pod is made anew, no limits per index, no exit codes, no deadline,
no ttl. Pods pass the admission webhooks.
Source: kubernetes 1.36 pkg/controller/job, job_controller.go and pod_failure_policy.go.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from app.sandbox.apiserver.http.writing import Writer
from app.sandbox.apiserver.rules.job_rules import BACKOFF_LIMIT, labels_of
from app.sandbox.apiserver.rules.pod_rules import has_ended
from app.sandbox.apiserver.rules.registry import Registry
from app.sandbox.apiserver.storage.failures import Refused
from app.sandbox.apiserver.storage.kinds import JOB, POD, Key, Object, key_of
from app.sandbox.apiserver.storage.patch import MERGE
from app.sandbox.apiserver.storage.store import Change, Stored

INDEX = "batch.kubernetes.io/job-completion-index"
TRACKED = "batch.kubernetes.io/job-tracking"  # the finalizer of a pod that is not counted yet


@dataclass(slots=True)
class _Tally:
    """What has become of a job's pods. succeeded: their indexes, or uids without any."""

    succeeded: set[str] = field(default_factory=set)
    failed: int = 0
    fails: bool = False  # a rule of its pod failure policy says so


class JobController:
    """Acts at once on every change of a job or of a pod that a job controls."""

    def __init__(self, registry: Registry, writer: Writer) -> None:
        self._registry = registry
        self._writer = writer
        self._pods_of: dict[str, dict[Key, Object]] = {}  # job uid -> its pods
        self._creating: dict[str, list[Object]] = {}  # job uid -> pods that wait for webhooks
        self._tallies: dict[str, _Tally] = {}  # by job uid
        self._due: list[Key] = []
        self._is_working = False

    def start(self) -> Callable[[], None]:
        """Follow the store; returns the call that ends it."""
        store = self._registry.store
        ends = [store.subscribe(JOB, self._on_job), store.subscribe(POD, self._on_pod)]

        def end() -> None:
            for each in ends:
                each()

        return end

    def _on_job(self, change: Change) -> None:
        if change.type != "DELETED":
            self._reconcile_soon(change.key)
            return
        uid = change.now.body["metadata"]["uid"]
        self._tallies.pop(uid, None)
        for pod in list(self._pods_of.get(uid, {}).values()):
            self._release(uid, pod)  # for the garbage collector

    def _on_pod(self, change: Change) -> None:
        owner = _controller_of(change.now.body)
        if owner is None or owner["kind"] != JOB.name:
            return
        self._look(owner["uid"], change.key)
        is_other = change.before is None or _life(change.before.body) != _life(change.now.body)
        if change.type == "DELETED" or is_other:
            self._reconcile_soon((change.key[0], owner["name"]))

    def _look(self, uid: str, key: Key) -> None:
        """Take note of a pod as it is now: what the store tells may be older than our writes."""
        stored = self._registry.store.get(POD, key)
        owner = _controller_of(stored.body) if stored is not None else None
        pods = self._pods_of.setdefault(uid, {})
        if stored is None or owner is None or owner["uid"] != uid:
            pods.pop(key, None)
        else:
            pods[key] = stored.body

    def _reconcile_soon(self, key: Key) -> None:
        """Reconcile jobs one after another: reconciling writes, which calls this again."""
        if key not in self._due:
            self._due.append(key)
        if self._is_working:
            return
        self._is_working = True
        try:
            while self._due:
                self._reconcile(self._due.pop(0))
        finally:
            self._is_working = False

    def _reconcile(self, key: Key) -> None:
        stored = self._registry.store.get(JOB, key)
        if stored is None or stored.body["metadata"].get("deletionTimestamp"):
            return
        job = stored.body
        spec, uid = job["spec"], job["metadata"]["uid"]
        tally = self._tallies.setdefault(uid, _Tally())
        self._count(job, tally)
        is_finished = any(_has(job, each) for each in ("Complete", "Failed"))
        if is_finished or _fails(spec, tally):
            active = self._active(uid)
            tally.failed += len(active)
            self._take_away(uid, active)
        elif spec.get("suspend"):
            self._take_away(uid, self._active(uid))
        else:
            self._scale(job, tally)
        if not is_finished:
            self._report(key, job, tally)

    def _active(self, uid: str) -> list[Object]:
        pods = self._pods_of.setdefault(uid, {}).values()
        return [pod for pod in pods if not has_ended(pod) and not _is_going(pod)]

    def _going(self, uid: str) -> list[Object]:
        """Pods that are deleted, and have not ended yet."""
        pods = self._pods_of.setdefault(uid, {}).values()
        return [pod for pod in pods if not has_ended(pod) and _is_going(pod)]

    def _count(self, job: Object, tally: _Tally) -> None:
        """Count the pods that have ended since, once each, and let go of them."""
        spec, uid = job["spec"], job["metadata"]["uid"]
        is_indexed = spec.get("completionMode") == "Indexed"
        for pod in list(self._pods_of.setdefault(uid, {}).values()):
            if TRACKED not in (pod["metadata"].get("finalizers") or []):
                continue
            if _phase(pod) == "Succeeded":
                tally.succeeded.add(str(_index_of(pod)) if is_indexed else pod["metadata"]["uid"])
            elif not _is_failed(pod, spec):
                continue
            elif (action := _policy_of(pod, spec)) != "Ignore":
                tally.failed += 1
                tally.fails = tally.fails or action == "FailJob"
            self._release(uid, pod)

    def _scale(self, job: Object, tally: _Tally) -> None:
        spec, uid = job["spec"], job["metadata"]["uid"]
        active = self._active(uid)
        wanted = int(spec.get("parallelism", 1))
        completions = spec.get("completions")
        if completions is not None:
            wanted = max(min(wanted, completions - len(tally.succeeded)), 0)
        elif tally.succeeded:
            wanted = len(active)
        creating = list(self._creating.get(uid, ()))
        if len(active) > wanted:
            least_first = sorted(active, key=_progress)
            self._take_away(uid, least_first[: len(active) - wanted])
            return
        going = self._going(uid) if spec.get("podReplacementPolicy") == "Failed" else []
        missing = max(wanted - len(active) - len(going) - len(creating), 0)
        if spec.get("completionMode") != "Indexed":
            for _ in range(missing):
                self._create(job, None)
            return
        taken = {_index_of(pod) for pod in [*active, *going, *creating]}
        taken |= {int(index) for index in tally.succeeded}
        free = [index for index in range(completions or 0) if index not in taken]
        for index in free[:missing]:
            self._create(job, index)

    def _take_away(self, uid: str, pods: Iterable[Object]) -> None:
        """Delete pods that are not to be counted: first of all nothing holds them any more."""
        for pod in pods:
            self._release(uid, pod)
            with contextlib.suppress(Refused):  # gone already
                self._registry.delete(POD, key_of(pod), {"uid": pod["metadata"]["uid"]})
            self._look(uid, key_of(pod))

    def _create(self, job: Object, index: int | None) -> None:
        template, name = job["spec"]["template"], job["metadata"]["name"]
        metadata = template.get("metadata") or {}
        uid = job["metadata"]["uid"]
        labels = labels_of(name, uid)
        annotations: dict[str, str] = dict(metadata.get("annotations") or {})
        middle = ""
        if index is not None:
            labels[INDEX] = annotations[INDEX] = str(index)
            middle = f"-{index}"
        owner = {
            "apiVersion": JOB.api_version,
            "kind": JOB.name,
            "name": name,
            "uid": uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }
        body = {
            "metadata": {
                "name": f"{name}{middle}-{self._registry.suffix()}",
                "labels": (metadata.get("labels") or {}) | labels,
                "annotations": annotations,
                "finalizers": [*(metadata.get("finalizers") or []), TRACKED],
                "ownerReferences": [owner],
            },
            "spec": {"restartPolicy": "Never"} | template["spec"],
        }
        self._creating.setdefault(uid, []).append(body)
        done = partial(self._created, key_of(job), uid, body)
        self._writer.create_soon(POD, job["metadata"]["namespace"], body, done)

    def _created(self, job: Key, uid: str, body: Object, stored: Stored | None) -> None:
        """Count the pod at once: the store's own event comes only after the change under way."""
        self._creating[uid].remove(body)
        if stored is None:
            return  # refused; tried again when the job or one of its pods changes
        pod = stored.body
        owner = self._registry.store.get(JOB, job)
        if owner is None or owner.body["metadata"]["uid"] != uid:
            self._take_away(uid, [pod])  # the job was deleted while a webhook was called
            return
        self._look(uid, key_of(pod))
        self._reconcile_soon(job)

    def _report(self, key: Key, job: Object, tally: _Tally) -> None:
        """Write the status. A job that fails has failed once none of its pods runs any more."""
        spec, present, now = job["spec"], job.get("status") or {}, self._registry.now()
        uid = job["metadata"]["uid"]
        active, going = self._active(uid), self._going(uid)
        numbers = {
            "active": len(active),
            "terminating": len(going),
            "succeeded": len(tally.succeeded),
            "failed": tally.failed,
        }
        change: dict[str, Any] = {name: number or None for name, number in numbers.items()}
        conditions = [*(present.get("conditions") or [])]
        is_suspended = bool(spec.get("suspend"))
        change["startTime"] = None if is_suspended else present.get("startTime") or now
        if _fails(spec, tally):
            why = "PodFailurePolicy" if tally.fails else "BackoffLimitExceeded"
            _set(conditions, "FailureTarget", True, why, now)
            if not active and not going:
                _set(conditions, "Failed", True, why, now)
        elif not is_suspended and _is_complete(spec, tally, active):
            change["completionTime"] = now
            _set(conditions, "Complete", True, "CompletionsReached", now)
        elif is_suspended or _has(job, "Suspended"):
            why = "JobSuspended" if is_suspended else "JobResumed"
            if _set(conditions, "Suspended", is_suspended, why, now) and not is_suspended:
                change["startTime"] = now
        if conditions:
            change["conditions"] = conditions
        self._registry.patch(JOB, key, {"status": change}, MERGE, "status")

    def _release(self, uid: str, pod: Object) -> None:
        """Take our finalizer off a pod of this job; it goes if it was held by that alone."""
        left = [each for each in pod["metadata"].get("finalizers") or [] if each != TRACKED]
        change = {"metadata": {"uid": pod["metadata"]["uid"], "finalizers": left or None}}
        with contextlib.suppress(Refused):  # gone already, or another one has its name
            self._registry.patch(POD, key_of(pod), change, MERGE)
        self._look(uid, key_of(pod))


def _progress(pod: Object) -> tuple[bool, bool]:
    """Those that are the least far go first where a job has too many (controller.ActivePods)."""
    return bool(pod["spec"].get("nodeName")), _phase(pod) == "Running"


def _fails(spec: Object, tally: _Tally) -> bool:
    """Whether a job is over for what its pods have come to. A recorded one may lack its limit."""
    return tally.fails or tally.failed > spec.get("backoffLimit", BACKOFF_LIMIT)


def _is_complete(spec: Object, tally: _Tally, active: list[Object]) -> bool:
    """Without completions (a work queue): one success and nothing left running."""
    completions = spec.get("completions")
    if completions is None:
        return bool(tally.succeeded) and not active
    return len(tally.succeeded) >= int(completions) and not active


def _is_failed(pod: Object, spec: Object) -> bool:
    """Whether the pod counts as failed: also one that is deleted before it has ended."""
    waits_for_the_end = spec.get("podReplacementPolicy") == "Failed"
    return _phase(pod) == "Failed" or (_is_going(pod) and not waits_for_the_end)


def _policy_of(pod: Object, spec: Object) -> str:
    """What the first rule of the job's pod failure policy says that the pod's conditions suit."""
    conditions = (pod.get("status") or {}).get("conditions") or []
    said = {(each["type"], each["status"]) for each in conditions}
    for rule in (spec.get("podFailurePolicy") or {}).get("rules") or []:
        patterns = rule.get("onPodConditions") or []
        if any((each["type"], each.get("status", "True")) in said for each in patterns):
            return str(rule["action"])
    return "Count"


def _has(job: Object, type_: str) -> bool:
    conditions = (job.get("status") or {}).get("conditions") or []
    return any(each["type"] == type_ and each["status"] == "True" for each in conditions)


def _set(conditions: list[Object], type_: str, holds: bool, why: str, now: str) -> bool:
    """Set a condition of a job in this list; whether it was another one before."""
    status = "True" if holds else "False"
    before = next((each for each in conditions if each["type"] == type_), None)
    if before is not None and before["status"] == status:
        return False
    after = {"type": type_, "status": status, "reason": why, "lastTransitionTime": now}
    if before is None:
        conditions.append(after)
    else:
        conditions[conditions.index(before)] = after
    return True


def _phase(pod: Object) -> str:
    phase: str = (pod.get("status") or {}).get("phase", "")
    return phase


def _is_going(pod: Object) -> bool:
    return bool(pod["metadata"].get("deletionTimestamp"))


def _life(pod: Object) -> tuple[str, bool]:
    """What a job goes by: the pod's phase, and whether it is deleted."""
    return _phase(pod), _is_going(pod)


def _index_of(pod: Object) -> int:
    return int((pod["metadata"].get("annotations") or {}).get(INDEX, -1))


def _controller_of(pod: Object) -> Object | None:
    owners = pod["metadata"].get("ownerReferences") or []
    return next((owner for owner in owners if owner.get("controller")), None)
