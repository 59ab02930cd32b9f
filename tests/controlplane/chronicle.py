"""An independent history of all pods, and what may never be seen in it.

A watch of its own, straight from the API server, in a thread. Noted as problems, at the moment they
are seen: a pod on two nodes, a node with more GPUs in use than it has, a gang in two racks, a gang
that starts before all its pods are there.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import httpx

from tests.cluster import GPU, Cluster, Object
from tests.controlplane.history import NAMESPACE, Moment, version_of
from tests.controlplane.plane import ControlPlane, token
from tests.workloads import GROUP, TOTAL

JOB_NAME = "batch.kubernetes.io/job-name"
JOB_PODS = "example.com/pods"  # annotation of a Job's pods: how many it has
WATCH_SECONDS = 5.0  # one watch; the next goes on where it ended
READ_SECONDS = 20.0  # until it has read what has happened by the end of its block


@dataclass(frozen=True, slots=True)
class Seen:
    """One pod as the watch showed it last."""

    name: str
    uid: str
    gang: str  # a pod group or a Job
    members: int  # that its gang declares; 0: no gang
    gpus: int
    node: str = ""
    is_live: bool = True


class Chronicle:
    """Watches while the `with` block lasts. `bindings` counts pods that were bound.

    A block that ends well ends once all that has become of the pods that there are is read.
    """

    def __init__(self, plane: ControlPlane, gpus_per_node: int) -> None:
        self.problems: list[str] = []
        self.bindings = 0
        self._plane, self._gpus_per_node = plane, gpus_per_node
        self._pods: dict[str, Seen] = {}  # by uid
        self._shrunk: set[str] = set()  # gangs of which a pod has ended while others are there
        self._lock = threading.Lock()
        self._is_over = threading.Event()
        self._version = Moment.now(plane.cluster()).version
        self._noted = int(self._version)  # of the last change that was looked at
        self._thread = threading.Thread(target=self._run, name="chronicle", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if error is None:
                self._read_on()
        finally:
            self._is_over.set()
            self._thread.join(2 * WATCH_SECONDS)

    def _read_on(self) -> None:
        """Returns once every pod is known as it is now. Raises: TimeoutError."""
        cluster = self._plane.cluster()
        newest = max(map(version_of, cluster.list("Pod", NAMESPACE)), default=0)
        cluster.wait(lambda: self._noted >= newest, READ_SECONDS, "the end of the history")

    def pods(self) -> list[Seen]:
        """All pods there are now."""
        with self._lock:
            return list(self._pods.values())

    def gangs(self) -> dict[str, list[Seen]]:
        """The live pods there are now, by their gang; those of no gang are left out."""
        found: dict[str, list[Seen]] = {}
        for seen in self.pods():
            if seen.gang and seen.is_live:
                found.setdefault(seen.gang, []).append(seen)
        return found

    def _run(self) -> None:
        with Cluster(self._plane.url, token("admin"), self._plane.ca) as cluster:
            while not self._is_over.is_set():
                try:
                    for change in self._changes(cluster):
                        self._note(change)
                        self._noted = version_of(change["object"])
                except httpx.HTTPError as error:
                    if not self._is_over.is_set():
                        self.problems.append(f"the history has a hole: {error!r}")

    def _changes(self, cluster: Cluster) -> Iterator[Object]:
        asked = {"resourceVersion": self._version, "allowWatchBookmarks": "true"}
        for change in cluster.watch("Pod", WATCH_SECONDS, NAMESPACE, **asked):
            if change["type"] == "ERROR":
                self.problems.append(f"the history has a hole: {change['object'].get('message')}")
                self._version = Moment.now(cluster).version
                self._noted = int(self._version)
                return
            self._version = change["object"]["metadata"]["resourceVersion"]
            if change["type"] != "BOOKMARK":
                yield change
            if self._is_over.is_set():
                return

    def _note(self, change: Object) -> None:
        seen = _seen(change["object"])
        with self._lock:
            before = self._pods.get(seen.uid)
            if change["type"] == "DELETED":
                self._pods.pop(seen.uid, None)
                self._note_end(seen)
                return
            self._pods[seen.uid] = seen
            if not seen.is_live:
                self._note_end(seen)
            if before is not None and before.node not in ("", seen.node):
                self._tell(f"pod {seen.name} was on {before.node} and is on {seen.node}")
            if seen.node and (before is None or not before.node):
                self.bindings += 1
                self._check_node(seen)
                if seen.gang:
                    self._check_gang(seen)

    def _note_end(self, ended: Seen) -> None:
        if any(one.gang == ended.gang for one in self._pods.values()):
            self._shrunk.add(ended.gang)
        else:
            self._shrunk.discard(ended.gang)

    def _check_node(self, bound: Seen) -> None:
        there = [one for one in self._pods.values() if one.node == bound.node and one.is_live]
        if sum(one.gpus for one in there) > self._gpus_per_node:
            self._tell(f"node {bound.node} has too many pods: {[one.name for one in there]}")

    def _check_gang(self, bound: Seen) -> None:
        members = [one for one in self._pods.values() if one.gang == bound.gang and one.is_live]
        racks = Counter(one.node.rpartition("-")[0] for one in members if one.node)
        if len(racks) > 1:
            self._tell(f"gang {bound.gang} is in several racks: {dict(racks)}")
        is_start = racks.total() == 1 and bound.gang not in self._shrunk
        if is_start and len(members) < bound.members:
            self._tell(f"gang {bound.gang} starts with {len(members)} of {bound.members} pods")

    def _tell(self, problem: str) -> None:
        self.problems.append(f"{problem} (version {self._version})")


def _seen(thing: Object) -> Seen:
    metadata, spec = thing["metadata"], thing["spec"]
    annotations = metadata.get("annotations", {})
    requests = spec["containers"][0].get("resources", {}).get("requests", {})
    phase = thing.get("status", {}).get("phase", "")
    return Seen(
        metadata["name"],
        metadata["uid"],
        annotations.get(GROUP) or metadata.get("labels", {}).get(JOB_NAME, ""),
        int(annotations.get(TOTAL) or annotations.get(JOB_PODS, 0)),
        int(requests.get(GPU, 0)),
        spec.get("nodeName", ""),
        is_live=phase not in ("Failed", "Succeeded") and "deletionTimestamp" not in metadata,
    )
