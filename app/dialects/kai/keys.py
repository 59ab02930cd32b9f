"""The labels and annotations of pods that KAI's pod-grouper writes and its users set.

Source: KAI-Scheduler pkg/common/constants/constants.go, pkg/podgrouper/podgrouper/plugins/
constants/constants.go (v0.13) and docs/developer/designs/segmented-subgroups.
"""

from __future__ import annotations

from collections.abc import Mapping

from app.dialects.rules import boolean
from app.kube.core.objects import PodRecord

PREFIX = "kai.scheduler/"
GROUP_NAME = "pod-group-name"  # annotation: the PodGroup of the pod
SUB_GROUP = PREFIX + "subgroup-name"  # label: its leaf in the tree of that
SKIP_GROUPER = PREFIX + "skip-podgrouper"  # annotation "true": the pod-grouper leaves it alone
# Annotations that the pod-grouper reads, of a pod or of what owns it, and turns into a PodGroup.
TOPOLOGY = PREFIX + "topology"
REQUIRED = PREFIX + "topology-required-placement"
PREFERRED = PREFIX + "topology-preferred-placement"
MIN_MEMBER = PREFIX + "batch-min-member"
# The same of a template, whose pods are cut into segments.
SEGMENT_SIZE = PREFIX + "segment-size"
SEGMENT_REQUIRED = PREFIX + "segment-topology-required-placement"
SEGMENT_PREFERRED = PREFIX + "segment-topology-preferred-placement"
INDEX_LABEL = PREFIX + "pod-index-label"  # which label has the pod's number: one of these
REPLICA_TYPE = "training.kubeflow.org/replica-type"  # label: which of a job's templates
REPLICA_INDEX = "training.kubeflow.org/replica-index"
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
WORKER_INDEX = "leaderworkerset.sigs.k8s.io/worker-index"  # the leader is 0
INDEXES = (REPLICA_INDEX, COMPLETION_INDEX, WORKER_INDEX)
FOR_GROUPER = (
    TOPOLOGY,
    REQUIRED,
    PREFERRED,
    MIN_MEMBER,
    SEGMENT_SIZE,
    SEGMENT_REQUIRED,
    SEGMENT_PREFERRED,
)
OWN = frozenset((GROUP_NAME, SUB_GROUP, SKIP_GROUPER, INDEX_LABEL, *FOR_GROUPER))
KEPT = frozenset((*OWN, REPLICA_TYPE, *INDEXES))
LONGEST_NAME = 253  # of an object; an annotation may have 256 KiB


def group_of(pod: PodRecord) -> str:
    """The name of the pod's PodGroup; "" for a pod that names none."""
    return pod.annotations.get(GROUP_NAME, "")[:LONGEST_NAME]


def is_skipped(annotations: Mapping[str, str]) -> bool:
    """Whether the pod-grouper leaves a pod with these annotations alone."""
    return boolean(annotations.get(SKIP_GROUPER, "")) is True


def for_grouper(annotations: Mapping[str, str]) -> str:
    """The first of these annotations that only the pod-grouper reads; "": there is none."""
    return next((key for key in FOR_GROUPER if key in annotations), "")
