"""Kubernetes' own vocabulary: PodGroups of scheduling.k8s.io, which pods name in their spec.

`pod_groups.py` reads PodGroups, `gangs.py` says where a pod belongs and what a PodGroup is as a
gang, `status.py` what is written back on it.

Where kube-scheduler has the feature gates on it does all of this itself, and asks extenders about
each pod in each domain that it tries. Two answers to one question would contradict each other, so
the operator says who does it (the setting `native_pod_groups`): while it is `off`, pods that name a
PodGroup are ordinary ones here. Those that request more in annotations, which kube-scheduler does
not read, are refused: what is not kept is not promised.
"""

from app.dialects.native.dialect import NativeDialect

DIALECT = NativeDialect()

__all__ = ["DIALECT"]
