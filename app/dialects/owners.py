"""Which controllers make a pod again that was evicted before it ran, or deleted.

Of others it is not known: those of workflows take the eviction for the end of a step, as do those
of a driver that counts its executors.
"""

from __future__ import annotations

from app.kube.core.objects import Owner

_API_GROUPS = frozenset(
    (
        "apps",
        "batch",
        "batch.volcano.sh",
        "grove.io",
        "jobset.x-k8s.io",
        "kubeflow.org",
        "leaderworkerset.x-k8s.io",
        "ray.io",
    )
)
_CORE_KIND = "ReplicationController"


def makes_again(owner: Owner | None) -> bool:
    """Whether the controller of a pod is one that makes another one in its stead."""
    if owner is None:
        return False
    group, slash, _ = owner.api_version.rpartition("/")
    return group in _API_GROUPS if slash else owner.kind == _CORE_KIND
