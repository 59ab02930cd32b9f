"""AdmissionReview v1 in and out: the only file that spells its fields."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from app.admission.operations import Operation
from app.admission.validating.validate import FieldError

API_VERSION = "admission.k8s.io/v1"
KIND = "AdmissionReview"
UNPROCESSABLE = 422  # what the API server answers itself to an object that is not valid
_NULL = msgspec.Raw(b"null")


class MalformedReview(ValueError):
    """The body is no AdmissionReview v1 with a request; the text says what is wrong with it."""


class GroupVersionKind(msgspec.Struct, frozen=True):
    """What the object is. `group` is "" for pods."""

    group: str = ""
    version: str = ""
    kind: str = ""


class Request(msgspec.Struct, frozen=True, rename="camel"):
    """What the API server is about to do."""

    uid: str
    kind: GroupVersionKind = GroupVersionKind()
    sub_resource: str = ""
    namespace: str = ""
    name: str = ""
    operation: str = ""
    object: msgspec.Raw = _NULL
    old_object: msgspec.Raw = _NULL
    dry_run: bool | None = None


class _Review(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    request: Request | None = None


_REVIEW = msgspec.json.Decoder(_Review)


def request_of(body: bytes) -> Request:
    """The request in an AdmissionReview. Raises: MalformedReview."""
    try:
        review = _REVIEW.decode(body)
    except (ValueError, RecursionError) as error:
        raise MalformedReview(f"the body is no AdmissionReview: {error}") from error
    if (review.api_version, review.kind) != (API_VERSION, KIND):
        said = f"{review.api_version[:80]} {review.kind[:80]}"
        raise MalformedReview(f"expected {API_VERSION} {KIND}, got {said!r}")
    if review.request is None or not review.request.uid:
        raise MalformedReview(f"{KIND}: request.uid: must be set")
    return review.request


def decoded(raw: msgspec.Raw) -> object:
    """The object in a request as plain JSON. Raises: MalformedReview."""
    try:
        content: object = msgspec.json.decode(raw)
    except (ValueError, RecursionError) as error:
        raise MalformedReview(f"request.object is not readable: {error}") from error
    return content


def allowed(uid: str, operations: Sequence[Operation] = (), warning: str = "") -> bytes:
    """The review that lets the object in, changed by these operations."""
    response: dict[str, object] = {"uid": uid, "allowed": True}
    if operations:
        # Bytes become base64, as the field asks for.
        response |= {"patchType": "JSONPatch", "patch": msgspec.json.encode(operations)}
    if warning:
        response["warnings"] = [warning]
    return _review(response)


def refused(asked: Request, errors: Sequence[FieldError]) -> bytes:
    """The review that keeps the object out and says why, error by error, as the API server does.

    Source: kubernetes staging/src/k8s.io/apimachinery/pkg/api/errors/errors.go (v1.36), NewInvalid.
    """
    group, kind, name = asked.kind.group, asked.kind.kind, asked.name
    sentences = [str(error) for error in errors]
    text = sentences[0] if len(sentences) == 1 else f"[{', '.join(sentences)}]"
    message = f'{kind}{group and f".{group}"} "{name}" is invalid: {text}'
    causes = [
        {"reason": error.reason, "message": error.body, "field": error.field} for error in errors
    ]
    status = {
        "status": "Failure",
        "code": UNPROCESSABLE,
        "reason": "Invalid",
        "message": message,
        "details": {"name": name, "group": group, "kind": kind, "causes": causes},
    }
    return _review({"uid": asked.uid, "allowed": False, "status": status})


def _review(response: dict[str, object]) -> bytes:
    return msgspec.json.encode({"apiVersion": API_VERSION, "kind": KIND, "response": response})
