"""The observer of OpenTelemetry: the contract of observers, and what an exporter in memory receives."""

from __future__ import annotations

import attrs
import pytest

import paimon
from paimon.adapters.logs import LoggingObserver
from paimon.embed import make_opentelemetry_observer
from paimon.ports.observer import METRICS, Event
from paimon.testing.contracts import ObserverContract

pytestmark = pytest.mark.nightly  # the packages are no dependency of the tests
pytest.importorskip("opentelemetry.sdk")


class Service:
    """Providers as a service has them, and an observer that reports to them."""

    def __init__(self) -> None:
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import InMemoryMetricReader
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import SimpleSpanProcessor
        from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

        self.spans, self.reader, tracing = InMemorySpanExporter(), InMemoryMetricReader(), TracerProvider()
        tracing.add_span_processor(SimpleSpanProcessor(self.spans))
        self.tracer = tracing.get_tracer("service")
        self.observer = make_opentelemetry_observer(tracing, MeterProvider([self.reader]))

    def metrics(self) -> dict[str, list[object]]:
        """The data points of all metrics by name."""
        found = self.reader.get_metrics_data()
        scopes = [s for r in found.resource_metrics for s in r.scope_metrics] if found else []
        return {m.name: list(m.data.data_points) for scope in scopes for m in scope.metrics}


class TestOpenTelemetryObserver(ObserverContract):
    def make_observer(self):
        return Service().observer


def test_a_commit_is_a_span_of_the_caller_s_trace() -> None:
    service = Service()
    catalog = paimon.connect("memory://opentelemetry")
    catalog.create_database("shop")
    catalog = attrs.evolve(catalog, engine=attrs.evolve(catalog.engine, observer=service.observer))
    table = catalog.create_table("shop.t", "id INT NOT NULL", primary_keys=["id"], options={"bucket": "1"})
    with service.tracer.start_as_current_span("load"):
        table.write([{"id": 1}])
        table.write([{"id": 2}])
        table.compact(full=True)
        service.observer.event(Event("conflict", table.location, {"reason": "s3://me:hunter22@bucket"}))
    spans = {span.name: span for span in service.spans.get_finished_spans()}
    load, commit = spans["load"], spans["paimon.commit"]
    assert commit.parent.span_id == load.context.span_id and "paimon.compaction" in spans
    assert commit.attributes["paimon.snapshot_id"] == 2 and commit.attributes["paimon.rows"] == 1
    assert commit.attributes["paimon.table"] == table.location and commit.start_time <= commit.end_time
    (conflict,) = load.events
    assert conflict.name == "paimon.conflict" and "hunter22" not in str(conflict.attributes)
    events = {p.attributes["paimon.event"]: p.value for p in service.metrics()["paimon.events"]}
    assert events == {"commit": 2, "compaction": 1, "conflict": 1}
    assert {p.attributes["paimon.event"]: p.count for p in service.metrics()["paimon.duration"]}["commit"] == 2


def test_metrics_are_counters_with_their_names() -> None:
    service = Service()
    for name in METRICS:
        service.observer.count(name, 2)
    service.observer.count("scan.equality.shop.t.id", 5)
    service.observer.count("a metric of tomorrow", 3)
    found = service.metrics()
    assert {f"paimon.{name}" for name in METRICS} <= found.keys()
    (column,), (other,) = found["paimon.scan.equality"], found["paimon.other"]
    assert (column.attributes["paimon.column"], column.value) == ("shop.t.id", 5)
    assert (other.attributes["paimon.metric"], other.value) == ("a metric of tomorrow", 3)


def test_events_are_logged_as_before() -> None:
    assert isinstance(Service().observer, LoggingObserver)
