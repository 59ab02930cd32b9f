"""Volcano's vocabulary: PodGroups, and HyperNodes, which name the nodes that are close together.

`pod_groups.py` reads PodGroups and `jobs.py` the vcjobs that own them; `claims.py` says where a pod
belongs in its PodGroup, `gangs.py` what the PodGroup is as a gang, `status.py` what is written back
on it. `hyper_nodes.py` has HyperNodes and their status. `keys.py` has the labels and annotations of
pods.
"""

from app.dialects.volcano.dialect import VolcanoDialect

DIALECT = VolcanoDialect()

__all__ = ["DIALECT"]
