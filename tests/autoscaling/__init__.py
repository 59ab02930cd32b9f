"""A simulated node autoscaler: what a waiting gang gets nodes from, where there is no cloud.

    pods, nodes, PodTemplates, requests ─▶ step(seen, now) ─▶ actions ─▶ the cluster

cluster-autoscaler cannot be had as a program here, so its rules are written down once more, from
its source: kubernetes/autoscaler cluster-autoscaler/ (1.36.1), for Karpenter
kubernetes-sigs/karpenter pkg/controllers (1.14). Nothing here reads a clock or draws a number but
`on_cluster`, which carries the actions out at an API server; `tests/sim/node_autoscaler.py` does
that in a simulated world.

Order to read: objects, reading/, machines/, cluster_autoscaler/, karpenter · small (a cluster of
plain objects) · on_cluster, plays (what it brings about on the sandbox and on kube-apiserver).

Left out of both: inter-pod affinity and topology spread, volumes, host ports, DRA, disruption
budgets, priorities between pods but for their order, balancing of similar groups, nodes that were
whole once and are not ready any more.
"""
