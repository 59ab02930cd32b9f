"""What can be mirrored: where objects of one kind are, and how they are read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from app.kube.core.objects import NodeRecord, PodRecord, Record
from app.kube.decoding.decode import Json, Keep, decode_node, decode_pod
from app.kube.decoding.label_keys import LabelKeys
from app.kube.decoding.requests import NONE_OFFERED, Offered
from app.kube.watch.events import Kind


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind of object. `is_optional`: the API may not serve it, which means there are none.

    `edition` counts how often `decode` has begun to keep more of an object.
    `older`: the same kind in older versions of its API, newest first, each read where the API
    server serves no newer one.
    """

    kind: Kind
    path: str
    record: type[Record]
    decode: Callable[[Json], Record]
    is_optional: bool = False
    edition: Callable[[], int] = lambda: 0
    older: tuple[Resource, ...] = ()


def pods(keep: Keep, labels: LabelKeys | None = None, offered: Offered = NONE_OFFERED) -> Resource:
    """All pods; labels as far as `labels` says, annotations, and labels else, as `keep` does.

    `offered`: the resources that are counted also of a pod with too many.
    """
    labels = labels or LabelKeys(keep)
    decode = partial(decode_pod, keep=keep, keep_label=labels.keeps, offered=offered)
    return Resource("Pod", "/api/v1/pods", PodRecord, decode, edition=lambda: labels.edition)


def nodes(keep: Keep | None = None) -> Resource:
    """All nodes, with all labels; annotations as `keep` says, None: without."""
    decode = decode_node if keep is None else partial(decode_node, keep=keep)
    return Resource("Node", "/api/v1/nodes", NodeRecord, decode)
