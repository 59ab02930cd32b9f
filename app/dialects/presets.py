"""Level labels of known clouds, widest first, for `--levels NAME`.

Only hierarchies that nest in one line are here. A node that lacks one of its levels is in no
domain at all, so a key that only some machines carry (an optional layer, an NVLink partition on
part of the fleet) is left out: a cluster that has it spells the list out.
"""

from __future__ import annotations

import difflib

from app.dialects import nvlink
from app.labels import is_label_key
from topology.errors import InvalidTopology
from topology.model.levels import levels_of

PRESETS: dict[str, tuple[str, ...]] = {
    # The rack label is set by an administrator; region and zone by the cloud.
    "generic": (
        "topology.kubernetes.io/region",
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/rack",
    ),
    "gke": (
        "cloud.google.com/gce-topology-block",
        "cloud.google.com/gce-topology-subblock",
        "cloud.google.com/gce-topology-host",
    ),
    # Layer 1 is the spine. Newer machines have a fourth layer; the first three are common to all.
    "eks": (
        "topology.k8s.aws/network-node-layer-1",
        "topology.k8s.aws/network-node-layer-2",
        "topology.k8s.aws/network-node-layer-3",
    ),
    "oke": (
        "oci.oraclecloud.com/rdma.hpc_island_id",
        "oci.oraclecloud.com/rdma.network_block_id",
        "oci.oraclecloud.com/rdma.local_block_id",
    ),
    # `superpod` lies between the two on some clusters only.
    "coreweave-ib": (
        "backend.coreweave.cloud/fabric",
        "backend.coreweave.cloud/leafgroup",
    ),
    "coreweave-nvl": (
        "backend.coreweave.cloud/fabric",
        "backend.coreweave.cloud/leafgroup",
        "ds.coreweave.com/nvlink.domain",
    ),
    "crusoe": (
        "crusoe.ai/ib.partition.id",
        "crusoe.ai/pod.id",
        nvlink.CLIQUE,
    ),
    "nebius": (
        "topology.nebius.com/gpu-cluster-id",
        "topology.nebius.com/tier-2",
        "topology.nebius.com/tier-1",
    ),
    "alibaba-lingjun": (
        "alibabacloud.com/point-of-delivery",
        "alibabacloud.com/asw-id",
    ),
    # Both levels from one label.
    "nvl72": (nvlink.DOMAIN, nvlink.CLIQUE),
}


def level_keys(names: tuple[str, ...]) -> tuple[str, ...]:
    """The label keys that `--levels` means: a preset's, or the names themselves.

    Raises: ValueError for a single bare word that looks like a misspelt preset; a bare word that
        resembles none is a label key.
    """
    if len(names) != 1 or "/" in names[0]:
        return names
    (name,) = names
    if name in PRESETS:
        return PRESETS[name]
    if close := difflib.get_close_matches(name, PRESETS, n=1):
        known = ", ".join(PRESETS)
        raise ValueError(f"no preset {name!r}; did you mean {close[0]!r}? Presets: {known}")
    return names


def valid_keys(names: tuple[str, ...]) -> tuple[str, ...]:
    """What `level_keys` says, of which each is the key of a label and none stands twice.

    Raises: ValueError.
    """
    keys = level_keys(names)
    try:
        levels_of(keys)
    except InvalidTopology as error:
        raise ValueError(str(error).removeprefix("levels: ")) from error
    for key in keys:
        if not is_label_key(key):
            raise ValueError(f"{key!r} is no label key")
    return keys


def label_levels(names: tuple[str, ...]) -> tuple[str, ...]:
    """The levels above the node level that these names mean, each the key of a label.

    Raises: ValueError.
    """
    levels = levels_of(valid_keys(names))[:-1]
    if not levels:
        raise ValueError("there is no level above the node")
    return levels
