"""The library itself as an implementation of the kit."""

from __future__ import annotations

import pyarrow as pa

import paimon
from paimon.table import Table
from paimon.testing.conformance.implementation import KEY_TYPES, Capabilities, TableUnderTest


def open_table(table: TableUnderTest) -> Table:
    """Open a table of a run with this library."""
    return paimon.open_table(table.location)


class PaimonForPython:
    """The library itself, which has every capability."""

    capabilities = Capabilities(key_types=KEY_TYPES, partition_types=KEY_TYPES)

    def create(self, table: TableUnderTest) -> None:
        """Create the table.

        Parameters
        ----------
        table : TableUnderTest
            A table that does not exist.
        """
        paimon.connect(table.warehouse).create_table(
            table.identifier,
            table.schema,
            primary_keys=table.primary_keys,
            partition_keys=table.partition_keys,
            options=table.options,
        )

    def write(self, table: TableUnderTest, rows: pa.Table) -> None:
        """Write rows in one commit; see `Implementation.write`."""
        open_table(table).write(rows)

    def read(self, table: TableUnderTest, snapshot: int | None) -> pa.Table:
        """Return all rows; see `Implementation.read`."""
        return open_table(table).scan(snapshot=snapshot).to_arrow()

    def compact(self, table: TableUnderTest) -> None:
        """Compact the table in full.

        Parameters
        ----------
        table : TableUnderTest
            An existing table.
        """
        open_table(table).compact(full=True)

    def delete(self, table: TableUnderTest, column: str, value: int) -> None:
        """Delete rows by the value of a column.

        Parameters
        ----------
        table : TableUnderTest
            An existing table.
        column : str
            A column of integers.
        value : int
            The value of the rows to delete.
        """
        open_table(table).delete(f"{column} = {value}")
