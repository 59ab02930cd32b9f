"""One span for each gang that starts, from its first pod to its last binding, sent by OTLP.

    Start ──▶ span "gang", with the events "complete" and "planned" ──a thread──▶ collector

A collector that does not answer costs spans, and nothing else. Needs the extra `otel`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from app.errors import SettingsError
from app.state.report.starts import Start

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor

VERSION_ATTRIBUTE = "service.version"
_NANOSECONDS = 1e9

Trace = Callable[[Start, float], None]
"""Takes a start, and what to add to its times for seconds since 1970."""


def untraced(_start: Start, _offset: float) -> None:
    """As where the settings name no collector."""


class Tracing:
    """Makes spans of starts; `close` sends what is left, for some seconds at most."""

    def __init__(self, processor: SpanProcessor, *, version: str = "", pod: str = "") -> None:
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider

        resource = {"service.name": "corral", VERSION_ATTRIBUTE: version, "k8s.pod.name": pod}
        self._provider = TracerProvider(resource=Resource(resource), shutdown_on_exit=False)
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer("corral")

    def trace(self, start: Start, offset: float) -> None:
        """Have a start sent."""

        def at(seconds: float) -> int:
            return int((seconds + offset) * _NANOSECONDS)

        key = start.gang
        span = self._tracer.start_span(
            "gang",
            start_time=at(start.first_pod_at),
            attributes={
                "k8s.namespace.name": key.namespace,
                "corral.gang.name": key.name,
                "corral.gang.source": key.source,
                "corral.gang.pods": start.pods,
                "corral.gang.plans": start.plans,
            },
        )
        span.add_event("complete", timestamp=at(start.complete_at))
        span.add_event("planned", timestamp=at(start.planned_at))
        span.end(end_time=at(start.started_at))

    def close(self) -> None:
        """Send no more."""
        self._provider.shutdown()


def tracing_to(endpoint: str, *, version: str, pod: str) -> Tracing:
    """Spans go to this URL. Raises: SettingsError without the extra `otel`."""
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise SettingsError(
            f"otlp_endpoint: {endpoint}: needs the extra otel: pip install 'corral[otel]'"
        ) from error
    exporter = OTLPSpanExporter(endpoint, timeout=5)
    return Tracing(BatchSpanProcessor(exporter), version=version, pod=pod)
