"""Whose pods are whose: those Kueue has taken charge of, and those that queue one by one.

Source: kueue pkg/controller/jobs/pod/pod_webhook.go and pkg/controller/constants (v0.16).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from app.dialects.kueue.annotations import PREFIX
from app.kube.core.objects import PodRecord

# What Kueue's own webhook and controllers leave on a pod they have taken charge of.
MANAGED = PREFIX + "managed"
GATES = (PREFIX + "admission", PREFIX + "topology")
POD_SET = PREFIX + "podset"
WORKLOAD = PREFIX + "workload"
SUSPENDED_BY = PREFIX + "pod-suspending-parent"
QUEUE_NAME = PREFIX + "queue-name"

KEPT = (MANAGED, POD_SET, WORKLOAD, SUSPENDED_BY, QUEUE_NAME)

# Owners (API group and kind) whose pods do not queue one by one, beside those that Corral reads.
# Source: kueue pkg/controller/jobs (v0.17), the integrations that make pods themselves; but for
# DaemonSets, each pod of which is for one node: it may be cordoned, and no plan uses it then.
_NOT_ALONE = frozenset(
    (
        ("", "Pod"),  # a Spark driver, which makes its executors
        ("apps", "DaemonSet"),
        ("ray.io", "RayCluster"),
        ("sparkoperator.k8s.io", "SparkApplication"),
        ("workload.codeflare.dev", "AppWrapper"),
    )
)

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


def is_queued_alone(pod: PodRecord) -> bool:
    """Whether a queue name makes the pod a job of its own.

    It does for plain pods and for those of an owner that Kueue does not integrate. The workloads
    that Corral reads are the caller's to leave out.
    Source: KEP-976 "Story 1", "Skipping Pods belonging to queued objects".
    """
    if not pod.labels.get(QUEUE_NAME):
        return False
    if pod.owner is None:
        return True
    group = pod.owner.api_version.rpartition("/")[0]
    return (group, pod.owner.kind) not in _NOT_ALONE
