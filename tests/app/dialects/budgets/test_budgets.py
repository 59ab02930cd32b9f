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


def test_an_empty_selector_selects_all_pods_and_none_at_all_selects_no_pod():
    assert selects({})
    assert not selects(None)


@pytest.mark.parametrize(
    "selector", [expression("app", "Near", "x"), expression("app", "In"), expression("", "Exists")]
)
def test_a_selector_that_is_not_valid_selects_no_pod(selector):
    assert not selects(selector)


def test_no_pod_may_go_while_the_status_is_older_than_the_spec():
    def allowed(found):
        return BudgetDialect().budget(found).allowed

    assert allowed(budget({})) == 2
    assert allowed(budget({}, generation=2)) == 0
    assert allowed(budget({}, disruptionsAllowed=-1)) == 0
    assert allowed(budget({}, disruptionsAllowed=None)) == 0


@pytest.mark.parametrize(
    "selector",
    [
        {"matchLabels": {f"k{at}": "" for at in range(MOST_REQUIREMENTS + 1)}},
        expression("app", "In", *map(str, range(MOST_VALUES + 1))),
        {"matchLabels": {"app": "x" * MOST_BYTES}},
    ],
)
def test_a_selector_that_is_too_long_keeps_all_pods_of_its_namespace(selector):
    found = BudgetDialect().budget(budget(selector))
    assert (found.selector.matches({}), found.allowed) == (True, 0)
    assert BudgetDialect().keys_named(budget(selector)) == ()


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
