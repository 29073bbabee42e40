"""An adapter for pypaimon: `paimon-conformance --adapter pypaimon_adapter:PyPaimon` in this folder."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import pyarrow as pa
from pypaimon import CatalogFactory, Schema

from paimon.testing.conformance import FEATURES, KEY_TYPES, Capabilities, Refused, TableUnderTest

REFUSALS = ("not support", "unsupported", "not yet", "not implemented")


class PyPaimon:
    """Reads and writes with pypaimon's read and write builders."""

    version = version("pypaimon")
    capabilities = Capabilities(
        key_types=KEY_TYPES,
        partition_types=KEY_TYPES,
        features=tuple(name for name in FEATURES if name not in ("compact", "delete")),
    )

    def create(self, table: TableUnderTest) -> None:
        """Create the table with pypaimon."""
        schema = Schema.from_pyarrow_schema(
            table.schema,
            partition_keys=list(table.partition_keys),
            primary_keys=list(table.primary_keys),
            options=dict(table.options),
        )
        attempt(lambda: self._catalog(table).create_table(table.identifier, schema, False))

    def write(self, table: TableUnderTest, rows: pa.Table) -> None:
        """Write in one commit of a batch write builder."""
        attempt(lambda: self._write(table, rows))

    def read(self, table: TableUnderTest, snapshot: int | None) -> pa.Table:
        """Plan and read with a read builder."""
        return attempt(lambda: self._read(table, snapshot))

    def _write(self, table: TableUnderTest, rows: pa.Table) -> None:
        builder = self._catalog(table).get_table(table.identifier).new_batch_write_builder()
        writer, commit = builder.new_write(), builder.new_commit()
        writer.write_arrow(rows)
        commit.commit(writer.prepare_commit())
        writer.close()
        commit.close()

    def _read(self, table: TableUnderTest, snapshot: int | None) -> pa.Table:
        opened = self._catalog(table).get_table(table.identifier)
        if snapshot is not None:
            opened = opened.copy({"scan.snapshot-id": str(snapshot)})
        builder = opened.new_read_builder()
        return builder.new_read().to_arrow(builder.new_scan().plan().splits())

    def _catalog(self, table: TableUnderTest) -> Any:
        return CatalogFactory.create({"warehouse": table.warehouse})


def attempt(act: Any) -> Any:
    """Call, and raise `Refused` for an error whose text says that something is not supported."""
    try:
        return act()
    except Exception as error:
        if any(word in str(error).lower() for word in REFUSALS):
            raise Refused(str(error)) from error
        raise
