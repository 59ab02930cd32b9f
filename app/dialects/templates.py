"""Where objects that make pods keep their templates, and how many pods each of them is for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PodSets:
    """Where a kind of object keeps the templates of its pods, and how many pods each is for.

    `holder[*]` stands for every value of a list or mapping. The pods are the product of `counts`;
    each count is the least of its fields below the holder that are set, 1 where none is.
    """

    holder: str
    template: str
    counts: tuple[tuple[str, ...], ...] = ()
    apart: str = ""  # a template beside this one that takes one of the pods, where it is set
    is_grouped: bool = True  # the object is all there is: pod set groups must be whole in it


_JOB = ("parallelism", "completions")


def _replicas(framework: str) -> tuple[PodSets, ...]:
    return (PodSets(f"spec.{framework}ReplicaSpecs[*]", "template", (("replicas",),)),)


# A JobSet's Job and a LeaderWorkerSet's StatefulSet have but one of the pod sets.
TEMPLATES: Mapping[tuple[str, str], tuple[PodSets, ...]] = {
    ("batch", "Job"): (PodSets("spec", "template", (_JOB,), is_grouped=False),),
    ("apps", "StatefulSet"): (PodSets("spec", "template", (("replicas",),), is_grouped=False),),
    ("jobset.x-k8s.io", "JobSet"): (
        PodSets(
            "spec.replicatedJobs[*]",
            "template.spec.template",
            (("replicas",), tuple(f"template.spec.{field}" for field in _JOB)),
        ),
    ),
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): (
        PodSets("spec.leaderWorkerTemplate", "leaderTemplate"),
        PodSets(
            "spec.leaderWorkerTemplate", "workerTemplate", (("size",),), apart="leaderTemplate"
        ),
    ),
    ("kubeflow.org", "PyTorchJob"): _replicas("pytorch"),
    ("kubeflow.org", "TFJob"): _replicas("tf"),
    ("kubeflow.org", "XGBoostJob"): _replicas("xgb"),
    ("kubeflow.org", "PaddleJob"): _replicas("paddle"),
    ("kubeflow.org", "JAXJob"): _replicas("jax"),
    ("kubeflow.org", "MPIJob"): _replicas("mpi"),
}
