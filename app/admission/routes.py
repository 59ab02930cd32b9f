"""The port the API server asks: /mutate and /validate, HTTP 200 for every review.

    body ──limit──▶ review ──▶ mutate, and what comes of it checked | validate ──▶ review

A new pod costs one call: /mutate refuses what breaks a rule. What webhooks called later make of it
is not checked; what is wrong with a gang is found again when it is read.

A webhook that fails must not keep pods from being created: a pod we can't read, or a bug of ours,
is let in as it is. Only a body that is no AdmissionReview gets another status, since it has no uid
to answer to. Where members need a marker, one that is too large or that we can't read is refused
instead, and a bug of ours is an error: a member without its marker would start without its gang.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import structlog
from fastapi import APIRouter, Request, Response
from starlette.requests import ClientDisconnect

from app.admission import review
from app.admission.mutating.mutate import Mutation, adds_gate, born, mutate, unborn
from app.admission.review import MalformedReview
from app.admission.scope import Scope
from app.admission.validating.validate import FieldError, Thing, Validator
from app.dialects.dialect import Known, none_known
from app.dialects.registry import Dialects
from app.dialects.rules import forbidden, too_long
from app.errors import DecodeError
from app.kube.core.objects import PodRecord
from app.metrics import Metrics
from app.settings import RoleRules

log = structlog.get_logger(__name__)

MUTATE = "/mutate"
VALIDATE = "/validate"
# Larger objects are let in without a look, since that would take more than 5 ms: mistakes are
# reported when the gang is read, and a pod without the gate is held at /filter.
MOST_CHANGED_BYTES = 128 * 1024  # of a pod that may get the gate
MOST_CHECKED_BYTES = 64 * 1024  # of an object that is checked by every rule
_OURS = (b"corral.dev/", b"kueue.x-k8s.io/")
MOST_TOLD = 256  # characters of a sentence about an object that is not read
BROKEN = "Corral failed to look at this object; its log says why"


class Unacceptable(Exception):
    """A body that is not read at all; carries the HTTP status that says so."""

    def __init__(self, status: int, text: str) -> None:
        self.status = status
        super().__init__(text)


Place = Callable[[PodRecord, str], tuple[str, ...] | None]
"""The nodes for a pod, in a namespace, that needs no gate; (): it is narrowed already; None: it
needs the gate."""


def nowhere(_pod: PodRecord, _namespace: str) -> tuple[str, ...] | None:
    """As where no gang is born in place."""
    return None


@dataclass(frozen=True, slots=True)
class Desk:
    """What the routes need of the rest."""

    scope: Scope
    dialects: Dialects
    metrics: Metrics
    most_body_bytes: int
    roles: RoleRules = "kueue"
    topology: Known = none_known
    place: Place = nowhere
    marks: bool = False


def webhook(desk: Desk) -> APIRouter:
    """The two routes. Plain ones, as in `app.extender.routes`."""
    router = APIRouter()

    @router.route(MUTATE, methods=["POST"])
    async def mutate_(request: Request) -> Response:
        return await _answered(desk, "mutate", request, mutated)

    @router.route(VALIDATE, methods=["POST"])
    async def validate_(request: Request) -> Response:
        return await _answered(desk, "validate", request, validated)

    return router


def mutated(desk: Desk, asked: review.Request) -> bytes:
    """The answer of /mutate, of a new pod alone. Raises: DecodeError."""
    is_new_pod = asked.operation == "CREATE" and not asked.sub_resource
    if not is_new_pod or (asked.kind.group, asked.kind.kind) != ("", "Pod"):
        return _counted(desk, "passed", review.allowed(asked.uid))
    if len(asked.object) > MOST_CHANGED_BYTES:
        if _needs_marker(desk, asked):
            return _refused(desk, asked, [FieldError("spec", too_long("", MOST_CHANGED_BYTES))])
        return _unread(desk, asked, MOST_CHANGED_BYTES)
    try:
        return _changed(desk, asked)
    except DecodeError as error:
        if not _needs_marker(desk, asked):
            raise
        desk.metrics.broken_requests["malformed"].inc()
        text = f"Corral cannot read it, and gives it no marker: {error}"[:MOST_TOLD]
        return _refused(desk, asked, [FieldError("spec", forbidden("", text))])


def _changed(desk: Desk, asked: review.Request) -> bytes:
    """The answer about a new pod that is small enough. Raises: DecodeError."""
    change = mutate(
        asked.object, asked.namespace, desk.scope, desk.dialects, desk.roles, marks=desk.marks
    )
    warning = ""
    if len(asked.object) > MOST_CHECKED_BYTES:
        warning = _unchecked(desk, asked, MOST_CHECKED_BYTES)
    elif errors := _errors(desk, change, asked.namespace):
        return _refused(desk, asked, errors)
    operations = change.operations
    if adds_gate(operations):
        # A place would be held for it, and a dry run is to leave nothing behind.
        nodes = None if asked.dry_run else desk.place(change.pod, asked.namespace)
        operations = unborn(change) if nodes is None else born(change, asked.object, nodes)
        if not asked.dry_run:
            (desk.metrics.pods_gated if nodes is None else desk.metrics.pods_born).inc()
    outcome = "changed" if operations else "unread" if warning else "passed"
    return _counted(desk, outcome, review.allowed(asked.uid, operations, warning))


def _needs_marker(desk: Desk, asked: review.Request) -> bool:
    """Whether a pod that is not read may be a member that would start alone without its marker."""
    if not desk.marks:
        return False
    content = bytes(asked.object)
    words = (word for words in desk.dialects.words().values() for word in words)
    return any(f'"{word}'.encode() in content for word in words)


def _errors(desk: Desk, change: Mutation, namespace: str) -> list[FieldError]:
    return Validator(desk.scope, desk.dialects).pod_errors(change.pod, namespace, change.reading)


def validated(desk: Desk, asked: review.Request) -> bytes:
    """The answer of /validate. Raises: MalformedReview, DecodeError."""
    group, kind = asked.kind.group, asked.kind.kind
    is_written = asked.operation in ("CREATE", "UPDATE") and not asked.sub_resource
    validator = Validator(desk.scope, desk.dialects, desk.topology)
    if not is_written or not validator.is_known(group, kind):
        return _counted(desk, "passed", review.allowed(asked.uid))
    if max(len(asked.object), len(asked.old_object)) > MOST_CHECKED_BYTES:
        return _unread(desk, asked, MOST_CHECKED_BYTES)
    thing = Thing(group, kind, asked.namespace, review.decoded(asked.object))
    before = review.decoded(asked.old_object) if asked.operation == "UPDATE" else None
    errors = validator.errors(thing, before)
    if not errors:
        return _counted(desk, "passed", review.allowed(asked.uid))
    return _refused(desk, asked, errors)


def _refused(desk: Desk, asked: review.Request, errors: list[FieldError]) -> bytes:
    """The review that keeps the object out."""
    _tell(asked, errors)
    kind = desk.dialects.kind_of(asked.kind.group, asked.kind.kind)
    desk.metrics.admission_rejected[kind].inc()
    return _counted(desk, "refused", review.refused(asked, errors))


def _unread(desk: Desk, asked: review.Request, most: int) -> bytes:
    """The review that lets a large object in; its user is told if it says something to us."""
    warning = _unchecked(desk, asked, most)
    return _counted(desk, "unread", review.allowed(asked.uid, warning=warning))


def _unchecked(desk: Desk, asked: review.Request, most: int) -> str:
    """What its user is told of an object that is too large, if it says something to us."""
    content = bytes(asked.object)
    has_rules = desk.dialects.object_rules(asked.kind.group, asked.kind.kind) is not None
    if not (has_rules or any(prefix in content for prefix in _OURS)):
        return ""
    return (
        f"Corral: {asked.kind.kind} {_named(asked)} has {len(content)} bytes,"
        f" more than the {most} that are checked: mistakes are reported when it is read"
    )[:MOST_TOLD]


async def _answered(
    desk: Desk,
    name: str,
    request: Request,
    answer: Callable[[Desk, review.Request], bytes],
) -> Response:
    uid = ""
    began = time.perf_counter()
    try:
        body = await _body(request, desk.most_body_bytes)
        began = time.perf_counter()
        asked = review.request_of(body)
        uid = asked.uid
        content = answer(desk, asked)
    except ClientDisconnect:
        return Response()
    except Unacceptable as error:
        return _malformed(desk, error.status, str(error))
    except (MalformedReview, DecodeError) as error:
        if not uid:
            return _malformed(desk, 400, str(error))
        # It is not as the API server would send it. A pod that the watch reads all the same is held
        # at /filter without its gate; one that it does not read either is in no gang.
        desk.metrics.broken_requests["malformed"].inc()
        told = f"Corral: {error}"[:MOST_TOLD]
        content = _counted(desk, "unread", review.allowed(uid, warning=told))
    except Exception:
        log.exception("admission", route=name)
        if desk.marks:  # whether it is let in without its marker is the failurePolicy's to say
            return _malformed(desk, 500, BROKEN)
        content = _counted(desk, "failed", review.allowed(uid, warning=BROKEN))
    desk.metrics.admission_seconds[name].observe(time.perf_counter() - began)
    return Response(content, media_type="application/json")


async def _body(request: Request, most_bytes: int) -> bytes:
    """The whole body. Raises: Unacceptable for one that is compressed or too large."""
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise Unacceptable(415, "a body with Content-Encoding is not accepted")
    received = bytearray()
    async for chunk in request.stream():
        received += chunk
        if len(received) > most_bytes:
            raise Unacceptable(413, f"the body is over {most_bytes} bytes (admission_body_bytes)")
    return bytes(received)


def _malformed(desk: Desk, status: int, text: str) -> Response:
    desk.metrics.broken_requests["malformed"].inc()
    return Response(text.encode("utf-8", "replace"), status, media_type="text/plain")


def _counted(desk: Desk, outcome: str, content: bytes) -> bytes:
    desk.metrics.admissions[outcome].inc()
    return content


def _tell(asked: review.Request, errors: list[FieldError]) -> None:
    log.info(
        "admission refused",
        kind=asked.kind.kind,
        name=_named(asked),
        first=str(errors[0]),
        errors=len(errors),
    )


def _named(asked: review.Request) -> str:
    return f"{asked.namespace}/{asked.name}" if asked.namespace else asked.name
