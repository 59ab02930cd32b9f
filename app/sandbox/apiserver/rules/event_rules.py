"""What the API server refuses of events and of Leases: times of the wrong form, other namespaces.

Source: kubernetes 1.36 apis/core/validation/events.go, apis/coordination/validation/validation.go,
apimachinery meta/v1 micro_time.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from app.sandbox.apiserver.storage.failures import bad_request, invalid
from app.sandbox.apiserver.storage.kinds import EVENT, LEASE, Kind, Object

_Causes = Iterator[tuple[str, str, str]]  # (field, type, message)
_FORM = "2006-01-02T15:04:05.000000Z07:00"  # in Go's own way; the six digits have to be there
_MICRO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.,]\d{6}(Z|[+-]\d\d:\d\d)", re.ASCII)
_MICRO_TIMES = {
    EVENT: (("eventTime",), ("series", "lastObservedTime")),
    LEASE: (("spec", "acquireTime"), ("spec", "renewTime")),
}
_LONGEST_TEXT, _LONGEST_WORD = 1024, 128  # characters of a new event's message; of its reason, …


def micro_time(now: str) -> str:
    """A time of whole seconds as a MicroTime."""
    return f"{now.removesuffix('Z')}.000000Z"


def check(kind: Kind, body: Object) -> None:
    """Raises: Refused: 400 for a time that cannot be read, 422."""
    for path in _MICRO_TIMES[kind]:
        time: object = body
        for name in path:
            time = time.get(name) if isinstance(time, dict) else None
        if time is not None and not (isinstance(time, str) and _MICRO.fullmatch(time)):
            raise bad_request(
                f'{kind.name} in version "{kind.version}" cannot be handled as a {kind.name}:'
                f' parsing time "{time}" as "{_FORM}": cannot parse it'
            )
    causes = list(_of_event(body) if kind is EVENT else _of_lease(body.get("spec") or {}))
    if causes:
        raise invalid(kind, body["metadata"]["name"], causes)


def _of_event(event: Object) -> _Causes:
    about = (event.get("involvedObject") or {}).get("namespace", "")
    own = event["metadata"]["namespace"]
    is_new = event.get("eventTime") is not None
    may_be = ("default", "kube-system") if is_new else ("default",)
    if own != about and (about or own not in may_be) and not (about and is_new):
        why = f'Invalid value: "{about}": does not match event.namespace'
        yield "involvedObject.namespace", "FieldValueInvalid", why
    if not is_new:
        return
    for name in ("reportingComponent", "reportingInstance", "action", "reason"):
        if not event.get(name):
            yield name, "FieldValueRequired", "Required value"
    longest = {"message": _LONGEST_TEXT} | dict.fromkeys(
        ("reportingInstance", "action", "reason"), _LONGEST_WORD
    )
    for name, most in longest.items():
        if len((event.get(name) or "").encode()) > most:
            why = f'Invalid value: "": can have at most {most} characters'
            yield name, "FieldValueInvalid", why


def _of_lease(spec: Object) -> _Causes:
    for name, least, why in (
        ("leaseDurationSeconds", 1, "greater than 0"),
        ("leaseTransitions", 0, "greater than or equal to 0"),
    ):
        value = spec.get(name)
        if value is not None and value < least:
            yield f"spec.{name}", "FieldValueInvalid", f"Invalid value: {value}: must be {why}"
