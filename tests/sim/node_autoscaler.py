"""A node autoscaler in a simulated world: `tests/autoscaling` in virtual time.

    slim records ─▶ objects ─▶ step(seen, now) ─▶ actions ─▶ API server ─▶ streams, each late

`sound` are its nodes as they are when all is well: what goes wrong with one is written at the API
server only, and taken back from here. `is_unschedulable` says of which pods a condition says that
no node takes them: the records do not keep it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
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
    """One autoscaler, its cloud and that cloud's kubelets.

    `node_gone`: the rest of a deletion. `about_to`: hears of each action before it is done.
    """

    def __init__(
        self,
        clock: Clock,
        api: ApiServer,
        history: History,
        autoscaler: Autoscaler,
        *,
        is_unschedulable: Callable[[PodRecord], bool],
        node_gone: Callable[[str], None],
        about_to: Callable[[Action], None] = lambda action: None,
    ) -> None:
        self.autoscaler = autoscaler
        self.actions = 0  # so many so far
        self.acted_at = 0.0  # when a node or a pod was last changed
        self.sound: dict[str, NodeRecord] = {}
        self._clock, self._api, self._history = clock, api, history
        self._is_unschedulable, self._node_gone = is_unschedulable, node_gone
        self._about_to = about_to
        api.subscribe("Node", self._note_gone)

    def _note_gone(self) -> None:
        """With its Node a machine is gone, also where no step has seen that."""
        change = self._api.changes["Node"][-1]
        if change.is_deleted:
            self.sound.pop(change.record.name, None)
            self.autoscaler.cloud.release(change.record.name)

    def begin(self) -> None:
        """Act from now on."""
        self._clock.after(0.0, self._step)

    def _step(self) -> None:
        now = self._clock.now
        self._carry_out(self.autoscaler.step(self._seen(), now))
        self._clock.at(max(self.autoscaler.next_at, now + LEAST_SECONDS), self._step)

    def restart(self) -> None:
        """Another replica takes over."""
        self._history.say("autoscaler: another replica leads")
        self._carry_out(self.autoscaler.restart(self._seen()))

    def _carry_out(self, actions: Iterable[Action]) -> None:
        for action in actions:
            self.actions += 1
            self._history.say(f"autoscaler: {_in_words(action)}")
            self._about_to(action)
            if self._has_done(action):
                self.acted_at = self._clock.now

    def _seen(self) -> Seen:
        pods = [pod_object(each) for each in self._api.list("Pod")]
        waiting = {each.uid for each in self._api.list("Pod") if self._is_unschedulable(each)}
        said = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        for each in pods:
            if each["metadata"]["uid"] in waiting:
                each["status"]["conditions"] = [said]
        return Seen(pods=pods, nodes=[node_object(each) for each in self._api.list("Node")])

    def _has_done(self, action: Action) -> bool:
        """Do it; whether that was possible, and changes a node or a pod."""
        match action:
            case MakeNode(body):
                uid = self._api.new_uid()
                metadata = {**body["metadata"], "uid": uid}
                made = node_record({**body, "metadata": metadata})
                self.sound[made.name] = made
                self._api.create("Node", made)
            case ChangeNode(name) | SetTaint(name):
                if name in self.sound:
                    self.sound[name] = _changed(self.sound[name], action)
                if name in self._api.nodes:
                    self._api.put("Node", _changed(self._api.nodes[name], action))
            case DeleteNode(name):
                if name in self._api.nodes:
                    self._api.remove("Node", name)
                    self._node_gone(name)
            case EvictPod(_, name, uid):
                try:
                    self._api.evict(name, uid, GRACE_SECONDS, float(GRACE_SECONDS))
                except Refused:
                    return False  # it has gone, or its budget allows none: the next loop asks again
            case EmitEvent():
                return False  # the history has it
            case _:
                raise TypeError(f"no ProvisioningRequests are in this world: {action}")
        return True


def _changed(node: NodeRecord, action: ChangeNode | SetTaint) -> NodeRecord:
    return node_record(changed(node_object(node), action))


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
