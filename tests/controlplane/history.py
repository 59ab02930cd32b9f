"""What happened to pods since a moment, in the API server's own order.

Nothing runs beside the test: the API server keeps the changes of the last minute at least, and a
watch from an older version replays them.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from tests.cluster import Cluster, Object, Objects, collection

Changes = Generator[Object, None, None]

NAMESPACE = "default"
# The replay comes at once, and after it the watch is silent; on a busy machine it comes later.
REPLAY_SECONDS = (1.0, 5.0, 25.0)


@dataclass(frozen=True, slots=True)
class Moment:
    """A version of the pods of one namespace."""

    version: str

    @classmethod
    def now(cls, cluster: Cluster) -> Moment:
        page = cluster.request("GET", collection("Pod", NAMESPACE), params={"limit": 1}).json()
        return cls(page["metadata"]["resourceVersion"])


def changes_after(moment: Moment, cluster: Cluster, seconds: float) -> Changes:
    """Every change of a pod after that moment, as it comes, for that long at most."""
    yield from cluster.watch("Pod", seconds, NAMESPACE, resourceVersion=moment.version)


def since(moment: Moment, cluster: Cluster) -> Objects:
    """Every change of a pod from that moment until now, oldest first: `{"type", "object"}`."""
    newest = max(map(version_of, cluster.list("Pod", NAMESPACE)), default=0)
    for seconds in REPLAY_SECONDS:
        changes = list(changes_after(moment, cluster, seconds))
        if newest <= max((version_of(each["object"]) for each in changes), default=0):
            return changes
    raise TimeoutError(f"no change up to version {newest} within {REPLAY_SECONDS[-1]:g} s")


def version_of(of: Object) -> int:
    """By which an object is newer than another."""
    return int(of["metadata"]["resourceVersion"])


def bindings(changes: Objects) -> list[tuple[str, str]]:
    """(uid, node) each time a pod was seen on a node it was not on before."""
    on: dict[str, str] = {}
    found = []
    for change in changes:
        uid, node = change["object"]["metadata"]["uid"], change["object"]["spec"].get("nodeName")
        if node and on.get(uid) != node:
            on[uid] = node
            found.append((uid, node))
    return found


def first_binding(changes: Objects) -> int:
    """The position of the first change that shows a pod on a node."""
    return next(at for at, change in enumerate(changes) if change["object"]["spec"].get("nodeName"))


def last_creation(changes: Objects) -> int:
    """The position of the last change that shows a new pod."""
    return max(at for at, change in enumerate(changes) if change["type"] == "ADDED")
