"""PodDisruptionBudgets: whom they select, and how many of those may go."""

from __future__ import annotations

import msgspec
import pytest

from app.dialects.budgets.dialect import (
    MOST_BYTES,
    MOST_REQUIREMENTS,
    MOST_VALUES,
    BudgetDialect,
    decode_budget,
)
from app.errors import DecodeError
from app.settings import EngineOptions
from tests.records import job


def budget(selector=None, *, generation=1, **status):
    """A budget as the API server writes it."""
    status = {"observedGeneration": 1, "disruptionsAllowed": 2, **status}
    metadata = {"name": "keep", "namespace": "team", "uid": "u1", "generation": generation}
    body = {"metadata": metadata, "spec": {"selector": selector}, "status": status}
    return decode_budget(msgspec.json.encode(body))


def selects(selector, **labels):
    found = BudgetDialect().budget(budget(selector))
    return found is not None and found.selector.matches(labels)


def expression(key, operator, *values):
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def of_bytes(size):
    """A selector whose JSON has so many bytes."""
    return {"matchLabels": {"app": "x" * (size - len('{"matchLabels":{"app":""}}'))}}


def test_labels_and_expressions_all_have_to_hold():
    selector = {"matchLabels": {"app": "db"}, **expression("tier", "In", "gold", "silver")}
    assert selects(selector, app="db", tier="gold")
    assert not selects(selector, app="db", tier="iron")
    assert not selects(selector, tier="gold")


@pytest.mark.parametrize(
    ("operator", "values", "with_it", "without"),
    [
        ("In", ["a"], True, False),
        ("NotIn", ["a"], False, True),
        ("Exists", [], True, False),
        ("DoesNotExist", [], False, True),
    ],
)
def test_each_operator(operator, values, with_it, without):
    selector = expression("app", operator, *values)
    assert (selects(selector, app="a"), selects(selector)) == (with_it, without)


@pytest.mark.parametrize(
    "selector",
    [
        pytest.param({"matchLabels": None, "matchExpressions": None}, id="both"),
        pytest.param({"matchExpressions": []}, id="no_expressions"),
        pytest.param(
            {"matchExpressions": [{"key": "app", "operator": "Exists", "values": None}]},
            id="the_values_of_an_operator_without_any",
        ),
    ],
)
def test_null_is_as_if_it_were_not_there(selector):
    assert selects(selector, app="a")


def test_a_label_that_is_null_is_the_empty_one():
    assert selects({"matchLabels": {"app": None}}, app="")
    assert not selects({"matchLabels": {"app": None}}, app="a")
    values = {"key": "app", "operator": "In", "values": [None, "a"]}
    assert selects({"matchExpressions": [values]}, app="")
    assert not selects({"matchExpressions": [values]}, app="b")


def test_the_record_says_which_budget_it_is_of():
    found = budget({"matchLabels": {"b": "2", "a": "1"}})
    assert found.kind == "PodDisruptionBudget"
    assert (found.namespace, found.name, found.uid, found.version) == ("team", "keep", "u1", "")
    assert found.requirements == (("a", "In", ("1",)), ("b", "In", ("2",)))
    assert BudgetDialect().budget(found).namespace == "team"


def test_a_budget_that_says_nothing_selects_nothing():
    found = decode_budget(b"{}")
    assert (found.namespace, found.name, found.uid, found.version) == ("", "", "", "")
    assert (found.requirements, found.allowed, found.is_too_long) == (None, 0, False)
    assert BudgetDialect().budget(found) is None
    assert BudgetDialect().keys_named(found) == ()


def test_other_objects_are_no_budgets():
    assert BudgetDialect().budget(job("train", 2)) is None
    assert BudgetDialect().keys_named(job("train", 2)) == ()


def test_an_empty_selector_selects_all_pods_and_none_at_all_selects_no_pod():
    assert selects({})
    assert not selects(None)


@pytest.mark.parametrize(
    "selector",
    [
        pytest.param(expression("app", "Near", "x"), id="unknown_operator"),
        pytest.param(expression("app", "In"), id="in_nothing"),
        pytest.param(expression("app", "NotIn"), id="not_in_nothing"),
        pytest.param(expression("app", "Exists", "x"), id="exists_with_a_value"),
        pytest.param(expression("app", "DoesNotExist", "x"), id="does_not_exist_with_a_value"),
        pytest.param(expression("", "Exists"), id="no_key"),
        pytest.param(expression("", "DoesNotExist"), id="no_key_that_does_not_exist"),
        pytest.param({"matchLabels": {"": "x"}}, id="label_without_a_key"),
        pytest.param({"matchExpressions": [{"key": "app"}]}, id="no_operator"),
        pytest.param({"matchExpressions": [None]}, id="null"),
        pytest.param(
            {"matchLabels": {"app": "a"}, **expression("app", "Near")}, id="beside_a_valid_one"
        ),
    ],
)
def test_a_selector_that_is_not_valid_selects_no_pod(selector):
    assert not selects(selector)


def test_no_pod_may_go_while_the_status_is_older_than_the_spec():
    def allowed(found):
        return BudgetDialect().budget(found).allowed

    assert allowed(budget({})) == 2
    assert allowed(budget({}, generation=2)) == 0
    assert allowed(budget({}, observedGeneration=None)) == 0
    assert allowed(budget({}, generation=2, observedGeneration=3)) == 2
    assert allowed(budget({}, generation=None, observedGeneration=None)) == 2
    assert allowed(budget({}, disruptionsAllowed=1)) == 1
    assert allowed(budget({}, disruptionsAllowed=0)) == 0
    assert allowed(budget({}, disruptionsAllowed=-1)) == 0
    assert allowed(budget({}, disruptionsAllowed=None)) == 0


@pytest.mark.parametrize(
    "selector",
    [
        {"matchLabels": {f"k{at}": "" for at in range(MOST_REQUIREMENTS + 1)}},
        expression("app", "In", *map(str, range(MOST_VALUES + 1))),
        {
            "matchLabels": {f"k{at}": "" for at in range(MOST_REQUIREMENTS)},
            **expression("app", "Exists"),
        },
        {"matchExpressions": [None, *expression("a", "In", *"x" * 257)["matchExpressions"]]},
        of_bytes(MOST_BYTES + 1),
    ],
)
def test_a_selector_that_is_too_long_keeps_all_pods_of_its_namespace(selector):
    found = BudgetDialect().budget(budget(selector))
    assert (found.selector.matches({}), found.allowed) == (True, 0)
    assert BudgetDialect().keys_named(budget(selector)) == ()


@pytest.mark.parametrize(
    "selector",
    [
        pytest.param(
            {"matchLabels": {f"k{at}": "" for at in range(MOST_REQUIREMENTS)}}, id="labels"
        ),
        pytest.param(
            {
                "matchLabels": {f"k{at}": "" for at in range(MOST_REQUIREMENTS - 1)},
                **expression("app", "Exists"),
            },
            id="labels_and_an_expression",
        ),
        pytest.param(expression("app", "In", *map(str, range(MOST_VALUES))), id="values"),
        pytest.param(of_bytes(MOST_BYTES), id="bytes"),
    ],
)
def test_a_selector_as_long_as_it_may_be_is_read(selector):
    found = BudgetDialect().budget(budget(selector))
    assert (found.selector.matches({}), found.allowed) == (False, 2)


def test_the_labels_that_a_selector_names_are_read_of_pods():
    selector = {"matchLabels": {"app": "db"}, **expression("tier", "Exists")}
    assert BudgetDialect().keys_named(budget(selector)) == ("app", "tier")


def test_what_cannot_be_read_is_named():
    with pytest.raises(DecodeError, match=r"PodDisruptionBudget team/keep: .*disruptionsAllowed"):
        budget({}, disruptionsAllowed="many")


def test_a_selector_that_cannot_be_read_is_named():
    with pytest.raises(DecodeError, match=r"PodDisruptionBudget team/keep: spec.selector: "):
        budget({"matchLabels": "app=db"})


def test_budgets_are_watched_only_where_somebody_asks():
    asked = {
        setting: len(BudgetDialect().configured(EngineOptions(preempt=setting)).resources(bool))
        for setting in ("off", "explain")
    }
    assert asked == {"off": 0, "explain": 1}
