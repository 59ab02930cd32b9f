"""A cluster of plain objects in virtual time, for who wants to see an autoscaler alone.

    small = Small(ClusterAutoscaler([group]))
    small.wait("a", requests={GPU: 8})      # a pod that kube-scheduler has no node for
    small.run(60.0)
    small.names()                           # of the nodes there are now

Nothing schedules here: `bind` does, when the test says so.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any, Protocol

from tests.autoscaling.machines.actions import (
    Action,
    ChangeNode,
    DeleteNode,
    EmitEvent,
    EvictPod,
    MakeNode,
    PatchRequest,
    SetTaint,
)
from tests.autoscaling.machines.cloud import Cloud
from tests.autoscaling.reading.seen import Seen
from tests.cluster import Object, pod

UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}


class Autoscaler(Protocol):
    """Either of them."""

    cloud: Cloud

    @property
    def next_at(self) -> float: ...

    def step(self, seen: Seen, now: float) -> list[Action]: ...

    def restart(self, seen: Seen) -> list[Action]: ...


class Small:
    """Objects by name, in one namespace; `done` is every action so far with its time."""

    def __init__(self, autoscaler: Autoscaler) -> None:
        self.autoscaler = autoscaler
        self.now = 0.0
        self.pods: dict[str, Object] = {}
        self.nodes: dict[str, Object] = {}
        self.templates: dict[str, Object] = {}
        self.requests: dict[str, Object] = {}
        self.done: list[tuple[float, Action]] = []

    # -- what a test does ----------------------------------------------------------------------

    def wait(self, name: str, *, reason: str = "Unschedulable", **fields: Any) -> Object:
        """A pod that waits for a node, for that reason."""
        made = self.add("pods", pod(name, **fields))
        made["status"] = {"phase": "Pending", "conditions": [{**UNSCHEDULABLE, "reason": reason}]}
        return made

    def bind(self, name: str, node: str) -> None:
        """The pod runs there, and nobody says any more that it is unschedulable."""
        self.pods[name]["spec"]["nodeName"] = node
        self.pods[name]["status"] = {"phase": "Running"}

    def add(self, where: str, body: Object) -> Object:
        """Adds an object to `pods`, `nodes`, `templates` or `requests`."""
        made = copy.deepcopy(body)
        made["metadata"]["uid"] = f"uid-{made['metadata']['name']}"
        getattr(self, where)[made["metadata"]["name"]] = made
        return made

    def run(self, seconds: float) -> None:
        """Lets so many seconds pass."""
        until = self.now + seconds
        while self.autoscaler.next_at <= until:
            self.now = max(self.now, self.autoscaler.next_at)
            self.do(self.autoscaler.step(self.seen(), self.now))
        self.now = until

    def do(self, actions: Iterable[Action]) -> None:
        """Has them done now."""
        for each in actions:
            self.done.append((self.now, each))
            self._do(each)

    # -- what a test looks at ------------------------------------------------------------------

    def seen(self) -> Seen:
        """All there is."""
        parts = (self.pods, self.nodes, self.templates, self.requests)
        return Seen(*(list(each.values()) for each in parts))

    def names(self) -> list[str]:
        """Of the nodes."""
        return sorted(self.nodes)

    def tainted(self, key: str) -> list[str]:
        """The nodes that have a taint."""
        return [
            name
            for name, node in sorted(self.nodes.items())
            if any(each["key"] == key for each in node["spec"].get("taints") or [])
        ]

    def events(self, reason: str) -> list[tuple[str, str]]:
        """(object, message) of the events of a reason."""
        return [
            (each.about["metadata"]["name"], each.message)
            for _, each in self.done
            if isinstance(each, EmitEvent) and each.reason == reason
        ]

    def times(self, kind: type[Action]) -> list[float]:
        """When actions of a kind were done."""
        return [when for when, each in self.done if isinstance(each, kind)]

    def said(self, request: str) -> dict[str, str]:
        """The conditions of a request: type -> "status/reason"."""
        found = (self.requests[request].get("status") or {}).get("conditions") or []
        return {each["type"]: f"{each['status']}/{each['reason']}" for each in found}

    def _do(self, action: Action) -> None:
        match action:
            case MakeNode(body):
                self.nodes[body["metadata"]["name"]] = copy.deepcopy(body)
            case ChangeNode(name) | SetTaint(name):
                if name in self.nodes:
                    self.nodes[name] = changed(self.nodes[name], action)
            case DeleteNode(name):
                self.nodes.pop(name, None)
            case EvictPod(_, name, _):
                self.pods.pop(name, None)
            case PatchRequest(_, name, conditions):
                self.requests[name]["status"] = {"conditions": list(conditions)}


def changed(node: Object, action: ChangeNode | SetTaint) -> Object:
    """The node after the action."""
    after = copy.deepcopy(node)
    if isinstance(action, SetTaint):
        taints = [
            each for each in after["spec"].get("taints") or [] if each["key"] != action.taint["key"]
        ]
        after["spec"]["taints"] = [*taints, dict(action.taint)] if action.is_set else taints
        return after
    after["metadata"]["labels"].update(action.labels)
    for part in ("capacity", "allocatable"):
        after["status"][part] = {**after["status"][part], **action.allocatable}
    if action.is_ready is not None:
        ready = {"type": "Ready", "status": str(action.is_ready), "reason": "KubeletReady"}
        others = [each for each in after["status"]["conditions"] if each["type"] != "Ready"]
        after["status"]["conditions"] = [*others, ready]
    return after
