"""StatefulSets. Source: kubernetes pkg/controller/statefulset (v1.36)."""

from __future__ import annotations

from collections.abc import Iterator

from app.dialects.making.parts import Object, Part, mapping, name_of, number, pod, text
from app.dialects.workloads.stateful_set import POD_INDEX

_POD_NAME = "statefulset.kubernetes.io/pod-name"


def stateful_set(of: Object) -> Iterator[Part]:
    """A StatefulSet and its pods; only the first where one is made after the other."""
    yield Part(of)
    pods, name = number(of, "spec.replicas", 1), name_of(of)
    if text(of, "spec.podManagementPolicy") != "Parallel":
        pods = min(pods, 1)
    start = number(of, "spec.ordinals.start", 0)
    for at in range(start, start + pods):
        labels = {POD_INDEX: str(at), _POD_NAME: f"{name}-{at}"}
        template = mapping(of, "spec.template")
        yield pod(of, template, f"{name}-{at}", labels, where="spec.template.")
