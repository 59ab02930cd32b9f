"""The answer to /prioritize: whole domains stay free."""

from __future__ import annotations

from app.kube.core.objects import PodRecord
from app.state.cache.books import ALL_NODES, Books
from app.state.filter_result import Candidates
from topology.fit import order


def scores(books: Books, pod: PodRecord, candidates: Candidates) -> list[int]:
    """Scores 0..10, in the order of `candidates.names()`; 0 for a node that is not known."""
    books.refresh()
    named = [name for name in books.topologies if name != ALL_NODES]
    topology = books.topologies[named[0] if named else ALL_NODES]
    found = order.packing_scores(
        topology.tree, topology.capacity, books.vector(pod.request)
    ).tolist()
    slot_of = topology.tree.slot_of
    return [
        found[slot] if (slot := slot_of.get(name)) is not None else 0 for name in candidates.names()
    ]
