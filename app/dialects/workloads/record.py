"""The record of a workload, whatever its kind: how many pods there will be, from which templates.

A workload without a number has the default its API gives it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from sys import intern
from typing import Literal, TypeVar

import msgspec

from app.dialects.corral import SUSPENDED
from app.dialects.spec import FailureLimit
from app.errors import DecodeError
from app.kube.core.objects import ObjectRecord, Owner, PodRecord
from app.kube.core.turns import turn
from app.kube.decoding import wire
from app.kube.decoding.decode import Keep, controller, kept
from app.kube.decoding.large.parts import values_in
from app.kube.decoding.template import decode_template
from app.settings import is_named
from topology.pod_set.gaps import NO_GAPS, Gaps

JOB_SET_PART = "jobset.sigs.k8s.io/replicatedjob-name"  # label of a Job that a JobSet made
LONGEST_NAME = 253  # characters of a schedulerName that are kept: ours has no more
MOST_TEMPLATES = 256  # of one object; Kueue takes 18
# Strings and objects of all templates of one object that are read whole, those of pods that come
# later; of the others only annotations count. A template has some 200.
MOST_VALUES = 10_240
MOST_OBJECTS = 32_768  # of a mapping with templates, all that is in them included

_T = TypeVar("_T")


class Template(msgspec.Struct, frozen=True, gc=False):
    """Pods that a workload makes from one template."""

    name: str  # what the workload calls them; "" where it makes all its pods from one template
    pods: int
    annotations: Mapping[str, str]  # kept keys
    like: PodRecord | None = None  # a pod made from it, if such pods come later than others
    jobs: int = 0  # Jobs that number their pods each for itself; 0: the pods have no numbers
    scheduler: str = ""  # its schedulerName; "" where it names none
    succeeded: int = 0  # of its pods, where a workload counts them by template

    @property
    def left(self) -> int:
        """How many of its pods have not succeeded."""
        return max(self.pods - self.succeeded, 0)


Outcome = Literal["fails", "restarts", "restarts_always"]


class FailureRule(msgspec.Struct, frozen=True, gc=False):
    """What a JobSet makes of a Job that fails: it fails, restarts if it still may, or restarts."""

    outcome: Outcome
    reasons: tuple[str, ...] = ()  # of Jobs that fail for one of these; (): for any
    parts: tuple[str, ...] = ()  # of Jobs of one of these replicated Jobs; (): of any
    is_certain: bool = True  # False: of some of those Jobs, as messages say that are not known


class WorkloadRecord(ObjectRecord, frozen=True, gc=False):
    """One workload of any `kind`: how many pods its gang will have.

    Where several gangs follow from one workload (`gangs`), each has `templates` of its own.
    """

    annotations: Mapping[str, str] = {}  # kept keys of its own metadata
    labels: Mapping[str, str] = {}  # kept keys
    owner: Owner | None = None
    templates: tuple[Template, ...] = ()
    succeeded: int = 0
    completions: int | None = None  # of a batch/v1 Job
    failed_for_good: int = 0  # of an indexed one: as many of its pods are not made anew
    gaps: Gaps = NO_GAPS  # numbers that none of its pods has, or has any more
    is_suspended: bool = False
    is_finished: bool = False
    gangs: int = 1
    restarts: int = 0  # times that it began again from nothing
    restarts_left: int = 0  # times that it still may
    is_gradual: bool = False  # some pods are made only once others run
    failures_left: int | None = None  # pods that may fail before it does; None: any number
    failures: int = 0  # pods that have
    fails_if_lost: bool = False  # of those, one that goes without a node is none
    restarts_together: bool = False  # one pod that is lost has it make all of them anew
    deadline_seconds: int = 0  # it ends its pods at the latest so long after its start; 0: never
    failure_reasons: tuple[str, ...] = ()  # what it may say when it fails, as pods are evicted
    failure_rules: tuple[FailureRule, ...] = ()  # of a JobSet, in their order

    @property
    def failure_limit(self) -> FailureLimit | None:
        """When it fails; None: whatever its pods do, it does not."""
        left = self.failures_left
        return None if left is None else FailureLimit(left, self.failures, self.fails_if_lost)

    @property
    def pods(self) -> int:
        """Pods that run at a time, of all templates."""
        return sum(template.pods for template in self.templates)

    def lives_on(self, made: WorkloadRecord) -> bool:
        """Whether a JobSet makes a Job of its own anew that fails since its pods are evicted."""
        part = made.labels.get(JOB_SET_PART, "")
        return all(map(partial(self._lives_on, part), made.failure_reasons or ("",)))

    def _lives_on(self, part: str, reason: str) -> bool:
        for rule in self.failure_rules:
            if (rule.parts and part not in rule.parts) or (
                rule.reasons and reason not in rule.reasons
            ):
                continue
            if rule.outcome == "fails" or (rule.outcome == "restarts" and not self.restarts_left):
                return False
            if rule.is_certain:
                return True
        return self.restarts_left > 0

    def names(self, scheduler: str) -> bool:
        """Whether a template has this schedulerName; several with commas; "": any."""
        return not scheduler or any(is_named(each.scheduler, scheduler) for each in self.templates)


def failure_limit_of(record: WorkloadRecord, owner: ObjectRecord | None) -> FailureLimit | None:
    """How many pods of a workload may be evicted until it gives up; None: any number.

    So it is, too, where the workload that owns it makes it anew then.
    """
    is_made_anew = isinstance(owner, WorkloadRecord) and owner.lives_on(record)
    return None if record.is_finished or is_made_anew else record.failure_limit


def patch_of_suspension(*, ends: bool) -> Mapping[str, object]:
    """What to merge into a workload so that it is suspended, and says by whom; or goes on."""
    said = None if ends else "true"
    return {"metadata": {"annotations": {SUSPENDED: said}}, "spec": {"suspend": not ends}}


def is_suspended_by_us(record: WorkloadRecord) -> bool:
    """Whether a workload says that we have suspended it; its user may have it go on earlier."""
    return SUSPENDED in record.annotations and not record.is_finished


def record_of(
    kind: str,
    written: wire.Metadata | None,
    keep: Keep,
    templates: Sequence[Template],
    *,
    succeeded: int = 0,
    completions: int | None = None,
    failed_for_good: int = 0,
    gaps: Gaps = NO_GAPS,
    is_suspended: bool = False,
    is_finished: bool = False,
    gangs: int = 1,
    restarts: int = 0,
    restarts_left: int = 0,
    is_gradual: bool = False,
    failures_left: int | None = None,
    failures: int = 0,
    fails_if_lost: bool = False,
    restarts_together: bool = False,
    deadline_seconds: int = 0,
    failure_reasons: tuple[str, ...] = (),
    failure_rules: tuple[FailureRule, ...] = (),
) -> WorkloadRecord:
    """Return the record of a workload with this metadata."""
    metadata = written or wire.Metadata()
    return WorkloadRecord(
        kind=kind,
        namespace=intern(metadata.namespace or ""),
        name=metadata.name or "",
        uid=metadata.uid or "",
        version=metadata.resource_version or "",
        annotations=kept(metadata.annotations, keep),
        labels=kept(metadata.labels, keep),
        owner=controller(metadata),
        templates=tuple(templates),
        succeeded=succeeded,
        completions=completions,
        failed_for_good=failed_for_good,
        gaps=gaps,
        is_suspended=is_suspended,
        is_finished=is_finished,
        gangs=gangs,
        restarts=restarts,
        restarts_left=restarts_left,
        is_gradual=is_gradual,
        failures_left=failures_left,
        failures=failures,
        fails_if_lost=fails_if_lost,
        restarts_together=restarts_together,
        deadline_seconds=deadline_seconds,
        failure_reasons=failure_reasons,
        failure_rules=failure_rules,
    )


def or_one(number: int | None) -> int:
    """The number, or the default of most counts in the API."""
    return 1 if number is None else number


class _Metadata(wire.Wire):
    annotations: msgspec.Raw = msgspec.Raw(b"null")


class _PodSpec(wire.Wire):
    scheduler_name: wire.Text = None


class _Template(wire.Wire):
    metadata: _Metadata | None = None
    spec: _PodSpec | None = None


_TEMPLATE = msgspec.json.Decoder(_Template)
_STRINGS: msgspec.json.Decoder[wire.Strings] = msgspec.json.Decoder(wire.Strings)
NULL = msgspec.Raw(b"null")


def is_there(raw: msgspec.Raw) -> bool:
    """Whether an optional part of an object is set."""
    return bytes(raw) != b"null"


def is_filled(raw: msgspec.Raw) -> bool:
    """Whether an optional list has something in it."""
    return bytes(memoryview(raw)[:64]).translate(None, b" \t\r\n") not in (b"null", b"[]")


class Templates:
    """Reads the pod templates of one object; of all of them together only so much."""

    def __init__(self, kind: str, written: wire.Metadata | None, keep: Keep) -> None:
        metadata = written or wire.Metadata()
        self._of = f"{kind} {metadata.namespace or ''}/{metadata.name or ''}"
        self._keep = keep
        self._values = 0

    def read(
        self,
        name: str,
        pods: int,
        raw: msgspec.Raw,
        *,
        comes_later: bool = False,
        jobs: int = 0,
    ) -> Template:
        """Return how many pods are made from a template, and what it says to us.

        `comes_later`: places are reserved for its pods before they exist.
        Raises: DecodeError.
        """
        # Not every schema refuses what is below zero; it must not make up for another template.
        pods, jobs = max(pods, 0), max(jobs, 0)
        if not is_there(raw):
            return Template(intern(name), pods, {}, jobs=jobs)
        turn()
        where = f"{self._of}: pod template {name}"
        try:
            template = _TEMPLATE.decode(raw)
            metadata, spec = template.metadata or _Metadata(), template.spec or _PodSpec()
            self._count(metadata.annotations, has_objects=False)
            annotations = _STRINGS.decode(metadata.annotations)
            turn()
            if comes_later:
                self._count(raw, has_objects=True)
            like = decode_template(bytes(raw), self._keep) if comes_later else None
        except (ValueError, RecursionError, DecodeError) as error:
            raise DecodeError(f"{where}: {error}") from error
        if like is not None and like.problem:
            raise DecodeError(f"{where}: {like.problem}")
        scheduler = intern((spec.scheduler_name or "")[:LONGEST_NAME])
        return Template(intern(name), pods, kept(annotations, self._keep), like, jobs, scheduler)

    def holder(self, decoder: msgspec.json.Decoder[_T], raw: msgspec.Raw, field: str) -> _T:
        """Return the part of the object that has a template.

        Raises: DecodeError naming the field.
        """
        turn()
        try:
            return decoder.decode(raw)
        except (ValueError, RecursionError) as error:
            where = str(error).replace("`$", f"`$.{field}")
            raise DecodeError(f"{self._of}: {where}") from error

    def named(
        self, decoder: msgspec.json.Decoder[dict[str, _T] | None], raw: msgspec.Raw, field: str
    ) -> Mapping[str, _T]:
        """Return the parts of the object that have templates, by name, if they are not too many.

        Raises: DecodeError naming the field.
        """
        if not is_there(raw):
            return {}
        self._bound(raw, field)
        found = self.holder(decoder, raw, field) or {}
        if len(found) > MOST_TEMPLATES:
            raise self.too_many(field, len(found))
        return found

    def listed(
        self, decoder: msgspec.json.Decoder[list[msgspec.Raw] | None], raw: msgspec.Raw, field: str
    ) -> Sequence[msgspec.Raw]:
        """Return the parts of the object that have templates, if they are not too many.

        Raises: DecodeError naming the field.
        """
        self._bound(raw, field)
        found = self.holder(decoder, raw, field) or ()
        if len(found) > MOST_TEMPLATES:
            raise self.too_many(field, len(found))
        return found

    def _bound(self, raw: msgspec.Raw, field: str) -> None:
        # Braces alone: what a template has inside is bounded where it is read.
        if (objects := bytes(raw).count(b"{")) > MOST_OBJECTS:
            so_many = f"it has {objects} objects, more than {MOST_OBJECTS}"
            raise DecodeError(f"{self._of}: {field} is not read: {so_many}")

    def too_many(self, field: str, found: int) -> DecodeError:
        """The error of an object that has more templates than are read."""
        return DecodeError(
            f"{self._of}: {field} is not read: it has {found} entries, more than {MOST_TEMPLATES}"
        )

    def _count(self, part: msgspec.Raw, *, has_objects: bool) -> None:
        self._values += values_in(part, has_objects=has_objects)
        if self._values > MOST_VALUES:
            so_many = f"{self._values} values, more than {MOST_VALUES}"
            raise DecodeError(f"not read: with it the templates have {so_many}")
