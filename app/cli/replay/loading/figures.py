"""What a load came to: latencies by verb, and how much of it was served."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

COLUMNS = ("VERB", "REQUESTS", "REFUSED", "FAILED", "P50", "P99", "MAX")
# What each row is, and when its clock starts.
FILTER_MEMBER = "/filter, planned member"  # when the pod was due
FILTER_ORDINARY = "/filter, ordinary pod"
PRIORITIZE = "/prioritize, ordinary pod"  # when the answer before it was there
BIND_MEMBER = "/bind, member"  # held until the gang's last pod is there, and bound
BIND_ORDINARY = "/bind, ordinary pod"
READER = "GET /v1/gangs, beside it"
ROWS = (FILTER_MEMBER, FILTER_ORDINARY, PRIORITIZE, BIND_MEMBER, BIND_ORDINARY, READER)


@dataclass(slots=True)
class Timings:
    """One row. Units: seconds."""

    seconds: list[float] = field(default_factory=list)
    refused: int = 0
    """Answers that name no node, or an error: Corral has said no."""
    failed: int = 0
    """No answer."""

    def percentile(self, share: float) -> float:
        """The least time within which that share was answered; 0 of none."""
        ordered = sorted(self.seconds)
        return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else 0.0


@dataclass(slots=True)
class Figures:
    """A whole load."""

    nodes: int
    pods_due: int = 0
    rate: float = 0.0
    """Pods per second that were to come."""
    seconds: float = 0.0
    """From the first pod due to the last answer."""
    bound: int = 0
    unschedulable: int = 0
    """Pods that fit on no node: kube-scheduler would not have asked."""
    shed: int = 0
    """Pods that were not sent, since too many were in flight."""
    unfinished: int = 0
    """Pods still in flight when the time was over."""
    followed: int = 0
    """Changes of gangs that a follower of /v1/events was told of meanwhile."""
    late: float = 0.0
    """The longest that this process itself was late with a pod: that is in the latencies."""
    rows: dict[str, Timings] = field(default_factory=lambda: {row: Timings() for row in ROWS})
    problems: Counter[str] = field(default_factory=Counter)

    @property
    def pods_per_second(self) -> float:
        """That were bound."""
        return self.bound / self.seconds if self.seconds else 0.0

    @property
    def is_answered(self) -> bool:
        """Whether every pod was sent, and got its answers."""
        failed = sum(row.failed for row in self.rows.values())
        return not (failed or self.shed or self.unfinished)

    def sentences(self) -> list[str]:
        """What the table does not say."""
        said = [
            f"{self.pods_due} pods at {self.rate:g} a second on {self.nodes} nodes:"
            f" {self.bound} bound, {self.pods_per_second:.1f} a second",
            f"latencies count from when a pod was due; this process was late by"
            f" {_milliseconds(self.late)} at most",
        ]
        if self.followed:
            said.append(f"a follower of /v1/events was told of {self.followed} changes meanwhile")
        for pods, what in (
            (self.unschedulable, "fitted on no node and were not sent"),
            (self.shed, "were not sent: too many in flight"),
            (self.unfinished, "had no answer when the time was over"),
        ):
            if pods:
                said.append(f"{pods} pods {what}")
        said.extend(f"{times} times: {text}" for text, times in self.problems.most_common(5))
        return said

    def table(self) -> list[Sequence[str]]:
        """A line for each verb that was asked."""
        return [
            COLUMNS,
            *(
                (
                    name,
                    str(len(row.seconds)),
                    str(row.refused),
                    str(row.failed),
                    *(_milliseconds(row.percentile(share)) for share in (0.5, 0.99, 1.0)),
                )
                for name, row in self.rows.items()
                if row.seconds or row.failed
            ),
        ]

    def plain(self) -> dict[str, Any]:
        """For a program. Units: seconds."""
        rows = {
            name: {
                "requests": len(row.seconds),
                "refused": row.refused,
                "failed": row.failed,
                "p50": row.percentile(0.5),
                "p99": row.percentile(0.99),
                "max": row.percentile(1.0),
            }
            for name, row in self.rows.items()
        }
        said = {key: value for key, value in asdict(self).items() if key != "rows"}
        said["problems"] = dict(self.problems)
        return {**said, "pods_per_second": self.pods_per_second, "verbs": rows}


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms"
