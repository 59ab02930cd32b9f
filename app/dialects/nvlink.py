"""Two levels in one label of NVIDIA's: the NVLink domain, and the clique inside it.

    nvidia.com/gpu.clique = <cluster UUID>.<clique id>
                            └── the domain ──┘
                            └── the clique ────────┘

GPU feature discovery writes the label on nodes with multi-node NVLink. GPUs of one clique reach
each other's memory; a domain, such as the rack of a GB200 NVL72, may be divided into several. So
`corral.dev/nvlink-domain` is a level without a label of its own: a node is in the domain that its
clique names, unless it has a label of that name. No node selector can name such a level.
Source: https://github.com/NVIDIA/k8s-device-plugin docs/gpu-feature-discovery.
"""

from __future__ import annotations

from collections.abc import Mapping

DOMAIN = "corral.dev/nvlink-domain"
CLIQUE = "nvidia.com/gpu.clique"


def level_value(labels: Mapping[str, str], level: str) -> str:
    """The value that a node with these labels has at a level; "" if it has none."""
    value = labels.get(level, "")
    if value or level != DOMAIN:
        return value
    return labels.get(CLIQUE, "").rpartition(".")[0]
