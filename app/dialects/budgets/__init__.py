"""PodDisruptionBudget: no vocabulary of gangs, but how many pods of an application may go at once.

The API server refuses an eviction that a budget forbids; these are read so that no gang is said to
start once pods have gone that may not.
"""

from app.dialects.budgets.dialect import BudgetDialect

DIALECT = BudgetDialect()

__all__ = ["DIALECT"]
