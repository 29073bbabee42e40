"""Sorted runs cut into windows that can be merged one after another, in bounded memory.

Law: a window holds every record of each of its keys, and windows ascend by key, so merging windows equals merging
all at once. What is buffered stays within the budget, except that every run keeps one batch. A state machine:
batches in, windows out. Source: `SortMergeReader` (what it does row by row).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from paimon.domain.lsm.keys import Comparable, comparable_values
from paimon.domain.merge.columnar.ordering.nan_order import RUN
from paimon.domain.row.values import to_values
from paimon.domain.types.data_types import DataField


class Piece(NamedTuple):
    """Rows of one file, ascending by key; `age` orders files: of equal keys the larger age is newer."""

    batch: pa.RecordBatch
    age: int


def in_tree(runs: Sequence[Iterator[Piece]]) -> list[Iterator[Piece]]:
    """The runs, whose pieces then tell where their run stands in the tree that merges them; see `RUN`."""
    return [map(partial(_placed, len(runs) + place), run) for place, run in enumerate(runs)]


def _placed(node: int, piece: Piece) -> Piece:
    places = pa.array(np.full(piece.batch.num_rows, node, dtype=np.int32))
    return Piece(piece.batch.append_column(RUN, places), piece.age)


class RunBuffer:
    """What is buffered of one run."""

    def __init__(self, source: Iterator[Piece], keys: Sequence[DataField]) -> None:
        self._source = source
        self._keys = keys
        self.pieces: list[Piece] = []
        self.last: Comparable = ()
        self.finished = False

    def fill(self) -> int:
        """Buffer one more piece; answers its bytes, 0 at the end."""
        for piece in self._source:
            if piece.batch.num_rows:
                self.pieces.append(piece)
                self.last = key_at(piece.batch, piece.batch.num_rows - 1, self._keys)
                return int(piece.batch.nbytes)
        self.finished = True
        return 0

    def take_through(self, bound: Comparable | None) -> list[Piece]:
        """Remove and answer the rows with keys up to and including `bound`; all where there is no bound."""
        taken: list[Piece] = []
        if bound is None:
            taken, self.pieces = self.pieces, taken
        while self.pieces and bound is not None:
            batch, age = self.pieces[0]
            count = count_through(batch, bound, self._keys)
            if count:
                taken.append(Piece(batch.slice(0, count), age))
            if count < batch.num_rows:
                self.pieces[0] = Piece(batch.slice(count), age)
                break
            self.pieces.pop(0)
        return taken


def key_at(batch: pa.RecordBatch, row: int, keys: Sequence[DataField]) -> Comparable:
    """The key of a row."""
    return comparable_values([to_values(batch.column(f.name).slice(row, 1), f.type)[0] for f in keys])


def count_through(batch: pa.RecordBatch, bound: Comparable, keys: Sequence[DataField]) -> int:
    """How many rows of a batch, ascending by key, have keys up to and including `bound`."""
    return _count(batch, lambda row: key_at(batch, row, keys) <= bound)


def count_below(batch: pa.RecordBatch, bound: Comparable, keys: Sequence[DataField]) -> int:
    """How many rows of a batch, ascending by key, have keys below `bound`."""
    return _count(batch, lambda row: key_at(batch, row, keys) < bound)


def _count(batch: pa.RecordBatch, belongs: Callable[[int], bool]) -> int:
    """How many rows belong, where those that do come first."""
    low, high = 0, int(batch.num_rows)
    if high and belongs(high - 1):
        return high
    while low < high:
        middle = (low + high) // 2
        if belongs(middle):
            low = middle + 1
        else:
            high = middle
    return low


def windows(runs: Sequence[Iterator[Piece]], keys: Sequence[DataField], budget_bytes: int) -> Iterator[list[Piece]]:
    """Windows of all runs, each as pieces in order of age.

    Parameters
    ----------
    runs : sequence of iterators
        Each yields the pieces of one sorted run, ascending by key.
    keys : sequence of DataField
        The key columns, in key order, as the pieces hold them.
    budget_bytes : int
        How much to buffer before a window is handed out; everything is one window where all fits.
    """
    open_runs = [RunBuffer(source, keys) for source in runs]
    while open_runs:
        _fill(open_runs, budget_bytes)
        unfinished = [run for run in open_runs if not run.finished]
        bound = min((run.last for run in unfinished), default=None)
        found = _taken(open_runs, bound)
        while found:
            yield found.pop()  # whoever takes the window holds it alone
        open_runs = [run for run in open_runs if run.pieces or not run.finished]


def _taken(runs: Sequence[RunBuffer], bound: Comparable | None) -> list[list[Piece]]:
    """The window up to `bound`, if there is any."""
    window = [piece for run in runs for piece in run.take_through(bound)]
    return [sorted(window, key=_age)] if window else []


def _fill(runs: Sequence[RunBuffer], budget_bytes: int) -> None:
    held = sum(int(piece.batch.nbytes) for run in runs for piece in run.pieces)
    for run in runs:
        if not run.pieces and not run.finished:
            held += run.fill()
    while held < budget_bytes:
        unfinished = [run for run in runs if not run.finished]
        if not unfinished:
            return
        held += min(unfinished, key=_last_key).fill()


def _last_key(run: RunBuffer) -> Comparable:
    return run.last


def _age(piece: Piece) -> int:
    return piece.age
