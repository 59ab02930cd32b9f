"""Gangs as users write them: pods of a group, or a Job, with Kueue's topology annotations."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

from tests.cluster import GPU, Object, Objects, pod

GROUP = "kueue.x-k8s.io/pod-group-name"
TOTAL = "kueue.x-k8s.io/pod-group-total-count"
REQUIRED = "kueue.x-k8s.io/podset-required-topology"
PREFERRED = "kueue.x-k8s.io/podset-preferred-topology"
QUEUE = "kueue.x-k8s.io/queue-name"
UNCONSTRAINED = "kueue.x-k8s.io/podset-unconstrained-topology"
GATE = "corral.dev/gang"
MANAGED = "corral.dev/managed"


def asking(
    *, required: str | None = None, preferred: str | None = None, unconstrained: bool = False
) -> dict[str, str]:
    """The topology annotations of a pod; none of them for nothing asked."""
    wanted = {
        REQUIRED: required,
        PREFERRED: preferred,
        UNCONSTRAINED: "true" if unconstrained else None,
    }
    return {key: value for key, value in wanted.items() if value is not None}


def is_gang(thing: Object) -> bool:
    """Whether a pod, or the pods of a Job, belong to a gang; a queue name makes one of a pod."""
    metadata = _pod_of(thing)["metadata"]
    is_queued = thing["kind"] == "Pod" and QUEUE in metadata.get("labels", {})
    asked = metadata.get("annotations", {}).keys()
    return is_queued or bool(asked & {GROUP, REQUIRED, PREFERRED, UNCONSTRAINED})


def behind_gate(thing: Object, *foreign: str) -> Object:
    """The pod, or the Job, as it is once the webhook has seen its pods: gated and labelled.

    `foreign`: gates of others, in front of ours.
    """
    changed = copy.deepcopy(thing)
    pod_of_it = _pod_of(changed)
    pod_of_it["spec"]["schedulingGates"] = [{"name": gate} for gate in (*foreign, GATE)]
    pod_of_it["metadata"].setdefault("labels", {})[MANAGED] = "true"
    return changed


def gates_of(thing: Object) -> list[str]:
    """The names of a pod's scheduling gates."""
    return [gate["name"] for gate in thing["spec"].get("schedulingGates", [])]


def _pod_of(thing: Object) -> Object:
    template: Object = thing if thing["kind"] == "Pod" else thing["spec"]["template"]
    return template


def member(
    group: str,
    number: int,
    total: int | str,
    *,
    requests: Mapping[str, str | int] | None = None,
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> Object:
    """Pod `group-number` of a group that says it has so many pods."""
    return pod(
        f"{group}-{number}",
        requests=requests or {GPU: 8},
        annotations={GROUP: group, TOTAL: str(total), **(annotations or {})},
        **spec,
    )


def members(
    group: str, pods: int, *, numbers: Iterable[int] | None = None, **fields: Any
) -> Objects:
    """All pods of a group of that size, or those with the given numbers."""
    chosen = range(pods) if numbers is None else numbers
    return [member(group, number, pods, **fields) for number in chosen]
