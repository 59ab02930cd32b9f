"""What is known of how much of domains is used is what would be found anew."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.text import cluster, vector
from topology.fit.use import KnownUse, used_by_domain
from topology.model.resources import AMOUNT_MAX

CLUSTER = "\n".join(f"b{node % 2}/r{node % 4}/n{node} gpu=8" for node in range(8))
slots = st.integers(0, 7)
changes = st.one_of(
    st.tuples(st.just("use"), slots, st.integers(0, 9)),
    st.tuples(st.just("hold"), slots, st.integers(0, 9)),
    st.tuples(st.just("have"), slots, st.sampled_from([0, 3, 8, 2**40, AMOUNT_MAX])),
    st.tuples(st.just("close"), slots, st.just(8)),
)


def applied(capacity, change):
    what, slot, gpus = change
    request = vector(capacity.axis, gpu=gpus)
    if what == "use":
        capacity.use(slot, request)
    elif what == "hold":
        capacity.hold(slot, request)
    else:
        has = vector(capacity.axis, pods=110, gpu=gpus)
        capacity.set_node(slot, has, is_open=what == "have")


def as_lists(shares):
    return [each.tolist() for each in shares]


@given(st.lists(st.lists(changes, max_size=3), max_size=6))
def test_what_is_known_follows_every_change(batches):
    tree, capacity = cluster(CLUSTER)
    known = KnownUse()
    for batch in [[], *batches]:
        for change in batch:
            applied(capacity, change)
        assert as_lists(known.by_domain(tree, capacity)) == as_lists(used_by_domain(tree, capacity))


def test_books_that_are_replaced_as_a_whole_are_looked_at_anew():
    tree, capacity = cluster(CLUSTER)
    known = KnownUse()
    known.by_domain(tree, capacity)
    more = capacity.allocatable * 2
    capacity.set_all(more, capacity.is_open.copy(), capacity.used.copy(), capacity.held.copy())
    capacity.use(0, vector(capacity.axis, gpu=4))
    assert as_lists(known.by_domain(tree, capacity)) == as_lists(used_by_domain(tree, capacity))


def test_a_resource_that_is_new_is_looked_at():
    tree, capacity = cluster(CLUSTER)
    known = KnownUse()
    known.by_domain(tree, capacity)
    row = capacity.axis.row("example.com/nic")
    capacity.hold(0, (*(0,) * row, 1))
    assert as_lists(known.by_domain(tree, capacity)) == as_lists(used_by_domain(tree, capacity))


def test_another_tree_is_looked_at_anew():
    known = KnownUse()
    for text in (CLUSTER, CLUSTER.replace("b0", "b1"), "b0/r0/n0 gpu=8"):
        tree, capacity = cluster(text)
        capacity.use(0, vector(capacity.axis, gpu=4))
        found = known.by_domain(tree, capacity)
        assert as_lists(found) == as_lists(used_by_domain(tree, capacity))
        assert np.any(found[tree.node_level])
