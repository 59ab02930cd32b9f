"""Requests as they come: both forms, and everything that is not a request."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.dialects.registry import DIALECTS
from app.errors import DecodeError
from app.extender import models
from app.extender.models import (
    MOST_FULL_NODES,
    MOST_NAMES,
    BadRequest,
    FullNodes,
    NodeNames,
)
from app.state.filter_result import Victims
from tests.app.extender.port import args, dumped, pod

TEMPLATE = "cluster-autoscaler.kubernetes.io/template-node"
UPCOMING = "cluster-autoscaler.k8s.io/upcoming-node"

node_name = st.from_regex(r"[a-z0-9]([-a-z0-9.]{0,10}[a-z0-9])?", fullmatch=True)
any_name = st.one_of(node_name, st.text(max_size=6), st.sampled_from(["", ",", '","', "\\", " "]))


@pytest.mark.slow
@given(
    names=st.lists(any_name, max_size=6),
    wanted=any_name,
    separators=st.sampled_from([(",", ":"), (", ", ": ")]),
    is_ascii=st.booleans(),
)
def test_names_read_as_bytes_equal_names_decoded(names, wanted, separators, is_ascii):
    raw = json.dumps(names, separators=separators, ensure_ascii=is_ascii).encode(
        "utf-8", "surrogatepass"
    )
    assert len(NodeNames(raw)) == len(names)
    lazy = NodeNames(raw)
    assert (wanted in lazy) == (wanted in names)
    assert all(name in lazy for name in names)
    assert len(lazy) == len(names)
    assert list(lazy.names()) == names


@pytest.mark.slow
@given(
    names=st.lists(any_name, max_size=6, unique=True),
    separators=st.sampled_from([(",", ":"), (", ", ": "), (" ,", ":")]),
    is_ascii=st.booleans(),
)
def test_names_are_joined_as_bytes_only_where_the_result_is_what_they_say(
    names, separators, is_ascii
):
    raw = json.dumps(names, separators=separators, ensure_ascii=is_ascii)
    joined = NodeNames(raw.encode("utf-8", "surrogatepass")).joined(b'":0,"')
    if joined is not None:
        assert json.loads(b'{"%b":0}' % joined) == dict.fromkeys(names, 0)


def test_names_as_go_writes_them_are_joined_without_being_read():
    names = NodeNames(b'["n1","n2","n3"]')
    assert names.joined(b'":0,"') == b'n1":0,"n2":0,"n3'


@pytest.mark.parametrize(
    "raw",
    [
        b'["a",","]',
        b'["a", ","]',
        b'[",","b"]',
        b'["a" ,",","b"]',
        b'["a","b" ]',
        b'["a",{"b":"c"}]',
    ],
)
def test_names_that_cannot_be_joined_as_bytes_are_left_to_be_read(raw):
    assert NodeNames(raw).joined(b'":0,"') is None


@pytest.mark.parametrize("raw", [b'["a","b"]', b'["a", "b"]', b'["a","b"\n]'])
@pytest.mark.parametrize("wanted", [",", ", ", '","', '", "', 'a","b', "", "]", "["])
def test_what_lies_between_two_names_is_no_name(raw, wanted):
    assert wanted not in NodeNames(raw)


def test_a_name_may_be_written_with_escapes():
    names = NodeNames(rb'["n\u0031","n2"]')
    assert "n1" in names
    assert len(names) == 2


def test_a_name_inside_a_longer_one_is_no_candidate():
    assert "node-1" not in NodeNames(b'["node-10","xnode-1"]')


def test_nothing_but_a_string_is_a_candidate():
    assert 1 not in NodeNames(b'["1"]')


@pytest.mark.parametrize("raw", [b"[1]", b"{}", b'"n1"', b"[null]", b"[[]]", b'["\xff"]', b"7"])
def test_what_is_no_list_of_names_is_refused_at_once(raw):
    with pytest.raises(BadRequest, match="NodeNames"):
        NodeNames(raw)


def test_a_wrong_name_after_good_ones_is_found_when_all_are_needed():
    names = NodeNames(b'["n1",2]')
    assert "n1" in names
    with pytest.raises(BadRequest, match="NodeNames"):
        names.names()


@pytest.mark.parametrize("name", ["", "n", "a-node-of-some-length", "é"])
def test_more_names_than_any_cluster_has_nodes_are_refused_before_they_are_decoded(name):
    def raw(names: int) -> bytes:
        return json.dumps([name] * names, separators=(",", ":")).encode()

    assert len(NodeNames(raw(MOST_NAMES)).names()) == MOST_NAMES
    with pytest.raises(BadRequest, match=f"NodeNames: more than {MOST_NAMES} names"):
        NodeNames(raw(MOST_NAMES + 1)).names()


def test_more_whole_nodes_than_fit_a_body_are_refused():
    def raw(nodes: int) -> bytes:
        items = [{"metadata": {"name": f"n{i}"}} for i in range(nodes)]
        return json.dumps({"items": items}).encode()

    assert len(FullNodes(raw(MOST_FULL_NODES))) == MOST_FULL_NODES
    with pytest.raises(BadRequest, match=f"more than {MOST_FULL_NODES}"):
        FullNodes(raw(MOST_FULL_NODES + 1))


def test_a_request_by_name():
    record, nodes = models.pod_and_nodes(args(["n1", "n2"]), DIALECTS.keeps, full_nodes=True)
    assert (record.namespace, record.name, record.uid) == ("team", "trainer-0", "uid-trainer-0")
    assert list(nodes.names()) == ["n1", "n2"]
    assert nodes.raw == b'["n1","n2"]'


def test_a_request_with_whole_nodes():
    items = [
        {"metadata": {"name": name, "labels": {"a": "b"}}, "spec": {}} for name in ("n1", "n2")
    ]
    body = args(None, Nodes={"metadata": {}, "items": items})
    _, nodes = models.pod_and_nodes(body, DIALECTS.keeps, full_nodes=True)
    assert isinstance(nodes, FullNodes)
    assert list(nodes.names()) == ["n1", "n2"]
    assert json.loads(nodes.item_by_name["n2"]) == items[1]
    assert ("n1" in nodes, "n3" in nodes, len(nodes)) == (True, False, 2)


@pytest.mark.parametrize(
    ("metadata", "is_marked"),
    [
        pytest.param({"labels": {TEMPLATE: "true"}}, True, id="template"),
        pytest.param({"labels": {"a": "b", TEMPLATE: ""}}, True, id="whatever_its_value"),
        pytest.param({"annotations": {UPCOMING: "true"}}, True, id="upcoming"),
        pytest.param({"annotations": {TEMPLATE: "true"}}, False, id="no_label"),
        pytest.param({"labels": {UPCOMING: "true"}}, False, id="no_annotation"),
        pytest.param({"labels": {"a": TEMPLATE}, "annotations": None}, False, id="none"),
        pytest.param({"labels": None}, False, id="no_labels"),
    ],
)
def test_nodes_that_an_autoscaler_has_marked(metadata, is_marked):
    items = [{"metadata": {"name": "n1"}}, {"metadata": {"name": "n2", **metadata}}]
    _, nodes = models.pod_and_nodes(
        args(None, Nodes={"items": items}), DIALECTS.keeps, full_nodes=True
    )
    assert list(nodes.marked) == (["n2"] if is_marked else [])


def test_a_mark_is_read_however_it_is_written():
    escaped = TEMPLATE.replace("/", r"\/").replace("-", r"\u002d").encode()
    nodes = FullNodes(b'{"items":[{"metadata":{"name":"n","labels":{"%b":"x"}}}]}' % escaped)
    assert list(nodes.marked) == ["n"]


def test_a_whole_node_is_read_as_from_the_watch_and_a_name_says_nothing():
    status = {"allocatable": {"cpu": "2", "pods": "10"}}
    thing = {"metadata": {"name": "n1", "labels": {"a": "b"}}, "status": status}
    record = FullNodes(dumped({"items": [thing]})).sent("n1")
    assert record is not None
    assert (record.name, record.labels) == ("n1", {"a": "b"})
    assert record.allocatable == (("cpu", 2000), ("pods", 10))
    names = NodeNames(b'["n1"]')
    assert (list(names.marked), names.sent("n1")) == ([], None)


def test_names_win_where_both_forms_are_there():
    body = args(["n1"], Nodes={"items": [{"metadata": {"name": "n2"}}]})
    _, nodes = models.pod_and_nodes(body, DIALECTS.keeps, full_nodes=True)
    assert list(nodes.names()) == ["n1"]


def test_whole_nodes_are_refused_where_the_setting_says_so():
    body = args(None, Nodes={"items": []})
    with pytest.raises(BadRequest, match="nodeCacheCapable: true"):
        models.pod_and_nodes(body, DIALECTS.keeps, full_nodes=False)


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        pytest.param(b"", "truncated", id="empty"),
        pytest.param(b"{", "truncated", id="cut"),
        pytest.param(b"null", "Expected `object`", id="null"),
        pytest.param(b"[]", "Expected `object`", id="array"),
        pytest.param(b"{}", '"Pod"', id="nothing"),
        pytest.param(dumped({"pod": pod(), "nodeNames": []}), "capitalised", id="lower_case_keys"),
        pytest.param(dumped({"Pod": pod()}), "nodeCacheCapable: true", id="neither_form"),
        pytest.param(args(None), "nodeCacheCapable: true", id="both_null"),
        pytest.param(args({"a": 1}), "NodeNames", id="names_not_a_list"),
        pytest.param(args(None, Nodes={"items": [{}]}), "metadata.name", id="nameless_node"),
        pytest.param(args(None, Nodes={"items": [7]}), "Nodes.items", id="node_not_an_object"),
        pytest.param(
            # The whole item would stand in the answer, which is JSON in UTF-8.
            args(None, Nodes={"items": [{"metadata": {"name": "n"}, "spec": {}}]}).replace(
                b'"spec"', b'"s\xffpec"'
            ),
            "Nodes.items: 'utf-8' codec can't decode byte 0xff",
            id="node_not_in_utf_8",
        ),
        pytest.param(args(None, Nodes=[]), "Nodes", id="nodes_not_an_object"),
        pytest.param(b'{"Pod":NaN}', "malformed", id="nan"),
        pytest.param(args(["n1"]) + b"x", "trailing", id="more_after_the_value"),
        pytest.param(
            b'{"Pod":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "recursion", id="deep_nesting"
        ),
    ],
)
def test_the_message_names_what_is_wrong(body, complaint):
    with pytest.raises(BadRequest, match=complaint):
        models.pod_and_nodes(body, DIALECTS.keeps, full_nodes=True)


def test_a_pod_that_is_no_object_is_a_decode_error():
    with pytest.raises(DecodeError, match="Pod"):
        models.pod_and_nodes(dumped({"Pod": 7, "NodeNames": []}), DIALECTS.keeps, full_nodes=True)


@pytest.mark.parametrize("field", ["PodName", "PodNamespace", "PodUID", "Node"])
def test_a_binding_needs_every_field(field):
    whole = {"PodName": "p", "PodNamespace": "ns", "PodUID": "u", "Node": "n"}
    assert models.binding(dumped(whole)).Node == "n"
    with pytest.raises(BadRequest, match=field):
        models.binding(dumped({**whole, field: ""}))
    with pytest.raises(BadRequest, match=field):
        models.binding(dumped({**whole, field: 7}))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(
            {"NodeNameToVictims": None, "NodeNameToMetaVictims": {
                "n1": {"Pods": [{"UID": "u1"}], "NumPDBViolations": 2}}},
            {"n1": Victims(("u1",), 2)},
            id="by_uid",
        ),
        pytest.param(
            {"NodeNameToVictims": {"n1": {"Pods": [pod("a")], "NumPDBViolations": 1}},
             "NodeNameToMetaVictims": None},
            {"n1": Victims(("uid-a",), 1)},
            id="whole_pods",
        ),
        pytest.param(
            {"NodeNameToMetaVictims": {"n1": {"Pods": []}, "n2": {"Pods": None}, "n3": {}}},
            {"n1": Victims((), 0), "n2": Victims((), 0), "n3": Victims((), 0)},
            id="no_victims_at_all",
        ),
        pytest.param({"NodeNameToMetaVictims": {"n1": None}}, {}, id="null_victims"),
        pytest.param({"NodeNameToVictims": None, "NodeNameToMetaVictims": None}, {}, id="null"),
        pytest.param({}, {}, id="nothing"),
    ],
)  # fmt: skip
def test_victims_of_either_form(body, expected):
    record, offered = models.preemption(dumped({"Pod": pod(), **body}), lambda _key: False)
    assert (record.uid, offered) == ("uid-trainer-0", expected)


@pytest.mark.parametrize("victims", [7, [], {"n1": 7}, {"n1": {"Pods": 7}}, {"n1": {"Pods": [7]}}])
def test_victims_that_are_none_are_refused(victims):
    with pytest.raises(BadRequest):
        models.preemption(
            dumped({"Pod": pod(), "NodeNameToMetaVictims": victims}), lambda _key: False
        )


def test_a_preemption_without_a_pod_is_refused():
    with pytest.raises(BadRequest, match='no "Pod"'):
        models.preemption(dumped({"NodeNameToMetaVictims": {}}), lambda _key: False)
