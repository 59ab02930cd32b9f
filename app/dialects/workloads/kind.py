"""What Corral knows of one kind of workload; `app.dialects.workloads.KINDS` lists them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from app.dialects.flaw import Flaw
from app.dialects.spec import (
    MOST_PODS,
    NOTHING_SAID,
    Expected,
    GangKey,
    GangSpec,
    GroupSpec,
    Index,
    LeafSpec,
    Lifecycle,
    Numbers,
    Said,
    Suspension,
)
from app.dialects.workloads.record import Template, WorkloadRecord
from app.dialects.workloads.templates import TemplatePlace
from app.kube.core.objects import PodRecord
from app.kube.decoding.decode import Json, Keep
from app.kube.watch.resource import Resource

Reads = Callable[[Mapping[str, str]], Said | None]
"""What annotations of a template request, in some vocabulary; None: no topology."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a pod belongs by its owner."""

    gang: GangKey
    index: Index | None = None
    leaf: str = ""
    pods: int | None = None
    """How many pods the gang has, where they say it themselves."""
    where: str = ""
    """Where they say it, for messages."""
    is_sure: bool = False
    """Whether it counts before what its workload declares by now."""
    flaw: Flaw | None = None
    """What is wrong with how the pod says where it belongs."""


def _only_template(_template: Template, _at: int) -> str:
    return "spec.template"


def _unchanged(record: WorkloadRecord, _pods: int) -> WorkloadRecord:
    return record


@dataclass(frozen=True, slots=True)
class WorkloadKind:
    """One kind: where its objects are, how they are read, which gangs follow from them."""

    kind: str
    group: str
    version: str
    decode: Callable[[Json, Keep], WorkloadRecord]
    place: Callable[[PodRecord], Place | None]
    """The pod's place in the gang of its owner; None: the pod is of another kind."""
    keys: Callable[[WorkloadRecord], Iterator[GangKey]]
    """The gangs of this kind whose spec depends on an object of any kind."""
    spec: Callable[[GangKey, Collection[WorkloadRecord], Reads], GangSpec | None]
    """What a gang of this kind's `source` is; None if that is not known yet."""
    source: str
    """Of the keys of its gangs."""
    templates: tuple[TemplatePlace, ...]
    path_of: Callable[[Template, int], str] = _only_template
    """Where a template of a record stands in its object, at this place among those of the record.
    """
    resized: Callable[[WorkloadRecord, int], WorkloadRecord] = _unchanged
    """An object as it declared a gang of so many pods, whose pods are sure of that."""
    kept: tuple[str, ...] = ()
    """Labels and annotations of pods that tell where they belong."""
    is_optional: bool = True
    is_suspendable: bool = False
    """Whether its controller deletes all pods of one that is suspended, counts none of them as
    failed, and makes them again at once when it goes on.

    Source: kubernetes v1.36 pkg/controller/job/job_controller.go, manageJob and deleteJobPods.
    """

    @property
    def is_whole(self) -> bool:
        """Whether an object has the templates of all pods of its gang."""
        return all(place.is_grouped for place in self.templates)

    @property
    def path(self) -> str:
        """Where the API server lists its objects."""
        return f"/apis/{self.group}/{self.version}/{self.kind.lower()}s"

    def suspension(self, record: WorkloadRecord) -> Suspension | None:
        """How to have all pods of an object of this kind made anew; None: not by suspending it."""
        if not self.is_suspendable:
            return None
        path = f"/apis/{self.group}/{self.version}/namespaces/{record.namespace}"
        of_all = f"{path}/{self.kind.lower()}s"
        return Suspension(of_all, record.namespace, record.name, record.uid)

    def resource(self, keep: Keep) -> Resource:
        """What to watch."""
        return Resource(
            self.kind,
            self.path,
            WorkloadRecord,
            lambda raw: self.decode(raw, keep),
            self.is_optional,
        )


def asking(record: WorkloadRecord, reads: Reads) -> tuple[Template, ...]:
    """The templates whose pods are members: those that request a topology.

    The pods of any other are another scheduler's, or the vocabulary calls it a mistake. All of them
    where none does: then something adds the annotations to the pods themselves.
    """
    found = tuple(each for each in record.templates if reads(each.annotations))
    return found or record.templates


def leaf_to_come(
    name: str,
    record: WorkloadRecord,
    template: Template,
    reads: Reads,
    numbers: Callable[[Template, int], Numbers],
) -> LeafSpec:
    """The leaf of a workload's pods that are made only once others of their gang run.

    `numbers`: the numbers of a template's pods, the first pod having this one (`Index.offset`).
    """
    if template.like is None or record.pods > MOST_PODS:
        return LeafSpec(name, template.pods)
    said = reads(template.annotations) or NOTHING_SAID
    of_them = numbers(template, said.offset)
    return LeafSpec(name, template.pods, like=Expected(template.like, said, of_them))


_LIFECYCLE = Lifecycle()


def gang_of(
    key: GangKey,
    where: str,
    leaves: Iterable[LeafSpec],
    *,
    starts_with: int | None = None,
    reserves_all: bool = False,
    lifecycle: Lifecycle = _LIFECYCLE,
) -> GangSpec:
    """The spec of a gang of these leaves."""
    return GangSpec(
        key,
        GroupSpec(key.name, tuple(leaves)),
        where,
        starts_with=starts_with,
        reserves_all=reserves_all,
        lifecycle=lifecycle,
    )
