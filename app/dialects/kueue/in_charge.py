"""Whether Kueue has taken charge of a pod: Corral keeps its hands off it then.

Source: kueue pkg/controller/jobs/pod/pod_webhook.go and pkg/controller/constants (v0.16).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from app.dialects.kueue.annotations import PREFIX

# What Kueue's own webhook and controllers leave on a pod they have taken charge of.
MANAGED = PREFIX + "managed"
GATES = (PREFIX + "admission", PREFIX + "topology")
POD_SET = PREFIX + "podset"
WORKLOAD = PREFIX + "workload"
SUSPENDED_BY = PREFIX + "pod-suspending-parent"
QUEUE_NAME = PREFIX + "queue-name"

KEPT = (MANAGED, POD_SET, WORKLOAD, SUSPENDED_BY, QUEUE_NAME)

Strings = Mapping[str, str]


def is_kueues(
    labels: Strings, annotations: Strings, gates: Sequence[str] = (), *, by_queue: bool
) -> bool:
    """Whether Kueue manages the pod, its owner, or the pods of this template.

    A queue name alone is what users write with and without Kueue: it tells only with `by_queue`.
    """
    return (
        labels.get(MANAGED) == "true"
        or POD_SET in labels
        or WORKLOAD in annotations
        or SUSPENDED_BY in annotations
        or any(gate in GATES for gate in gates)
        or (by_queue and QUEUE_NAME in labels)
    )
