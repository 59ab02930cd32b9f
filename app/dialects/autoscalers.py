"""What node autoscalers read and write: annotations of pods and taints of nodes.

Source: kubernetes-sigs/karpenter pkg/apis/v1/labels.go and pkg/apis/v1/taints.go (v1.14.0);
kubernetes/autoscaler cluster-autoscaler/utils/drain/drain.go and utils/taints/taints.go (1.36.1).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
PROTECTION = ((DO_NOT_DISRUPT, "true"), (SAFE_TO_EVICT, "false"))
KEPT = tuple(key for key, _ in PROTECTION)


def protection(annotations: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """What keeps autoscalers from moving a pod that runs; what its owner says himself stands.

    cluster-autoscaler reads only the one, Karpenter only the other.
    """
    return ((key, value) for key, value in PROTECTION if key not in annotations)
