"""Scans by the names of pypaimon: they plan the splits of a read.

Source: `pypaimon.read.table_scan`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from paimon.compat.catalog_exception import state_errors
from paimon.compat.predicate import Predicate, to_paimon_predicate
from paimon.compat.refused import PeerClass, refuse
from paimon.compat.splits import Plan, from_paimon_splits

if TYPE_CHECKING:
    from paimon.compat.table import FileStoreTable
    from paimon.read_builder import ReadBuilder as PaimonReadBuilder


class TableScan(PeerClass):
    """Plan the splits of a read; made by `ReadBuilder.new_scan`."""

    def __init__(
        self,
        table: FileStoreTable,
        predicate: Predicate | None = None,
        limit: int | None = None,
        partition_predicate: Predicate | None = None,
    ) -> None:
        self.table = table
        self._scan = to_paimon_builder(table, predicate, partition_predicate, limit=limit).new_scan()
        self._distribution: str | None = None

    def plan(self) -> Plan:
        """Return the splits to read."""
        with state_errors():
            planned = self._scan.plan().planned
        snapshot = self._find_end() if planned.snapshot is None else planned.snapshot.id
        return Plan(from_paimon_splits(planned.splits, self.table.inner.table_schema), snapshot)

    def _find_end(self) -> int | None:
        """Return the last snapshot of an incremental read between two times; None for other reads."""
        times = str(self.table.inner.options.get("incremental-between-timestamp", "")).split(",")
        if len(times) != 2 or not times[1].strip().isdecimal():
            return None
        found = self.table.snapshot_manager().earlier_or_equal_time_mills(int(times[1]))
        return None if found is None else found.id

    def with_shard(self, idx_of_this_subtask: int, number_of_para_subtasks: int) -> TableScan:
        """Plan one of several disjoint parts of the rows."""
        self._distribute("with_shard")
        if idx_of_this_subtask < 0 or idx_of_this_subtask >= number_of_para_subtasks:
            raise ValueError("idx_of_this_subtask must be less than number_of_para_subtasks and not negative")
        self._scan = self._scan.with_shard(idx_of_this_subtask, number_of_para_subtasks)
        return self

    def with_slice(self, start_pos: int, end_pos: int) -> TableScan:
        """Plan the stored rows from one position to another."""
        self._distribute("with_slice")
        if start_pos < 0 or start_pos >= end_pos:
            raise ValueError("start_pos must be less than end_pos and not negative")
        if self.table.is_primary_key_table:
            refuse("with_slice of tables with a primary key", "call with_shard")
        self._scan = self._scan.with_slice(start_pos, end_pos)
        return self

    def _distribute(self, method: str) -> None:
        if self._distribution not in (None, method):
            raise ValueError(f"{method} and {self._distribution} cannot be used simultaneously")
        self._distribution = method

    def with_row_ranges(self, row_ranges: object) -> TableScan:
        """Refuse to select rows by their row ids."""
        refuse("with_row_ranges", "call with_slice, or filter by a column")

    def with_chunk_shuffle(self, seed: int, chunk_size: int) -> TableScan:
        """Refuse to shuffle rows while they are planned."""
        refuse(
            "with_chunk_shuffle", "pass the dataset of all rows, to_torch(splits), to a DataLoader with shuffle=True"
        )

    def with_global_index_result(self, result: object) -> TableScan:
        """Refuse to select rows by an index."""
        refuse("with_global_index_result", "filter with ReadBuilder.with_filter")


def to_paimon_builder(
    table: FileStoreTable,
    predicate: Predicate | None = None,
    partition_predicate: Predicate | None = None,
    columns: Mapping[str, str] | None = None,
    limit: int | None = None,
) -> PaimonReadBuilder:
    """Return the read builder of this library."""
    builder = table.inner.new_read_builder()
    for condition in (predicate, partition_predicate):
        if condition is not None:
            builder = builder.with_filter(to_paimon_predicate(condition))
    if columns is not None:
        builder = builder.with_projection(list(columns.values()))
    return builder if limit is None else builder.with_limit(limit)
