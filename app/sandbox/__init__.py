"""A cluster in one process: an in-memory Kubernetes API over real HTTP, and a scheduler loop.

Read in this order: `store.py` (versions and the log), `registry.py` (the API server's rules),
`api.py` (the wire), then `scheduler.py` (one pod at a time) with `queue.py` and `extender.py`.

It is the other side of the wire: it imports nothing of Corral, and Corral meets it through HTTP
only. Its behaviour follows kube-apiserver and kube-scheduler 1.36.
"""

from app.sandbox.cluster.sandbox import Sandbox
from app.sandbox.cluster.snapshot import LoadOptions
from app.sandbox.cluster.synthetic import ClusterPlan, synthetic_snapshot
from app.sandbox.scheduler.facts.scheduler_config import ExtenderConfig, SchedulerConfig

__all__ = [
    "ClusterPlan",
    "ExtenderConfig",
    "LoadOptions",
    "Sandbox",
    "SchedulerConfig",
    "synthetic_snapshot",
]
