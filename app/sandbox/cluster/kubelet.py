"""Stands in for the kubelets: a pod that is bound runs at once, and one that is deleted ends."""

from __future__ import annotations

from collections.abc import Callable

from app.sandbox.apiserver.rules.pod_rules import has_ended, with_condition
from app.sandbox.apiserver.rules.registry import Registry
from app.sandbox.apiserver.storage.failures import Refused
from app.sandbox.apiserver.storage.kinds import POD, Key
from app.sandbox.apiserver.storage.patch import MERGE
from app.sandbox.apiserver.storage.store import Change

End = Callable[[], None]
Later = Callable[[float, Callable[[], None]], object]  # a call after so many seconds


def run_bound_pods(registry: Registry, later: Later, *, takes_grace: bool = False) -> End:
    """Set every newly bound pod Running, and end those that are deleted.

    Returns the call that ends it. later: its calls come once the present write is over, so that
    watchers see the binding first. takes_grace: a pod that is deleted runs on until its grace
    period is over; else it ends at once.
    """

    def on_pod(change: Change) -> None:
        body = change.now.body
        if change.type == "DELETED" or not body["spec"].get("nodeName"):
            return
        own = body["metadata"]
        if own.get("deletionTimestamp"):
            seconds = own.get("deletionGracePeriodSeconds") or 0
            was = change.before.body["metadata"] if change.before else {}
            if was.get("deletionTimestamp") != own["deletionTimestamp"]:
                later(seconds if takes_grace else 0.0, lambda: _end(change.key, own["uid"]))
        elif (body.get("status") or {}).get("phase", "Pending") == "Pending":
            later(0.0, lambda: _run(change))

    def _run(change: Change) -> None:
        stored = registry.store.get(POD, change.key)
        if stored is None or stored.body["status"].get("phase") != "Pending":
            return
        now = registry.now()
        status = stored.body["status"] | {"phase": "Running", "startTime": now}
        for name in ("Initialized", "ContainersReady", "Ready"):
            status = with_condition(status, {"type": name, "status": "True"}, now=now)
        try:
            registry.patch(POD, change.key, {"status": status}, MERGE, "status")
        except Refused:
            return  # deleted between the binding and now

    def _end(key: Key, uid: str) -> None:
        """Say that its containers have ended, and delete it: two writes, as upstream."""
        stored = registry.store.get(POD, key)
        if stored is None or stored.body["metadata"]["uid"] != uid:
            return
        if not has_ended(stored.body):
            registry.patch(POD, key, {"status": {"phase": "Failed"}}, MERGE, "status")
        try:
            registry.delete(POD, key, {"uid": uid}, grace=0)
        except Refused:
            return  # it went with that write

    return registry.store.subscribe(POD, on_pod)
