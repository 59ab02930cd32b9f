"""What can be mirrored: where objects of one kind are, and how they are read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from app.kube.core.decode import Json, Keep, decode_node, decode_pod
from app.kube.core.objects import NodeRecord, PodRecord, Record
from app.kube.watch.events import Kind


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind of object. `is_optional`: the API may not serve it, which means there are none."""

    kind: Kind
    path: str
    record: type[Record]
    decode: Callable[[Json], Record]
    is_optional: bool = False


def pods(keep: Keep) -> Resource:
    """All pods; labels and annotations only as far as `keep` says."""
    return Resource("Pod", "/api/v1/pods", PodRecord, partial(decode_pod, keep=keep))


def nodes() -> Resource:
    """All nodes, with all labels."""
    return Resource("Node", "/api/v1/nodes", NodeRecord, decode_node)
