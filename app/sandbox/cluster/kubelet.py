"""Stands in for the kubelets: a pod that is bound runs at once."""

from __future__ import annotations

from collections.abc import Callable

from app.sandbox.apiserver.rules.pod_rules import with_condition
from app.sandbox.apiserver.rules.registry import Registry
from app.sandbox.apiserver.storage.failures import Refused
from app.sandbox.apiserver.storage.kinds import POD
from app.sandbox.apiserver.storage.patch import MERGE
from app.sandbox.apiserver.storage.store import Change

End = Callable[[], None]


def run_bound_pods(registry: Registry, later: Callable[[Callable[[], None]], object]) -> End:
    """Set every newly bound pod Running; returns the call that ends it.

    later: calls back once the present write is over, so that watchers see the binding first.
    """

    def on_pod(change: Change) -> None:
        body = change.now.body
        if change.type == "DELETED" or not body["spec"].get("nodeName"):
            return
        if (body.get("status") or {}).get("phase", "Pending") == "Pending":
            later(lambda: _run(change))

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

    return registry.store.subscribe(POD, on_pod)
