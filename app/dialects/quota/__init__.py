"""ResourceQuota: no vocabulary of gangs, but what a namespace may have at all.

Places that are held for pods that do not exist yet are worth nothing beyond it: the API server
would refuse those pods.
"""

from app.dialects.quota.dialect import QuotaDialect

DIALECT = QuotaDialect()

__all__ = ["DIALECT"]
