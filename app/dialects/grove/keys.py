"""The labels and annotations that Grove's operator writes.

Source: grove operator/api/common/labels.go and scheduler/api/core/v1alpha1/podgang.go
(v0.1.0-alpha.8).
"""

from __future__ import annotations

from collections.abc import Mapping

PREFIX = "grove.io/"
POD_GANG = PREFIX + "podgang"  # label of a pod: its PodGang
POD_CLIQUE = PREFIX + "podclique"  # label of a pod: its pod group in that
TOPOLOGY = PREFIX + "topology-name"  # annotation of a PodGang: what its levels are levels of
BASE_POD_GANG = PREFIX + "base-podgang"  # label of a pod of a scaled gang: the one before it
PART_OF = "app.kubernetes.io/part-of"  # label of a pod: its PodCliqueSet …
REPLICA = PREFIX + "podcliqueset-replica-index"  # … and the replica of that
SCALING_GROUP = PREFIX + "podcliquescalinggroup"  # label of a pod: the scaling group it is in …
SCALING_GROUP_REPLICA = SCALING_GROUP + "-replica-index"  # … and the replica of that
ROLE, ANCHOR = PREFIX + "podgang-role", "Anchor"  # label of a PodGang, since v0.1.0-alpha.12
KEPT = frozenset((POD_GANG, POD_CLIQUE, BASE_POD_GANG, PART_OF, REPLICA))
LONGEST_LABEL = 63
LONGEST_NAME = 253  # of an object; a request that is no pod's may have more


def is_groves(labels: Mapping[str, str]) -> bool:
    """Whether Grove's operator has made a pod with these labels."""
    return bool(labels.get(POD_GANG))
