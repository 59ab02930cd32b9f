"""Our own gate and annotations: written by Corral only.

One of them is read back: what we narrowed a pod to when we took its gate off is no wish of the
pod's own, so `own_shape` takes it away again.
"""

from __future__ import annotations

from functools import lru_cache

from app.kube.core.objects import PodRecord, Shape

PREFIX = "corral.dev/"
GATE = PREFIX + "gang"  # the scheduling gate behind which members wait for their gang
MANAGED = PREFIX + "managed"  # label "true": the webhook has taken the pod in
GANG = PREFIX + "gang"  # in the Binding: the gang this pod started with
DOMAIN = PREFIX + "domain"  # in the Binding: the domain the gang's pod set was placed in
WAKE = PREFIX + "wake"  # changes whenever we want kube-scheduler to look at the pod again
NARROWED = PREFIX + "narrowed"  # written when ungating: NODES, or the label keys of the selector
NODES = "nodes"
KEPT = (NARROWED, MANAGED)


def own_shape(pod: PodRecord) -> tuple[Shape, frozenset[str] | None]:
    """The pod's shape without what we narrowed, and the nodes we narrowed it to, None: to none."""
    how = pod.annotations.get(NARROWED, "")
    return _without(pod.shape, how) if how else (pod.shape, None)


@lru_cache(maxsize=4_096)  # the pods of a gang are narrowed alike
def _without(shape: Shape, how: str) -> tuple[Shape, frozenset[str] | None]:
    if how == NODES:
        nodes = frozenset(
            node
            for term in shape.terms
            for field in term.fields
            if field.key == "metadata.name"
            for node in field.values
        )
        return Shape(shape.selector, (), shape.tolerations, shape.preferred), nodes
    keys = frozenset(how.split(","))
    selector = tuple(pair for pair in shape.selector if pair[0] not in keys)
    return Shape(selector, shape.terms, shape.tolerations, shape.preferred), None
