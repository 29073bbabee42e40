"""An adapter for pypaimon-rust: `paimon-conformance --adapter pypaimon_rust_adapter:PyPaimonRust` in this folder."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import pyarrow as pa
from pypaimon_rust.datafusion import PaimonCatalog

from paimon.testing.conformance import FEATURES, KEY_TYPES, Capabilities, Refused, TableUnderTest

REFUSALS = ("not support", "unsupported", "not yet", "not implemented")


class PyPaimonRust:
    """Reads and writes with the read and write builders of pypaimon-rust; this library creates the tables."""

    version = version("pypaimon-rust")
    capabilities = Capabilities(
        key_types=KEY_TYPES,
        partition_types=KEY_TYPES,
        features=tuple(name for name in FEATURES if name not in ("create", "compact", "delete")),
    )

    def write(self, table: TableUnderTest, rows: pa.Table) -> None:
        """Write in one commit of a batch write builder."""
        attempt(lambda: self._write(table, rows))

    def read(self, table: TableUnderTest, snapshot: int | None) -> pa.Table:
        """Plan and read with a read builder."""
        return attempt(lambda: self._read(table, snapshot))

    def _write(self, table: TableUnderTest, rows: pa.Table) -> None:
        builder = self._open(table).new_batch_write_builder()
        writer, commit = builder.new_write(), builder.new_commit()
        for batch in rows.to_batches():
            writer.write_arrow(batch)
        commit.commit(writer.prepare_commit())
        writer.close()

    def _read(self, table: TableUnderTest, snapshot: int | None) -> pa.Table:
        options = {} if snapshot is None else {"scan.snapshot-id": str(snapshot)}
        builder = self._open(table).new_read_builder(options)
        batches = builder.new_read().read(builder.new_scan().plan().splits())
        return pa.Table.from_batches(batches, None if batches else table.schema)

    def _open(self, table: TableUnderTest) -> Any:
        return PaimonCatalog({"warehouse": table.warehouse}).get_table(table.identifier)


def attempt(act: Any) -> Any:
    """Call, and raise `Refused` for an error whose text says that something is not supported.

    A panic of Rust is no `Exception`; it becomes a `RuntimeError`, which the kit reports.
    """
    try:
        return act()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        if any(word in str(error).lower() for word in REFUSALS):
            raise Refused(str(error)) from error
        raise RuntimeError(f"{type(error).__name__}: {error}") from error
