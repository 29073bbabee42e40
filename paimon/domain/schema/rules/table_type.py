"""Which types of tables (option `type`) this library creates, opens and writes.

Invariant: a type that is not listed here, also a newer one, is refused, because its rows may be stored in another
form. It is never treated as an ordinary table.
Source: `TableType`, `CatalogUtils.loadTable`.
"""

from __future__ import annotations

from paimon.domain.errors import Unsupported
from paimon.domain.options.table_options import TableOptions

ORDINARY = "table"
MATERIALIZED = "materialized-table"
"""A table whose rows an engine computes with a query; its files are those of an ordinary table."""


def check_table_type(options: TableOptions, table_name: str = "") -> None:
    """Refuse a table that is not stored as an ordinary Paimon table."""
    if options.table_type not in (ORDINARY, MATERIALIZED):
        subject = f"table {table_name!r}" if table_name else "a table"
        raise Unsupported(
            f"{subject} of type {options.table_type!r}",
            hint="Use an engine that supports this type, or create an ordinary table without the option 'type'.",
        )


def check_new_table_type(options: TableOptions) -> None:
    """Refuse to create a table of an unsupported type: a materialized table needs the query of its engine."""
    check_table_type(options)
    if options.table_type != ORDINARY:
        raise Unsupported(
            f"creating a table of type {options.table_type!r}",
            hint="Create it with Flink, which stores its query. Its rows can then be read and written here.",
        )
