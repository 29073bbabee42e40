"""Which tables accept rows: a table whose rows this library would store differently from Java is refused by name.

Invariant: every file of rows is laid out by `FileLayout`, which calls this check first, so no writer can bypass it.
Source: `BlobType`, `DedicatedFormatRollingFileWriter`.
"""

from __future__ import annotations

from paimon.domain.errors import Unsupported
from paimon.domain.options.table_options import TableOptions
from paimon.domain.options.validate import check_stored_options
from paimon.domain.schema.rules.layout import POSTPONED, UNSORTED_TYPES
from paimon.domain.schema.rules.table_type import check_table_type
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.types.data_types import BlobType, DataField, VectorType
from paimon.domain.types.field_ids import all_types

BLOB_FORMAT = "blob"
"""The format of the files of a BLOB column, which is their extension, too."""
_SEQUENCE_OPTIONS = ("sequence.snapshot-ordering", "write.sequence-number-init-mode")
"""Options by which other writers number rows differently."""


def check_rows_writable(table: TableDefinition) -> None:
    """Refuse a table whose rows cannot be stored as Java does, such as nested or described BLOB values."""
    check_table_type(table.options, table.table_name)
    if table.schema.primary_keys:
        check_stored_options(table.options.values, _SEQUENCE_OPTIONS)
    if table.options.pk_clustering_override:
        _check_clustered(table)
    for column in table.schema.fields:
        is_stored = is_stored_as_blob(column, table.options)
        if not is_stored and any(isinstance(part, BlobType) for part in all_types(column.type)):
            raise Unsupported(
                f"writing rows of table {table.table_name!r} with nested BLOB values or descriptors in column "
                f"{column.name!r}",
                hint="write the rows with Java's Paimon, or use a BLOB column without 'blob-descriptor-field'",
            )


def _check_clustered(table: TableDefinition) -> None:
    """Refuse what only a Java table can have: postponed buckets, and columns that no sort orders."""
    columns = table.get_bound_fields(level=1)
    unsorted = [column.name for column in columns if isinstance(column.type, UNSORTED_TYPES)]
    if unsorted or table.options.bucket == POSTPONED:
        reason = f"column {unsorted[0]!r} in 'clustering.columns'" if unsorted else "postponed buckets"
        raise Unsupported(
            f"writing rows of table {table.table_name!r} with 'pk-clustering-override' and {reason}",
            hint="write and compact the table with Java's Paimon",
        )


def is_stored_as_blob(column: DataField, options: TableOptions) -> bool:
    """Return whether the values of a column are in `.blob` files; else data files have them, or descriptors."""
    return isinstance(column.type, BlobType) and column.name not in options.blob_descriptor_fields


def is_stored_as_vector(column: DataField, options: TableOptions) -> bool:
    """Return whether the values of a column are in `.vector.<format>` files; else data files have them."""
    return isinstance(column.type, VectorType) and options.vector_file_format is not None
