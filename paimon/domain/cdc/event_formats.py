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
    """How to read events.

    Parameters
    ----------
    name : str
        One of `EVENT_FORMATS`.
    operation_column : str
        For the formats ``json`` and ``columns``: the member or column with the operation.
    metadata : mapping of str to str
        By column of the table: the path of a member of the event, such as ``source.ts_ms``, or ``frame.`` and a column
        of the events, such as ``frame.offset``.
    """

    name: str
    operation_column: str = "op"
    metadata: Mapping[str, str] = field(factory=dict, converter=_to_dict)

    @property
    def has_column_names(self) -> bool:
        """Whether events have the columns of a frame; the other formats have whole rows, in which null is left out."""
        return self.name == COLUMNS_FORMAT

    def check(self) -> None:
        """Check the name of the format.

        Raises
        ------
        InvalidRequest
            The format is unknown, or has no members that could be metadata.
        """
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
        """Return the members of rows that are not columns: some, and metadata that are next to the columns.

        Parameters
        ----------
        omitted : set of str
            The members of plain objects that are not columns; empty for rows inside an event.

        Returns
        -------
        frozenset of str
            The names.
        """
        return frozenset({*omitted, *self.metadata.values()} if omitted else ())

    def check_columns(self, table_name: str, schema: TableSchema) -> None:
        """Check that a table has the columns for metadata.

        Raises
        ------
        InvalidRequest
            A column does not exist.
        """
        for name in self.metadata:
            if name not in schema.fields_by_name:
                hint = did_you_mean(name, list(schema.fields_by_name)) or "add the column"
                raise InvalidRequest(
                    f"Table {table_name!r} has no column {name!r} for metadata.", subject="metadata", hint=hint
                )


@frozen
class TargetTable:
    """A table that changes are written to.

    Parameters
    ----------
    name : str
        Its name, for messages.
    schema : TableSchema
        Its columns and keys.
    is_insert_only : bool
        Whether it accepts no updates and deletes.
    """

    name: str
    schema: TableSchema
    is_insert_only: bool = False

    @property
    def refusal(self) -> str:
        """Why an update or a delete is not accepted."""
        return f"Table {self.name!r} has no primary key, so it accepts inserts only: add a key, or set ignore-delete."


@frozen
class Routes:
    """The tables of a stream of events, and which source table goes to which.

    Parameters
    ----------
    tables : tuple of TargetTable
        The tables.
    numbers : mapping of str to int, optional
        By name of the source table: the position of its table, or `SKIPPED`. Without it, all events go to the first
        table.
    """

    tables: tuple[TargetTable, ...]
    numbers: Mapping[str, int] | None = None
