"""The answer to /prioritize: whole domains stay free, and so does what others end for.

A pod of higher priority may take a node that is freed for another one, for which more pods go then.
So it is led elsewhere as long as there is any other node.
"""

from __future__ import annotations

from app.kube.core.objects import PodRecord
from app.state.cache.books import ALL_NODES, Books
from app.state.filter_result import Candidates
from app.state.pods.nominations import Nominations
from topology.fit import order


def scores(
    books: Books, nominations: Nominations, pod: PodRecord, candidates: Candidates
) -> list[int]:
    """Scores 0..10, in the order of `candidates.names()`; 0 for a node that is not known."""
    books.refresh()
    named = [name for name in books.topologies if name != ALL_NODES]
    topology = books.topologies[named[0] if named else ALL_NODES]
    found = order.packing_scores(
        topology.tree, topology.capacity, books.vector(pod.request)
    ).tolist()
    slot_of = topology.tree.slot_of
    given = [
        found[slot] if (slot := slot_of.get(name)) is not None else 0 for name in candidates.names()
    ]
    awaited = nominations.nodes_of_others(pod.uid)
    if not awaited:
        return given
    return [
        0 if name in awaited else max(1, score)
        for name, score in zip(candidates.names(), given, strict=True)
    ]
