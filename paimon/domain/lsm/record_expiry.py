"""Decide which records are expired: the options `record-level.expire-time` and `record-level.time-field`.

Seconds are truncated towards zero, as Java divides. The columnar form is in `record_expiry_columnar`.

Invariant: only compaction drops expired records, when it reads them and before it merges. Reads return every stored
record. A record without a time never expires.

Source: `RecordLevelExpire`.
"""

from __future__ import annotations

from attrs import frozen

from paimon.domain.columns.cast import cast_column
from paimon.domain.errors import InvalidRequest, Unsupported
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.options.table_options import TableOptions
from paimon.domain.row.values import to_array, to_values
from paimon.domain.schema.read_mapping import map_fields
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.stats.simple_stats import from_simple_stats
from paimon.domain.types.data_types import TIMESTAMP_TYPES, BigIntType, DataField, DataType

FIRST_MILLIS = 1_000_000_000_000
"""From this value on, a BIGINT counts milliseconds; below, it counts seconds."""


@frozen
class RecordExpiry:
    """Which records of a table are expired at one moment."""

    # the time of a record: an INT in seconds, a BIGINT in seconds or milliseconds, or a timestamp
    column: DataField
    # records with an earlier time are expired; seconds since the epoch
    before_seconds: int

    @classmethod
    def of(cls, schema: TableSchema, options: TableOptions, now_millis: int) -> RecordExpiry | None:
        """Return the expiry that the options of a table define; None without `record-level.expire-time`.

        `now_millis` is the time of the compaction, since the epoch. Raises `InvalidRequest` without a valid time field.
        """
        age, name = options.record_expire_millis, options.record_time_field
        if age is None:
            return None
        if name is None or name not in schema.fields_by_name:
            raise InvalidRequest(
                "Option 'record-level.expire-time' needs a column with the time of each record",
                subject="record-level.expire-time",
                hint="set 'record-level.time-field'",
            )
        return cls(schema.field_of(name), now_millis // 1000 - age // 1000)

    def may_hold_expired_records(self, file: DataFileMeta, schema: TableSchema) -> bool:
        """Return whether a file may hold expired records, by its statistics of the time column; False without them."""
        names = file.value_stats_cols if file.value_stats_cols is not None else file.write_cols
        known = schema.fields_by_name
        stored = schema.fields if names is None else tuple(known[n] for n in names if n in known)
        (mapping,) = map_fields((self.column,), stored)
        if mapping.source is None:
            return False
        found = from_simple_stats(file.value_stats, [f.type for f in stored])
        place = next(i for i, f in enumerate(stored) if f.id == self.column.id)
        oldest = found[place].minimum if place < len(found) else None
        if oldest is None:
            return False
        if mapping.needs_cast:
            try:
                column = cast_column(to_array([oldest], mapping.source.type), mapping.source.type, self.column.type)
            except (InvalidRequest, Unsupported):
                return False
            oldest = to_values(column, self.column.type)[0]
        return is_expired(oldest, self.column.type, self.before_seconds)


def is_expired(time: int | None, data_type: DataType, before_seconds: int) -> bool:
    """Return whether the internal time value of one record is too old: the reference. A null is never expired."""
    return time is not None and _seconds(time, data_type) < before_seconds


def _seconds(time: int, data_type: DataType) -> int:
    """Convert an internal value to seconds."""
    if isinstance(data_type, TIMESTAMP_TYPES):
        millis = time // 1_000_000
        return millis // 1000 if millis >= 0 else -(-millis // 1000)
    if isinstance(data_type, BigIntType) and time >= FIRST_MILLIS:
        return time // 1000
    return time
