"""The labels and annotations of pods that Volcano's controllers write and its users set.

Source: volcano staging/src/volcano.sh/apis/pkg/apis/{batch,scheduling}/v1alpha1, v1beta1 labels.go
(v1.14), pkg/controllers/podgroup/pg_controller_handler.go.
"""

from __future__ import annotations

from app.kube.core.objects import PodRecord

GROUP_NAME = "scheduling.k8s.io/group-name"  # annotation: the PodGroup of the pod
TASK = "volcano.sh/task-spec"  # annotation, or label: the task of a vcjob
TASK_INDEX = "volcano.sh/task-index"  # the same: the pod's number in its task
PARTITION = "volcano.sh/partition-id"  # label: the pod's partition in its task
ASKING_PREFIX = "volcano.sh/network-topology-"
MODE = f"{ASKING_PREFIX}mode"  # annotations of plain pods, which their PodGroup …
HIGHEST_TIER = f"{ASKING_PREFIX}highest-tier"  # … takes over when it is made
MIN_MEMBER = "scheduling.volcano.sh/group-min-member"
KEPT = frozenset((GROUP_NAME, TASK, TASK_INDEX, PARTITION, MODE, HIGHEST_TIER, MIN_MEMBER))
LONGEST_NAME = 253  # of an object; an annotation may have 256 KiB
_ASKING = (MODE, HIGHEST_TIER, MIN_MEMBER)


def group_of(pod: PodRecord) -> str:
    """The name of the pod's PodGroup; "" for a pod that has none.

    Volcano's controller makes the PodGroup of a plain pod when it sees it, and names it on the pod
    after that. A pod that asks for something waits for it: the PodGroup is named after its owner.
    """
    name = pod.annotations.get(GROUP_NAME, "")[:LONGEST_NAME]
    if name or not asking(pod):
        return name
    return f"podgroup-{pod.uid if pod.owner is None else pod.owner.uid}"


def asking(pod: PodRecord) -> str:
    """The first annotation that its user asks for something with; "": there is none."""
    return next((key for key in _ASKING if key in pod.annotations), "")


def said(pod: PodRecord, key: str) -> str:
    """What the pod says of itself: its annotation counts, then its label."""
    return pod.annotations.get(key) or pod.labels.get(key, "")
