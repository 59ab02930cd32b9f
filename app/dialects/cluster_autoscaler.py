"""How cluster-autoscaler marks nodes that do not exist, in what it simulates.

Source: kubernetes/autoscaler cluster-autoscaler/simulator/node_info_utils.go (the label of a node
made from a template) and cluster-autoscaler/utils/annotations (a node that has been ordered).
"""

from __future__ import annotations

TEMPLATE_NODE = "cluster-autoscaler.kubernetes.io/template-node"  # label, whatever its value
UPCOMING_NODE = "cluster-autoscaler.k8s.io/upcoming-node"  # annotation, whatever its value
