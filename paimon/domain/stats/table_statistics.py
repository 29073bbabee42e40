"""The statistics of a table that ANALYZE stores: row count, bytes, and a summary of each column.

Invariant: `TableStatistics.of(load_object(dump_json(s.to_json())))` is `s`. The texts of the smallest and largest value
are those of Java. Source: `Statistics`, `ColStats`, `StatsFileHandler`.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from paimon.domain.json_text import Members

_COLUMN_MEMBERS = {
    "column_id": "colId",
    "distinct_count": "distinctCount",
    "smallest": "min",
    "largest": "max",
    "null_count": "nullCount",
    "average_length": "avgLen",
    "largest_length": "maxLen",
}


@frozen
class ColumnStatistics:
    """The summary of one column over all rows; None where unknown."""

    # the id of the field; later versions of Java than 1.4 do not store it
    column_id: int | None = None
    # different values that are not null
    distinct_count: int | None = None
    # the smallest value as text; None for texts, bytes, and columns without a value
    smallest: str | None = None
    largest: str | None = None
    null_count: int | None = None
    # characters of a text, bytes of any other value; rounded up
    average_length: int | None = None
    largest_length: int | None = None

    @classmethod
    def of(cls, stored: Members) -> ColumnStatistics:
        """Read the members of a stored column."""
        texts = {"smallest", "largest"}
        read = {
            name: stored.optional_text(member) if name in texts else stored.optional_integer(member)
            for name, member in _COLUMN_MEMBERS.items()
        }
        return cls(**read)  # type: ignore[arg-type]  # texts and numbers by name

    def to_json(self) -> dict[str, object]:
        """Return the members in Java's order; what is unknown is left out."""
        values = {member: getattr(self, name) for name, member in _COLUMN_MEMBERS.items()}
        return {member: value for member, value in values.items() if value is not None}


@frozen
class TableStatistics:
    """The statistics of a table at one snapshot."""

    # the snapshot whose rows were read
    snapshot_id: int
    schema_id: int
    # the rows that a scan returns
    row_count: int | None = None
    # their share of the bytes of the data files: merged rows take the average of all stored rows
    byte_count: int | None = None
    # by name; only the columns that were analyzed
    columns: Mapping[str, ColumnStatistics] = field(factory=dict, hash=False)

    @classmethod
    def of(cls, stored: Members) -> TableStatistics:
        """Read a statistics file; a member of a wrong type raises CorruptTable."""
        columns = stored.get("colStats")
        held = {} if columns is None else stored.child(columns, "colStats").values
        return cls(
            stored.integer("snapshotId"),
            stored.integer("schemaId"),
            stored.optional_integer("mergedRecordCount"),
            stored.optional_integer("mergedRecordSize"),
            {name: ColumnStatistics.of(stored.child(value, f"colStats.{name}")) for name, value in held.items()},
        )

    def to_json(self) -> dict[str, object]:
        """Return the members of the statistics file in Java's order."""
        counts = {"mergedRecordCount": self.row_count, "mergedRecordSize": self.byte_count}
        return {
            "snapshotId": self.snapshot_id,
            "schemaId": self.schema_id,
            **{name: count for name, count in counts.items() if count is not None},
            "colStats": {name: column.to_json() for name, column in self.columns.items()},
        }


def share_bytes(file_bytes: int, stored_rows: int, row_count: int) -> int:
    """Return the share of the rows that a scan returns in the bytes of all stored rows."""
    return file_bytes * row_count // stored_rows if stored_rows else 0
