"""JSON Patch, as RFC 6902 and kube-apiserver read it."""

from __future__ import annotations

from typing import Any

import pytest

from app.sandbox.apiserver.storage.json_patch import InvalidPatch, apply

BODY = {"a": {"b/c": 1, "d~e": 2}, "list": ["x", "y"]}


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        pytest.param(
            {"op": "add", "path": "/a/n", "value": None}, {"n": None}, id="adds_also_a_null"
        ),
        pytest.param({"op": "add", "path": "/a/b~1c", "value": 3}, {"b/c": 3}, id="adds_over"),
        pytest.param({"op": "replace", "path": "/a/d~0e", "value": 3}, {"d~e": 3}, id="replaces"),
        pytest.param({"op": "copy", "from": "/a/b~1c", "path": "/a/n"}, {"n": 1}, id="copies"),
    ],
)
def test_an_operation_on_an_object(operation: dict[str, Any], expected: dict[str, Any]) -> None:
    assert apply(BODY, [operation])["a"] == BODY["a"] | expected


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        pytest.param({"op": "add", "path": "/list/-", "value": "z"}, ["x", "y", "z"], id="end"),
        pytest.param({"op": "add", "path": "/list/2", "value": "z"}, ["x", "y", "z"], id="behind"),
        pytest.param({"op": "add", "path": "/list/0", "value": "z"}, ["z", "x", "y"], id="front"),
        pytest.param({"op": "remove", "path": "/list/0"}, ["y"], id="removes"),
        pytest.param({"op": "replace", "path": "/list/1", "value": "z"}, ["x", "z"], id="replaces"),
        pytest.param({"op": "move", "from": "/list/0", "path": "/list/1"}, ["y", "x"], id="moves"),
        pytest.param({"op": "test", "path": "/list/0", "value": "x"}, ["x", "y"], id="tests"),
    ],
)
def test_an_operation_on_a_list(operation: dict[str, Any], expected: list[str]) -> None:
    assert apply(BODY, [operation])["list"] == expected


def test_operations_are_applied_in_order_and_the_body_given_stays() -> None:
    operations = [
        {"op": "add", "path": "/new", "value": {}},
        {"op": "add", "path": "/new/labels", "value": {"a": "b"}},
        {"op": "remove", "path": "/a"},
    ]
    assert apply(BODY, operations) == {"new": {"labels": {"a": "b"}}, "list": ["x", "y"]}
    assert set(BODY) == {"a", "list"}


@pytest.mark.parametrize(
    "operations",
    [
        pytest.param({"op": "add"}, id="not_a_list"),
        pytest.param(["add"], id="not_an_operation"),
        pytest.param([{"op": "merge", "path": "/a"}], id="no_such_operation"),
        pytest.param([{"op": "add", "path": "/a"}], id="no_value"),
        pytest.param([{"op": "add", "path": "a", "value": 1}], id="not_a_pointer"),
        pytest.param([{"op": "add", "path": "/x/y", "value": 1}], id="no_parent"),
        pytest.param([{"op": "add", "path": "/list/0/y", "value": 1}], id="parent_is_a_word"),
        pytest.param([{"op": "add", "path": "/list/3", "value": 1}], id="beyond_the_end"),
        pytest.param([{"op": "remove", "path": "/x"}], id="nothing_to_remove"),
        pytest.param([{"op": "remove", "path": "/list/-"}], id="the_end_cannot_be_removed"),
        pytest.param([{"op": "remove", "path": ""}], id="not_the_whole_object"),
        pytest.param([{"op": "replace", "path": "/x", "value": 1}], id="nothing_to_replace"),
        pytest.param([{"op": "test", "path": "/list/0", "value": "y"}], id="test_fails"),
        pytest.param([{"op": "move", "path": "/x"}], id="no_from"),
    ],
)
def test_a_patch_that_does_not_apply_is_refused(operations: Any) -> None:
    with pytest.raises(InvalidPatch):
        apply(BODY, operations)
