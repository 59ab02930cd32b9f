"""HyperNodes that are kept: what is written where labels and HyperNodes differ, and what is not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.dialects.volcano.from_labels.domains import domains_of, placed_from_widest
from app.dialects.volcano.from_labels.kept import KeptHyperNodes
from app.dialects.volcano.from_labels.manifests import manifests
from app.dialects.volcano.hyper_nodes import MOST_MEMBERS, HyperNodeRecord, decode_hyper_node
from app.dialects.written import Difference
from tests.app.dialects.volcano.from_labels.labelled import BLOCK, LEVELS, RACK, nodes_of
from tests.app.dialects.volcano.objects import by_labels, record

Nodes = Mapping[str, Mapping[str, str]]
There = dict[str, HyperNodeRecord]
KEPT = KeptHyperNodes(LEVELS)
MANAGED = "app.kubernetes.io/managed-by"
SOURCE = {"volcano.sh/network-topology-source": "corral"}
FOUR = "n1 b1/r1\nn2 b1/r1\nn3 b1/r2\nn4 b2/r1"


def by_command(nodes: Nodes) -> list[dict[str, Any]]:
    return list(manifests(domains_of([(placed_from_widest(nodes, LEVELS), LEVELS)]), LEVELS))


def stored(manifest: Mapping[str, Any], **labels: str) -> HyperNodeRecord:
    """The object as the API server shows it."""
    metadata = {**manifest["metadata"], "uid": f"uid-{manifest['metadata']['name']}"}
    metadata |= {"resourceVersion": "7", "labels": {**metadata["labels"], **labels}}
    return decode_hyper_node(msgspec.json.encode({**manifest, "metadata": metadata}))


def written(difference: Difference, there: There) -> There:
    """The objects once all of it is written, by an API server that merges."""
    after = dict(there)
    for each in difference.writes:
        if each.body is None:
            assert (each.uid, each.version) == (there[each.name].uid, there[each.name].version)
            del after[each.name]
        elif not each.uid:
            assert each.name not in there
            after[each.name] = stored(each.body)
        else:
            assert (each.uid, each.version) == (there[each.name].uid, there[each.name].version)
            whole = {"kind": "HyperNode", **each.body}
            whole["metadata"] = {"name": each.name, **each.body["metadata"]}
            after[each.name] = stored(whole)
    return after


def kept(text: str) -> There:
    return written(KEPT.difference(nodes_of(text), {}), {})


def said(difference: Difference) -> list[tuple[str, str]]:
    """(what is done, name) of each write, in order."""
    return [
        ("delete" if each.body is None else "change" if each.uid else "make", each.name)
        for each in difference.writes
    ]


def test_what_is_made_is_what_the_command_writes_and_one_label_more() -> None:
    nodes = nodes_of("n1 b1/r1\nn2 b1/R_2\nn3 b2/r1\nn4 b2/-\nn5 -/r1")
    made = [each.body for each in KEPT.difference(nodes, {}).writes]
    wanted = by_command(nodes)
    for each in wanted:
        each["metadata"]["labels"][MANAGED] = "corral"
    assert sorted(made, key=str) == sorted(wanted, key=str)
    assert [each["spec"]["tier"] for each in made if each] == sorted(
        each["spec"]["tier"] for each in wanted
    )


PATHS = st.tuples(st.sampled_from(["-", "b1", "b2", "B_1"]), st.sampled_from(["-", "r1", "r.1"]))
CLUSTERS = st.dictionaries(st.sampled_from("abcdef"), PATHS.map("/".join), min_size=1)


def text_of(cluster: Mapping[str, str]) -> str:
    return "\n".join(f"{name} {path}" for name, path in cluster.items())


@given(CLUSTERS, CLUSTERS)
def test_once_written_nothing_differs_whatever_there_was_before(
    before: dict[str, str], after: dict[str, str]
) -> None:
    there, nodes = kept(text_of(before)), nodes_of(text_of(after))
    difference = KEPT.difference(nodes, there)
    there = written(difference, there)
    again = KEPT.difference(nodes, there)
    assert again.writes == ()
    if not difference.notes:
        assert there == kept(text_of(after))


def test_a_node_that_moves_leaves_its_rack_before_it_is_in_another_one() -> None:
    before = "n1 b1/r1\nn2 b1/r1\nn3 b1/r1\nn4 b1/r1\nn5 b1/r2"
    after = before.replace("n4 b1/r1", "n4 b1/r2")  # the rack that it leaves is still the larger
    assert said(KEPT.difference(nodes_of(after), kept(before))) == [
        ("change", "hypernode-b1.r1"),
        ("change", "hypernode-b1.r2"),
    ]
    back = KEPT.difference(nodes_of(before), kept(after))
    assert [name for _, name in said(back)] == ["hypernode-b1.r2", "hypernode-b1.r1"]


def test_a_domain_without_nodes_goes_after_all_else_and_the_widest_first() -> None:
    three = FOUR.removesuffix("\nn4 b2/r1").replace("r2", "r3")
    assert said(KEPT.difference(nodes_of(three), kept(FOUR))) == [
        ("make", "hypernode-b1.r3"),
        ("change", "hypernode-b1"),
        ("delete", "hypernode-b2"),
        ("delete", "hypernode-b1.r2"),
        ("delete", "hypernode-b2.r1"),
    ]


def test_a_change_by_another_is_undone_and_the_label_that_he_adds_stays() -> None:
    there = kept(FOUR)
    there["hypernode-b1.r1"] = msgspec.structs.replace(
        record("hypernode-b1.r1", 1, by_labels(leaf="a")),
        labels={**there["hypernode-b1.r1"].labels, "team": "a"},
    )
    (change,) = KEPT.difference(nodes_of(FOUR), there).writes
    assert change.body is not None
    labels = {BLOCK: "b1", RACK: "r1", MANAGED: "corral", **SOURCE}
    spec = by_command(nodes_of(FOUR))[0]["spec"]
    assert change.body == {"metadata": {"labels": labels}, "spec": spec}
    there = kept(FOUR)
    with_more = {**there["hypernode-b1.r1"].labels, "team": "a"}
    there["hypernode-b1.r1"] = msgspec.structs.replace(there["hypernode-b1.r1"], labels=with_more)
    assert KEPT.difference(nodes_of(FOUR), there) == Difference()


# -- what others have made -------------------------------------------------------------------------


def test_one_that_the_command_has_made_for_the_same_domain_is_taken_over() -> None:
    there = {each["metadata"]["name"]: stored(each) for each in by_command(nodes_of(FOUR))}
    difference = KEPT.difference(nodes_of(FOUR), there)
    assert {what for what, _ in said(difference)} == {"change"}
    assert len(difference.writes) == len(there)
    assert written(difference, there) == kept(FOUR)


@pytest.mark.parametrize(
    "labels",
    [
        pytest.param({}, id="no_label"),
        pytest.param({"volcano.sh/network-topology-source": "label"}, id="of_volcano"),
        pytest.param({MANAGED: "corral", BLOCK: "b1", RACK: "r1"}, id="without_our_source"),
        pytest.param({**SOURCE, "zone": "b1", "row": "r1"}, id="by_hand_for_other_levels"),
    ],
)
def test_another_of_the_same_name_stays_as_it_is_and_is_named(labels: dict[str, str]) -> None:
    there = kept(FOUR)
    other = record("hypernode-b1.r1", 3, by_labels(leaf="a"))
    raw = msgspec.json.decode(msgspec.json.encode({"metadata": {"name": other.name, "uid": "u"}}))
    raw["metadata"]["labels"] = labels
    raw["spec"] = {"tier": 3, "members": by_labels(leaf="a")}
    there[other.name] = decode_hyper_node(msgspec.json.encode(raw))
    difference = KEPT.difference(nodes_of(FOUR), there)
    assert difference.writes == ()
    assert difference.notes == (
        "HyperNodes that others have made stay as they are: hypernode-b1.r1",
    )
    gone = KEPT.difference(nodes_of("n3 b1/r2\nn4 b2/r1"), there)
    assert other.name not in [name for _, name in said(gone)]


def test_a_topology_that_was_made_by_hand_is_not_deleted() -> None:
    domains = domains_of([(placed_from_widest(nodes_of(FOUR), LEVELS), LEVELS)])
    of_prefix = {
        each["metadata"]["name"]: stored(each)
        for each in manifests(domains, LEVELS, prefix="fabric")
    }
    by_hand = {each["metadata"]["name"]: stored(each) for each in by_command(nodes_of("n9 b9/r9"))}
    there = {**kept(FOUR), **of_prefix, **by_hand}
    assert KEPT.difference(nodes_of(FOUR), there) == Difference()


# -- more members than are read --------------------------------------------------------------------


def test_a_domain_with_more_members_than_are_read_stays_as_it_is_and_is_named() -> None:
    """Corral would not see it, and would make it again and again."""
    most = {f"n{at}": {BLOCK: "b1"} for at in range(MOST_MEMBERS)}
    others = nodes_of("m1 b2/r1")
    there = written(KEPT.difference({**most, **others}, {}), {})
    assert there.keys() == {"hypernode-b1", "hypernode-b2", "hypernode-b2.r1"}
    difference = KEPT.difference({**most, "n": {BLOCK: "b1"}}, there)
    assert said(difference) == [("delete", "hypernode-b2"), ("delete", "hypernode-b2.r1")]
    assert difference.notes == (
        "HyperNodes of more than 10,000 members are not kept, since none is read: hypernode-b1",
    )


# -- labels that are lost --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("now", "is_changed"),
    [
        pytest.param("n1 -/-\nn2 -/-\nn3 -/-\nn4 -/-", False, id="of_all_nodes"),
        pytest.param("n1 -/-\nn2 -/-\nn3 -/-\nn4 b2/r1", False, id="of_three_in_four"),
        pytest.param("n1 -/-\nn2 -/-\nn3 b1/r2\nn4 b2/r1", True, id="of_half_of_them"),
        pytest.param("n1 b1/-\nn2 b1/-\nn3 b1/-\nn4 b2/-", True, id="of_racks_only"),
        pytest.param("n1 b7/r1\nn2 b7/r1\nn3 b7/r2\nn4 b8/r1", True, id="others_instead"),
        pytest.param("n9 b9/r9", True, id="the_nodes_are_gone"),
        pytest.param("n1 b1/r1\nn7 -/-\nn8 -/-\nn9 -/-", True, id="nodes_that_never_had_any"),
    ],
)
def test_while_most_nodes_have_lost_their_labels_nothing_is_changed(
    now: str, is_changed: bool
) -> None:
    difference = KEPT.difference(nodes_of(now), kept(FOUR))
    assert bool(difference.writes) == is_changed
    assert bool(difference.notes) != is_changed


def test_a_note_says_which_nodes_have_lost_their_labels() -> None:
    nodes = {f"n{at}": {} for at in range(20)}
    (note,) = KEPT.difference(nodes, kept("\n".join(f"{name} b1/r1" for name in nodes))).notes
    assert note == (
        "HyperNodes stay as they are: of 20 nodes in them 20 have no label any more that says "
        "where they are: n0, n1, n10, n11, n12, n13, n14, n15 and 12 more"
    )


def test_a_value_that_is_no_label_value_counts_as_none_and_its_node_is_named() -> None:
    nodes = {**nodes_of(FOUR), "n4": {BLOCK: "b2", RACK: "../r 1"}}
    difference = KEPT.difference(nodes, {})
    assert difference.notes == ("nodes with a label value that is none, which is left out: n4",)
    specs = {each.name: each.body["spec"] for each in difference.writes if each.body}
    assert specs["hypernode-b2"]["members"] == [
        {"type": "Node", "selector": {"exactMatch": {"name": "n4"}}}
    ]
    assert "hypernode-b1.r1" in specs


# -- topograph -------------------------------------------------------------------------------------

TIER = "fabric.topograph.run/tier-{}".format
OF_TOPOGRAPH = KeptHyperNodes(("topograph",))


def test_the_levels_are_those_that_topograph_has_written() -> None:
    nodes = {f"n{at}": {TIER(1): "s1", TIER(0): f"t{at // 2}"} for at in range(4)}
    difference = OF_TOPOGRAPH.difference(nodes, {})
    assert [name for _, name in said(difference)] == [
        "hypernode-s1.t0",
        "hypernode-s1.t1",
        "hypernode-s1",
    ]
    (note,) = OF_TOPOGRAPH.difference({"n1": {}}, {}).notes
    assert note == ("there are no HyperNodes to make: no node has a label that says where it is")


def test_one_node_with_a_wider_tier_of_its_own_does_not_undo_the_others() -> None:
    nodes = {f"n{at}": {TIER(1): "s1", TIER(0): f"t{at // 2}"} for at in range(4)}
    there = written(OF_TOPOGRAPH.difference(nodes, {}), {})
    nodes["n4"] = {TIER(tier): "x" for tier in (0, 1, 2)}
    difference = OF_TOPOGRAPH.difference(nodes, there)
    assert difference.writes == ()
    assert "4 have no label any more" in difference.notes[-1]


def test_more_tiers_than_a_topology_has_levels_are_said_and_change_nothing() -> None:
    nodes = {"n1": {TIER(tier): "x" for tier in range(17)}}
    difference = OF_TOPOGRAPH.difference(nodes, {})
    assert difference.writes == ()
    assert "17 given" in difference.notes[0]
