"""Look keys up in the levels above the output of a compaction.

Invariant: for each key, the record of the smallest level that has the key is found, unless a deletion vector marks it.
The result has its file and its row position there. Keys ascend, so each file is read once from its first requested key
to the last. Memory holds one batch of each open file, and the rows that were found.

Source: `LookupLevels`, `LookupFile`, `LookupUtils`.
"""

# A compaction to a level below the top may need the record that a key had before, from the levels above its output:
# for the changelog (old row -> new row), for deletion vectors (mark the old row), for first-row (is there one).
#
#     requested keys   3 8 9 20               ascending, window by window
#     level 4          [1..10]                one run: finds 3 and 9
#     level 5          [1..7] [8..30]         asked for the rest: finds 8, not 20
#
# Levels are asked from the newest to the oldest, and a found key is not asked again. Within a level files do not
# overlap, so they are opened one after another, and each is read forward, from its first requested key to its last one.
#
# Reading forward costs a scan of each file. A writer that compacts the same buckets commit after commit looks into the
# same files each time. From the second request on, a file is copied to local disk (`lookup_cache.py`), with a hash for
# each key. The hashes find the rows of a few keys without decoding the others.
#
# Positions are the row numbers in the data file, before deletion vectors. Where they are requested, or where the file
# has a vector, no part of the file is skipped, because skipping would lose count.

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from attrs import frozen

from paimon.domain.deletion.vector import DeletionVector
from paimon.domain.lsm.keys import Comparable, to_comparable_key
from paimon.domain.lsm.lookup_hashes import LOOKUP_HASHES, find_equal_keys
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.merge.merge_spec import MergeSpec
from paimon.domain.merge.ordering.merge_order import Rows, group_rows_by_key
from paimon.domain.merge.windows import count_below, count_through, read_key_at
from paimon.domain.predicate.expression import Compare, Operator, Predicate
from paimon.domain.row import binary_row
from paimon.domain.row.values import to_array, to_values
from paimon.domain.types.arrow import arrow_schema
from paimon.domain.types.arrow_arrays import from_numpy
from paimon.domain.types.data_types import DataField
from paimon.domain.types.system_columns import LEVEL
from paimon.operations.compact.lookup_cache import BucketLookupFiles
from paimon.operations.data_files.read_data_file import BatchLimit, Bucket, read_data_file


class LookupResult(NamedTuple):
    """The records that a lookup found; the arrays are parallel to `rows`."""

    # with the requested columns
    rows: pa.Table
    # the position of each record's key among the requested keys
    requested: Rows
    files: tuple[DataFileMeta, ...]
    # the index of each record's file in `files`
    file_of: Rows
    # the row position of each record in its file, from 0; empty if positions are not requested
    positions: Rows


class Lookup:
    """Find the newest records of keys that are requested in ascending order."""

    def __init__(self, above: UpperLevels) -> None:
        self._above = above
        by_level: dict[int, list[DataFileMeta]] = {}
        for file in above.files:
            by_level.setdefault(file.level, []).append(file)
        self._levels = [_Level(above, by_level[level]) for level in sorted(by_level)]

    def find(self, keys: pa.Table) -> LookupResult:
        """Return the records of ascending keys, all of which are greater than the keys of earlier calls."""
        remaining = np.arange(keys.num_rows)
        found: list[Hit] = []
        for level in self._levels:
            if len(remaining) == 0:
                break
            (batch,) = keys.take(from_numpy(remaining)).combine_chunks().to_batches()
            hits = list(level.find(batch))
            found += [hit._replace(requested=remaining[hit.requested]) for hit in hits]
            remaining = np.delete(remaining, np.concatenate([hit.requested for hit in hits])) if hits else remaining
        return self._to_result(found)

    def _to_result(self, found: Sequence[Hit]) -> LookupResult:
        rows = pa.Table.from_batches([h.rows for h in found], schema=arrow_schema(self._above.columns))
        no_rows = np.empty(0, dtype=np.int64)
        return LookupResult(
            rows,
            np.concatenate([no_rows, *(h.requested for h in found)]),
            tuple(h.file for h in found),
            np.repeat(np.arange(len(found)), [len(h.requested) for h in found]),
            np.concatenate([no_rows, *(h.positions for h in found)]) if self._above.returns_positions else no_rows,
        )


class _Level:
    """The files of one level, which are searched one after another."""

    def __init__(self, above: UpperLevels, files: Sequence[DataFileMeta]) -> None:
        self._above = above
        types = [f.type for f in above.keys]
        spans = [(to_comparable_key(f.min_key, types), to_comparable_key(f.max_key, types), f) for f in files]
        self._waiting = sorted(spans, key=lambda span: span[0])
        self._open: LookupFile | None = None
        self._last: Comparable = ()

    def find(self, requested: pa.RecordBatch) -> Iterator[Hit]:
        """Yield the records of these keys."""
        keys, start = self._above.keys, 0
        while start < requested.num_rows:
            if self._open is None or self._last < read_key_at(requested, start, keys):
                self._open = None
                start = self._next_file(requested, start)
            if self._open is not None:
                count = count_through(requested.slice(start), self._last, keys)
                for hit in self._open.find(requested.slice(start, count)):
                    yield hit._replace(requested=hit.requested + start)
                start += count

    def _next_file(self, requested: pa.RecordBatch, start: int) -> int:
        """Open the next file that can contain a key from `start` on; return the position of the first such key."""
        keys = self._above.keys
        while self._waiting:
            low, high, file = self._waiting[0]
            start += count_below(requested.slice(start), low, keys)
            if start == requested.num_rows:
                return start
            self._waiting.pop(0)
            if read_key_at(requested, start, keys) <= high:
                self._last, self._open = high, self._above.open_file(file, requested.slice(start, 1))
                return start
        return int(requested.num_rows)


def return_no_vector(file: DataFileMeta) -> DeletionVector | None:
    """Return None: the file has no deletion vector."""
    return None


@frozen(eq=False)
class UpperLevels:
    """The files of the levels above the output, and what is requested of them."""

    bucket: Bucket
    files: tuple[DataFileMeta, ...]
    # the columns of a found record, including the key columns
    columns: tuple[DataField, ...]
    # the largest key that is requested, as a binary row
    through: bytes
    # the limit of the rows that are read at a time
    limit: BatchLimit
    # row positions are requested, so no part of a file can be skipped
    returns_positions: bool = False
    vector_of: Callable[[DataFileMeta], DeletionVector | None] = return_no_vector
    # the lookup files of the bucket; None reads the data files directly
    copies: BucketLookupFiles | None = None

    @property
    def keys(self) -> tuple[DataField, ...]:
        """The key columns of the files: the primary key without partition columns."""
        return self.bucket.context.schema.key_fields

    def open_file(self, file: DataFileMeta, first: pa.RecordBatch) -> LookupFile:
        """Open a file, to search it for the key of the row `first` and for greater keys."""
        blocks = self.copies.find_blocks(self.bucket, file, self.columns) if self.copies is not None else None
        if blocks is not None:
            return _CachedFile(self, file, blocks)
        key = to_values(first.column(self.keys[0].name).slice(0, 1), self.keys[0].type)[0]
        return _ForwardFile(self, file, self._read(file, key))

    def _read(self, file: DataFileMeta, first_key: object) -> Iterator[_Piece]:
        """Yield the rows of a file from a value of the first key column on."""
        vector = self.vector_of(file)
        exact = self.returns_positions or vector is not None
        skip = None if exact else self._key_range(first_key)
        start = 0
        for batch in read_data_file(self.bucket, file, self.columns, skip, limit=self.limit):
            positions = np.arange(start, start + batch.num_rows)
            start += batch.num_rows
            if vector is not None:
                keep = ~vector.mask(int(positions[0]), len(positions)) if len(positions) else positions == 0
                batch, positions = batch.filter(from_numpy(keep)), positions[keep]
            if batch.num_rows:
                yield _Piece(batch, positions)

    def _key_range(self, first_key: object) -> Predicate:
        """Return a predicate for skipping: the first key column is between the first and the largest requested key."""
        name = self.keys[0].name
        last = binary_row.deserialize(self.through, [f.type for f in self.keys])[0]
        return Compare(name, Operator.GE, first_key) & Compare(name, Operator.LE, last)


class Hit(NamedTuple):
    """Rows of one file that have requested keys; the arrays are parallel to `rows`."""

    file: DataFileMeta
    rows: pa.RecordBatch
    # the position of each row's key among the requested keys
    requested: Rows
    # the position of each row in the file
    positions: Rows


class LookupFile(Protocol):
    """A file that is searched for ascending keys; see the invariant of the module."""

    def find(self, requested: pa.RecordBatch) -> Iterator[Hit]:
        """Yield the rows of these keys, none of which is greater than the last key of the file."""


class _Piece(NamedTuple):
    batch: pa.RecordBatch
    positions: Rows


class _ForwardFile:
    """A file that is read forward; the rows behind the last requested key are kept for the next call."""

    def __init__(self, above: UpperLevels, file: DataFileMeta, pieces: Iterator[_Piece]) -> None:
        self._keys = above.keys
        self._file = file
        self._pieces = pieces
        self._held: _Piece | None = None

    def find(self, requested: pa.RecordBatch) -> Iterator[Hit]:
        """Yield the rows of these keys."""
        keys, start = self._keys, 0
        while start < requested.num_rows:
            piece = self._next_piece(read_key_at(requested, start, keys))
            if piece is None:
                return
            count = count_through(
                requested.slice(start), read_key_at(piece.batch, piece.batch.num_rows - 1, keys), keys
            )
            requested_rows, file_rows = _find_pairs(requested.slice(start, count), piece.batch, keys)
            if len(requested_rows):
                yield Hit(
                    self._file,
                    piece.batch.take(from_numpy(file_rows)),
                    requested_rows + start,
                    piece.positions[file_rows],
                )
            start += count
            if start == requested.num_rows:
                searched = count_through(piece.batch, read_key_at(requested, start - 1, keys), keys)
                self._held = _Piece(piece.batch.slice(searched), piece.positions[searched:])

    def _next_piece(self, low: Comparable) -> _Piece | None:
        """Return the next rows, up to a key that is not below `low`; None at the end of the file."""
        held, self._held = self._held, None
        pieces = self._pieces if held is None else itertools.chain([held], self._pieces)
        for piece in pieces:
            if piece.batch.num_rows and read_key_at(piece.batch, piece.batch.num_rows - 1, self._keys) >= low:
                return piece
        return None


class _CachedFile:
    """A memory-mapped lookup file: blocks of rows in order, each with its lookup hashes."""

    def __init__(self, above: UpperLevels, file: DataFileMeta, blocks: Sequence[pa.RecordBatch]) -> None:
        self._above = above
        self._file = file
        self._vector = above.vector_of(file)
        counts = [block.num_rows for block in blocks]
        self._blocks = list(zip(itertools.accumulate(counts, initial=0), blocks, strict=False))

    def find(self, requested: pa.RecordBatch) -> Iterator[Hit]:
        """Yield the rows of these keys."""
        keys, start = self._above.keys, 0
        while self._blocks and start < requested.num_rows:
            first_row, block = self._blocks[0]
            left = requested.slice(start)
            count = count_through(left, read_key_at(block, block.num_rows - 1, keys), keys)
            requested_rows, file_rows = self._drop_deleted(
                *find_equal_keys(left.slice(0, count), block, keys), first_row
            )
            if len(requested_rows):
                yield Hit(
                    self._file, self._gather_rows(block, file_rows), requested_rows + start, file_rows + first_row
                )
            start += count
            if start < requested.num_rows:
                self._blocks.pop(0)

    def _drop_deleted(self, requested_rows: Rows, file_rows: Rows, first_row: int) -> tuple[Rows, Rows]:
        if self._vector is None or len(requested_rows) == 0:
            return requested_rows, file_rows
        low = int(file_rows.min())
        deleted = self._vector.mask(first_row + low, int(file_rows.max()) - low + 1)[file_rows - low]
        return requested_rows[~deleted], file_rows[~deleted]

    def _gather_rows(self, block: pa.RecordBatch, rows: Rows) -> pa.RecordBatch:
        gathered = block.drop_columns([LOOKUP_HASHES]).take(from_numpy(rows))
        level = to_array([self._file.level], LEVEL.type)[0]
        columns = self._above.columns
        return pa.RecordBatch.from_arrays(
            [pa.repeat(level, len(rows)) if f.name == LEVEL.name else gathered.column(f.name) for f in columns],
            schema=arrow_schema(columns),
        )


def _find_pairs(one: pa.RecordBatch, other: pa.RecordBatch, keys: Sequence[DataField]) -> tuple[Rows, Rows]:
    """Return the positions of rows with equal keys; each side has a key at most once."""
    both = {f.name: pa.chunked_array([one.column(f.name), other.column(f.name)]) for f in keys}
    groups = group_rows_by_key(pa.table(both), MergeSpec(key_fields=tuple(keys)))
    first, last = groups.order[groups.starts], groups.order[groups.ends - 1]
    pairs = np.flatnonzero(first != last)
    return first[pairs], last[pairs] - one.num_rows
