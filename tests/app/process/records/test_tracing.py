"""A span for each gang that starts."""

from __future__ import annotations

import sys

import pytest
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from app.dialects.spec import GangKey
from app.errors import SettingsError
from app.process.records.tracing import Tracing, tracing_to
from app.state.report.starts import Start

START = Start(GangKey("team-a", "train", "job"), 8, 10.0, 11.5, 12.0, 14.0, plans=2)
SECOND = 1_000_000_000


def test_the_span_of_a_gang_lasts_from_its_first_pod_to_its_last_binding():
    exporter = InMemorySpanExporter()
    tracing = Tracing(SimpleSpanProcessor(exporter), version="1.2.3", pod="corral-0")
    tracing.trace(START, 1_000_000.0)
    tracing.close()

    (span,) = exporter.get_finished_spans()
    assert (span.name, span.parent) == ("gang", None)
    assert span.start_time == 1_000_010 * SECOND
    assert span.end_time == 1_000_014 * SECOND
    assert [(event.name, event.timestamp) for event in span.events] == [
        ("complete", 1_000_011.5 * SECOND),
        ("planned", 1_000_012 * SECOND),
    ]
    assert dict(span.attributes) == {
        "k8s.namespace.name": "team-a",
        "corral.gang.name": "train",
        "corral.gang.source": "job",
        "corral.gang.pods": 8,
        "corral.gang.plans": 2,
    }
    resource = span.resource.attributes
    assert (resource["service.name"], resource["service.version"]) == ("corral", "1.2.3")
    assert resource["k8s.pod.name"] == "corral-0"


def test_without_the_extra_the_setting_is_refused_with_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with pytest.raises(SettingsError, match=r"otlp_endpoint: http://c:4318: .*corral\[otel\]"):
        tracing_to("http://c:4318", version="1", pod="corral-0")
