"""The ordered level keys of one topology: widest first, the node level last.

    0  cloud.provider.com/topology-block     the widest
    1  cloud.provider.com/topology-rack
    2  kubernetes.io/hostname                the narrowest: one node

Every tree ends at the node level, so a level above it can always be taken down to
nodes. A list that does not name the node level gets it appended.
"""

from __future__ import annotations

from collections.abc import Sequence

from topology.errors import InvalidRequest, InvalidTopology

NODE_LEVEL = "kubernetes.io/hostname"
"""Key of the node level, as Kueue spells it."""

LEVELS_MAX = 16  # above the node level; as many as a Kueue Topology object may name


def levels_of(keys: Sequence[str]) -> tuple[str, ...]:
    """Level keys, widest first, ending in NODE_LEVEL; the answer for an answer is the same.

    Raises: InvalidTopology if there are none or more than LEVELS_MAX above the node level, one
        is empty or named twice, or NODE_LEVEL stands anywhere but last.
    Source: kueue apis/kueue/v1beta2/topology_types.go (v0.16), spec.levels.
    """
    above = keys[:-1] if keys and keys[-1] == NODE_LEVEL else keys
    if not keys or len(above) > LEVELS_MAX:
        raise InvalidTopology(f"levels: {len(keys)} given, a topology has 1 to {LEVELS_MAX}")
    seen: set[str] = set()
    for key in keys:
        if not key:
            raise InvalidTopology(f"levels: an empty key in {list(keys)}")
        if key in seen:
            raise InvalidTopology(f"levels: {key} is named twice")
        seen.add(key)
    if NODE_LEVEL in keys[:-1]:
        raise InvalidTopology(f"levels: {NODE_LEVEL} is one node and can only stand last")
    return tuple(keys) if keys[-1] == NODE_LEVEL else (*keys, NODE_LEVEL)


def index_of(levels: Sequence[str], key: str, asker: str) -> int:
    """Index of a level key that a request names.

    Raises: InvalidRequest naming the asker, the key and the levels there are.
    """
    try:
        return levels.index(key)
    except ValueError:
        known = ", ".join(levels)
        raise InvalidRequest(f"{asker}: level {key} is unknown; levels are {known}") from None
