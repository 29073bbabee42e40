"""The rows of a dead-letter table: events that could not be read, with the reason and their position in the source."""

from __future__ import annotations

import json

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.errors import InvalidRequest

DEAD_LETTER_SCHEMA = pa.schema(
    [
        pa.field("reason", pa.string()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("position", pa.int64()),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
    ]
)
"""The columns of a dead-letter table. `position` is the number of the event among those of its batch or task."""
FRAME_PREFIX = "frame."
"""Begins the path of metadata that are columns of the events."""
_VALUE = "value"
_TEXTS = (pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view())


def find_texts(events: pa.Table) -> pa.Array:
    """Return the texts of events: the column ``value``, or the only column, which must be text or bytes."""
    name = _VALUE if _VALUE in events.schema.names or events.num_columns != 1 else events.schema.names[0]
    if name not in events.schema.names or events.schema.field(name).type not in _TEXTS:
        raise InvalidRequest(
            f"Events with the columns {', '.join(events.schema.names)} have no text.",
            subject=_VALUE,
            hint="use a column 'value' of text or bytes, as frames from Kafka have it, or the format 'columns'",
        )
    return _to_binary(events[name])


def find_keys(events: pa.Table) -> pa.Array | None:
    """Return the keys of messages; None if the events have none."""
    if "key" not in events.schema.names or events.schema.field("key").type not in _TEXTS:
        return None
    return _to_binary(events["key"])


def _to_binary(column: pa.ChunkedArray) -> pa.Array:
    return pa.chunked_array([c.cast(pa.binary()) for c in column.chunks], pa.binary()).combine_chunks()


def build_dead_letters(events: pa.Table, reasons: dict[int, str], first_position: int) -> pa.Table:
    """Return rows with `DEAD_LETTER_SCHEMA` for rejected events, in the order of the events.

    `reasons` is by event number; `first_position` is the position of the first event of the batch.
    """
    numbers: npt.NDArray[np.int64] = np.array(sorted(reasons), np.int64)
    chosen = events.take(pa.array(numbers))
    columns = {
        "reason": pa.array([reasons[int(number)] for number in numbers], pa.string()),
        "position": pa.array(numbers + first_position),
    }
    for name in ("topic", "partition", "offset", "key", _VALUE):
        kind = DEAD_LETTER_SCHEMA.field(name).type
        columns[name] = _find_column(chosen, name, kind)
    return pa.table({name: columns[name] for name in DEAD_LETTER_SCHEMA.names}, schema=DEAD_LETTER_SCHEMA)


def _find_column(events: pa.Table, name: str, kind: pa.DataType) -> pa.Array:
    has_text = _VALUE in events.schema.names or events.num_columns == 1
    if name == _VALUE and not has_text:  # rows with columns of their own
        texts = [json.dumps(row, default=str).encode() for row in events.to_pylist()]
        return pa.array(texts, kind)
    if name == _VALUE and has_text and _VALUE not in events.schema.names:
        return events.column(0).cast(kind)
    if name not in events.schema.names:
        return pa.nulls(len(events), kind)
    return pc.cast(events[name], kind)
