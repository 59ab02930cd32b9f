"""The objects and pods that controllers would create of an object, before there are any.

    object ──MAKERS[group, kind]──▶ Part, Part, …     other objects first, pods last

What is created later, once other pods run, is left out: places are reserved for it when the gang is
planned. `parts.py` is how fields are read; each other file has the kinds of one project. Names,
numbers and labels are as the controllers write them, but for what is random in a name.
"""

from collections.abc import Callable, Iterator, Mapping

from app.dialects.making import (
    grove,
    jobs,
    kubeflow,
    leader_worker_sets,
    own,
    stateful_sets,
    volcano,
)
from app.dialects.making.parts import Misfit, Object, Part

Maker = Callable[[Object], Iterator[Part]]

MAKERS: Mapping[tuple[str, str], Maker] = {
    ("", "Pod"): own.itself,
    ("scheduling.k8s.io", "PodGroup"): own.itself,
    ("scheduling.k8s.io", "CompositePodGroup"): own.itself,
    ("scheduling.volcano.sh", "PodGroup"): own.itself,
    ("scheduling.run.ai", "PodGroup"): own.itself,
    ("scheduler.grove.io", "PodGang"): own.itself,
    (own.GROUP, own.KIND): own.gang,
    ("batch", "Job"): jobs.job,
    ("jobset.x-k8s.io", "JobSet"): jobs.job_set,
    ("apps", "StatefulSet"): stateful_sets.stateful_set,
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): leader_worker_sets.leader_worker_set,
    **{("kubeflow.org", kind): kubeflow.training_job for kind in kubeflow.KINDS},
    ("kubeflow.org", kubeflow.MPI_KIND): kubeflow.mpi_job,
    ("batch.volcano.sh", "Job"): volcano.job,
    ("grove.io", "PodCliqueSet"): grove.pod_clique_set,
}

GANG = own.KIND

__all__ = ["GANG", "MAKERS", "Maker", "Misfit", "Object", "Part"]
