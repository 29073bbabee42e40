"""The libraries that the workloads of the benchmarks call: this one, and the native peers, behind the same methods."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import data
import pyarrow as pa

COLUMNS_2 = ["id", "price"]
KEYED = {"bucket": str(data.BUCKETS), "write-only": "true"}


class Ours:
    """Calls of this library."""

    name = "ours"

    def __init__(self) -> None:
        import paimon
        import paimon.catalog
        import paimon.domain.predicate.build
        import paimon.engines  # imports are not measured

        self._paimon = paimon
        budget = os.environ.get("BENCHMARK_BUDGET")
        self._options = {"memory_budget": budget} if budget else {}

    def create_table(
        self, folder: Path, schema: pa.Schema, keys: list[str], partitions: list[str], options: dict[str, str]
    ) -> Any:
        """Create the table `b.t` in a directory.

        Parameters
        ----------
        folder : Path
            The warehouse.
        schema : pyarrow.Schema
            Columns.
        keys, partitions : list of str
            Columns of the primary key and of the partitions.
        options : dict of str to str
            Table options.

        Returns
        -------
        Table
            The table of the library.
        """
        catalog = self._paimon.connect(folder, **self._options)
        catalog.create_database("b", exist_ok=True)
        return catalog.create_table("b.t", schema, primary_keys=keys, partition_keys=partitions, options=options)

    def open_table(self, folder: Path) -> Any:
        """Open the table `b.t` in a directory."""
        return self._paimon.connect(folder, **self._options).table("b.t")

    def write(self, table: Any, rows: pa.Table | Iterator[pa.RecordBatch]) -> None:
        """Write rows in one commit."""
        table.write(rows)

    def scan(self, table: Any, columns: list[str] | None = None, where: tuple[str, Any] | None = None) -> int:
        """Read rows, and return their number.

        Parameters
        ----------
        table : Table
            The table of the library.
        columns : list of str, optional
            Columns; all by default.
        where : tuple of (str, value), optional
            A column and the value that it must have.

        Returns
        -------
        int
            Number of rows.
        """
        return table.scan(columns=columns, where=where and self._equal(where)).to_arrow().num_rows

    def stream(self, table: Any) -> int:
        """Read all rows batch by batch, and return their number."""
        return sum(batch.num_rows for batch in table.scan().to_batches())

    def compact(self, table: Any) -> None:
        """Compact the table fully."""
        table.compact(full=True)

    def compact_postponed(self, folder: Path) -> None:
        """Move the postponed rows of the table `b.t` in a directory to their buckets."""
        self.open_table(folder).compact()

    def rescale(self, folder: Path, buckets: int) -> None:
        """Rewrite the table `b.t` in a directory to another number of buckets."""
        self.open_table(folder).rescale(buckets)

    def plan(self, table: Any, where: tuple[str, Any] | None = None) -> int:
        """Plan a scan, and return the number of files."""
        return sum(len(s.files) for s in table.scan(where=where and self._equal(where)).plan().splits)

    def _equal(self, where: tuple[str, Any]) -> Any:
        return self._paimon.col(where[0]) == where[1]


class Peer:
    """Calls of pypaimon, in its default mode or with its native extension."""

    def __init__(self, native: bool) -> None:
        import pypaimon

        if native:
            import pypaimon_rust  # noqa: F401  # imports are not measured

        self.name = "peer-native" if native else "peer"
        self._pypaimon = pypaimon
        switches = ("scan.native-plan.enabled", "read.native.enabled", "write.native.enabled", "commit.native.enabled")
        self._native = dict.fromkeys(switches, "true") if native else {}

    def create_table(
        self, folder: Path, schema: pa.Schema, keys: list[str], partitions: list[str], options: dict[str, str]
    ) -> Any:
        """Create the table `b.t` in a directory.

        Parameters
        ----------
        folder : Path
            The warehouse.
        schema : pyarrow.Schema
            Columns.
        keys, partitions : list of str
            Columns of the primary key and of the partitions.
        options : dict of str to str
            Table options.

        Returns
        -------
        Table
            The table of the library.
        """
        catalog = self._pypaimon.CatalogFactory.create({"warehouse": str(folder)})
        catalog.create_database("b", True)
        made = self._pypaimon.Schema.from_pyarrow_schema(schema, partitions, keys, {**options, **self._native})
        catalog.create_table("b.t", made, False)
        return catalog.get_table("b.t")

    def open_table(self, folder: Path) -> Any:
        """Open the table `b.t` in a directory."""
        catalog = self._pypaimon.CatalogFactory.create({"warehouse": str(folder)})
        table = catalog.get_table("b.t")
        return table.copy(self._native) if self._native else table

    def write(self, table: Any, rows: pa.Table) -> None:
        """Write rows in one commit."""
        builder = table.new_batch_write_builder()
        writer, commit = builder.new_write(), builder.new_commit()
        writer.write_arrow(rows)
        commit.commit(writer.prepare_commit())
        writer.close()
        commit.close()

    def scan(self, table: Any, columns: list[str] | None = None, where: tuple[str, Any] | None = None) -> int:
        """Read rows, and return their number.

        Parameters
        ----------
        table : Table
            The table of the library.
        columns : list of str, optional
            Columns; all by default.
        where : tuple of (str, value), optional
            A column and the value that it must have.

        Returns
        -------
        int
            Number of rows.
        """
        builder = self._builder(table, columns, where)
        return builder.new_read().to_arrow(builder.new_scan().plan().splits()).num_rows

    def rescale(self, folder: Path, buckets: int) -> None:
        """Set the option `bucket`, and overwrite the table `b.t` with its rows: the peer has no rescale."""
        from pypaimon.schema.schema_change import SchemaChange

        builder = self._builder(self.open_table(folder), None, None)
        rows = builder.new_read().to_arrow(builder.new_scan().plan().splits())
        catalog = self._pypaimon.CatalogFactory.create({"warehouse": str(folder)})
        catalog.alter_table("b.t", [SchemaChange.set_option("bucket", str(buckets))])
        writing = self.open_table(folder).new_batch_write_builder().overwrite()
        writer, commit = writing.new_write(), writing.new_commit()
        writer.write_arrow(rows)
        commit.commit(writer.prepare_commit())
        writer.close()
        commit.close()

    def plan(self, table: Any, where: tuple[str, Any] | None = None) -> int:
        """Plan a scan, and return the number of files."""
        splits = self._builder(table, None, where).new_scan().plan().splits()
        return sum(len(s.files) for s in splits)

    def _builder(self, table: Any, columns: list[str] | None, where: tuple[str, Any] | None) -> Any:
        builder = table.new_read_builder()
        if where is not None:
            builder = builder.with_filter(builder.new_predicate_builder().equal(*where))
        return builder.with_projection(columns) if columns else builder
