"""A node autoscaler in a simulated world: `tests/autoscaling` in virtual time.

    slim records ─▶ objects ─▶ step(seen, now) ─▶ actions ─▶ API server ─▶ streams, each late

An actor that a test adds to a world; no random world has one. `is_unschedulable` says of which pods
somebody says that no node takes them: the records do not keep that condition.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec

from app.kube.core.objects import NodeRecord, PodRecord, Requirement, Shape
from app.kube.decoding.decode import decode_node
from tests.autoscaling.machines.actions import (
    Action,
    ChangeNode,
    DeleteNode,
    EmitEvent,
    EvictPod,
    MakeNode,
    SetTaint,
)
from tests.autoscaling.reading.seen import Seen
from tests.autoscaling.small import Autoscaler, changed
from tests.sim.api import ApiServer, Refused
from tests.sim.clock import Clock, History

Json = dict[str, Any]

LEAST_SECONDS = 0.05  # between two steps
GRACE_SECONDS = 2  # of pods that are evicted


class NodeAutoscaler:
    """One autoscaler, its cloud and that cloud's kubelets. `node_gone`: the rest of a deletion."""

    def __init__(
        self,
        clock: Clock,
        api: ApiServer,
        history: History,
        autoscaler: Autoscaler,
        *,
        is_unschedulable: Callable[[PodRecord], bool],
        node_gone: Callable[[str], None],
    ) -> None:
        self.autoscaler = autoscaler
        self.actions = 0  # so many so far
        self._clock, self._api, self._history = clock, api, history
        self._is_unschedulable, self._node_gone = is_unschedulable, node_gone

    def begin(self) -> None:
        """Act from now on."""
        self._clock.after(0.0, self._step)

    def _step(self) -> None:
        now = self._clock.now
        for action in self.autoscaler.step(self._seen(), now):
            self.actions += 1
            self._history.say(f"autoscaler: {_in_words(action)}")
            self._do(action)
        self._clock.at(max(self.autoscaler.next_at, now + LEAST_SECONDS), self._step)

    def _seen(self) -> Seen:
        pods = [pod_object(each) for each in self._api.list("Pod")]
        waiting = {each.uid for each in self._api.list("Pod") if self._is_unschedulable(each)}
        said = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        for each in pods:
            if each["metadata"]["uid"] in waiting:
                each["status"]["conditions"] = [said]
        return Seen(pods=pods, nodes=[node_object(each) for each in self._api.list("Node")])

    def _do(self, action: Action) -> None:
        match action:
            case MakeNode(body):
                uid = self._api.new_uid()
                metadata = {**body["metadata"], "uid": uid}
                self._api.create("Node", node_record({**body, "metadata": metadata}))
            case ChangeNode(name) | SetTaint(name):
                if (node := self._api.nodes.get(name)) is not None:
                    self._api.put("Node", node_record(changed(node_object(node), action)))
            case DeleteNode(name):
                if name in self._api.nodes:
                    self._api.remove("Node", name)
                    self._node_gone(name)
            case EvictPod(_, name, uid):
                self._evict(name, uid)
            case EmitEvent():
                pass  # the history has it
            case _:
                raise TypeError(f"no ProvisioningRequests are in this world: {action}")

    def _evict(self, name: str, uid: str) -> None:
        try:
            self._api.evict(name, uid, GRACE_SECONDS, float(GRACE_SECONDS))
        except Refused:
            return  # it has gone, or its budget allows none: the next loop asks again


def node_record(body: Json) -> NodeRecord:
    """What Corral's watch makes of a node."""
    return decode_node(msgspec.Raw(json.dumps(body).encode()))


def node_object(node: NodeRecord) -> Json:
    """A node of which a record is kept."""
    amounts = {
        resource: f"{amount}m" if resource == "cpu" else str(amount)
        for resource, amount in node.allocatable
    }
    taints = [{"key": each.key, "value": each.value, "effect": each.effect} for each in node.taints]
    ready = {"type": "Ready", "status": str(node.is_ready)}
    return {
        "metadata": {
            "name": node.name,
            "uid": node.uid,
            "labels": dict(node.labels),
            "resourceVersion": node.version,
        },
        "spec": {"unschedulable": node.is_unschedulable, "taints": taints},
        "status": {"capacity": amounts, "allocatable": amounts, "conditions": [ready]},
    }


def pod_object(pod: PodRecord) -> Json:
    """A pod of which a record is kept."""
    amounts = {
        resource: f"{amount}m" if resource == "cpu" else str(amount)
        for resource, amount in pod.request
        if resource != "pods"
    }
    metadata: Json = {
        "name": pod.name,
        "namespace": pod.namespace,
        "uid": pod.uid,
        "labels": dict(pod.labels),
        "annotations": dict(pod.annotations),
    }
    if pod.owner is not None:
        owner = {"kind": pod.owner.kind, "name": pod.owner.name, "uid": pod.owner.uid}
        metadata["ownerReferences"] = [{**owner, "controller": True}]
    if pod.is_terminating:
        metadata["deletionTimestamp"] = pod.created
    spec = {
        "schedulerName": pod.scheduler,
        "priority": pod.priority,
        "nodeName": pod.node,
        "schedulingGates": [{"name": each} for each in pod.gates],
        "containers": [{"resources": {"requests": amounts}}],
        **_shape(pod.shape),
    }
    status = {"phase": pod.phase, "nominatedNodeName": pod.nominated_node}
    return {"metadata": metadata, "spec": spec, "status": status}


def _shape(shape: Shape) -> Json:
    terms = [
        {
            "matchExpressions": [_requirement(each) for each in term.expressions],
            "matchFields": [_requirement(each) for each in term.fields],
        }
        for term in shape.terms
    ]
    tolerations = [
        {"key": each.key, "operator": each.operator, "value": each.value, "effect": each.effect}
        for each in shape.tolerations
    ]
    found: Json = {"nodeSelector": dict(shape.selector), "tolerations": tolerations}
    if terms:
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        found["affinity"] = {"nodeAffinity": required}
    return found


def _requirement(wanted: Requirement) -> Json:
    return {"key": wanted.key, "operator": wanted.operator, "values": list(wanted.values)}


def _in_words(action: Action) -> str:
    match action:
        case MakeNode(body):
            return f"Node {body['metadata']['name']} registers"
        case EmitEvent(about, _, reason, message):
            return f"{reason} {about['metadata']['name']}: {message}"
    return f"{type(action).__name__} {action}"
