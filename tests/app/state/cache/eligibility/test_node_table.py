"""Every node judged at once, as each of them is judged alone."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.kube.core.objects import NodeRecord, Requirement, Shape, Taint, Term, Toleration
from app.state.cache.eligibility import node_table
from app.state.cache.eligibility.node_table import NodeTable
from app.state.cache.eligibility.one_node import may_host, may_stay, preference, why_not
from tests.records import node
from topology.model import tree as trees

KEYS, VALUES = ("pool", "zone", "cores"), ("a", "b", "7", "-3", "99999999999999999999")
NAMES = ("n0", "n1", "n2", "7")
HOSTNAME = "kubernetes.io/hostname"

labels = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES))
taints = st.lists(
    st.builds(
        Taint,
        st.sampled_from(KEYS),
        st.sampled_from(("", "a", "7")),
        st.sampled_from(("NoSchedule", "NoExecute", "PreferNoSchedule")),
    ),
    max_size=2,
).map(tuple)
tolerations = st.builds(
    Toleration,
    st.sampled_from(("", *KEYS)),
    st.sampled_from(("Exists", "Equal", "Lt", "Gt", "Later")),
    st.sampled_from(("", "a", "7", "-4")),
    st.sampled_from(("", "NoSchedule", "NoExecute")),
    st.booleans(),
)


def requirements(*keys: str) -> st.SearchStrategy[Requirement]:
    return st.builds(
        Requirement,
        st.sampled_from(keys),
        st.sampled_from(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Later")),
        st.lists(st.sampled_from((*VALUES, *NAMES, "0")), max_size=2).map(tuple),
    )


terms = st.builds(
    Term,
    st.lists(requirements(*KEYS, HOSTNAME, "missing"), max_size=2).map(tuple),
    st.lists(requirements("metadata.name", "metadata.uid"), max_size=1).map(tuple),
)
shapes = st.builds(
    Shape,
    st.dictionaries(st.sampled_from((*KEYS, "missing")), st.sampled_from(VALUES), max_size=2).map(
        lambda chosen: tuple(sorted(chosen.items()))
    ),
    st.lists(terms, max_size=2).map(tuple),
    st.lists(tolerations, max_size=2).map(tuple),
    st.lists(st.tuples(st.integers(1, 100), terms), max_size=2).map(tuple),
)
changes = st.lists(
    st.tuples(st.sampled_from(NAMES), st.none() | st.tuples(labels, taints)), max_size=6
)


def tree_of(nodes: dict[str, NodeRecord], generation: int) -> trees.Tree:
    return trees.build((HOSTNAME,), {name: (name,) for name in nodes}, generation=generation)


@settings(max_examples=300, deadline=None)
@given(st.lists(shapes, min_size=1, max_size=3), st.lists(changes, min_size=1, max_size=4))
def test_each_node_is_judged_as_if_it_were_the_only_one(shapes, histories):
    table, nodes = NodeTable(), {}
    for generation, history in enumerate(histories):
        for name, given_to in history:
            if given_to is None:
                nodes.pop(name, None)
                table.drop_node(name)
            else:
                nodes[name] = node(name, labels=given_to[0], taints=given_to[1])
                table.put_node(nodes[name])
        tree = tree_of(nodes, generation)
        for shape in shapes:
            in_order = [nodes[name] for name in tree.nodes]
            codes, reasons = table.why_not(shape, tree)
            assert table.mask(shape, tree).tolist() == [may_host(each, shape) for each in in_order]
            assert table.lasting(shape, tree).tolist() == [
                may_stay(each, shape) for each in in_order
            ]
            assert table.scores(shape, tree).tolist() == [
                preference(each, shape) for each in in_order
            ]
            assert [reasons[code] for code in codes] == [why_not(each, shape) for each in in_order]


def test_a_mask_follows_the_labels_of_a_node():
    nodes = {name: node(name, labels={"pool": "a"}) for name in ("n1", "n2")}
    table, shape, tree = NodeTable(), Shape(selector=(("pool", "a"),)), tree_of(nodes, 1)
    for each in nodes.values():
        table.put_node(each)
    assert table.mask(shape, tree).tolist() == [True, True]
    table.put_node(msgspec.structs.replace(nodes["n2"], labels={}))
    assert table.mask(shape, tree).tolist() == [True, False]


def filled(nodes: int) -> tuple[NodeTable, trees.Tree]:
    records = {f"n{at}": node(f"n{at}", labels={"pool": "a"}) for at in range(nodes)}
    table = NodeTable()
    for each in records.values():
        table.put_node(each)
    return table, tree_of(records, 1)


def test_keys_that_no_node_has_cost_no_column():
    table, tree = filled(3)
    for made_up in range(100):
        assert not table.mask(Shape(selector=((f"made-up-{made_up}", "x"),)), tree).any()
    table.mask(Shape(selector=(("pool", "a"),)), tree)
    assert table.columns == {"pool"}


def test_a_key_that_no_node_has_any_more_has_no_column():
    table, tree = filled(2)
    shape = Shape(selector=(("pool", "a"),))
    assert table.mask(shape, tree).tolist() == [True, True]
    table.drop_node("n0")
    table.drop_node("never there")
    assert table.columns == {"pool"}
    assert table.mask(shape, tree_of({"n1": node("n1")}, 2)).tolist() == [True]
    table.drop_node("n1")
    assert table.columns == frozenset()
    assert table.mask(shape, tree_of({}, 3)).tolist() == []


def test_nodes_that_come_and_go_make_no_judgement_dearer():
    table, tree = filled(100)
    before = spent_on(table, tree, choosing(1))
    for round_ in range(20):
        for at in range(100):
            table.drop_node(f"n{at}" if not round_ else f"n{round_ - 1}-{at}")
        for at in range(100):
            table.put_node(node(f"n{round_}-{at}", labels={"pool": "b"}))
    names = {f"n19-{at}": node(f"n19-{at}") for at in range(100)}
    later = tree_of(names, 2)
    assert spent_on(table, later, choosing(1)) == before
    assert table.mask(Shape(selector=(("pool", "b"),)), later).all()
    assert not table.mask(Shape(selector=(("pool", "a"),)), later).any()


@pytest.mark.parametrize("kind", ["mask", "lasting", "scores"])
def test_arrays_are_kept_for_so_many_shapes(kind):
    table, tree = filled(3)
    for made_up in range(node_table.MOST_KEPT + 10):
        getattr(table, kind)(Shape(selector=(("pool", str(made_up)),)), tree)
    assert table.kept == node_table.MOST_KEPT


def test_no_array_is_kept_for_a_shape_that_is_heavy():
    table, tree = filled(3)
    heavy = Shape(selector=(("pool", "x" * node_table.MOST_SHAPE_BYTES),))
    assert not table.mask(heavy, tree).any()
    assert table.kept == 0


def test_the_shapes_of_which_arrays_are_kept_weigh_so_much_together_and_the_latest_stay():
    table, tree = filled(3)
    long = "x" * (node_table.MOST_SHAPE_BYTES // 2)
    shapes = [Shape(selector=(("pool", f"{long}{at}"),)) for at in range(40)]
    for shape in (*shapes, *shapes):
        table.mask(shape, tree)
        assert table.kept_bytes <= node_table.MOST_KEPT_BYTES
    assert table.kept >= 8
    assert spent_on(table, tree, shapes[-1]) == 0
    assert spent_on(table, tree, shapes[0]) > 0
    table.put_node(node("n0", labels={"pool": "b"}))
    assert table.kept_bytes == 0


def test_values_that_change_all_the_time_are_forgotten():
    table, tree = filled(3)
    shape = Shape(selector=(("pool", "a"),))
    for at in range(100):
        table.put_node(node("n0", labels={"pool": f"v{at}"}, taints=(Taint("t", str(at), ""),)))
        assert table.mask(shape, tree).tolist() == [False, True, True]
        assert table.most_values <= 8


def spent_on(table: NodeTable, tree: trees.Tree, shape: Shape) -> int:
    before = table.visits.total
    table.mask(shape, tree)
    return table.visits.total - before


def choosing(terms: int, values: int = 1, salt: str = "") -> Shape:
    listed = tuple(f"{salt}{value}" for value in range(values))
    return Shape(terms=(Term((Requirement("pool", "NotIn", listed),), ()),) * terms)


def test_what_judging_costs_is_counted_by_its_terms_and_values_and_not_again_while_it_is_kept():
    table, tree = filled(1_000)
    once = spent_on(table, tree, choosing(1))
    assert once > 0
    assert spent_on(table, tree, choosing(100)) == 100 * once
    assert spent_on(table, tree, choosing(100)) == 0
    by_value = spent_on(table, tree, choosing(1, values=2, salt="a")) - once
    assert spent_on(table, tree, choosing(1, values=101, salt="b")) == once + 100 * by_value
    assert by_value > 0


def test_a_term_that_asks_for_nothing_is_counted_too():
    table, tree = filled(1_000)
    assert spent_on(table, tree, Shape(terms=(Term((), ()),) * 100)) >= 100


@pytest.mark.parametrize("operator", ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Later"])
def test_what_no_node_has_costs_the_same_in_a_cluster_of_any_size(operator):
    lines = tuple(Requirement(f"made-up-{at}", operator, ("1",)) for at in range(200))
    shape = Shape(selector=(("made-up", "x"),), terms=(Term(lines),))
    small, large = (spent_on(*filled(nodes), shape) for nodes in (1, 1_000))
    assert small == large
    assert 200 <= large < spent_on(*filled(1_000), choosing(200)) / 5


class Counted(np.ndarray):
    """Codes of a column that count how often they are looked through."""

    looks = 0

    def __array_ufunc__(self, ufunc, method, *inputs, **named):
        Counted.looks += 1
        plain = [each.view(np.ndarray) if isinstance(each, Counted) else each for each in inputs]
        return getattr(ufunc, method)(*plain, **named)


def test_a_selector_that_nothing_is_left_of_is_not_looked_at_further():
    table = NodeTable()
    records = {
        f"n{at}": node(f"n{at}", labels={"a": str(at), "b": str(at)} | {"c": "x"})
        for at in range(2)
    }
    for each in records.values():
        table.put_node(each)
    tree = tree_of(records, 1)
    assert table.mask(Shape(selector=(("a", "0"), ("b", "0"), ("c", "x"))), tree).any()
    column = table._columns["c"]
    column.codes, Counted.looks = column.codes.view(Counted), 0
    assert table.mask(Shape(selector=(("a", "1"), ("b", "1"), ("c", "x"))), tree).any()
    assert Counted.looks == 1
    assert not table.mask(Shape(selector=(("a", "0"), ("b", "1"), ("c", "x"))), tree).any()
    assert Counted.looks == 1


def test_tolerations_are_counted_by_the_sets_of_taints_they_are_held_against():
    tolerated = Shape(tolerations=(Toleration("t", "Exists", "", "", False),) * 50)
    table, tree = filled(10)
    plain = spent_on(table, tree, tolerated)
    for at in range(10):
        table.put_node(node(f"n{at}", taints=(Taint("t", str(at), "NoSchedule"),)))
    assert spent_on(table, tree, tolerated) == 11 * plain  # nodes without a taint were there before
