"""Writing primary-key tables: what was buffered is merged per key and becomes level-0 files.

Law: all rows between two flushes are merged at once, whatever had to be spilled, the bucket being the first column of
the key; each record keeps the sequence number that it got on arrival, so gaps are normal.
Source: `MergeTreeWriter`, `SortBufferWriteBuffer`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from paimon.domain.merge.columnar.merge import merge
from paimon.domain.merge.columnar.ordering.order import groups_of
from paimon.domain.merge.spec import MergeSpec
from paimon.domain.merge.windows import Piece, windows
from paimon.domain.types.data_types import BigIntType, DataField
from paimon.domain.types.system import KEY_PREFIX, SEQUENCE_NUMBER
from paimon.operations.write.buckets import Buckets, BucketState
from paimon.operations.write.buffer import WriteBuffer, taken
from paimon.operations.write.route import Codes
from paimon.ports.engine import Engine

_BUCKET = DataField(0, KEY_PREFIX, BigIntType(nullable=False))
"""The number of a row's bucket among the writer's, as a key column: no column of a table has such a name."""
_BATCH_ROWS = 16_384
"""Rows read back at a time from each spilled run."""
_PART_SHARE = 4
"""A run, and a window of runs, is this part of the buffer: beside the buffer it is held in one piece, and ordered or
merged."""
_LEAST_PART_BYTES = 16 * 1024 * 1024
"""But, of larger buffers, no less: every run costs each window a batch."""


class MergeTreeWriter:
    """Buffers rows of all buckets, spills them ordered, and merges them into files: a state machine.

    Parameters
    ----------
    spec : MergeSpec
        The table's merge.
    limit_bytes : int
        What may be held in memory.
    spill_bytes : int
        What may be spilled before files are written; 0: nothing.
    input_changelog : bool
        Whether the rows as they came, ordered but not merged, become changelog files too.
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
        self._spec = spec.buffered(_BUCKET)
        self._buffer = WriteBuffer(limit_bytes)
        self._part_bytes = max(1, limit_bytes // _PART_SHARE, min(limit_bytes, _LEAST_PART_BYTES))
        self._spill_bytes = spill_bytes
        self._input_changelog = input_changelog
        self._spilled: list[str] = []
        self._spilled_bytes = 0
        self._current: BucketState | None = None

    def add(self, rows: pa.Table, codes: Codes) -> None:
        """Takes rows, which have a `_VALUE_KIND` column, with the numbers of their buckets."""
        self._buffer.add(rows, codes)
        if not self._buffer.is_full:
            return
        if self._spilled_bytes < self._spill_bytes:
            self._spill()
        else:
            self.flush()

    def flush(self) -> None:
        """Writes everything as level-0 files."""
        if not self._spilled:
            self._write_at_once()
        else:
            self._spill()
            runs = [self._pieces(handle) for handle in self._spilled]
            # A map keeps nothing of what it was given.
            for merged in map(self._merged, map(_in_one_piece, windows(runs, self._spec.key_fields, self._part_bytes))):
                self._write(merged)
            self._drop_spilled()
        if self._current is not None:
            self._buckets.finish(self._current)
            self._current = None

    def abort(self) -> None:
        """Forgets all rows that are not in files."""
        self._buffer.clear()
        self._drop_spilled()
        self._current = None

    def _spill(self) -> None:
        """Spills what is buffered, in parts of about the same size: each is ordered alone."""
        parts = max(1, round(self._buffer.held_bytes / self._part_bytes))
        limit = -(-self._buffer.held_bytes // parts)
        while self._spill_run(limit):
            pass

    def _spill_run(self, limit_bytes: int) -> bool:
        drained = self._buffer.drain(limit_bytes)
        if drained is None:
            return False
        table, codes = _by_arrival(*drained), drained[1]
        del drained  # what is copied below is freed column by column
        schema, order = table.schema, groups_of(table, self._spec).order
        columns = table.columns
        del table
        ordered = pa.Table.from_arrays(taken(columns, order), schema=schema)
        ordered = _numbered(ordered, _sequence_numbers(codes, self._buckets))
        self._spilled.append(self._engine.temp.spill(ordered))
        self._spilled_bytes += ordered.nbytes
        return True

    def _pieces(self, handle: str) -> Iterator[Piece]:
        return (Piece(batch, 0) for batch in self._engine.temp.load(handle, _BATCH_ROWS))

    def _drop_spilled(self) -> None:
        for handle in self._spilled:
            self._engine.temp.drop(handle)
        self._spilled, self._spilled_bytes = [], 0

    def _write_at_once(self) -> None:
        drained = self._buffer.drain()
        if drained is None:
            return
        table, numbers = _by_arrival(*drained), _sequence_numbers(drained[1], self._buckets)
        del drained
        merged = self._merged(table, numbers)
        del table  # files hold what is merged until their row groups are full
        self._write(merged, numbers)

    def _merged(self, table: pa.Table, numbers: Codes | None = None) -> pa.Table:
        """The rows merged, which hold each of their keys whole; `numbers` are the sequence numbers by arrival."""
        if self._input_changelog:
            raw = table.take(pa.array(groups_of(table, self._spec).order))
            for state, rows in _by_bucket(raw, numbers, self._buckets):
                self._buckets.write_changelog(state, rows)
        return merge(table, self._spec)

    def _write(self, merged: pa.Table, numbers: Codes | None = None) -> None:
        for state, rows in _by_bucket(merged, numbers, self._buckets):
            if self._current is not None and self._current is not state:
                self._buckets.finish(self._current)
            self._current = state
            self._buckets.files_of(state).write(rows)
            self._buckets.relieve()


def _in_one_piece(window: Sequence[Piece]) -> pa.Table:
    return pa.Table.from_batches([piece.batch for piece in window]).combine_chunks()


def _by_arrival(table: pa.Table, codes: Codes) -> pa.Table:
    """The rows with what orders them.

    Arrival stands for the sequence number: it ascends over all buckets, so that nothing need be sorted by it.
    """
    arrival = pa.array(np.arange(table.num_rows, dtype=np.int64))
    return table.append_column(SEQUENCE_NUMBER.name, arrival).append_column(_BUCKET.name, pa.array(codes))


def _numbered(table: pa.Table, numbers: Codes) -> pa.Table:
    """Sequence numbers in place of arrival."""
    place = table.column_names.index(SEQUENCE_NUMBER.name)
    given = pa.array(numbers[np.asarray(table[SEQUENCE_NUMBER.name])])
    return table.set_column(place, SEQUENCE_NUMBER.name, given)


def _by_bucket(ordered: pa.Table, numbers: Codes | None, buckets: Buckets) -> Iterator[tuple[BucketState, pa.Table]]:
    """Ordered rows cut into buckets, with their own sequence numbers in place of their arrival."""
    codes = np.asarray(ordered[_BUCKET.name])
    if numbers is not None:
        ordered = _numbered(ordered, numbers)
    bounds = [0, *(np.flatnonzero(np.diff(codes)) + 1).tolist(), len(codes)]
    for start, end in itertools.pairwise(bounds):
        if end > start:
            yield buckets.states[int(codes[start])], ordered.slice(start, end - start)


def _sequence_numbers(codes: Codes, buckets: Buckets) -> Codes:
    """The number of each row: ascending within its bucket, from the bucket's next one on."""
    order = buckets.order_of(codes)
    counts = np.bincount(codes, minlength=len(buckets.states))
    starts = np.cumsum(counts) - counts
    following = np.array([state.next_sequence for state in buckets.states], np.int64)
    numbers = np.empty(len(codes), np.int64)
    numbers[order] = np.arange(len(codes)) + np.repeat(following - starts, counts)
    for state, count in zip(buckets.states, counts.tolist(), strict=True):
        state.next_sequence += count
    return numbers
