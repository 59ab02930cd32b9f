"""Pods that no vocabulary says anything of, as most are: looked at once for all that are alike.

    pod ──labels, annotations, kind of owner, scheduler, PodGroup──▶ known? ──▶ what was found then
                                                                       └─ no ──▶ every vocabulary

A cluster has a million pods of some hundred kinds, and to ask every vocabulary about each pod takes
half of what it costs to learn of it. Kinds are remembered up to a number and a weight, for tenants
write labels, and those of members of gangs are not: each gang would be one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from app.dialects.dialect import Dialect
from app.kube.core.cached import KIB, weight
from app.kube.core.objects import PodRecord

MOST_KINDS = 1_024  # remembered; beyond that all are looked at anew
MOST_KIND_BYTES = 2 * KIB  # of one that is remembered

_Kind = tuple[object, ...]


@dataclass(slots=True)
class Silence:
    """The kinds of pods of which nothing is said."""

    found: set[_Kind] = field(default_factory=set)

    def of(self, pod: PodRecord, dialects: Iterable[Dialect]) -> bool:
        """Whether all of these surely say nothing of a pod; `dialects`: all of them."""
        kind = _kind_of(pod)
        if kind not in self.found:
            is_silent = all(each.is_silent(pod) for each in dialects)
            if is_silent and weight(kind, MOST_KIND_BYTES) <= MOST_KIND_BYTES:
                if len(self.found) >= MOST_KINDS:
                    self.found.clear()
                self.found.add(kind)
            return is_silent
        return True


def _kind_of(pod: PodRecord) -> _Kind:
    """All that `Dialect.is_silent` may look at."""
    owner = pod.owner
    return (
        pod.scheduler,
        pod.pod_group,
        tuple(pod.labels.items()) if pod.labels else (),
        tuple(pod.annotations.items()) if pod.annotations else (),
        "" if owner is None else owner.kind,
        "" if owner is None else owner.api_version,
        bool(pod.problem),
    )
