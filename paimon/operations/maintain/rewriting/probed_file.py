"""Files in which keys are looked up: forward, as they are stored; or by their places, where a local copy has them.

Law: both answer, of keys that ascend, the rows that hold them, unless a deletion vector names these; asked again, only
for keys above. What is held is a batch of the file, and the rows found. Source: `LookupLevels`, `LookupFile`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from attrs import frozen

from paimon.domain.deletion.vector import DeletionVector
from paimon.domain.lsm.key_places import PLACES, found
from paimon.domain.lsm.keys import Comparable
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.merge.columnar.ordering.order import Rows, groups_of
from paimon.domain.merge.spec import MergeSpec
from paimon.domain.merge.windows import count_through, key_at
from paimon.domain.predicate.expression import Compare, Operator, Predicate
from paimon.domain.row import binary_row
from paimon.domain.row.values import to_array, to_values
from paimon.domain.types.arrow import arrow_schema
from paimon.domain.types.data_types import DataField
from paimon.domain.types.system import LEVEL
from paimon.operations.maintain.rewriting.local_copies import BucketCopies
from paimon.operations.read.data_file import Bucket, read_data_file


def no_vector(file: DataFileMeta) -> DeletionVector | None:
    """The deletion vector of a file where there are none."""
    return None


@frozen(eq=False)
class Above:
    """What may be probed.

    Parameters
    ----------
    files : tuple of DataFileMeta
        The files of all levels above the output.
    columns : tuple of DataField
        What is wanted of a record; the key columns among them.
    through : bytes
        No key above this one is ever asked for.
    batch_rows : int
        Rows read at a time.
    tells_positions : bool
        Positions are wanted; nothing of a file can be skipped then.
    vector_of : callable
        The deletion vector of a file, if it has one.
    copies : BucketCopies, optional
        Local copies of files in which keys are looked up again and again.
    """

    bucket: Bucket
    files: tuple[DataFileMeta, ...]
    columns: tuple[DataField, ...]
    through: bytes
    batch_rows: int
    tells_positions: bool = False
    vector_of: Callable[[DataFileMeta], DeletionVector | None] = no_vector
    copies: BucketCopies | None = None

    @property
    def keys(self) -> tuple[DataField, ...]:
        """The trimmed primary key."""
        return self.bucket.table.schema.key_fields

    def opened(self, file: DataFileMeta, first: pa.RecordBatch) -> ProbedFile:
        """A file, to be asked for the key of this row and for others above it."""
        blocks = self.copies.blocks_of(self.bucket, file, self.columns) if self.copies is not None else None
        if blocks is not None:
            return _Copied(self, file, blocks)
        key = to_values(first.column(self.keys[0].name).slice(0, 1), self.keys[0].type)[0]
        return _Forward(self, file, self._read(file, key))

    def _read(self, file: DataFileMeta, first_key: object) -> Iterator[_Piece]:
        """A file's rows from a value of the first key column on, in pieces."""
        vector = self.vector_of(file)
        exact = self.tells_positions or vector is not None
        skip = None if exact else self._range(first_key)
        start = 0
        for batch in read_data_file(self.bucket, file, self.columns, skip, batch_rows=self.batch_rows):
            positions = np.arange(start, start + batch.num_rows)
            start += batch.num_rows
            if vector is not None:
                keep = ~vector.mask(int(positions[0]), len(positions)) if len(positions) else positions == 0
                batch, positions = batch.filter(pa.array(keep)), positions[keep]
            if batch.num_rows:
                yield _Piece(batch, positions)

    def _range(self, first_key: object) -> Predicate:
        """For skipping: the first key column lies between what is asked for now and what will be asked for last."""
        name = self.keys[0].name
        last = binary_row.deserialize(self.through, [f.type for f in self.keys])[0]
        return Compare(name, Operator.GE, first_key) & Compare(name, Operator.LE, last)


class Hit(NamedTuple):
    """Rows of one file that hold keys: which of the keys asked for, and where in the file."""

    file: DataFileMeta
    rows: pa.RecordBatch
    asked: Rows
    positions: Rows


class ProbedFile(Protocol):
    """See the module's law."""

    def find(self, asked: pa.RecordBatch) -> Iterator[Hit]:
        """The rows of these keys, of which none is above the file's last one."""


class _Piece(NamedTuple):
    batch: pa.RecordBatch
    positions: Rows


class _Forward:
    """A file that is read from a key on, and held as far as it was not asked for."""

    def __init__(self, above: Above, file: DataFileMeta, pieces: Iterator[_Piece]) -> None:
        self._keys = above.keys
        self._file = file
        self._pieces = pieces
        self._held: _Piece | None = None

    def find(self, asked: pa.RecordBatch) -> Iterator[Hit]:
        """The rows of these keys."""
        keys, start = self._keys, 0
        while start < asked.num_rows:
            piece = self._piece(key_at(asked, start, keys))
            if piece is None:
                return
            count = count_through(asked.slice(start), key_at(piece.batch, piece.batch.num_rows - 1, keys), keys)
            mine, theirs = _pairs(asked.slice(start, count), piece.batch, keys)
            if len(mine):
                yield Hit(self._file, piece.batch.take(pa.array(theirs)), mine + start, piece.positions[theirs])
            start += count
            if start == asked.num_rows:
                seen = count_through(piece.batch, key_at(asked, start - 1, keys), keys)
                self._held = _Piece(piece.batch.slice(seen), piece.positions[seen:])

    def _piece(self, low: Comparable) -> _Piece | None:
        """The next rows, up to a key that is not below `low`; None where there are none."""
        held, self._held = self._held, None
        pieces = self._pieces if held is None else itertools.chain([held], self._pieces)
        for piece in pieces:
            if piece.batch.num_rows and key_at(piece.batch, piece.batch.num_rows - 1, self._keys) >= low:
                return piece
        return None


class _Copied:
    """A file of which a local copy is mapped: blocks of rows in order, each with the places of its keys."""

    def __init__(self, above: Above, file: DataFileMeta, blocks: Sequence[pa.RecordBatch]) -> None:
        self._above = above
        self._file = file
        self._vector = above.vector_of(file)
        counts = [block.num_rows for block in blocks]
        self._blocks = list(zip(itertools.accumulate(counts, initial=0), blocks, strict=False))

    def find(self, asked: pa.RecordBatch) -> Iterator[Hit]:
        """The rows of these keys."""
        keys, start = self._above.keys, 0
        while self._blocks and start < asked.num_rows:
            first_row, block = self._blocks[0]
            left = asked.slice(start)
            count = count_through(left, key_at(block, block.num_rows - 1, keys), keys)
            mine, theirs = self._live(*found(left.slice(0, count), block, keys), first_row)
            if len(mine):
                yield Hit(self._file, self._rows(block, theirs), mine + start, theirs + first_row)
            start += count
            if start < asked.num_rows:
                self._blocks.pop(0)

    def _live(self, mine: Rows, theirs: Rows, first_row: int) -> tuple[Rows, Rows]:
        if self._vector is None or len(mine) == 0:
            return mine, theirs
        low = int(theirs.min())
        gone = self._vector.mask(first_row + low, int(theirs.max()) - low + 1)[theirs - low]
        return mine[~gone], theirs[~gone]

    def _rows(self, block: pa.RecordBatch, rows: Rows) -> pa.RecordBatch:
        taken = block.drop_columns([PLACES]).take(pa.array(rows))
        level = to_array([self._file.level], LEVEL.type)[0]
        columns = self._above.columns
        return pa.RecordBatch.from_arrays(
            [pa.repeat(level, len(rows)) if f.name == LEVEL.name else taken.column(f.name) for f in columns],
            schema=arrow_schema(columns),
        )


def _pairs(one: pa.RecordBatch, other: pa.RecordBatch, keys: Sequence[DataField]) -> tuple[Rows, Rows]:
    """The rows of equal keys; each side holds a key once."""
    both = {f.name: pa.chunked_array([one.column(f.name), other.column(f.name)]) for f in keys}
    groups = groups_of(pa.table(both), MergeSpec(key_fields=tuple(keys)))
    first, last = groups.order[groups.starts], groups.order[groups.ends - 1]
    pairs = np.flatnonzero(first != last)
    return first[pairs], last[pairs] - one.num_rows
