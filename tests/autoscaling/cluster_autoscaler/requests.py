"""ProvisioningRequests by the rules of cluster-autoscaler.

    Accepted ─▶ Provisioned=True ── 10 min ──▶ BookingExpired
             ├▶ Provisioned=False, CapacityIsNotFound ── tried again after 1, 2, 4, 8, 10 min
             └▶ Failed (a bad template; noRetry; 7 days without success)

One request has its turn at a time. A booking keeps other requests and the removal of nodes off;
pods and kube-scheduler know nothing of it.
Source: kubernetes/autoscaler cluster-autoscaler/provisioningrequest (1.36.1).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from tests.autoscaling.machines.actions import PatchRequest
from tests.autoscaling.objects import ATOMIC_SCALE_UP, CHECK_CAPACITY
from tests.autoscaling.reading.pods import condition_of, consumes, node_of
from tests.autoscaling.reading.seen import Seen
from tests.cluster import Object, Objects

CLASSES = (CHECK_CAPACITY, ATOMIC_SCALE_UP)
BOOKING_SECONDS = 600.0
EXPIRY_SECONDS = 7 * 86400.0  # of a request that was never provisioned
LEAST_RETRY, MOST_RETRY = 60.0, 600.0


@dataclass(frozen=True)
class _Memory:
    """What is remembered of one request; times are seconds."""

    seen_at: float
    provisioned_at: float | None = None
    retry_at: float = 0.0
    retry_seconds: float = LEAST_RETRY


class Requests:
    """All of them. `ends_consumed`: a booking ends once all its pods sit, as newest code has it."""

    def __init__(self, *, ends_consumed: bool = False) -> None:
        self._ends_consumed = ends_consumed
        self._memory: dict[str, _Memory] = {}
        self._ended: set[str] = set()  # bookings that this loop has ended

    def refresh(self, seen: Seen, now: float) -> list[PatchRequest]:
        """End bookings and requests whose time is over."""
        self._remember(seen, now)
        self._ended = set()
        actions: list[PatchRequest] = []
        bound = Counter(
            (each["metadata"]["namespace"], consumes(each)) for each in seen.pods if node_of(each)
        )
        for each in _served(seen):
            memory = self._memory[_uid(each)]
            if is_true(each, "BookingExpired") or is_true(each, "Failed"):
                continue
            if is_true(each, "Provisioned"):
                began = memory.provisioned_at
                if began is not None and now - began > BOOKING_SECONDS:
                    actions.append(self._ended_by(each, _EXPIRED))
                elif self._ends_consumed and bound[_key(each)] >= pods_of(each):
                    actions.append(self._ended_by(each, _CONSUMED))
            elif now - memory.seen_at > EXPIRY_SECONDS:
                actions.append(self._said(each, _TOO_OLD))
        return actions

    def booked(self, seen: Seen) -> Objects:
        """The pods of all bookings."""
        found: Objects = []
        for each in _served(seen):
            is_over = is_true(each, "BookingExpired") or is_true(each, "Failed")
            is_over = is_over or _uid(each) in self._ended
            if is_true(each, "Provisioned") and not is_over:
                found += pods_from(each, seen) or []
        return found

    def next(self, seen: Seen, now: float) -> Object | None:
        """The request whose turn it is, in the order of the list."""
        for each in _served(seen):
            if is_true(each, "Failed") or is_true(each, "Provisioned"):
                continue
            if now >= self._memory[_uid(each)].retry_at:
                return each
        return None

    # -- what became of one --------------------------------------------------------------------

    def accepted(self, request: Object) -> PatchRequest:
        """It has been seen; written before anything is tried."""
        return self._said(request, _ACCEPTED)

    def failed_template(self, request: Object) -> PatchRequest:
        """A PodTemplate of it is missing."""
        return self._said(request, _BAD_TEMPLATE)

    def provisioned(self, request: Object, now: float, *, is_found: bool) -> PatchRequest:
        """Everything fits already, or the nodes are ordered."""
        uid = _uid(request)
        self._memory[uid] = replace(self._memory[uid], provisioned_at=now)
        return self._said(request, _ACCEPTED, _FOUND if is_found else _ORDERED)

    def not_found(self, request: Object, now: float) -> PatchRequest:
        """It does not fit: later, or never where it says so."""
        parameters = request["spec"].get("parameters") or {}
        is_check = request["spec"]["provisioningClassName"] == CHECK_CAPACITY
        if is_check and parameters.get("noRetry") == "true":
            return self._said(request, _ACCEPTED, _NEVER)
        uid, memory = _uid(request), self._memory[_uid(request)]
        self._memory[uid] = replace(
            memory,
            retry_at=now + memory.retry_seconds,
            retry_seconds=min(2 * memory.retry_seconds, MOST_RETRY),
        )
        return self._said(request, _ACCEPTED, _NOT_FOUND)

    def _remember(self, seen: Seen, now: float) -> None:
        uids = {_uid(each): each for each in seen.requests}
        self._memory = {uid: memory for uid, memory in self._memory.items() if uid in uids}
        for uid, each in uids.items():
            began = now if is_true(each, "Provisioned") else None
            self._memory.setdefault(uid, _Memory(now, provisioned_at=began))

    def _ended_by(self, request: Object, why: Object) -> PatchRequest:
        self._ended.add(_uid(request))
        return self._said(request, why)

    def _said(self, request: Object, *conditions: Object) -> PatchRequest:
        """The conditions of the request with these, which get a new time even if said again."""
        metadata = request["metadata"]
        generation = metadata.get("generation", 1)
        by_type = {each["type"]: each for each in _conditions(request)}
        for each in conditions:
            by_type[each["type"]] = {**each, "observedGeneration": generation}
        return PatchRequest(metadata["namespace"], metadata["name"], tuple(by_type.values()))


def pods_from(request: Object, seen: Seen) -> Objects | None:
    """The pods that a simulation has for it; None where a template is missing."""
    metadata = request["metadata"]
    found: Objects = []
    for number, each in enumerate(request["spec"]["podSets"]):
        body = seen.template(metadata["namespace"], each["podTemplateRef"]["name"])
        if body is None:
            return None
        template = body["template"]
        for place in range(each["count"]):
            own = {
                **(template.get("metadata") or {}),
                "name": f"{metadata['name']}-{number}-{place}",
                "namespace": metadata["namespace"],
                "uid": f"{_uid(request)}/{number}/{place}",
            }
            found.append({"metadata": own, "spec": template["spec"]})
    return found


def pods_of(request: Object) -> int:
    """How many it is for."""
    return sum(each["count"] for each in request["spec"]["podSets"])


def is_true(request: Object, type_: str) -> bool:
    """Whether it has this condition."""
    said = condition_of(request, type_)
    return said is not None and said["status"] == "True"


def _served(seen: Seen) -> Objects:
    return [each for each in seen.requests if each["spec"]["provisioningClassName"] in CLASSES]


def _conditions(request: Object) -> Objects:
    return (request.get("status") or {}).get("conditions") or []


def _key(request: Object) -> tuple[str, str]:
    return request["metadata"]["namespace"], request["metadata"]["name"]


def _uid(request: Object) -> str:
    return str(request["metadata"]["uid"])


def _condition(type_: str, status: str, reason: str, message: str) -> Object:
    return {"type": type_, "status": status, "reason": reason, "message": message}


_ACCEPTED = _condition(
    "Accepted", "True", "Accepted", "ProvisioningRequest is accepted by ClusterAutoscaler"
)
_FOUND = _condition("Provisioned", "True", "CapacityIsFound", "Capacity is found in the cluster")
_ORDERED = _condition(
    "Provisioned", "True", "CapacityIsProvisioned", "Capacity is found in the cluster"
)
_NOT_FOUND = _condition(
    "Provisioned",
    "False",
    "CapacityIsNotFound",
    "Capacity is not found, CA will try to find it later.",
)
_NEVER = _condition("Failed", "True", "CapacityIsNotFound", "CA could not find requested capacity")
_BAD_TEMPLATE = _condition(
    "Failed", "True", "FailedToCreatePods", "a PodTemplate of the request does not exist"
)
_TOO_OLD = _condition("Failed", "True", "Expired", "ProvisioningRequest is expired")
_EXPIRED = _condition(
    "BookingExpired",
    "True",
    "CapacityReservationTimeExpired",
    "Capacity reservation time is expired",
)
_CONSUMED = _condition(
    "BookingExpired", "True", "CapacityBookingConsumed", "All pods of the request are scheduled"
)
