"""The formats of change events, and what a caller says about the events and their tables."""

from __future__ import annotations

from collections.abc import Mapping, Set

from attrs import field, frozen

from paimon.domain.cdc.dead_letters import FRAME_PREFIX
from paimon.domain.errors import InvalidRequest, did_you_mean
from paimon.domain.schema.table_schema import TableSchema

COLUMNS_FORMAT = "columns"
"""The format of rows that have their columns already, and a column for the operation."""
JSON_FORMATS = ("debezium-json", "canal-json", "maxwell-json", "json")
EVENT_FORMATS = (*JSON_FORMATS, COLUMNS_FORMAT)
SKIPPED = -1
"""Instead of the number of a table: events of a source table that the caller skips."""


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
