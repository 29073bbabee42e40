"""Spans and metrics of OpenTelemetry for what an observer receives.

Invariant: names are stable: those of `paimon.ports.observer` after ``paimon.``. A location shows no secret.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from opentelemetry import metrics, trace

from paimon.adapters.logs import LoggingObserver
from paimon.domain.secrets import redact_secrets
from paimon.ports.observer import METRICS, Event

_SCANS = ("scan.equality", "scan.range")
_LARGEST = (1 << 63) - 1


class OpenTelemetryObserver(LoggingObserver):
    """Reports metrics as counters, and what takes time as spans; logs events, too. Without providers, uses the global.

    An event with a duration is a span of this time, in the trace of the caller. Each other one is an event of the
    caller's span. All of them are counted.
    """

    def __init__(
        self, tracer_provider: trace.TracerProvider | None = None, meter_provider: metrics.MeterProvider | None = None
    ) -> None:
        self._tracer = trace.get_tracer("paimon", tracer_provider=tracer_provider)
        meter = metrics.get_meter("paimon", meter_provider=meter_provider)
        self._counters = {name: meter.create_counter(f"paimon.{name}", "1", text) for name, text in METRICS.items()}
        for name in _SCANS:
            text = "Bytes that scans read in spite of a condition on a column."
            self._counters[name] = meter.create_counter(f"paimon.{name}", "By", text)
        self._others = meter.create_counter("paimon.other", "1", "Metrics of newer versions.")
        self._events = meter.create_counter("paimon.events", "1", "Events, by name.")
        self._seconds = meter.create_histogram("paimon.duration", "s", "The time of commits, by event.")

    def count(self, metric: str, value: int) -> None:
        """Add to the counter of a metric; its last parts may name a column, and are an attribute then."""
        name = next((name for name in _SCANS if metric.startswith(f"{name}.")), metric)
        counter, labels = self._counters.get(name), {}
        if counter is None:
            counter, labels = self._others, {"paimon.metric": metric}
        elif name != metric:
            labels = {"paimon.column": metric.removeprefix(f"{name}.")}
        counter.add(min(value, _LARGEST), labels)

    def event(self, event: Event) -> None:
        """Report a span, or an event of the span of the caller."""
        super().event(event)
        name = f"paimon.{event.name}"
        self._events.add(1, {"paimon.event": event.name})
        attributes = _to_attributes(event)
        millis = event.values.get("millis")
        if not isinstance(millis, int):
            trace.get_current_span().add_event(name, attributes)
            return
        self._seconds.record(millis / 1000, {"paimon.event": event.name})
        end = time.time_ns()
        span = self._tracer.start_span(name, attributes=attributes, start_time=end - millis * 1_000_000)
        span.end(end)


def _to_attributes(event: Event) -> Mapping[str, int | str]:
    """Return the values of an event, in the range of OpenTelemetry, and its table."""
    found: dict[str, int | str] = {"paimon.table": redact_secrets(event.location, {})}
    for name, value in event.values.items():
        found[f"paimon.{name}"] = min(value, _LARGEST) if isinstance(value, int) else redact_secrets(value, {})
    return found
