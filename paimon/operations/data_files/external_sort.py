"""Sort rows of data files, in memory or through spilled runs.

Invariant: the sort is stable, and yields each row once. Memory use stays within the budget of the engine, whatever the
number of rows and however many of them are equal. Nothing stays in the temporary store.

Source: `BinaryExternalSortBuffer`.
"""

# Rows arrive in batches and get key columns: those of the order, and the number of their arrival, which makes each key
# unique. They are buffered up to an eighth of the budget. If all rows fit, they are sorted there. Otherwise each full
# buffer becomes a sorted run in the temporary store, and runs are merged in windows (`paimon.domain.merge.windows`):
#
#     rows     9 2 2 7 | 1 8 2 3 | 5 0        the bar is where the buffer is full
#     runs     2 2 7 9   1 2 3 8   0 5
#     windows  0 1 2 2 2 3  5 7  8 9          a window ends at the smallest last key that is buffered
#
# Without the arrival, all rows that equal each other would be one window: a column with few values, such as a country,
# would fill the memory.
#
# While runs are merged, each holds one batch. So at most `fan_in` runs are merged at once: as soon as there are so many
# of one level, they become one run of the next level. The rows are then written once more for each level. At the end,
# the lowest levels are merged until at most `fan_in` runs of all levels are left.

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import pyarrow as pa

from paimon.domain.deletion.row_slice import RowSlice
from paimon.domain.deletion.vector import DeletionVector
from paimon.domain.maintenance.sort_order import SortOrder, add_sort_keys, drop_sort_keys, sort_by_keys
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.merge.windows import Piece, cut_into_windows
from paimon.domain.options.parse import LARGEST_LONG
from paimon.domain.predicate.expression import Predicate
from paimon.domain.types.data_types import DataField
from paimon.operations.data_files.read_data_file import BatchLimit, Bucket, read_data_file
from paimon.ports.engine import Engine

_BUFFER_SHARE = 8
"""The part of the memory budget (1/n) for buffered rows; their concatenation and the sorted rows take as much each."""
_MOST_BUFFER_BYTES = 256 * 1024 * 1024
"""Larger buffers save no time; and an Arrow array of text holds at most 2 GiB."""
_BATCH_BYTES = 256 * 1024
"""The size of a batch of a run."""
_BATCH_ROWS = 16_384
_MOST_RUNS = 128
"""Runs that are merged at once, as `local-sort.max-num-file-handles` in Java."""


def sort_rows(engine: Engine, pieces: Iterable[pa.Table], order: SortOrder) -> Iterator[pa.Table]:
    """Yield the rows of all pieces in this order; rows that are equal in it keep their order."""
    runs = _Runs(engine, order)
    try:
        for piece in pieces:
            runs.add(piece)
        for rows in runs.read_sorted():
            yield drop_sort_keys(rows, order)
    finally:
        runs.drop()


def read_clustered_file(
    bucket: Bucket,
    file: DataFileMeta,
    columns: Sequence[DataField],
    skip: Predicate | None = None,
    deleted: DeletionVector | RowSlice | None = None,
    limit: BatchLimit | None = None,
) -> Iterator[pa.RecordBatch]:
    """Read columns of a file that is in no key order, the key among them, by ascending keys."""
    batches = read_data_file(bucket, file, columns, skip, deleted, limit)
    tables = (pa.Table.from_batches([batch]) for batch in batches if batch.num_rows)
    for rows in sort_rows(bucket.context.engine, tables, SortOrder("order", bucket.context.schema.key_fields)):
        yield from rows.combine_chunks().to_batches(max_chunksize=None if limit is None else limit.rows)


class _Runs:
    """Buffered rows, and sorted runs in the temporary store: a state machine."""

    def __init__(self, engine: Engine, order: SortOrder) -> None:
        self._temp = engine.temp
        self._order = order
        self._limit = max(1, min(engine.memory.bytes // _BUFFER_SHARE, _MOST_BUFFER_BYTES))
        self._fan_in = max(2, min(self._limit // _BATCH_BYTES, _MOST_RUNS))
        self._buffer: list[pa.Table] = []
        self._held_bytes = 0
        self._arrived = 0
        # handles by level: runs of level n were merged n times
        self._levels: list[list[str]] = [[]]

    def add(self, rows: pa.Table) -> None:
        """Buffer rows, and spill the buffer if it is full."""
        keyed = add_sort_keys(rows, self._order, self._arrived)
        self._arrived += rows.num_rows
        self._buffer.append(keyed)
        self._held_bytes += keyed.nbytes
        if self._held_bytes >= self._limit:
            self._spill()

    def read_sorted(self) -> Iterator[pa.Table]:
        """Yield all rows in order, with their keys."""
        if self._levels == [[]]:
            if self._buffer:
                yield self._take_buffer()
            return
        if self._buffer:
            self._spill()
        level = 0
        while sum(map(len, self._levels)) > self._fan_in:
            if self._levels[level]:
                self._merge_level(level)
            level += 1
        yield from self._merge([handle for level in self._levels for handle in level])

    def drop(self) -> None:
        """Remove all runs."""
        for handle in (handle for level in self._levels for handle in level):
            self._temp.drop(handle)
        self._levels, self._buffer = [[]], []

    def _take_buffer(self) -> pa.Table:
        rows = pa.concat_tables(self._buffer)
        self._buffer, self._held_bytes = [], 0
        return sort_by_keys(rows, self._order)

    def _spill(self) -> None:
        self._levels[0].append(self._temp.spill(self._take_buffer()))
        level = 0
        while len(self._levels[level]) >= self._fan_in:
            self._merge_level(level)
            level += 1

    def _merge_level(self, level: int) -> None:
        """Merge the runs of a level to one run of the next level."""
        handles = self._levels[level]
        windows = self._merge(handles)
        first = next(windows)
        merged = self._temp.store(_cut_into_batches(first, windows), first.schema, LARGEST_LONG)
        assert merged is not None
        if level + 1 == len(self._levels):
            self._levels.append([])
        self._levels[level + 1].append(merged.handle)
        self._levels[level] = []
        for handle in handles:
            self._temp.drop(handle)

    def _merge(self, handles: list[str]) -> Iterator[pa.Table]:
        for window in cut_into_windows([self._load(h) for h in handles], self._order.keys, self._limit):
            yield sort_by_keys(pa.Table.from_batches([piece.batch for piece in window]), self._order)

    def _load(self, handle: str) -> Iterator[Piece]:
        return (Piece(batch, 0) for batch in self._temp.load(handle, _BATCH_ROWS))


def _cut_into_batches(first: pa.Table, others: Iterator[pa.Table]) -> Iterator[pa.RecordBatch]:
    for rows in chain([first], others):
        yield from rows.to_batches(max_chunksize=max(1, rows.num_rows * _BATCH_BYTES // max(1, rows.nbytes)))
