"""Volcano's jobs: whose pods they are to be before there are any.

Everything else of a vcjob its controller writes into the job's PodGroup.
Source: volcano staging/src/volcano.sh/apis/pkg/apis/batch/v1alpha1/job.go (v1.14);
pkg/controllers/job/job_controller_actions.go, `createOrUpdatePodGroup`.
"""

from __future__ import annotations

import msgspec

from app.kube.core import wire
from app.kube.core.decode import Json, decoded
from app.kube.core.objects import ObjectRecord
from app.kube.watch.resource import Resource

KIND = "Job.batch.volcano.sh"  # batch has a kind of that name as well
PATH = "/apis/batch.volcano.sh/v1alpha1/jobs"


class VolcanoJobRecord(ObjectRecord, frozen=True, gc=False):
    """One vcjob."""

    scheduler: str = ""
    """What its pods will have as schedulerName."""

    @property
    def pod_group(self) -> str:
        """The name of its PodGroup."""
        return f"{self.name}-{self.uid}"


class _Spec(wire.Wire):
    scheduler_name: wire.Text = None


class _Job(wire.Wire):
    metadata: wire.Metadata | None = None
    spec: _Spec | None = None


_JOB = msgspec.json.Decoder(_Job)


def decode_job(raw: Json) -> VolcanoJobRecord:
    """Return the record of a vcjob.

    Raises: DecodeError naming the job and the field.
    """
    job = decoded(_JOB, raw, "Job")
    metadata, spec = job.metadata or wire.Metadata(), job.spec or _Spec()
    return VolcanoJobRecord(
        kind=KIND,
        namespace=metadata.namespace or "",
        name=metadata.name or "",
        uid=metadata.uid or "",
        version=metadata.resource_version or "",
        scheduler=spec.scheduler_name or "",
    )


RESOURCE = Resource(KIND, PATH, VolcanoJobRecord, decode_job, is_optional=True)
