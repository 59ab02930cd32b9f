"""Our answers, byte for byte, as kube-scheduler's types spell them (extender/v1/types.go)."""

from __future__ import annotations

import json

import pytest

from app.extender import encode
from app.extender.models import FullNodes, NodeNames
from app.state.filter_result import Failed, Passed, Pinned, Possible, Rejected, Victims

NAMES = NodeNames(b'["n1","n2","n3"]')
ITEMS = FullNodes(
    b'{"metadata":{},"items":[{"metadata":{"name":"n1"}},{"metadata":{"name":"n2"}}]}'
)
FILTER_KEYS = ["Nodes", "NodeNames", "FailedNodes", "FailedAndUnresolvableNodes", "Error"]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(
            Passed(),
            '{"Nodes":null,"NodeNames":["n1","n2","n3"],"FailedNodes":{},'
            '"FailedAndUnresolvableNodes":{},"Error":""}',
            id="a_stranger_keeps_every_candidate",
        ),
        pytest.param(
            Passed(frozenset({"n2", "elsewhere"})),
            '{"Nodes":null,"NodeNames":["n1","n3"],"FailedNodes":{},'
            '"FailedAndUnresolvableNodes":{},"Error":""}',
            id="a_stranger_loses_held_nodes_without_a_reason_nobody_would_see",
        ),
        pytest.param(
            Pinned("n3"),
            '{"Nodes":null,"NodeNames":["n3"],"FailedNodes":{},'
            '"FailedAndUnresolvableNodes":{},"Error":""}',
            id="a_member_gets_one_node",
        ),
        pytest.param(
            Rejected("waits"),
            '{"Nodes":null,"NodeNames":[],"FailedNodes":{},"FailedAndUnresolvableNodes":'
            '{"n1":"waits","n2":"waits","n3":"waits"},"Error":""}',
            id="a_rejection_says_the_same_at_every_candidate",
        ),
        pytest.param(
            Failed("not ready"),
            '{"Nodes":null,"NodeNames":null,"FailedNodes":{},'
            '"FailedAndUnresolvableNodes":{},"Error":"not ready"}',
            id="a_failure_is_an_error",
        ),
    ],
)
def test_filter_result_by_name(answer, expected):
    assert encode.filter_result(answer, NAMES).decode() == expected


@pytest.mark.parametrize(
    ("answer", "items"),
    [
        pytest.param(Passed(), ["n1", "n2"], id="passed"),
        pytest.param(Passed(frozenset({"n1"})), ["n2"], id="passed_without"),
        pytest.param(Pinned("n2"), ["n2"], id="pinned"),
    ],
)
def test_filter_result_for_whole_nodes_echoes_the_chosen_items(answer, items):
    result = json.loads(encode.filter_result(answer, ITEMS))
    assert list(result) == FILTER_KEYS
    assert result["NodeNames"] is None
    assert result["Nodes"] == {
        "metadata": {},
        "items": [{"metadata": {"name": name}} for name in items],
    }


def test_a_simulator_is_told_of_every_node_that_it_cannot_have_why():
    answer = Possible(("n2",), {"n1": "insufficient cpu", "n3": "x" * 600})
    result = json.loads(encode.filter_result(answer, NAMES))
    assert list(result) == FILTER_KEYS
    assert (result["Nodes"], result["NodeNames"], result["FailedNodes"]) == (None, ["n2"], {})
    failed = {"n1": "insufficient cpu", "n3": "x" * 512}
    assert result["FailedAndUnresolvableNodes"] == failed
    assert result["Error"] == ""


def test_a_simulator_that_sends_whole_nodes_gets_them_back():
    answer = Possible(("n2",), {"n1": "insufficient cpu"})
    result = json.loads(encode.filter_result(answer, ITEMS))
    assert list(result) == FILTER_KEYS
    assert result["Nodes"] == {"metadata": {}, "items": [{"metadata": {"name": "n2"}}]}
    assert result["NodeNames"] is None
    assert result["FailedAndUnresolvableNodes"] == {"n1": "insufficient cpu"}


def test_a_stranger_that_loses_every_node_is_told_why():
    result = json.loads(encode.filter_result(Passed(frozenset({"n1", "n2", "n3"})), NAMES))
    assert result["NodeNames"] == []
    assert set(result["FailedAndUnresolvableNodes"]) == {"n1", "n2", "n3"}
    assert len(set(result["FailedAndUnresolvableNodes"].values())) == 1
    assert result["FailedNodes"] == {}


@pytest.mark.parametrize("sentence", ["x" * 600, "é" * 300, "a" + "é" * 300, "🐎" * 200])
def test_a_sentence_is_cut_to_512_bytes_between_characters(sentence):
    result = json.loads(encode.filter_result(Rejected(sentence), NAMES))
    shown = result["FailedAndUnresolvableNodes"]["n1"]
    assert 509 <= len(shown.encode()) <= 512
    assert sentence.startswith(shown)


def test_a_sentence_that_no_encoding_can_say_is_still_an_answer():
    assert json.loads(encode.filter_error("pod \ud800"))["Error"] == "pod ?"


def test_scores_are_integers_in_a_bare_list():
    assert encode.priorities(NAMES, [7, 0, 3]) == (
        b'[{"Host":"n1","Score":7},{"Host":"n2","Score":0},{"Host":"n3","Score":3}]'
    )


@pytest.mark.parametrize("scored", [{}, {7: 3, 90: 10}], ids=["none", "two"])
def test_of_many_nodes_those_that_score_0_are_left_out(scored):
    names = [f"n{at}" for at in range(101)]
    scores = [scored.get(at, 0) for at in range(101)]
    given = json.loads(encode.priorities(NodeNames(json.dumps(names).encode()), scores))
    assert {each["Host"]: each["Score"] for each in given} == {
        f"n{at}": score for at, score in scored.items()
    }


def test_a_score_for_each_host_or_none_at_all():
    with pytest.raises(ValueError, match="shorter"):
        encode.priorities(NAMES, [7])


def test_binding_results():
    assert encode.binding_result("") == b'{"Error":""}'
    assert encode.binding_result("the gang waits") == b'{"Error":"the gang waits"}'


def test_preemption_result_is_always_the_meta_form():
    victims = {"n1": Victims(("u1", "u2"), 1), "n2": Victims((), 0)}
    assert encode.preemption_result(victims) == (
        b'{"NodeNameToMetaVictims":{"n1":{"Pods":[{"UID":"u1"},{"UID":"u2"}],"NumPDBViolations":1},'
        b'"n2":{"Pods":[],"NumPDBViolations":0}}}'
    )


@pytest.mark.parametrize("raw", [b'["n1","n2"]', b'["n1", "n2"]', rb'["n\u0031","n2"]'])
def test_a_rejection_reads_the_same_however_the_names_are_written(raw):
    result = json.loads(encode.filter_result(Rejected('waits for "n3"'), NodeNames(raw)))
    failed = result["FailedAndUnresolvableNodes"]
    assert failed == {"n1": 'waits for "n3"', "n2": 'waits for "n3"'}
