"""Refusals in the API's own words: every one becomes a `Status` body with its HTTP code.

Codes, reasons and texts are those of kube-apiserver 1.36, so that a client can be tested on them.
"""

from __future__ import annotations

from app.sandbox.apiserver.storage.kinds import Kind, Object

UNAUTHORIZED, FORBIDDEN, NOT_FOUND, CONFLICT, GONE, INVALID = 401, 403, 404, 409, 410, 422


class Refused(Exception):
    """A request that the API server refuses.

    reason: the machine-readable word clients switch on (`NotFound`, `Conflict`, `Expired`, …).
    retry_after: seconds, sent as the header and in `details`; 0 for none.
    """

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: Object | None = None,
        retry_after: int = 0,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.retry_after = retry_after

    def status(self) -> Object:
        """The Status object that is sent as body, or as the object of an ERROR watch event."""
        details = dict(self.details or {})
        if self.retry_after:
            details["retryAfterSeconds"] = self.retry_after
        body: Object = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            body["reason"] = self.reason
        if details:
            body["details"] = details
        return body | {"code": self.code}


def _about(kind: Kind, name: str) -> Object:
    about = {"name": name, "group": kind.group, "kind": kind.plural}
    return {key: value for key, value in about.items() if value}


def not_found(kind: Kind, name: str) -> Refused:
    text = f'{kind.resource} "{name}" not found'
    return Refused(NOT_FOUND, "NotFound", text, details=_about(kind, name))


def no_such_path() -> Refused:
    """Nothing is served there: the one refusal that is plain text and no Status."""
    return Refused(NOT_FOUND, "", "404 page not found\n")


def already_exists(kind: Kind, name: str) -> Refused:
    text = f'{kind.resource} "{name}" already exists'
    return Refused(CONFLICT, "AlreadyExists", text, details=_about(kind, name))


def conflict(kind: Kind, name: str, why: str, *, subresource: str = "") -> Refused:
    resource = f"{kind.resource}/{subresource}" if subresource else kind.resource
    text = f'Operation cannot be fulfilled on {resource} "{name}": {why}'
    details = _about(kind, name)
    if subresource:
        details["kind"] += f"/{subresource}"
    return Refused(CONFLICT, "Conflict", text, details=details)


def stale(kind: Kind, name: str) -> Refused:
    why = (
        "the object has been modified; please apply your changes to the latest version and try"
        " again"
    )
    return conflict(kind, name, why)


def wrong_uid(kind: Kind, namespace: str, name: str, asked: str, actual: str) -> Refused:
    path = f"/registry/{kind.plural}/{namespace}/{name}" if namespace else name
    why = (
        f"StorageError: invalid object, Code: 4, Key: {path}, ResourceVersion: 0,"
        f" AdditionalErrorMsg: Precondition failed: UID in precondition: {asked},"
        f" UID in object meta: {actual}"
    )
    return conflict(kind, name, why)


def other_uid_to_delete(kind: Kind, name: str, asked: str, actual: str) -> Refused:
    text = (
        f'Operation cannot be fulfilled on {kind.qualified_name} "{name}": the UID in the'
        f" precondition ({asked}) does not match the UID in record ({actual}). The object might"
        " have been deleted and then recreated"
    )
    return Refused(CONFLICT, "Conflict", text, details=_about(kind, name) | {"kind": kind.name})


def unversioned(kind: Kind, name: str) -> Refused:
    why = "Invalid value: 0: must be specified for an update"
    refusal = invalid(kind, name, [("metadata.resourceVersion", "FieldValueInvalid", why)])
    text = f'{kind.resource} "{name}" is invalid: metadata.resourceVersion: {why}'
    details = (refusal.details or {}) | {"kind": kind.plural}
    return Refused(INVALID, "Invalid", text, details=details)


def invalid(kind: Kind, name: str, causes: list[tuple[str, str, str]]) -> Refused:
    """A validation failure; causes: (field, type as in `FieldValueInvalid`, message)."""
    texts = [f"{field}: {message}" for field, _, message in causes]
    joined = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    details = {"name": name, "group": kind.group, "kind": kind.name}
    return Refused(
        INVALID,
        "Invalid",
        f'{kind.qualified_name} "{name}" is invalid: {joined}',
        details={key: value for key, value in details.items() if value}
        | {
            "causes": [
                {"reason": type_, "message": message, "field": field}
                for field, type_, message in causes
            ]
        },
    )


def invalid_options(options: str, field: str, why: str) -> Refused:
    """Invalid parameters of a request; options: `CreateOptions`, …"""
    text = f'{options}.meta.k8s.io "" is invalid: {field}: {why}'
    return Refused(INVALID, "Invalid", text, details={"group": "meta.k8s.io", "kind": options})


def expired(message: str) -> Refused:
    return Refused(GONE, "Expired", message)


def internal_error(why: str) -> Refused:
    message = f"Internal error occurred: {why}"
    return Refused(500, "InternalError", message, details={"causes": [{"message": why}]})


def bad_request(message: str) -> Refused:
    return Refused(400, "BadRequest", message)


def forbidden(kind: Kind, name: str, why: str) -> Refused:
    text = f'{kind.resource} "{name}" is forbidden: {why}'
    return Refused(FORBIDDEN, "Forbidden", text, details=_about(kind, name))


def would_violate_budget(cause: str, *, retry_after: int = 0) -> Refused:
    """An eviction that its disruption budget does not allow now; cause: which one, and why."""
    return Refused(
        429,
        "TooManyRequests",
        "Cannot evict pod as it would violate the pod's disruption budget.",
        details={"causes": [{"reason": "DisruptionBudget", "message": cause}]},
        retry_after=retry_after,
    )


def future_version(asked: int, current: int) -> Refused:
    return Refused(
        504,
        "Timeout",
        f"Timeout: Too large resource version: {asked}, current: {current}",
        details={
            "causes": [
                {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
            ]
        },
        retry_after=1,
    )
