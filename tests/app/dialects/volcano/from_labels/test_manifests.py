"""HyperNode objects from labels, and that Corral reads of them what the labels say."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from app.dialects.volcano.from_labels.domains import domains_of, placed_from_widest
from app.dialects.volcano.from_labels.manifests import Members, manifests
from tests.app.dialects.volcano.from_labels.labelled import (
    BLOCK,
    LEVELS,
    RACK,
    flaws,
    nodes_of,
    together,
    topology_of,
)

ROOT = Path(__file__).resolve().parents[5]
Nodes = dict[str, dict[str, str]]


def made(nodes: Nodes, members: Members = "names") -> list[dict[str, Any]]:
    domains = domains_of([(placed_from_widest(nodes, LEVELS), LEVELS)])
    return list(manifests(domains, LEVELS, members))


def test_the_objects_are_what_kubectl_applies() -> None:
    rack, block = made(nodes_of("n2 b1/r1\nn1 b1/r1"))
    source = {"volcano.sh/network-topology-source": "corral"}
    assert rack == {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": "hypernode-b1.r1", "labels": {BLOCK: "b1", RACK: "r1", **source}},
        "spec": {
            "tier": 1,
            "tierName": RACK,
            "members": [
                {"type": "Node", "selector": {"exactMatch": {"name": "n1"}}},
                {"type": "Node", "selector": {"exactMatch": {"name": "n2"}}},
            ],
        },
    }
    assert block["metadata"] == {"name": "hypernode-b1", "labels": {BLOCK: "b1", **source}}
    assert block["spec"] == {
        "tier": 2,
        "tierName": BLOCK,
        "members": [{"type": "HyperNode", "selector": {"exactMatch": {"name": "hypernode-b1.r1"}}}],
    }


def test_every_field_is_one_that_the_definition_has() -> None:
    definition = yaml.safe_load((ROOT / "deploy" / "hypernode-crd.yaml").read_text())
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    spec = schema["spec"]["properties"]
    member = spec["members"]["items"]["properties"]
    for each in made(nodes_of("n1 b1/r1\nn2 b1/-"), "labels"):
        assert each["spec"].keys() <= spec.keys()
        for one in each["spec"]["members"]:
            assert one["type"] in member["type"]["enum"]
            assert one["selector"].keys() <= member["selector"]["properties"].keys()


def test_members_by_labels_select_by_the_whole_path() -> None:
    rack = made(nodes_of("n1 b1/r1\nn2 b2/r1"), "labels")[0]
    selector = {"labelMatch": {"matchLabels": {BLOCK: "b1", RACK: "r1"}}}
    assert rack["spec"]["members"] == [{"type": "Node", "selector": selector}]


def test_a_wide_domain_selects_those_without_the_next_label_only() -> None:
    nodes = nodes_of("n1 b1/r1\nn2 b1/-\nn3 b1/r2")
    block = made(nodes, "labels")[-1]
    of_nodes = [each for each in block["spec"]["members"] if each["type"] == "Node"]
    without_rack = [{"key": RACK, "operator": "DoesNotExist"}]
    match = {"matchLabels": {BLOCK: "b1"}, "matchExpressions": without_rack}
    assert of_nodes == [{"type": "Node", "selector": {"labelMatch": match}}]
    assert flaws(topology_of(made(nodes, "labels"), nodes)) == []


VALUE = st.sampled_from(["a", "b", "A", "a.b", "a_b", "x" * 63, "-"])
NODES = st.dictionaries(
    st.sampled_from([f"n{at}" for at in range(12)]), st.tuples(VALUE, VALUE), max_size=12
)


@pytest.mark.parametrize("members", ["names", "labels"])
@given(written=NODES)
def test_the_hyper_nodes_are_the_domains_of_the_labels(
    members: Members, written: dict[str, tuple[str, str]]
) -> None:
    """Alone where a node has no label; `-` stands for that."""
    nodes: Nodes = {
        name: {key: value for key, value in zip(LEVELS, values, strict=True) if value != "-"}
        for name, values in written.items()
    }
    expected = [defaultdict[object, set[str]](set), defaultdict[object, set[str]](set)]
    for name, (block, rack) in written.items():
        expected[0][name if block == "-" else (block,)].add(name)
        expected[1][name if "-" in (block, rack) else (block, rack)].add(name)
    topology = topology_of(made(nodes, members), nodes)
    found = together(topology, nodes)
    groups = [{frozenset(group) for group in level.values()} for level in expected]
    # A tier that no domain has is no level.
    tiers = [level for level in topology.levels]
    assert found == [groups[2 - int(tier.rpartition("-")[2])] for tier in tiers]
    assert flaws(topology) == []


@given(written=NODES, seed=st.randoms(use_true_random=False))
def test_the_order_of_the_nodes_does_not_matter(written: Any, seed: Any) -> None:
    nodes = nodes_of("\n".join(f"{name} {'/'.join(path)}" for name, path in written.items()))
    shuffled = list(nodes.items())
    seed.shuffle(shuffled)
    assert made(dict(shuffled)) == made(nodes)
