"""Which records are too old to be kept: `record-level.expire-time` and `record-level.time-field`.

Law: compaction alone drops them, as it reads them, before anything is merged; reads show whatever is still stored. A
null never expires. Source: `RecordLevelExpire`.
"""

from __future__ import annotations

from attrs import frozen

from paimon.domain.columns.cast import cast
from paimon.domain.errors import InvalidRequest
from paimon.domain.lsm.expiry.reference import is_expired
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.options.table_options import TableOptions
from paimon.domain.row.values import to_array, to_values
from paimon.domain.schema.read_mapping import map_fields
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.stats.codec import column_stats
from paimon.domain.types.data_types import DataField


@frozen
class RecordExpiry:
    """The records of a table that are too old at some moment.

    Parameters
    ----------
    column : DataField
        The column that tells a record's time: seconds in an INT; seconds or milliseconds in a BIGINT; a timestamp.
    before_seconds : int
        Records whose time lies before are expired.
    """

    column: DataField
    before_seconds: int

    @classmethod
    def of(cls, schema: TableSchema, options: TableOptions, now_millis: int) -> RecordExpiry | None:
        """The expiry that a table's options ask for; None where they ask for none."""
        age, name = options.record_expire_millis, options.record_time_field
        if age is None:
            return None
        if name is None or name not in schema.fields_by_name:
            raise InvalidRequest(
                "option 'record-level.expire-time' needs a column that tells a record's time",
                subject="record-level.expire-time", hint="set 'record-level.time-field'",
            )  # fmt: skip
        return cls(schema.field_of(name), now_millis // 1000 - age // 1000)

    def touches(self, file: DataFileMeta, schema: TableSchema) -> bool:
        """Whether the statistics of a file, written under `schema`, say that it holds expired records."""
        names = file.value_stats_cols if file.value_stats_cols is not None else file.write_cols
        known = schema.fields_by_name
        stored = schema.fields if names is None else tuple(known[n] for n in names if n in known)
        (mapping,) = map_fields((self.column,), stored)
        if mapping.source is None:
            return False
        found = column_stats(file.value_stats, [f.type for f in stored])
        place = next(i for i, f in enumerate(stored) if f.id == self.column.id)
        oldest = found[place].minimum if place < len(found) else None
        if oldest is None:
            return False
        if mapping.needs_cast:
            column = cast(to_array([oldest], mapping.source.type), mapping.source.type, self.column.type)
            oldest = to_values(column, self.column.type)[0]
        return is_expired(oldest, self.column.type, self.before_seconds)
