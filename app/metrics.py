"""What Prometheus sees. One registry per Corral, so that two may live in one process.

Label values are bounded (verbs, kinds, outcomes, phases); children are bound once, because
`.labels()` costs more than the observation itself.
"""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import generate_latest

VERBS = ("filter", "prioritize", "bind", "preempt")
ANSWERS = ("passed", "pinned", "rejected", "failed")
BIND_OUTCOMES = ("bound", "failed", "gone")
WAKE_OUTCOMES = ("woken", "gone", "failed", "dropped")
REPORT_OUTCOMES = ("written", "failed", "dropped")
WATCHED_KINDS = ("Node", "Pod", "Job", "Topology")
BROKEN_REQUESTS = ("late", "header", "body", "connections", "malformed")

# Seconds. From a pass-through (0.2 ms) to kube-scheduler's httpTimeout; /bind waits for its gang.
_BUCKETS = (0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.1, 0.5, 1, 2.5, 5, 10, 20, 30)


class Metrics:
    """Every series, with its children bound."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        seconds = Histogram(
            "corral_extender_request_seconds",
            "Time from a request's last byte to its answer",
            ["verb"],
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self.request_seconds = {verb: seconds.labels(verb) for verb in VERBS}
        self.answers = self._counters(
            "corral_filter_answers", "Answers to /filter by kind", "answer", ANSWERS
        )
        self.binds = self._counters("corral_binds", "Bindings by outcome", "outcome", BIND_OUTCOMES)
        self.wakes = self._counters(
            "corral_wakes", "Pods woken by an annotation", "outcome", WAKE_OUTCOMES
        )
        self.reports = self._counters(
            "corral_reports", "Events about gangs", "outcome", REPORT_OUTCOMES
        )
        self.broken_requests = self._counters(
            "corral_broken_requests",
            "Connections ended and requests refused before a verb saw them",
            "reason",
            BROKEN_REQUESTS,
        )
        self.engine_errors = self._counters(
            "corral_engine_errors",
            "Inputs the engine failed on; each is a bug and is in the log",
            "input",
            ("apply", "tick"),
        )
        self.bind_seconds = Histogram(
            "corral_bind_seconds",
            "Time the API server took for one binding, retries included",
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self.held_binds = Gauge(
            "corral_held_binds", "/bind requests waiting for an answer", registry=self.registry
        )
        self.loop_lag_seconds = Gauge(
            "corral_loop_lag_seconds",
            "How late the last tick came: work that did not yield",
            registry=self.registry,
        )
        self.watch_problems = self._counters(
            "corral_watch_problems",
            "Watches that broke and objects that could not be read",
            "kind",
            WATCHED_KINDS,
        )
        self._gangs = Gauge("corral_gangs", "Gangs by phase", ["phase"], registry=self.registry)

        self._phases: set[str] = set()

    def show_gangs(self, gangs_by_phase: Mapping[str, int]) -> None:
        """Publish how many gangs are in each phase; a phase not named keeps its series at 0."""
        self._phases.update(gangs_by_phase)
        for phase in self._phases:
            self._gangs.labels(phase).set(gangs_by_phase.get(phase, 0))

    def exposition(self) -> bytes:
        """The text format of all series."""
        return generate_latest(self.registry)

    def _counters(
        self, name: str, documentation: str, label: str, values: tuple[str, ...]
    ) -> dict[str, Counter]:
        counter = Counter(name, documentation, [label], registry=self.registry)
        return {value: counter.labels(value) for value in values}
