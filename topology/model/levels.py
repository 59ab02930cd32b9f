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

LEVELS_MAX = 16  # of a Kueue Topology object; an appended node level is not counted


def levels_of(keys: Sequence[str]) -> tuple[str, ...]:
    """Level keys, widest first, ending in NODE_LEVEL.

    Raises: InvalidTopology if there are none or more than LEVELS_MAX, one is empty or
        named twice, or NODE_LEVEL stands anywhere but last.
    Source: Kueue Topology, spec.levels.
    """
    if not 1 <= len(keys) <= LEVELS_MAX:
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
