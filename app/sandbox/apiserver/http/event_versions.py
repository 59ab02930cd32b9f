"""Events are one kind under two names: core/v1 as stored, events.k8s.io/v1 by conversion."""

from __future__ import annotations

from app.sandbox.apiserver.storage.kinds import Kind, Object

EVENTS_V1 = Kind("events.k8s.io", "v1", "events", "Event")

# events.k8s.io/v1 -> core/v1
_RENAMED = {
    "note": "message",
    "regarding": "involvedObject",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
_BACK = {core: new for new, core in _RENAMED.items()}


def core_from_v1(body: Object) -> Object:
    return {_RENAMED.get(name, name): value for name, value in body.items()}


def v1_from_core(body: Object) -> Object:
    return {_BACK.get(name, name): value for name, value in body.items()}
