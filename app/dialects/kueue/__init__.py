"""Kueue's vocabulary: topology annotations on workloads and plain pods, and pod groups.

Read in this order: `annotations.py` (topology), `pod_groups.py` with `driver_sets.py`, `rules.py`
and `group_rules.py` (what is valid), `claims.py` (what one pod says), `dialect.py` (all of it
together); `topology.py` reads Topology objects, `in_charge.py` tells what Kueue itself manages and
which pods queue one by one.
"""

from app.dialects.kueue.dialect import KueueDialect

DIALECT = KueueDialect()

__all__ = ["DIALECT"]
