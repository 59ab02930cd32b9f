"""Which budgets are known, and which of them counts a pod."""

from __future__ import annotations

from app.dialects import budgets
from app.dialects.budgets.dialect import KIND, BudgetRecord
from app.dialects.registry import Dialects
from app.state.objects.budgets import Budgets
from app.state.objects.kept_keys import KeptKeys
from tests.records import job

APP = (("app", "In", ("web",)),)


def known() -> Budgets:
    dialects = Dialects((budgets.DIALECT,))
    return Budgets(dialects, KeptKeys(dialects))


def budget(name: str, allowed: int = 0, requirements=APP, namespace: str = "default"):
    return BudgetRecord(KIND, namespace, name, f"uid-{name}", "1", requirements, allowed)


def counting(shown: Budgets, namespace: str = "default", app: str = "web") -> str:
    return shown.view().counting(namespace, (("app", app),))


def test_a_budget_counts_the_pods_of_its_namespace_that_it_selects():
    shown = known()
    shown.put(budget("b"))
    assert [counting(shown, app=app) for app in ("web", "db")] == ["default/b", ""]
    assert counting(shown, "other") == ""


def test_a_budget_that_changes_takes_the_place_of_what_it_was():
    shown = known()
    shown.put(budget("b", allowed=1))
    shown.put(budget("b", allowed=2))
    assert shown.view().allowed == {"default/b": 2}


def test_a_budget_that_selects_nothing_any_more_counts_no_pod():
    shown = known()
    shown.put(budget("b"))
    shown.put(budget("b", requirements=None))
    assert (counting(shown), shown.view().allowed) == ("", {})


def test_budgets_that_are_gone_are_forgotten_and_others_stay():
    shown = known()
    shown.put(budget("b"))
    shown.put(budget("c", allowed=3))
    shown.put(budget("d", namespace="other"))
    shown.drop("uid-b")
    shown.drop("uid-d")
    shown.drop("uid-that-nobody-knows")
    assert shown.view().allowed == {"default/c": 3}
    assert set(shown.view().budgets) == {"default"}


def test_an_object_that_is_no_budget_is_none():
    shown = known()
    shown.put(job("j", 2))
    assert shown.view().budgets == {}


def test_of_several_budgets_that_count_a_pod_two_are_named():
    shown = known()
    for name in "bcd":
        shown.put(budget(name))
    assert counting(shown) == "default/b and default/c"


def test_a_view_stays_as_it_was():
    shown = known()
    shown.put(budget("b", allowed=1))
    view = shown.view()
    shown.put(budget("b", allowed=2))
    assert view.allowed == {"default/b": 1}
