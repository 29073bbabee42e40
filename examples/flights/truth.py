"""Compute the expected rows from the source and from the stream, without the library under test.

Invariant: no function here uses a Paimon table.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from flights.events import KEYS

_ORDER = [(key, "ascending") for key in KEYS]
_COMPARED = [*KEYS, "origin", "dest", "tailnum", "scheduled", "status", "dep_delay", "arr_delay"]


def compute_final_state(flights: pa.Table) -> pa.Table:
    """Compute the rows of the table after the whole stream, straight from the source."""
    status = pc.if_else(flights["cancelled"], "cancelled", "arrived")
    nothing = pa.scalar(None, pa.int32())
    columns = {name: flights[name] for name in [*KEYS, "origin", "dest", "tailnum", "scheduled"]}
    columns["status"] = status
    for name in ("dep_delay", "arr_delay"):
        columns[name] = pc.if_else(flights["cancelled"], nothing, flights[name])
    return to_comparable(pa.table(columns))


def replay_events(events: pa.Table) -> pa.Table:
    """Compute the table's rows after these events: the newest version of each flight that is not withdrawn."""
    numbered = events.append_column("arrival", pa.array(range(events.num_rows), pa.int64()))
    newest = numbered.sort_by([("version", "ascending"), ("arrival", "ascending")])
    chosen = newest.group_by(KEYS, use_threads=False).aggregate([("arrival", "last")])["arrival_last"]
    rows = events.take(chosen)
    return to_comparable(rows.filter(pc.not_equal(rows["op"], "-D")))


def to_comparable(table: pa.Table) -> pa.Table:
    """Return the compared columns in key order, with nullable types and times as timestamp[s]."""
    chosen = table.select(_COMPARED).sort_by(_ORDER)
    wanted = pa.schema([pa.field(f.name, _to_plain_type(f.type)) for f in chosen.schema])
    return chosen.cast(wanted).combine_chunks()


def _to_plain_type(arrow_type: pa.DataType) -> pa.DataType:
    return pa.timestamp("s") if pa.types.is_timestamp(arrow_type) else arrow_type
