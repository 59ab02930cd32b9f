"""Volcano's label discoverer: its configuration, and the HyperNodes that it would make."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from app.dialects.volcano.from_labels.discoverer import TopologyType, discovered, types_in
from app.errors import DecodeError
from tests.app.dialects.volcano.from_labels.labelled import (
    BLOCK,
    LEVELS,
    RACK,
    flaws,
    nodes_of,
    together,
    topology_of,
)

HOST = "kubernetes.io/hostname"
SOURCE = "volcano.sh/network-topology-source"
A3 = TopologyType("topologyA3", LEVELS)
# Of the guide of Volcano v1.14.1, docs/user-guide/how_to_use_hypernode_auto_discovery.md.
GUIDE = """
networkTopologyDiscovery:
  - source: ufm
    enabled: true
    interval: 10m
    config: {endpoint: "https://ufm-server:8080", insecureSkipVerify: true}
  - source: label
    enabled: true
    config:
      networkTopologyTypes:
        topologyA3:
          - nodeLabel: "volcano.sh/hypercluster"
          - nodeLabel: "volcano.sh/hypernode"
          - nodeLabel: "kubernetes.io/hostname"
        topologyA2:
          - nodeLabel: "volcano.sh/tor"
          - nodeLabel: "kubernetes.io/hostname"
"""


def config(types: Any, **more: Any) -> dict[str, Any]:
    entry = {"source": "label", "enabled": True, "config": {"networkTopologyTypes": types}}
    return {"networkTopologyDiscovery": [entry | more]}


def keys(*labels: str) -> list[dict[str, str]]:
    return [{"nodeLabel": label} for label in labels]


# -- the configuration -------------------------------------------------------------------------


def test_the_last_label_is_no_level() -> None:
    types, notes = types_in(yaml.safe_load(GUIDE))
    assert types == [
        TopologyType("topologyA2", ("volcano.sh/tor",)),
        TopologyType("topologyA3", ("volcano.sh/hypercluster", "volcano.sh/hypernode")),
    ]
    assert notes == []


def test_a_last_label_that_is_not_the_node_is_dropped_as_well_and_said() -> None:
    types, notes = types_in(config({"a": keys(BLOCK, RACK)}))
    assert types == [TopologyType("a", (BLOCK,))]
    assert [RACK in note for note in notes] == [True]


@pytest.mark.parametrize(
    ("types", "why"),
    [
        pytest.param({"a" * 21: keys(RACK, HOST)}, "20 bytes", id="name_too_long"),
        pytest.param({"a": keys(RACK, RACK, HOST)}, "twice", id="label_twice"),
    ],
)
def test_a_type_that_volcano_skips_is_skipped_and_said(types: Any, why: str) -> None:
    found, notes = types_in(config(types | {"b": keys(BLOCK, HOST)}))
    assert [each.name for each in found] == ["b"]
    assert [why in note for note in notes] == [True]


@pytest.mark.parametrize(
    ("written", "field"),
    [
        pytest.param({}, "networkTopologyDiscovery", id="empty"),
        pytest.param([], "networkTopologyDiscovery", id="a_list"),
        pytest.param({"networkTopologyDiscovery": ["label"]}, "Discovery[0]", id="entry"),
        pytest.param(config({}, enabled=False), "enabled: true", id="not_enabled"),
        pytest.param(config({}, source="ufm"), "source: label", id="another_source"),
        pytest.param(config({}, config=None), "[0].config", id="no_config"),
        pytest.param(config([]), "networkTopologyTypes", id="types"),
        pytest.param(config({"a": {}}), "networkTopologyTypes.a", id="no_list"),
        pytest.param(config({"a": [{"label": RACK}]}), "a[0].nodeLabel", id="no_label"),
        pytest.param(config({"a": keys(RACK, "a b")}), "a[1].nodeLabel", id="no_key"),
        pytest.param(config({"a.": keys(RACK, HOST)}), "networkTopologyTypes.a.", id="no_name"),
    ],
)
def test_what_cannot_be_read_is_named_by_its_field(written: Any, field: str) -> None:
    with pytest.raises(DecodeError) as raised:
        types_in(written)
    assert field in str(raised.value)


# -- the HyperNodes ------------------------------------------------------------------------------


def test_names_labels_and_members_are_volcanos() -> None:
    rack, block = discovered(nodes_of("n1 b1/r1\nn2 b1/r1"), [A3], {}).hyper_nodes
    suffix = "[bcdfghjklmnpqrstvwxz2456789]{5}"
    assert re.fullmatch(f"hypernode-topologya3-tier1-{suffix}", rack["metadata"]["name"])
    assert re.fullmatch(f"hypernode-topologya3-tier2-{suffix}", block["metadata"]["name"])
    assert rack["metadata"]["labels"] == {SOURCE: "label", RACK: "r1"}
    assert block["metadata"]["labels"] == {SOURCE: "label", BLOCK: "b1"}
    names = [each["selector"]["exactMatch"]["name"] for each in rack["spec"]["members"]]
    assert names == ["n1", "n2"]
    assert block["spec"] == {
        "tier": 2,
        "tierName": BLOCK,
        "members": [
            {
                "type": "HyperNode",
                "selector": {"exactMatch": {"name": rack["metadata"]["name"]}},
            }
        ],
    }


def by_value(found: Any) -> dict[str, str]:
    """Value of the own level -> name."""
    return {
        each["metadata"]["labels"][each["spec"]["tierName"]]: each["metadata"]["name"]
        for each in found.hyper_nodes
    }


def test_a_hyper_node_that_is_there_keeps_its_name() -> None:
    existing = {
        "hypernode-topologya3-tier1-vvvvv": {SOURCE: "label", RACK: "r1"},
        "hypernode-topologya3-tier1-aaaaa": {SOURCE: "ufm", RACK: "r1"},
        "hypernode-other-tier1-aaaaa": {SOURCE: "label", RACK: "r1"},
        "hypernode-topologya3-tier1-bbbbb": {SOURCE: "label", RACK: "r2"},
    }
    names = by_value(discovered(nodes_of("n1 b1/r1"), [A3], existing))
    assert names["r1"] == "hypernode-topologya3-tier1-vvvvv"


def test_a_second_run_names_what_the_first_has_named() -> None:
    nodes = nodes_of("n1 b1/r1\nn2 b2/r1\nn3 b2/r2")
    volcanos = {"hypernode-topologya3-tier1-vvvvv": {SOURCE: "label", RACK: "r1"}}
    first = discovered(nodes, [A3], volcanos).hyper_nodes
    there = {each["metadata"]["name"]: each["metadata"]["labels"] for each in first}
    assert discovered(nodes, [A3], volcanos | there).hyper_nodes == first
    assert "hypernode-topologya3-tier1-vvvvv" in there


def test_a_new_name_is_none_that_is_taken() -> None:
    nodes = nodes_of("n1 b1/r1")
    name = by_value(discovered(nodes, [A3], {}))["r1"]
    again = by_value(discovered(nodes, [A3], {name: {"made-by": "hand"}}))["r1"]
    assert again != name
    assert again.startswith("hypernode-topologya3-tier1-")


def test_every_name_of_many_is_unique() -> None:
    racks = 8_000  # of 14 million names: some begin with the same five characters
    nodes = nodes_of("\n".join(f"n{at} b1/r{at}" for at in range(racks)))
    names = [each["metadata"]["name"] for each in discovered(nodes, [A3], {}).hyper_nodes]
    assert len(set(names)) == racks + 1


def test_one_value_under_two_parents_is_two_hyper_nodes_and_said() -> None:
    nodes = nodes_of("n1 b1/r1\nn2 b2/r1")
    found = discovered(nodes, [A3], {})
    topology = topology_of(found.hyper_nodes, nodes)
    alone = {frozenset({"n1"}), frozenset({"n2"})}
    assert together(topology, nodes) == [alone, alone]
    assert flaws(topology) == []
    assert [f"{RACK}=r1" in note and "several parents" in note for note in found.notes] == [True]


def test_a_node_stops_at_the_first_label_that_it_lacks_going_up() -> None:
    found = discovered(nodes_of("n1 -/r1\nn2 b1/-"), [A3], {})
    (rack,) = found.hyper_nodes
    assert rack["metadata"]["labels"] == {SOURCE: "label", RACK: "r1"}
    assert found.lacking == {BLOCK: ("n1",), RACK: ("n2",)}


def test_nodes_without_any_label_are_said() -> None:
    found = discovered(nodes_of("n3 -/-\nn1 b1/r1\nn2 -/-"), [A3], {})
    assert [note.rpartition(": ")[2] for note in found.notes] == ["n2, n3"]


def test_a_node_without_the_wide_label_is_with_those_of_its_rack() -> None:
    nodes = nodes_of("n1 b1/r1\nn2 -/r1")
    topology = topology_of(discovered(nodes, [A3], {}).hyper_nodes, nodes)
    both = {frozenset({"n1", "n2"})}
    assert together(topology, nodes) == [both, both]


def test_a_node_whose_rack_may_be_either_is_left_out_and_said() -> None:
    nodes = nodes_of("n1 b1/r1\nn2 b2/r1\nn3 -/r1")
    found = discovered(nodes, [A3], {})
    members = [name for each in found.hyper_nodes for name in str(each["spec"]).split("'")]
    assert "n3" not in members
    assert any("n3" in note and "left out" in note for note in found.notes)


def test_types_that_share_a_wide_label_share_its_hyper_node() -> None:
    cabinet = "example.com/cabinet"
    types = [TopologyType("a", LEVELS), TopologyType("b", (BLOCK, cabinet))]
    nodes = {"n1": {BLOCK: "b1", RACK: "r1"}, "n2": {BLOCK: "b1", cabinet: "c1"}}
    found = discovered(nodes, types, {})
    topology = topology_of(found.hyper_nodes, nodes)
    wide, narrow = together(topology, nodes)
    assert wide == {frozenset({"n1", "n2"})}
    assert narrow == {frozenset({"n1"}), frozenset({"n2"})}
    assert flaws(topology) == []
    assert (found.lacking, found.notes) == ({}, ())


def test_nodes_with_labels_of_two_types_are_said() -> None:
    types = [TopologyType("a", (BLOCK,)), TopologyType("b", (RACK,))]
    found = discovered(nodes_of("n1 b1/r1\nn2 b1/-\nn3 -/r1"), types, {})
    assert [note.rpartition(": ")[2] for note in found.notes] == ["n1"]
    assert "types a and b" in found.notes[0]


def test_a_note_shows_a_few_of_many_places() -> None:
    nodes = nodes_of("\n".join(f"n{at} b{at}/r1" for at in range(9)))
    (note,) = discovered(nodes, [A3], {}).notes
    assert f"{BLOCK}=b2" in note
    assert f"{BLOCK}=b3" not in note
    assert "6 more" in note
