"""A cluster in one process: a Kubernetes API server in memory, a scheduler and a few controllers.

    apiserver/   objects, rules, admission, HTTP      ◀── Corral, kubectl and tests, over HTTP
    scheduler/   kube-scheduler as an extender sees it ──▶ Corral's extender port, over HTTP
    cluster/     both put together, with jobs, kubelets and nodes

It stands for everything on the other side of the wire: it imports nothing of Corral, and Corral
meets it over HTTP only. It follows kube-apiserver and kube-scheduler 1.36; each module says what it
leaves out. Tests play the same scenarios on the sandbox and on a real control plane.

Read in this order: `apiserver`, `scheduler`, `cluster`.
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
