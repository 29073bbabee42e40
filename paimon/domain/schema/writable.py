"""Which tables accept rows: a table whose rows this library would store differently from Java is refused by name.

Invariant: every file of rows is laid out by `FileLayout`, which calls this check first, so no writer can bypass it.
Source: `BlobType`, `DedicatedFormatRollingFileWriter`.
"""

from __future__ import annotations

from paimon.domain.errors import Unsupported
from paimon.domain.options.validate import check_stored_options
from paimon.domain.schema.rules.table_type import check_table_type
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.types.data_types import BlobType
from paimon.domain.types.nested_types import all_types

_SEQUENCE_OPTIONS = ("sequence.snapshot-ordering", "write.sequence-number-init-mode")
"""Options by which other writers number rows differently."""


def check_rows_writable(table: TableDefinition) -> None:
    """Refuse a table whose rows this library cannot store as Java does.

    This concerns other table types, BLOB columns at any depth, and stored options that change how rows are numbered.
    """
    check_table_type(table.options, table.table_name)
    if table.schema.primary_keys:
        check_stored_options(table.options.values, _SEQUENCE_OPTIONS)
    for column in table.schema.fields:
        if any(isinstance(part, BlobType) for part in all_types(column.type)):
            raise Unsupported(
                f"writing rows of table {table.table_name!r} with the BLOB column {column.name!r}",
                hint="Write the rows with Java's Paimon, or use a BYTES column.",
            )
