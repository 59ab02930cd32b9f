"""What is wrong with the workloads that a gang's pods are made by, when the gang is read.

The rules are those that the webhook has for the same objects: who goes without the webhook is told
the same at the same field. Templates of other schedulers' pods, and those without pods now, are
none of the gang's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from app.dialects.corral import WORKLOAD
from app.dialects.dialect import PodSetClaim, TemplateOwner
from app.dialects.kueue import annotations as keys
from app.dialects.kueue import rules
from app.dialects.spec import GangKey
from app.dialects.workloads import KINDS, Template, WorkloadRecord, job_set
from app.kube.core.objects import ObjectRecord
from app.settings import is_named
from topology.model.request import Constraint

_KINDS = {kind.kind: kind for kind in KINDS}


def flaw(key: GangKey, objects: Collection[ObjectRecord], scheduler_name: str) -> str:
    """The first rule that a gang's workloads break, as a sentence; "" if they break none.

    `scheduler_name`: spec.schedulerName of our pods; several with commas; "": any.
    """
    records = [each for each in objects if isinstance(each, WorkloadRecord)]
    for record in records:
        # Most of a JobSet's thousands of Jobs say nothing themselves, and have one template.
        says_more = rules.ELASTIC in record.annotations or keys.asks_together(record.annotations)
        if len(record.templates) > 1 or says_more:
            for found in _flaws(_owner(record, scheduler_name)):
                return f"{record.kind} {record.namespace}/{record.name}: {found}"
    if key.source != job_set.SOURCE or any(each.kind == job_set.JOB_SET.kind for each in records):
        return ""
    return next(_flaws(_job_set(records, scheduler_name)), "")


def levels(objects: Collection[ObjectRecord]) -> tuple[tuple[str, Constraint], ...]:
    """By the name of each workload that does: what it validly requests for all its pods."""
    return tuple(
        (f"{each.kind} {each.namespace}/{each.name}", keys.together(each.annotations))
        for each in objects
        if isinstance(each, WorkloadRecord)
        and keys.asks_together(each.annotations)
        and not any(rules.level_flaws(each.annotations, WORKLOAD))
    )


def _flaws(owner: TemplateOwner) -> Iterator[str]:
    for claim, found in rules.together(owner):
        yield f"{claim.path}.{found.field}: {found.body}"


def _owner(record: WorkloadRecord, scheduler_name: str) -> TemplateOwner:
    kind = _KINDS[record.kind]
    claims = (
        _claim(f"{kind.path_of(template, at)}.metadata", template, kind.is_whole)
        for at, template in enumerate(record.templates)
        if _is_ours(template, scheduler_name)
    )
    return TemplateOwner(kind.group, kind.kind, record.annotations, tuple(claims))


def _job_set(records: Collection[WorkloadRecord], scheduler_name: str) -> TemplateOwner:
    """A JobSet that is not known yet, as far as its Jobs say what it is."""
    claims: dict[str, PodSetClaim] = {}
    for each in records:
        name = each.labels.get(job_set.REPLICATED_JOB, "")
        if name not in claims:
            for template in each.templates:
                if _is_ours(template, scheduler_name):
                    path = f"Job {each.namespace}/{each.name}: spec.template.metadata"
                    claims[name] = _claim(path, template, is_grouped=True)
    kind = job_set.JOB_SET
    return TemplateOwner(kind.group, kind.kind, {}, tuple(claims.values()))


def _claim(path: str, template: Template, is_grouped: bool) -> PodSetClaim:
    return PodSetClaim(path, template.annotations, template.pods, is_grouped, template.scheduler)


def _is_ours(template: Template, scheduler_name: str) -> bool:
    return template.pods > 0 and is_named(template.scheduler, scheduler_name)
