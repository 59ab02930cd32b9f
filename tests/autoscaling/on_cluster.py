"""A simulated autoscaler at work on an API server: the sandbox, or the real one.

    with autoscaling(cluster, ClusterAutoscaler([group]), speed=20.0):
        cluster.wait(lambda: cluster.bound(), 30, "a node for the pod")

Its seconds pass `speed` times as fast as the test's. What the API server does not take now is
tried again; what it refuses for good ends the thread, and the block raises it.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import count

import httpx

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
from tests.autoscaling.reading.pods import node_of
from tests.autoscaling.reading.seen import Seen
from tests.autoscaling.small import Autoscaler, changed
from tests.cluster import MERGE, STRATEGIC, Cluster, Object, Objects, Refused, collection

LOOK_SECONDS = 0.1  # at most between two looks at the clock
LEAST_SECONDS = 0.02
NAME = "cluster-autoscaler"


@contextmanager
def autoscaling(
    cluster: Cluster, autoscaler: Autoscaler, *, speed: float = 1.0
) -> Iterator[OnCluster]:
    """While the block lasts, the autoscaler sees the cluster and acts on it."""
    over = threading.Event()
    driver = OnCluster(cluster, autoscaler, speed)

    def run() -> None:
        while not over.wait(driver.pause()):
            driver.look()

    with ThreadPoolExecutor(1, "autoscaler") as pool:
        running = pool.submit(run)
        try:
            yield driver
        finally:
            over.set()
            running.result()


class OnCluster:
    """One autoscaler and the cluster it acts on; `done` is what it has done, oldest first."""

    def __init__(self, cluster: Cluster, autoscaler: Autoscaler, speed: float) -> None:
        self.autoscaler = autoscaler
        self.done: list[Action] = []
        self._cluster, self._speed = cluster, speed
        self._began = time.monotonic()
        self._todo: deque[Action] = deque()
        self._events = count()

    @property
    def now(self) -> float:
        """The autoscaler's seconds."""
        return (time.monotonic() - self._began) * self._speed

    def pause(self) -> float:
        """How long there is nothing to do."""
        if self._todo:
            return LOOK_SECONDS
        due = (self.autoscaler.next_at - self.now) / self._speed
        return min(max(due, LEAST_SECONDS), LOOK_SECONDS)

    def look(self) -> None:
        """Do what is left to do; then what is due."""
        try:
            if not self._todo and self.autoscaler.next_at <= self.now:
                seen = self._seen()
                self._todo += self.autoscaler.step(seen, self.now)
            while self._todo:
                self._do(self._todo[0])
                self.done.append(self._todo.popleft())
        except httpx.TransportError:
            return  # the API server is away: the same again at the next look
        except Refused as refused:
            if refused.status not in (429, 500, 503, 504):
                raise

    def _seen(self) -> Seen:
        return Seen(
            pods=self._all("Pod"),
            nodes=self._all("Node"),
            templates=self._all("PodTemplate"),
            requests=self._all("ProvisioningRequest"),
        )

    def _all(self, kind: str) -> Objects:
        """All objects of a kind, none where it is not served."""
        try:
            found = self._cluster.list(kind)
        except Refused as refused:
            if refused.status == 404:
                return []
            raise
        return [{**each, "kind": kind} for each in found]

    def _do(self, action: Action) -> None:
        """Carry it out; an object that has gone meanwhile needs nothing more."""
        try:
            self._carry_out(action)
        except Refused as refused:
            # 409: it is there already, or somebody else's by now.
            if refused.status not in (404, 409):
                raise

    def _carry_out(self, action: Action) -> None:
        cluster = self._cluster
        match action:
            case MakeNode(body):
                cluster.create(body)
            case ChangeNode(name):
                self._change(name, action)
            case SetTaint(name):
                self._taint(name, action)
            case DeleteNode(name):
                cluster.delete("Node", name)
                self._collect(name)
            case EvictPod(namespace, name, uid):
                self._evict(namespace, name, uid)
            case PatchRequest(namespace, name, conditions):
                status = {"conditions": [_timed(each) for each in conditions]}
                change = {"status": status}
                cluster.patch("ProvisioningRequest", f"{name}/status", change, namespace)
            case EmitEvent():
                self._emit(action)

    def _change(self, name: str, action: ChangeNode) -> None:
        if action.labels:
            self._cluster.patch("Node", name, {"metadata": {"labels": dict(action.labels)}})
        status: Object = {}
        if action.allocatable:
            status = {part: dict(action.allocatable) for part in ("capacity", "allocatable")}
        if action.is_ready is not None:
            ready = {"type": "Ready", "status": str(action.is_ready), "reason": "KubeletReady"}
            status["conditions"] = [ready]
        if status:
            change = {"status": status}
            self._cluster.patch("Node", f"{name}/status", change, content_type=STRATEGIC)

    def _taint(self, name: str, action: SetTaint) -> None:
        node = self._cluster.get("Node", name)
        if node is not None:
            taints = changed(node, action)["spec"]["taints"]
            change = {"spec": {"taints": taints}}
            self._cluster.patch("Node", name, change, content_type=MERGE)

    def _collect(self, node: str) -> None:
        """As the pod garbage collector does: what ran there goes with the node."""
        for each in self._cluster.list("Pod"):
            if node_of(each) == node:
                metadata = each["metadata"]
                path = f"{collection('Pod', metadata['namespace'])}/{metadata['name']}"
                now = {"gracePeriodSeconds": 0, "preconditions": {"uid": metadata["uid"]}}
                self._cluster.request("DELETE", path, body=now)

    def _evict(self, namespace: str, name: str, uid: str) -> None:
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": {"preconditions": {"uid": uid}},
        }
        path = f"{collection('Pod', namespace)}/{name}/eviction"
        try:
            self._cluster.request("POST", path, body=body)
        except Refused as refused:
            if refused.status != 429:  # its budget allows none: the next loop asks again
                raise

    def _emit(self, event: EmitEvent) -> None:
        metadata = event.about["metadata"]
        namespace = metadata.get("namespace", "default")
        number = next(self._events)
        about = {
            "kind": event.about["kind"],
            "name": metadata["name"],
            "uid": metadata["uid"],
            **({"namespace": namespace} if "namespace" in metadata else {}),
        }
        self._cluster.create(
            {
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": {
                    "name": f"{metadata['name']}.{NAME}.{metadata['uid'][:8]}.{number}",
                    "namespace": namespace,
                },
                "involvedObject": about,
                "type": event.type,
                "reason": event.reason,
                "message": event.message,
                "source": {"component": NAME},
            }
        )


def _timed(condition: Object) -> Object:
    """With the time of now, where it is new."""
    now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    return {"lastTransitionTime": now, **condition}
