"""The kinds of workloads that make pods: which gangs follow from them, in every vocabulary.

| a pod                       | its gang        | leaf           | numbered by      |
|-----------------------------|-----------------|----------------|------------------|
| of a LeaderWorkerSet        | its group       | role           | worker index     |
| of a JobSet                 | the JobSet      | replicated Job | completion index |
| of a Kubeflow job           | that job        | replica type   | replica index    |
| of an MPIJob's launcher Job | the MPIJob      | launcher       | replica index    |
| of a StatefulSet            | the StatefulSet | -              | pod index        |
| of a Job                    | the Job         | -              | completion index |

The first row that holds counts. This is no vocabulary: a vocabulary says which of these pods are
members of a gang at all, and where they must be. A new kind is a file here and a line below.
"""

from app.dialects.workloads.job import JOB
from app.dialects.workloads.job_set import JOB_SET
from app.dialects.workloads.kind import Place, Reads, WorkloadKind, asking
from app.dialects.workloads.kubeflow import KINDS as KUBEFLOW
from app.dialects.workloads.leader_worker_set import LEADER_WORKER_SET
from app.dialects.workloads.record import Template, WorkloadRecord
from app.dialects.workloads.stateful_set import STATEFUL_SET
from app.dialects.workloads.templates import TemplatePlace

KINDS: tuple[WorkloadKind, ...] = (LEADER_WORKER_SET, JOB_SET, *KUBEFLOW, STATEFUL_SET, JOB)

__all__ = [
    "KINDS",
    "KUBEFLOW",
    "Place",
    "Reads",
    "Template",
    "TemplatePlace",
    "WorkloadKind",
    "WorkloadRecord",
    "asking",
]
