"""The record of a workload, whatever its kind: how many pods there will be, from which templates.

A workload without a number has the default its API gives it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from sys import intern

import msgspec

from app.errors import DecodeError
from app.kube.core import wire
from app.kube.core.decode import Json, Keep, controller, decode_pod, kept
from app.kube.core.objects import ObjectRecord, Owner, PodRecord, Toleration

# What the API server's DefaultTolerationSeconds adds to every pod: a template lacks them still.
ADDED_TOLERATIONS = tuple(
    Toleration(f"node.kubernetes.io/{key}", "Exists", "", "NoExecute", is_for_a_while=True)
    for key in ("not-ready", "unreachable")
)


class Template(msgspec.Struct, frozen=True, gc=False):
    """Pods that a workload makes from one template."""

    name: str  # what the workload calls them; "" where it makes all its pods from one template
    pods: int
    annotations: Mapping[str, str]  # kept keys
    like: PodRecord | None = None  # what one of them will be; only where some are made later


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
        """Pods that are meant to run at a time, of all templates."""
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
    name: str, pods: int, raw: msgspec.Raw, keep: Keep, *, is_gradual: bool = False
) -> Template:
    """Return how many pods are made from a template, and what it says to us.

    `is_gradual`: what its pods will be like is worth keeping.
    Raises: DecodeError.
    """
    if not is_there(raw):
        return Template(intern(name), pods, {})
    try:
        metadata = _TEMPLATE.decode(raw).metadata or _Metadata()
        like = pod_like(raw, keep) if is_gradual else None
    except (ValueError, RecursionError) as error:
        raise DecodeError(f"pod template {name}: {error}") from error
    return Template(intern(name), pods, kept(metadata.annotations, keep), like)


def pod_like(raw: Json, keep: Keep) -> PodRecord:
    """Return the pod that a template makes, as the API server would complete it.

    Requests that are missing follow from limits, and every pod gets two tolerations.
    Raises: DecodeError; msgspec.DecodeError.
    """
    content = msgspec.json.decode(raw)
    pod = decode_pod(msgspec.json.encode(_with_requests(content)), keep)
    known = {(each.key, each.effect) for each in pod.shape.tolerations}
    missing = tuple(each for each in ADDED_TOLERATIONS if (each.key, each.effect) not in known)
    shape = msgspec.structs.replace(pod.shape, tolerations=pod.shape.tolerations + missing)
    return msgspec.structs.replace(pod, shape=shape)


def _with_requests(template: object) -> object:
    """The template with each container's limits as requests where it has none of its own."""
    spec = template.get("spec") if isinstance(template, dict) else None
    if not isinstance(template, dict) or not isinstance(spec, dict):
        return template
    completed = dict(spec)
    for field in ("containers", "initContainers"):
        containers = spec.get(field)
        if isinstance(containers, list):
            completed[field] = [_container_with_requests(each) for each in containers]
    return {**template, "spec": completed}


def _container_with_requests(container: object) -> object:
    resources = container.get("resources") if isinstance(container, dict) else None
    limits = resources.get("limits") if isinstance(resources, dict) else None
    if not (isinstance(container, dict) and isinstance(resources, dict)) or not limits:
        return container
    requests = {**limits, **(resources.get("requests") or {})}
    return {**container, "resources": {**resources, "requests": requests}}
