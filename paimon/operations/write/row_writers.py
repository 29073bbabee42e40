"""Buffer the rows of all buckets, and write them to files: append tables in their order, others merged by key.

Invariant: rows leave the buffer in the order in which they were added, and all rows between two flushes of a
primary-key table are merged together, also spilled ones. Each row keeps the sequence number of its arrival, so gaps are
normal.

Source: `AppendOnlyWriter`, `MergeTreeWriter`, `SortBufferWriteBuffer`.
"""

# The rows of all buckets are in one buffer, in the order of their arrival, each with its code: the number of its bucket
# among those of the writer (`Buckets.states`). So one sort serves all buckets.
#
# Append tables: when the buffer is full, the rows are sorted by code, and each bucket's rows go to its open file.
#
# Primary-key tables: the code becomes the first key column, so that one merge handles all buckets one after another. A
# full buffer is sorted by key and spilled as a run; above the limit of spilled bytes, and at the end, all runs are
# merged in windows and written as files of level 0. If a merge in parts returns the same rows, each run is merged
# before it is spilled, so that a key with most of the rows takes no memory. Other runs repeat keys.
#
# A sequence number counts within its bucket. Rows are sorted by arrival instead, which needs no sort, because they
# arrive in this order:
#
#     code       0    1    0    0       the next numbers are 10 in bucket 0, and 50 in bucket 1
#     arrival    0    1    2    3
#     number     10   50   11   12      replaces the arrival before rows are spilled or written

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from paimon.domain.columns.buffers import combine_column
from paimon.domain.merge.merge_columnar import merge
from paimon.domain.merge.merge_engines import merges_in_parts
from paimon.domain.merge.merge_spec import MergeSpec
from paimon.domain.merge.ordering.merge_order import group_rows_by_key
from paimon.domain.merge.windows import Piece, cut_into_windows
from paimon.domain.options.parse import LARGEST_LONG
from paimon.domain.types.arrow_arrays import from_numpy, to_numpy
from paimon.domain.types.data_types import BigIntType, DataField
from paimon.domain.types.system_columns import KEY_PREFIX, SEQUENCE_NUMBER
from paimon.operations.write.buckets import Buckets, BucketState
from paimon.operations.write.route import Codes
from paimon.ports.engine import Engine

_LONG_CHUNK_ROWS = 16_384
"""The least average length of chunks that are written as they are; a file of shorter ones takes longer to write."""


class WriteBuffer:
    """A queue of tables with the bucket number of each row; it is full from `limit_bytes` on."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._held: deque[tuple[pa.Table, Codes]] = deque()
        self._bytes = 0

    @property
    def is_full(self) -> bool:
        """Whether the buffer holds at least `limit_bytes`."""
        return self._bytes >= self._limit

    @property
    def held_bytes(self) -> int:
        """The size of all buffered rows in bytes."""
        return self._bytes

    def add(self, table: pa.Table, codes: Codes) -> None:
        """Append rows with their bucket numbers; a table without rows is not held."""
        if not table.num_rows:
            return
        self._held.append((table, codes))
        self._bytes += table.nbytes + codes.nbytes

    def clear(self) -> None:
        """Drop all rows."""
        self._held.clear()
        self._bytes = 0

    def drain(self, limit_bytes: int = LARGEST_LONG, accepts_chunks: bool = False) -> tuple[pa.Table, Codes] | None:
        """Remove and return the oldest rows with their bucket numbers; None if the buffer is empty.

        About `limit_bytes` are returned, by default all. The table has no chunks unless `accepts_chunks`, which saves
        the copy of rows of one bucket.
        """
        if not self._held:
            return None
        tables, codes = self._pop_oldest(limit_bytes)
        numbers = codes[0] if len(codes) == 1 else np.concatenate(codes)
        keeps_chunks = accepts_chunks and _has_long_chunks(tables) and bool((numbers == numbers[:1]).all())
        schema = tables[0].schema
        columns = [[t.column(i) for t in tables] for i in range(len(schema))]
        tables.clear()
        join = _join_chunks if keeps_chunks else _combine_chunks
        return pa.Table.from_arrays([join(columns.pop(0)) for _ in schema], schema=schema), numbers

    def _pop_oldest(self, limit_bytes: int) -> tuple[list[pa.Table], list[Codes]]:
        """Remove whole tables until their size reaches the limit; a table that is larger is cut."""
        tables: list[pa.Table] = []
        codes: list[Codes] = []
        left = limit_bytes
        while self._held and left > 0:
            table, numbers = self._held.popleft()
            size = table.nbytes + numbers.nbytes
            rows = max(1, table.num_rows * limit_bytes // max(1, size))
            if rows < table.num_rows:
                self._held.appendleft((table.slice(rows), numbers[rows:]))
                table, numbers = table.slice(0, rows), numbers[:rows]
                size = table.nbytes + numbers.nbytes
            tables.append(table)
            codes.append(numbers)
            left -= size
            self._bytes -= size
        self._bytes = self._bytes if self._held else 0
        return tables, codes


def take_rows(columns: list[pa.ChunkedArray], rows: Codes) -> list[pa.ChunkedArray]:
    """Return rows of each column, emptying the list, so that each one's memory is freed before the next."""
    positions = from_numpy(rows)
    return [columns.pop(0).take(positions) for _ in range(len(columns))]


def _has_long_chunks(tables: list[pa.Table]) -> bool:
    chunks = max((sum(t.column(i).num_chunks for t in tables) for i in range(tables[0].num_columns)), default=0)
    rows: int = sum(t.num_rows for t in tables)
    return rows >= chunks * _LONG_CHUNK_ROWS


def _join_chunks(parts: list[pa.ChunkedArray]) -> pa.ChunkedArray:
    return pa.chunked_array([chunk for part in parts for chunk in part.chunks], parts[0].type)


def _combine_chunks(parts: list[pa.ChunkedArray]) -> pa.Array:
    return combine_column(_join_chunks(parts))


def cut_into_slices(table: pa.Table, limit_bytes: int) -> Iterator[pa.Table]:
    """Yield the table in slices of about this size, so that one call cannot exceed the limit of a buffer by much."""
    step = max(1, table.num_rows * limit_bytes // max(1, table.nbytes))
    for start in range(0, table.num_rows, step):
        yield table.slice(start, step)


class AppendWriter:
    """Buffer rows and write them in large batches; the files of a bucket stay open in between. A state machine."""

    def __init__(self, buckets: Buckets, limit_bytes: int) -> None:
        self._buckets = buckets
        self._buffer = WriteBuffer(limit_bytes)

    def add(self, rows: pa.Table, codes: Codes) -> None:
        """Buffer rows together with the bucket number of each row, and write when the buffer is full."""
        self._buffer.add(rows, codes)
        if self._buffer.is_full:
            self._write()

    def flush(self) -> None:
        """Write all buffered rows and close the files of all buckets."""
        self._write()
        for state in self._buckets.states:
            self._buckets.finish(state)

    def abort(self) -> None:
        """Drop all rows that are not in files yet."""
        self._buffer.clear()

    def _write(self) -> None:
        drained = self._buffer.drain(accepts_chunks=True)
        if drained is None:
            return
        table, codes = drained
        if (codes == codes[0]).all():
            self._buckets.get_open_files(self._buckets.states[int(codes[0])]).write(table)
            self._buckets.release_memory()
            return
        order = self._buckets.sort_by_bucket(codes)
        ordered = table.take(from_numpy(order))
        ends = np.flatnonzero(np.diff(codes[order])) + 1
        for start, end in zip([0, *ends.tolist()], [*ends.tolist(), len(codes)], strict=True):
            state = self._buckets.states[int(codes[order[start]])]
            self._buckets.get_open_files(state).write(ordered.slice(start, end - start))
        self._buckets.release_memory()


_BUCKET = DataField(0, KEY_PREFIX, BigIntType(nullable=False))
"""The number of a row's bucket among the writer's, as a key column: no column of a table has such a name."""
_BATCH_ROWS = 16_384
"""Rows read back at a time from each spilled run."""
_PART_SHARE = 4
"""A run and a window of runs are this part (1/n) of the buffer, because a sorted or merged copy needs memory, too."""
_MIN_PART_BYTES = 16 * 1024 * 1024
"""The smallest part of a large buffer: each run adds one batch to each window."""


class MergeTreeWriter:
    """Buffer the rows of all buckets, spill them in sorted runs, and merge them into files: a state machine.

    Rows are spilled to the temporary store of the engine until `spill_bytes` (0: never), then files are written.
    `input_changelog` also writes the rows as changelog files, sorted but not merged.
    """

    def __init__(
        self,
        engine: Engine,
        buckets: Buckets,
        spec: MergeSpec,
        limit_bytes: int,
        spill_bytes: int,
        input_changelog: bool,
    ) -> None:
        self._engine = engine
        self._buckets = buckets
        self._spec = spec.for_write_buffer(_BUCKET)
        self._buffer = WriteBuffer(limit_bytes)
        self._part_bytes = max(1, limit_bytes // _PART_SHARE, min(limit_bytes, _MIN_PART_BYTES))
        self._spill_bytes = spill_bytes
        self._input_changelog = input_changelog
        self._spilled: list[str] = []
        self._spilled_bytes = 0
        self._repeats = False
        self._current: BucketState | None = None

    def add(self, rows: pa.Table, codes: Codes) -> None:
        """Buffer rows, which have a `_VALUE_KIND` column, with the bucket number of each row."""
        self._buffer.add(rows, codes)
        if not self._buffer.is_full:
            return
        if self._spilled_bytes < self._spill_bytes:
            self._spill()
        else:
            self.flush()

    def flush(self) -> None:
        """Write all rows as level-0 files."""
        if not self._spilled:
            self._write_buffered()
        else:
            self._spill()
            runs = [self._load_run(handle) for handle in self._spilled]
            # A map keeps no reference to its input, unlike a loop variable.
            windows = cut_into_windows(runs, self._spec.key_fields, self._part_bytes, self._repeats)
            for merged in map(self._merge_rows, map(_combine_window, windows)):
                self._write(merged)
            self._drop_spilled()
        if self._current is not None:
            self._buckets.finish(self._current)
            self._current = None

    def abort(self) -> None:
        """Drop all rows that are not in files yet."""
        self._buffer.clear()
        self._drop_spilled()
        self._current = None

    def _spill(self) -> None:
        """Spill the buffered rows in runs of about the same size; each run is sorted on its own."""
        parts = max(1, round(self._buffer.held_bytes / self._part_bytes))
        limit = -(-self._buffer.held_bytes // parts)
        while self._spill_run(limit):
            pass

    def _spill_run(self, limit_bytes: int) -> bool:
        drained = self._buffer.drain(limit_bytes)
        if drained is None:
            return False
        table, codes = _add_order_columns(*drained), drained[1]
        del drained  # each column is freed after its copy below
        if not self._input_changelog and merges_in_parts(table, self._spec):
            ordered = merge(table, self._spec)
        else:
            schema, order = table.schema, group_rows_by_key(table, self._spec).order
            columns = table.columns
            del table
            ordered = pa.Table.from_arrays(take_rows(columns, order), schema=schema)
            self._repeats = True
        ordered = _set_sequence_numbers(ordered, _assign_sequence_numbers(codes, self._buckets))
        self._spilled.append(self._engine.temp.spill(ordered))
        self._spilled_bytes += ordered.nbytes
        return True

    def _load_run(self, handle: str) -> Iterator[Piece]:
        return (Piece(batch, 0) for batch in self._engine.temp.load(handle, _BATCH_ROWS))

    def _drop_spilled(self) -> None:
        for handle in self._spilled:
            self._engine.temp.drop(handle)
        self._spilled, self._spilled_bytes, self._repeats = [], 0, False

    def _write_buffered(self) -> None:
        drained = self._buffer.drain()
        if drained is None:
            return
        table, numbers = _add_order_columns(*drained), _assign_sequence_numbers(drained[1], self._buckets)
        del drained
        merged = self._merge_rows(table, numbers)
        del table  # open files keep merged rows in memory until a row group is full
        self._write(merged, numbers)

    def _merge_rows(self, table: pa.Table, numbers: Codes | None = None) -> pa.Table:
        """Merge rows that contain all records of their keys; `numbers` ascend by arrival, if not None."""
        if self._input_changelog:
            raw = table.take(from_numpy(group_rows_by_key(table, self._spec).order))
            for state, rows in _split_by_bucket(raw, numbers, self._buckets):
                self._buckets.write_changelog(state, rows)
        return merge(table, self._spec)

    def _write(self, merged: pa.Table, numbers: Codes | None = None) -> None:
        for state, rows in _split_by_bucket(merged, numbers, self._buckets):
            if self._current is not None and self._current is not state:
                self._buckets.finish(self._current)
            self._current = state
            self._buckets.get_open_files(state).write(rows)
            self._buckets.release_memory()


def _combine_window(window: Sequence[Piece]) -> pa.Table:
    return pa.Table.from_batches([piece.batch for piece in window]).combine_chunks()


def _add_order_columns(table: pa.Table, codes: Codes) -> pa.Table:
    """Append bucket and arrival, by which rows sort; the arrival ascends over all buckets."""
    arrival = from_numpy(np.arange(table.num_rows, dtype=np.int64))
    return table.append_column(SEQUENCE_NUMBER.name, arrival).append_column(_BUCKET.name, from_numpy(codes))


def _set_sequence_numbers(table: pa.Table, numbers: Codes) -> pa.Table:
    """Replace the arrival by the sequence number."""
    position = table.column_names.index(SEQUENCE_NUMBER.name)
    given = from_numpy(numbers[to_numpy(combine_column(table[SEQUENCE_NUMBER.name]))])
    return table.set_column(position, SEQUENCE_NUMBER.name, given)


def _split_by_bucket(
    ordered: pa.Table, numbers: Codes | None, buckets: Buckets
) -> Iterator[tuple[BucketState, pa.Table]]:
    """Cut sorted rows into buckets, and replace the arrival by the sequence number."""
    codes = to_numpy(combine_column(ordered[_BUCKET.name]))
    if numbers is not None:
        ordered = _set_sequence_numbers(ordered, numbers)
    bounds = [0, *(np.flatnonzero(np.diff(codes)) + 1).tolist(), len(codes)]
    for start, end in itertools.pairwise(bounds):
        if end > start:
            yield buckets.states[int(codes[start])], ordered.slice(start, end - start)


def _assign_sequence_numbers(codes: Codes, buckets: Buckets) -> Codes:
    """Return the sequence number of each row: ascending in its bucket, from the bucket's next number on."""
    order = buckets.sort_by_bucket(codes)
    counts = np.bincount(codes, minlength=len(buckets.states))
    starts = np.cumsum(counts) - counts
    following = np.array([state.next_sequence for state in buckets.states], np.int64)
    numbers = np.empty(len(codes), np.int64)
    numbers[order] = np.arange(len(codes)) + np.repeat(following - starts, counts)
    for state, count in zip(buckets.states, counts.tolist(), strict=True):
        state.next_sequence += count
    return numbers
