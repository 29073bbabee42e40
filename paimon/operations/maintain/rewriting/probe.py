"""Looking keys up in the levels above a compaction's output.

Law: of each key the record of the smallest level that holds it is found, with its file and its row's position there,
unless a deletion vector names that row. Both sides ascend: each file is read forward once, from the first key that it
may hold to the last, and what is held is a batch a level and the rows found. Source: `LookupLevels`, `LookupUtils`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from attrs import frozen

from paimon.domain.deletion.vector import DeletionVector
from paimon.domain.lsm.keys import Comparable, comparable
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.merge.columnar.ordering.order import Rows, groups_of
from paimon.domain.merge.spec import MergeSpec
from paimon.domain.merge.windows import count_below, count_through, key_at
from paimon.domain.predicate.expression import Compare, Operator, Predicate
from paimon.domain.row import binary_row
from paimon.domain.row.values import to_values
from paimon.domain.types.arrow import arrow_schema
from paimon.domain.types.data_types import DataField
from paimon.operations.read.data_file import Bucket, read_data_file


class Probed(NamedTuple):
    """What was found.

    Parameters
    ----------
    rows : pa.Table
        The records, with the columns asked for.
    asked : ndarray
        For each, the place of its key among those asked.
    files, file_of : tuple of DataFileMeta, ndarray
        Files, and for each record the place of its own among them.
    positions : ndarray
        Its row in that file, from 0; nothing where the probe was not to tell positions.
    """

    rows: pa.Table
    asked: Rows
    files: tuple[DataFileMeta, ...]
    file_of: Rows
    positions: Rows


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
    """

    bucket: Bucket
    files: tuple[DataFileMeta, ...]
    columns: tuple[DataField, ...]
    through: bytes
    batch_rows: int
    tells_positions: bool = False
    vector_of: Callable[[DataFileMeta], DeletionVector | None] = no_vector

    @property
    def keys(self) -> tuple[DataField, ...]:
        """The trimmed primary key."""
        return self.bucket.table.schema.key_fields

    def read(self, file: DataFileMeta, first_key: object) -> Iterator[_Piece]:
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
                yield _Piece(file, batch, positions)

    def _range(self, first_key: object) -> Predicate:
        """For skipping: the first key column lies between what is asked for now and what will be asked for last."""
        name = self.keys[0].name
        last = binary_row.deserialize(self.through, [f.type for f in self.keys])[0]
        return Compare(name, Operator.GE, first_key) & Compare(name, Operator.LE, last)


class _Piece(NamedTuple):
    file: DataFileMeta
    batch: pa.RecordBatch
    positions: Rows


class Probe:
    """Finds keys that are asked for in ascending order: a state machine."""

    def __init__(self, above: Above) -> None:
        self._above = above
        by_level: dict[int, list[DataFileMeta]] = {}
        for file in above.files:
            by_level.setdefault(file.level, []).append(file)
        self._levels = [_Level(above, by_level[level]) for level in sorted(by_level)]

    def find(self, keys: pa.Table) -> Probed:
        """The records of keys, which ascend, and lie above all that were asked for before."""
        left = np.arange(keys.num_rows)
        found: list[_Hit] = []
        for level in self._levels:
            if len(left) == 0:
                break
            (batch,) = keys.take(pa.array(left)).combine_chunks().to_batches()
            hits = list(level.find(batch))
            found += [hit._replace(asked=left[hit.asked]) for hit in hits]
            left = np.delete(left, np.concatenate([hit.asked for hit in hits])) if hits else left
        return self._answer(found)

    def _answer(self, found: Sequence[_Hit]) -> Probed:
        rows = pa.Table.from_batches([h.rows for h in found], schema=arrow_schema(self._above.columns))
        nothing = np.empty(0, dtype=np.int64)
        return Probed(
            rows,
            np.concatenate([nothing, *(h.asked for h in found)]),
            tuple(h.file for h in found),
            np.repeat(np.arange(len(found)), [len(h.asked) for h in found]),
            np.concatenate([nothing, *(h.positions for h in found)]) if self._above.tells_positions else nothing,
        )


class _Hit(NamedTuple):
    file: DataFileMeta
    rows: pa.RecordBatch
    asked: Rows
    positions: Rows


class _Level:
    """The files of one level, read forward."""

    def __init__(self, above: Above, files: Sequence[DataFileMeta]) -> None:
        self._above = above
        types = [f.type for f in above.keys]
        spans = [(comparable(f.min_key, types), comparable(f.max_key, types), f) for f in files]
        self._waiting = sorted(spans, key=lambda span: span[0])
        self._last: Comparable = ()
        self._open: Iterator[_Piece] = iter(())
        self._held: _Piece | None = None

    def find(self, asked: pa.RecordBatch) -> Iterator[_Hit]:
        """The records of these keys."""
        keys, start = self._above.keys, 0
        while start < asked.num_rows:
            piece = self._piece(key_at(asked, start, keys))
            if piece is None:
                start = self._next_file(asked, start)
                continue
            count = count_through(asked.slice(start), key_at(piece.batch, piece.batch.num_rows - 1, keys), keys)
            mine, theirs = _pairs(asked.slice(start, count), piece.batch, keys)
            if len(mine):
                yield _Hit(piece.file, piece.batch.take(pa.array(theirs)), mine + start, piece.positions[theirs])
            start += count
            if start == asked.num_rows:
                seen = count_through(piece.batch, key_at(asked, start - 1, keys), keys)
                self._held = _Piece(piece.file, piece.batch.slice(seen), piece.positions[seen:])

    def _piece(self, low: Comparable) -> _Piece | None:
        """The next rows of the open file, up to a key that is not below `low`; None where it has none."""
        if self._last < low:
            self._open, self._held = iter(()), None
        held, self._held = self._held, None
        pieces = self._open if held is None else itertools.chain([held], self._open)
        for piece in pieces:
            if piece.batch.num_rows and key_at(piece.batch, piece.batch.num_rows - 1, self._above.keys) >= low:
                return piece
        return None

    def _next_file(self, asked: pa.RecordBatch, start: int) -> int:
        """Opens the next file that may hold one of the keys from `start` on; answers the place of the first of them."""
        keys = self._above.keys
        while self._waiting:
            low, high, file = self._waiting[0]
            start += count_below(asked.slice(start), low, keys)
            if start == asked.num_rows:
                return start
            self._waiting.pop(0)
            if key_at(asked, start, keys) <= high:
                first = to_values(asked.column(keys[0].name).slice(start, 1), keys[0].type)[0]
                self._last, self._open = high, self._above.read(file, first)
                return start
        return int(asked.num_rows)


def _pairs(one: pa.RecordBatch, other: pa.RecordBatch, keys: Sequence[DataField]) -> tuple[Rows, Rows]:
    """The rows of equal keys; each side holds a key once."""
    both = {f.name: pa.chunked_array([one.column(f.name), other.column(f.name)]) for f in keys}
    groups = groups_of(pa.table(both), MergeSpec(key_fields=tuple(keys)))
    first, last = groups.order[groups.starts], groups.order[groups.ends - 1]
    pairs = np.flatnonzero(first != last)
    return first[pairs], last[pairs] - one.num_rows
