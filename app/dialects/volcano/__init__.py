"""Volcano's vocabulary: PodGroups, and HyperNodes, which name the nodes that are close together.

`pod_groups.py` reads PodGroups and `jobs.py` the vcjobs that own them; `claims.py` says where a pod
belongs in its PodGroup, `gangs.py` what the PodGroup is as a gang, `status.py` what is written back
on it. `hyper_nodes.py` has HyperNodes and their status, `members.py` whom they name. What several
of these objects have in them: `network_topology.py`, `selectors.py`. `keys.py` has the labels and
annotations of pods.

Each kind's rules stand beside its reader, as flaws: the webhook shows all of them, the reader stops
at the first that is fatal.
"""

from app.dialects.volcano.dialect import VolcanoDialect

DIALECT = VolcanoDialect()

__all__ = ["DIALECT"]
