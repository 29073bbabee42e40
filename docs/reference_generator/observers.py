"""The page of metrics and events, from the port of observers."""

from __future__ import annotations

from paimon.ports.observer import EVENTS, METRICS
from reference_generator.markdown import code, page, table

_INTRODUCTION = """An observer is the port `observer` of an engine. It receives the progress of long calls, metrics and
events. Names on this page are stable: a minor version adds names, and neither removes nor renames one.
Texts of activities, such as `read splits`, are for people and may change."""

_METRICS = """`Observer.count(metric, value)` receives these metrics. `CountingObserver` adds them up."""

_SCANS = """Scans with a condition also count the bytes that they read in spite of it: `scan.equality.TABLE.COLUMN` and
`scan.range.TABLE.COLUMN`. [`Maintain.health`](python/maintain.md) takes these metrics as `observed`."""

_EVENTS = """An observer that has a method `event` receives these events. An event has a `name`, the `location` of the
table, and `values`; an expiry has only those that apply to its `kind`. Without another observer, an engine
[logs them](../how-to/run-a-service.md#log-what-happens)."""

_OPENTELEMETRY = """`paimon.embed.make_opentelemetry_observer` reports under these names, which are stable, too:

| Kind | Name | Attributes |
|---|---|---|
| span | `paimon.commit`, `paimon.compaction` | `paimon.table`, and the values of the event: `paimon.rows`, … |
| event of the caller's span | `paimon.conflict`, `paimon.expiry`, `paimon.retry` | the same |
| counter | `paimon.` and the name of a metric | none |
| counter (bytes) | `paimon.scan.equality`, `paimon.scan.range` | `paimon.column`: `TABLE.COLUMN` |
| counter | `paimon.other`: metrics that the observer does not know | `paimon.metric` |
| counter | `paimon.events` | `paimon.event` |
| histogram (seconds) | `paimon.duration`: the time of commits and compactions | `paimon.event` |"""


def generate_page() -> str:
    """Return the page."""
    events = ([code(name), ", ".join(map(code, values))] for name, values in EVENTS.items())
    return page(
        "Metrics and events",
        _INTRODUCTION,
        "## Metrics",
        _METRICS,
        table(("Metric", "What it counts"), ([code(name), text] for name, text in METRICS.items())),
        _SCANS,
        "## Events",
        _EVENTS,
        table(("Event", "Values"), events),
        "## OpenTelemetry",
        _OPENTELEMETRY,
    )
