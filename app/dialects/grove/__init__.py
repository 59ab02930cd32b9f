"""Grove's vocabulary: PodGangs with groups of pod groups, and its ClusterTopologies.

`topology.py` reads ClusterTopologies; `pod_gangs.py` reads PodGangs, whose levels `constraints.py`
reads. `claims.py` says where a pod belongs in its PodGang, `gangs.py` what the PodGang is as a
gang, `status.py` what is written back on it. `keys.py` has the labels and annotations.

Grove's operator makes PodGangs from PodCliqueSets, which are not read here.
"""

from app.dialects.grove.dialect import GroveDialect

DIALECT = GroveDialect()

__all__ = ["DIALECT"]
