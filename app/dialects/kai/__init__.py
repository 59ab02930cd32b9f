"""KAI-Scheduler's vocabulary: PodGroups with a tree of sub-groups, and its Topologies.

`topology.py` reads Topologies; `pod_groups.py` reads PodGroups, whose tree `sub_groups.py` checks
and whose levels `constraints.py` reads; `joins.py` says how several Topologies are inside one
another. `claims.py` says where a pod belongs in its PodGroup, `segments.py` how the pods of one
template are cut, `gangs.py` what the PodGroup is as a gang, `status.py` what is written back on it.
`keys.py` has the labels and annotations of pods, and which of them say nothing without KAI's
pod-grouper.

Each kind's rules stand beside its reader, as flaws: the webhook shows all of them, the reader stops
at the first that is fatal.
"""

from app.dialects.kai.dialect import KaiDialect

DIALECT = KaiDialect()

__all__ = ["DIALECT"]
