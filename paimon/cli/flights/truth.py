"""What must come out: computed from the source and from the stream, without the library under test.

Law: no function here touches a Paimon table.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from paimon.cli.flights.events import KEYS

_ORDER = [(key, "ascending") for key in KEYS]
_SHOWN = [*KEYS, "origin", "dest", "tailnum", "scheduled", "status", "dep_delay", "arr_delay"]


def final_state(flights: pa.Table) -> pa.Table:
    """The table after the whole stream, straight from the source."""
    status = pc.if_else(flights["cancelled"], "cancelled", "arrived")
    nothing = pa.scalar(None, pa.int32())
    columns = {name: flights[name] for name in [*KEYS, "origin", "dest", "tailnum", "scheduled"]}
    columns["status"] = status
    for name in ("dep_delay", "arr_delay"):
        columns[name] = pc.if_else(flights["cancelled"], nothing, flights[name])
    return comparable(pa.table(columns))


def state_after(events: pa.Table) -> pa.Table:
    """The table after these events: each flight's newest version (the later arrival among equals), none withdrawn."""
    numbered = events.append_column("arrival", pa.array(range(events.num_rows), pa.int64()))
    newest = numbered.sort_by([("version", "ascending"), ("arrival", "ascending")])
    picked = newest.group_by(KEYS, use_threads=False).aggregate([("arrival", "last")])["arrival_last"]
    rows = events.take(picked)
    return comparable(rows.filter(pc.not_equal(rows["op"], "-D")))


def comparable(table: pa.Table) -> pa.Table:
    """The shown columns, in key order, with plain nullable types."""
    chosen = table.select(_SHOWN).sort_by(_ORDER)
    wanted = pa.schema([pa.field(f.name, _plain(f.type)) for f in chosen.schema])
    return chosen.cast(wanted).combine_chunks()


def _plain(arrow_type: pa.DataType) -> pa.DataType:
    return pa.timestamp("s") if pa.types.is_timestamp(arrow_type) else arrow_type
