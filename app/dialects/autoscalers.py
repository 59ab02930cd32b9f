"""Words of node autoscalers on pods and nodes.

Source: kubernetes-sigs/karpenter pkg/apis/v1/labels.go and taints.go (v1.14.0);
kubernetes/autoscaler, below cluster-autoscaler/ (1.36.1): utils/drain/drain.go,
utils/taints/taints.go, simulator/node_info_utils.go (the label of a node made from a template),
utils/annotations (a node that has been ordered) and core/scaledown/eligibility/eligibility.go (the
annotation of a node that stays).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
PROTECTION = ((DO_NOT_DISRUPT, "true"), (SAFE_TO_EVICT, "false"))
TEMPLATE_NODE = "cluster-autoscaler.kubernetes.io/template-node"  # label, whatever its value
UPCOMING_NODE = "cluster-autoscaler.k8s.io/upcoming-node"  # annotation, whatever its value
# Taints of a node that is about to be removed, whatever its pods tolerate.
LEAVING = frozenset(("ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted"))
KEPT = tuple(key for key, _ in PROTECTION)
SCALE_DOWN_DISABLED = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
# What keeps each of them from removing a node, by what they are called in PROTECTED.
STAYS = {"cluster-autoscaler": SCALE_DOWN_DISABLED, "karpenter": DO_NOT_DISRUPT}
YES = "true"
# On a node: which of STAYS we wrote there, and for which gangs.
PROTECTED = "corral.dev/protected"
OF_NODES = frozenset((*STAYS.values(), PROTECTED))
MOST_NAMED = 4  # gangs in PROTECTED; a node may be held for a hundred


def protection(annotations: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """What keeps autoscalers from moving a pod that runs; what its owner says himself stands.

    cluster-autoscaler reads only the one, Karpenter only the other.
    """
    return ((key, value) for key, value in PROTECTION if key not in annotations)


def node_changes(annotations: Mapping[str, str], gangs: Sequence[str]) -> dict[str, str | None]:
    """What to change on a node that is held for these gangs, or for none; None removes.

    What another client wrote is neither changed nor removed, and what another one removes while
    the node is held is not written again.
    """
    said = annotations.get(PROTECTED, "")
    names, _, held_for = said.partition(": ")
    ours = [name for name in STAYS if name in names.split(",")]
    if not gangs:
        taken_back = (STAYS[name] for name in ours if annotations.get(STAYS[name]) == YES)
        return dict.fromkeys((*taken_back, *({PROTECTED} & annotations.keys())))
    if ours and not set(held_for.split(", ")).isdisjoint(gangs):
        return {}
    changes: dict[str, str | None] = {}
    if not ours:
        ours = [name for name, key in STAYS.items() if key not in annotations]
        changes = {STAYS[name]: YES for name in ours}
    if ours:
        changes[PROTECTED] = f"{','.join(ours)}: {', '.join(gangs[:MOST_NAMED])}"
    return changes
