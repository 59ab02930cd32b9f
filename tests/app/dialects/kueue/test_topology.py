"""Kueue's Topology objects."""

from __future__ import annotations

import json

import pytest

from app.dialects.declared import TopologySpec
from app.dialects.kueue.topology import decode_topology
from app.dialects.registry import DIALECTS
from tests.records import job, topology


def test_a_topology_keeps_its_levels_in_order():
    levels = [{"nodeLabel": "block"}, {"nodeLabel": "rack"}]
    document = {
        "metadata": {"name": "default", "uid": "uid-default", "resourceVersion": "1"},
        "spec": {"levels": levels},
    }
    record = decode_topology(json.dumps(document).encode())
    assert record == topology("default", "block", "rack")


def test_a_topology_level_without_a_label_is_kept_in_its_place():
    document = {"metadata": {"name": "default"}, "spec": {"levels": [{}, None]}}
    assert decode_topology(json.dumps(document).encode()).levels == ("", "")


def test_a_topology_object_declares_one_topology_and_other_objects_none():
    assert list(DIALECTS.topologies(topology("t", "block"))) == [TopologySpec("t", ("block",))]
    assert list(DIALECTS.topologies(job("j", 1))) == []


def test_a_topology_without_a_name_declares_none():
    """The API server stores no such object; the empty name is that of the tree of all nodes."""
    assert list(DIALECTS.topologies(topology("", "block"))) == []


@pytest.mark.parametrize(
    "document", [{}, {"spec": None}, {"spec": {}}, {"spec": {"levels": None}}, {"metadata": None}]
)
def test_a_topology_that_says_nothing_has_no_levels(document):
    record = decode_topology(json.dumps(document).encode())
    assert (record.levels, record.name, record.uid, record.version) == ((), "", "", "")
    assert (record.kind, record.namespace) == ("Topology", "")


def test_the_record_says_which_topology_it_is_of():
    metadata = {"name": "racks", "uid": "u", "resourceVersion": "7", "namespace": "none"}
    record = decode_topology(json.dumps({"metadata": metadata}).encode())
    assert (record.key, record.uid, record.version) == ("/racks", "u", "7")
