"""The part of the Job controller that gang workloads need.

It creates a job's pods, replaces failed ones and counts. No back-off limit, no pod failure
policy, no ttl: a job here ends when enough pods have succeeded. Pods pass the admission webhooks.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from app.sandbox.apiserver.http.writing import Writer
from app.sandbox.apiserver.rules.job_rules import labels_of
from app.sandbox.apiserver.rules.pod_rules import has_ended
from app.sandbox.apiserver.rules.registry import Registry
from app.sandbox.apiserver.storage.failures import Refused
from app.sandbox.apiserver.storage.kinds import JOB, POD, Key, Object, key_of
from app.sandbox.apiserver.storage.patch import MERGE
from app.sandbox.apiserver.storage.store import Change, Stored

INDEX = "batch.kubernetes.io/job-completion-index"


class JobController:
    """Acts at once on every change of a job or of a pod that a job controls."""

    def __init__(self, registry: Registry, writer: Writer) -> None:
        self._registry = registry
        self._writer = writer
        self._pods_of: dict[str, dict[Key, Object]] = {}  # job uid -> its pods
        self._creating: dict[str, list[Object]] = {}  # job uid -> pods that wait for webhooks
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
        # Stands in for the garbage collector: the pods of a deleted job go with it.
        pods = self._pods_of.pop(change.now.body["metadata"]["uid"], {})
        for key in list(pods):
            self._delete(key)

    def _on_pod(self, change: Change) -> None:
        owner = _controller_of(change.now.body)
        if owner is None or owner["kind"] != JOB.name:
            return
        pods = self._pods_of.setdefault(owner["uid"], {})
        if change.type == "DELETED":
            pods.pop(change.key, None)
        else:
            pods[change.key] = change.now.body
        is_other = change.before is None or _life(change.before.body) != _life(change.now.body)
        if change.type == "DELETED" or is_other:
            self._reconcile_soon((change.key[0], owner["name"]))

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
        pods = self._pods_of.setdefault(uid, {})
        by_phase: dict[str, list[Object]] = {"Succeeded": [], "Failed": [], "active": []}
        for pod in pods.values():
            if _phase(pod) in by_phase:
                by_phase[_phase(pod)].append(pod)
            elif not _is_going(pod):
                by_phase["active"].append(pod)
        active, succeeded = by_phase["active"], by_phase["Succeeded"]
        if spec.get("suspend") or _is_complete(spec, succeeded, active):
            for pod in active:
                self._delete(key_of(pod))
        else:
            self._create_missing(job, active, succeeded)
        status = {
            "active": sum(not (has_ended(pod) or _is_going(pod)) for pod in pods.values()),
            "succeeded": len(succeeded),
            "failed": len(by_phase["Failed"]),
        }
        self._report(key, job, status, is_complete=_is_complete(spec, succeeded, active))

    def _create_missing(self, job: Object, active: list[Object], succeeded: list[Object]) -> None:
        spec = job["spec"]
        parallelism = spec.get("parallelism", 1)
        completions = spec.get("completions")
        wanted = parallelism
        if completions is not None:
            wanted = min(parallelism, completions - len(succeeded))
        creating = list(self._creating.get(job["metadata"]["uid"], ()))
        missing = max(wanted - len(active) - len(creating), 0)
        if spec.get("completionMode") != "Indexed":
            for _ in range(missing):
                self._create(job, None)
            return
        taken = {_index_of(pod) for pod in [*active, *succeeded, *creating]}
        free = [index for index in range(completions or 0) if index not in taken]
        for index in free[:missing]:
            self._create(job, index)

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
            self._delete(key_of(pod))  # the job was deleted while a webhook was called
            return
        self._pods_of.setdefault(uid, {})[key_of(pod)] = pod
        self._reconcile_soon(job)

    def _report(self, key: Key, job: Object, status: Object, *, is_complete: bool) -> None:
        present = job.get("status") or {}
        change: dict[str, Any] = {name: number or None for name, number in status.items()}
        change["startTime"] = present.get("startTime") or self._registry.now()
        if is_complete and "completionTime" not in present:
            now = self._registry.now()
            complete = {"type": "Complete", "status": "True", "lastTransitionTime": now}
            change |= {"completionTime": now, "conditions": [complete]}
        self._registry.patch(JOB, key, {"status": change}, MERGE, "status")

    def _delete(self, key: Key) -> None:
        try:
            self._registry.delete(POD, key)
        except Refused:
            return  # gone already


def _is_complete(spec: Object, succeeded: list[Object], active: list[Object]) -> bool:
    """Without completions (a work queue): one success and nothing left running."""
    completions = spec.get("completions")
    if completions is None:
        return bool(succeeded) and not active
    return len(succeeded) >= int(completions)


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
