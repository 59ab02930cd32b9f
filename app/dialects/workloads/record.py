"""The record of a workload, whatever its kind: how many pods there will be, from which templates.

A workload without a number has the default its API gives it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from sys import intern

import msgspec

from app.errors import DecodeError
from app.kube.core import wire
from app.kube.core.decode import Keep, controller, decode_pod, kept
from app.kube.core.objects import ObjectRecord, Owner, PodRecord


class Template(msgspec.Struct, frozen=True, gc=False):
    """Pods that a workload makes from one template."""

    name: str  # what the workload calls them; "" where it makes all its pods from one template
    pods: int
    annotations: Mapping[str, str]  # kept keys
    like: PodRecord | None = None  # a pod made from it, if such pods come later than others
    jobs: int = 0  # Jobs that number their pods each for itself; 0: the pods have no numbers


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
    is_suspended: bool = False
    is_finished: bool = False
    gangs: int = 1
    restarts: int = 0  # times that it began again from nothing
    is_gradual: bool = False  # some pods are made only once others run

    @property
    def pods(self) -> int:
        """Pods that run at a time, of all templates."""
        return sum(template.pods for template in self.templates)


def record_of(
    kind: str,
    written: wire.Metadata | None,
    keep: Keep,
    templates: Sequence[Template],
    *,
    succeeded: int = 0,
    completions: int | None = None,
    is_suspended: bool = False,
    is_finished: bool = False,
    gangs: int = 1,
    restarts: int = 0,
    is_gradual: bool = False,
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
        is_suspended=is_suspended,
        is_finished=is_finished,
        gangs=gangs,
        restarts=restarts,
        is_gradual=is_gradual,
    )


def or_one(number: int | None) -> int:
    """The number, or the default of most counts in the API."""
    return 1 if number is None else number


class _Metadata(wire.Wire):
    annotations: wire.Strings = None


class _Template(wire.Wire):
    metadata: _Metadata | None = None


_TEMPLATE = msgspec.json.Decoder(_Template)
NULL = msgspec.Raw(b"null")


def is_there(raw: msgspec.Raw) -> bool:
    """Whether an optional part of an object is set."""
    return bytes(raw) != b"null"


def template_of(
    name: str,
    pods: int,
    raw: msgspec.Raw,
    keep: Keep,
    *,
    comes_later: bool = False,
    jobs: int = 0,
) -> Template:
    """Return how many pods are made from a template, and what it says to us.

    `comes_later`: places are reserved for its pods before they exist.
    Raises: DecodeError.
    """
    if not is_there(raw):
        return Template(intern(name), pods, {}, jobs=jobs)
    try:
        metadata = _TEMPLATE.decode(raw).metadata or _Metadata()
        like = decode_pod(bytes(raw), keep) if comes_later else None
    except (ValueError, RecursionError, DecodeError) as error:
        raise DecodeError(f"pod template {name}: {error}") from error
    if like is not None and like.problem:
        raise DecodeError(f"pod template {name}: {like.problem}")
    return Template(intern(name), pods, kept(metadata.annotations, keep), like, jobs)
