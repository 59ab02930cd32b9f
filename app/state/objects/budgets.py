"""Disruption budgets: how many pods of a namespace may be evicted now, and which ones they count.

The API server evicts no pod that two budgets select, so neither lets it go. A budget whose labels
are not read (`kept_keys.py`) may select any pod of its namespace, and lets none go; nor do those of
a namespace with more budgets than are compared with each of its pods.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from app.dialects.declared import DisruptionBudget
from app.dialects.registry import Dialects
from app.kube.core.objects import ObjectRecord
from app.state.objects.kept_keys import KeptKeys

MOST_IN_NAMESPACE = 128
MOST_REQUIREMENTS = 512  # of all budgets of a namespace: each is compared with each of its pods

Labels = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class BudgetView:
    """The budgets as they were at one moment; may be read in another thread."""

    budgets: Mapping[str, tuple[DisruptionBudget, ...]]  # by namespace
    _names: dict[tuple[str, Labels], tuple[str, ...]] = field(default_factory=dict)

    @property
    def allowed(self) -> dict[str, int]:
        """By budget: how many pods may go; 0 for those that are not named."""
        return {each.name: each.allowed for some in self.budgets.values() for each in some}

    def counting(self, namespace: str, labels: Labels) -> str:
        """The budget that counts a pod with these labels, "" if none does."""
        names = self._names.get((namespace, labels))
        if names is None:
            given = dict(labels)
            names = tuple(
                each.name
                for each in self.budgets.get(namespace, ())
                if each.selector.matches(given)
            )
            self._names[namespace, labels] = names
        return " and ".join(names[:2])


@dataclass(slots=True)
class Budgets:
    """The budgets that the watch shows, by namespace and uid."""

    dialects: Dialects
    kept_keys: KeptKeys
    _of: dict[str, dict[str, tuple[ObjectRecord, DisruptionBudget]]] = field(default_factory=dict)
    _namespace_of: dict[str, str] = field(default_factory=dict)

    def put(self, record: ObjectRecord) -> None:
        """Learn of an object, which may be a budget."""
        budget = self.dialects.budget(record)
        self.drop(record.uid)
        if budget is not None:
            self._of.setdefault(budget.namespace, {})[record.uid] = record, budget
            self._namespace_of[record.uid] = budget.namespace

    def drop(self, uid: str) -> None:
        """Forget an object that is gone."""
        namespace = self._namespace_of.pop(uid, None)
        if namespace is not None:
            del self._of[namespace][uid]
            if not self._of[namespace]:
                del self._of[namespace]

    def view(self) -> BudgetView:
        """As they are now."""
        return BudgetView({name: self._in(name) for name in self._of})

    def _in(self, namespace: str) -> tuple[DisruptionBudget, ...]:
        known = self._of[namespace].values()
        requirements = sum(len(budget.selector.requirements) for _, budget in known)
        if len(known) > MOST_IN_NAMESPACE or requirements > MOST_REQUIREMENTS:
            name = f"one of {len(known)} of namespace {namespace}"
            return (DisruptionBudget.of_all(namespace, name),)
        return tuple(
            DisruptionBudget.of_all(namespace, budget.name)
            if self.kept_keys.lacking((record,))
            else budget
            for record, budget in known
        )
