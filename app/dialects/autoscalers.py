"""Words of node autoscalers on pods and nodes.

Source: kubernetes-sigs/karpenter pkg/apis/v1/labels.go and taints.go (v1.14.0);
kubernetes/autoscaler, below cluster-autoscaler/ (1.36.1): utils/drain/drain.go,
utils/taints/taints.go, simulator/node_info_utils.go (the label of a node made from a template) and
utils/annotations (a node that has been ordered).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
PROTECTION = ((DO_NOT_DISRUPT, "true"), (SAFE_TO_EVICT, "false"))
TEMPLATE_NODE = "cluster-autoscaler.kubernetes.io/template-node"  # label, whatever its value
UPCOMING_NODE = "cluster-autoscaler.k8s.io/upcoming-node"  # annotation, whatever its value
# Taints of a node that is about to be removed, whatever its pods tolerate.
LEAVING = frozenset(("ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted"))
KEPT = tuple(key for key, _ in PROTECTION)


def protection(annotations: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """What keeps autoscalers from moving a pod that runs; what its owner says himself stands.

    cluster-autoscaler reads only the one, Karpenter only the other.
    """
    return ((key, value) for key, value in PROTECTION if key not in annotations)
