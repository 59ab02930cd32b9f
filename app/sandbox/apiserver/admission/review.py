"""AdmissionReview v1 as kube-apiserver writes and reads it.

Source: kubernetes 1.36 apiserver admission/plugin/webhook/request/admissionreview.go.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, field
from typing import Any

import orjson

from app.sandbox.apiserver.admission.attributes import Attributes
from app.sandbox.apiserver.storage.kinds import Kind, Object

_API_VERSION, _KIND = "admission.k8s.io/v1", "AdmissionReview"
_INVALID = "received invalid webhook response"
_USER = {"username": "admin", "groups": ["system:masters", "system:authenticated"]}
_OPTIONS = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions"}


class InvalidAnswer(ValueError):
    """The answer is not a valid AdmissionReview for this request; the text says why."""


@dataclass(frozen=True, slots=True)
class Answer:
    """patch: the operations of a JSON patch. status: why the object is refused, if it is."""

    is_allowed: bool
    patch: list[Any] = field(default_factory=list)
    status: Object = field(default_factory=dict)


def request_body(uid: str, kind: Kind, attributes: Attributes) -> bytes:
    """The AdmissionReview to send. kind: the version in which the object is sent."""
    asked = attributes.kind
    request = {
        "uid": uid,
        "kind": _gvk(kind),
        "resource": _gvr(kind),
        "subResource": attributes.subresource,
        "requestKind": _gvk(asked),
        "requestResource": _gvr(asked),
        "requestSubResource": attributes.subresource,
        "name": attributes.name,
        "namespace": attributes.namespace,
        "operation": attributes.operation,
        "userInfo": _USER,
        "object": _typed(kind, attributes.after),
        "oldObject": None if attributes.before is None else _typed(kind, attributes.before),
        "dryRun": attributes.is_dry_run,
        "options": {"apiVersion": "meta.k8s.io/v1", "kind": _OPTIONS[attributes.operation]},
    }
    request = {field: value for field, value in request.items() if value != ""}
    return orjson.dumps({"apiVersion": _API_VERSION, "kind": _KIND, "request": request})


def _gvk(kind: Kind) -> Object:
    return {"group": kind.group, "version": kind.version, "kind": kind.name}


def _gvr(kind: Kind) -> Object:
    return {"group": kind.group, "version": kind.version, "resource": kind.plural}


def _typed(kind: Kind, body: Object) -> Object:
    return {"kind": kind.name, "apiVersion": kind.api_version} | body


def answer_of(raw: bytes, uid: str, *, is_mutating: bool) -> Answer:
    """Raises: InvalidAnswer."""
    try:
        review = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise InvalidAnswer(f"couldn't decode the response: {error}") from error
    response = review.get("response") if isinstance(review, dict) else None
    if not isinstance(response, dict):
        raise InvalidAnswer(f"{_INVALID}: webhook response was absent")
    if (review.get("apiVersion"), review.get("kind")) != (_API_VERSION, _KIND):
        said = f"{review.get('apiVersion')}, Kind={review.get('kind')}"
        expected = f"{_API_VERSION}, Kind={_KIND}"
        raise InvalidAnswer(f"{_INVALID}: expected webhook response of {expected}, got {said}")
    if response.get("uid") != uid:
        other = response.get("uid", "")
        raise InvalidAnswer(f'{_INVALID}: expected response.uid="{uid}", got "{other}"')
    patch = _patch(response, is_mutating=is_mutating)
    return Answer(response.get("allowed") is True, patch, response.get("status") or {})


def _patch(response: Object, *, is_mutating: bool) -> list[Any]:
    encoded, type_ = response.get("patch"), response.get("patchType")
    if not is_mutating and (encoded or type_):
        raise InvalidAnswer(f"{_INVALID}: validating webhook may not return response.patch")
    if bool(encoded) != bool(type_):
        has, lacks = ("patch", "patchType") if encoded else ("patchType", "patch")
        raise InvalidAnswer(f"{_INVALID}: webhook returned response.{has} but not response.{lacks}")
    if not encoded:
        return []
    if type_ != "JSONPatch":
        raise InvalidAnswer(f'unsupported patch type "{type_}"')
    try:
        patch = orjson.loads(base64.b64decode(encoded, validate=True))
    except (binascii.Error, orjson.JSONDecodeError) as error:
        raise InvalidAnswer(f"received undecodable patch in webhook response: {error}") from error
    if not isinstance(patch, list):
        raise InvalidAnswer("received undecodable patch in webhook response: not a list")
    return patch
