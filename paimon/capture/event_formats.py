"""The formats of change events, what a caller says about events and tables, and the rows of a dead-letter table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Set

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from attrs import field, frozen

from paimon.domain.errors import InvalidRequest, did_you_mean
from paimon.domain.schema.table_schema import TableSchema

COLUMNS_FORMAT = "columns"
"""The format of rows that have their columns already, and a column for the operation."""
JSON_FORMATS = ("debezium-json", "canal-json", "maxwell-json", "json")
EVENT_FORMATS = (*JSON_FORMATS, COLUMNS_FORMAT)
SKIPPED = -1
"""Instead of the number of a table: events of a source table that the caller skips."""
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


def _to_dict(values: Mapping[str, str]) -> dict[str, str]:
    return dict(values)


@frozen
class EventFormat:
    """How to read events."""

    # one of `EVENT_FORMATS`
    name: str
    # the member or column with the operation, for the formats `json` and `columns`
    operation_column: str = "op"
    # table column to event member, as `source.ts_ms`, or to event column, as `frame.offset`
    metadata: Mapping[str, str] = field(factory=dict, converter=_to_dict)

    @property
    def has_column_names(self) -> bool:
        """Whether events have the columns of a frame; the other formats have whole rows, in which null is left out."""
        return self.name == COLUMNS_FORMAT

    def check(self) -> None:
        """Refuse an unknown format, or metadata for the format `columns`, which has no members."""
        if self.name not in EVENT_FORMATS:
            hint = did_you_mean(self.name, EVENT_FORMATS) or f"use one of {', '.join(EVENT_FORMATS)}"
            raise InvalidRequest(f"Event format {self.name!r} is unknown", subject="format", hint=hint)
        paths = [path for path in self.metadata.values() if not path.startswith(FRAME_PREFIX)]
        if self.name == COLUMNS_FORMAT and self.metadata:
            raise InvalidRequest(
                f"Format 'columns' has no metadata {(*paths, *self.metadata)[0]!r}: its events are rows.",
                subject="metadata",
                hint="add the values as columns of the frame",
            )

    def list_omitted(self, omitted: Set[str]) -> frozenset[str]:
        """Return the members of rows that are not columns: `omitted`, and metadata that are next to the columns.

        `omitted` has such members of plain objects; it is empty for rows inside an event, and so is the result.
        """
        return frozenset({*omitted, *self.metadata.values()} if omitted else ())

    def check_columns(self, table_name: str, schema: TableSchema) -> None:
        """Refuse a table without the columns that metadata are written to."""
        for name in self.metadata:
            if name not in schema.fields_by_name:
                hint = did_you_mean(name, list(schema.fields_by_name)) or "add the column"
                raise InvalidRequest(
                    f"Table {table_name!r} has no column {name!r} for metadata.", subject="metadata", hint=hint
                )


@frozen
class TargetTable:
    """A table that changes are written to."""

    name: str
    schema: TableSchema
    # whether it refuses updates and deletes
    is_insert_only: bool = False

    @property
    def refusal(self) -> str:
        """Why an update or a delete is not accepted."""
        return f"Table {self.name!r} has no primary key, so it accepts inserts only: add a key, or set ignore-delete."


@frozen
class Routes:
    """The tables of a stream of events, and which source table goes to which."""

    tables: tuple[TargetTable, ...]
    # source table name to position in `tables`, or `SKIPPED`; None: all events go to the first table
    numbers: Mapping[str, int] | None = None


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
    """Return rows of `DEAD_LETTER_SCHEMA` for rejected events, in order; `reasons` is by event number."""
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
