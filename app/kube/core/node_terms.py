"""What narrows a pod to some nodes: required node affinity, a term for each."""

from __future__ import annotations

from functools import lru_cache

import msgspec

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"  # the field of nodeAffinity
NARROWINGS_KEPT = 64  # the pods of one gang in one domain share theirs


@lru_cache(NARROWINGS_KEPT)  # our own plans: of at most `narrow_nodes` names
def node_terms(nodes: tuple[str, ...]) -> msgspec.Raw:
    """A NodeSelector that selects these nodes, encoded: a field selector takes one value only."""
    terms = [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
        for node in nodes
    ]
    return msgspec.Raw(msgspec.json.encode({"nodeSelectorTerms": terms}))
