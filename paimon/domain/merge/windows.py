"""Cut sorted runs into windows that are merged one after the other, in bounded memory.

Invariant: a window holds all records of each of its keys, and windows ascend by key, so that merging windows equals
merging everything at once. Buffered rows stay within the budget, except that each run keeps one batch. `RunBuffer` is a
state machine: it takes batches and returns windows.

Source: `SortMergeReader` (which merges row by row).
"""

# The runs of a section hold records with any keys, ascending in each run. They are read batch by batch, and as soon as
# all records of some keys are here, these can be merged and released. Three runs, with their buffered keys, and what is
# still on disk in brackets:
#
#     run 0   1 3 5 | [8 9 ...]      last key 5
#     run 1   2 3 7 | [8 9 ...]      last key 7
#     run 2   4     | finished
#                                    bound = min(5, 7) = 5: the next batches have no key below 5
#     window  1 2 3 3 4 5            what remains: run 1 has 7
#
# 1. `_fill` gives each run a batch, and then reads on until the budget is used, always in the run with the smallest
#    last key, because that one holds back the bound.
# 2. The bound is the smallest last key of the runs that may still grow. A run whose last key is the bound cannot hold
#    the same key again, because keys are unique in a run. Finished runs do not count; if all are, everything is taken.
# 3. `take_through` cuts each run behind the bound by binary search. Slices share memory with their batches.
#
# The pieces of a window are sorted by age, so that of rows with equal keys the newer one comes later. Where the merge
# must know the run of a record (a NaN in a user sequence, see `paimon.domain.columns.java_float_order`),
# `add_run_positions` numbers the runs as leaves of Java's loser tree: leaf i of n is node n + i, and its parent is that
# number halved.

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from paimon.domain.columns.java_float_order import RUN
from paimon.domain.lsm.keys import Comparable, to_comparable_values
from paimon.domain.row.values import to_values
from paimon.domain.types.arrow_arrays import from_numpy
from paimon.domain.types.data_types import DataField


class Piece(NamedTuple):
    """Rows of one file, ascending by key. `age` orders files: of equal keys, the one with the larger age is newer."""

    batch: pa.RecordBatch
    age: int


def add_run_positions(runs: Sequence[Iterator[Piece]]) -> list[Iterator[Piece]]:
    """Return the runs with the column `RUN`, the node of each run in the tree that merges them."""
    return [map(partial(_add_run_number, len(runs) + place), run) for place, run in enumerate(runs)]


def _add_run_number(node: int, piece: Piece) -> Piece:
    nodes = from_numpy(np.full(piece.batch.num_rows, node, dtype=np.int32))
    return Piece(piece.batch.append_column(RUN, nodes), piece.age)


class RunBuffer:
    """The buffered rows of one run."""

    def __init__(self, source: Iterator[Piece], keys: Sequence[DataField]) -> None:
        self._source = source
        self._keys = keys
        self.pieces: list[Piece] = []
        self.last: Comparable = ()
        self.finished = False

    def fill(self) -> int:
        """Buffer one more piece, and return its size in bytes; 0 at the end of the run."""
        for piece in self._source:
            if piece.batch.num_rows:
                self.pieces.append(piece)
                self.last = read_key_at(piece.batch, piece.batch.num_rows - 1, self._keys)
                return int(piece.batch.nbytes)
        self.finished = True
        return 0

    def take_through(self, bound: Comparable | None, repeats: bool) -> list[Piece]:
        """Remove and return the rows with keys up to `bound`, which `repeats` excludes; all rows where it is None."""
        count_rows = count_below if repeats else count_through
        taken: list[Piece] = []
        if bound is None:
            taken, self.pieces = self.pieces, taken
        while self.pieces and bound is not None:
            batch, age = self.pieces[0]
            count = count_rows(batch, bound, self._keys)
            if count:
                taken.append(Piece(batch.slice(0, count), age))
            if count < batch.num_rows:
                self.pieces[0] = Piece(batch.slice(count), age)
                break
            self.pieces.pop(0)
        return taken


def read_key_at(batch: pa.RecordBatch, row: int, keys: Sequence[DataField]) -> Comparable:
    """Return the key of a row."""
    return to_comparable_values([to_values(batch.column(f.name).slice(row, 1), f.type)[0] for f in keys])


def count_through(batch: pa.RecordBatch, bound: Comparable, keys: Sequence[DataField]) -> int:
    """Count the rows with keys up to and including `bound`; they come first in the batch."""
    return _count(batch, lambda row: read_key_at(batch, row, keys) <= bound)


def count_below(batch: pa.RecordBatch, bound: Comparable, keys: Sequence[DataField]) -> int:
    """Count the rows with keys below `bound`; they come first in the batch."""
    return _count(batch, lambda row: read_key_at(batch, row, keys) < bound)


def _count(batch: pa.RecordBatch, belongs: Callable[[int], bool]) -> int:
    """Count the rows that belong, where those come first."""
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


def cut_into_windows(
    runs: Sequence[Iterator[Piece]], keys: Sequence[DataField], budget_bytes: int, repeats: bool = False
) -> Iterator[list[Piece]]:
    """Cut sorted runs into windows of at most about `budget_bytes`; yield the pieces of each window, oldest first.

    If everything fits, there is one window. The generator keeps no reference to a yielded window. With `repeats`, a
    run may hold a key several times; the records of one key are in one window, however many they are.
    """
    open_runs = [RunBuffer(source, keys) for source in runs]
    while open_runs:
        _fill(open_runs, budget_bytes)
        found = _take_window(open_runs, repeats)
        while not found and (unfinished := [run for run in open_runs if not run.finished]):
            min(unfinished, key=_last_key).fill()
            found = _take_window(open_runs, repeats)
        while found:
            yield found.pop()  # the consumer has the only reference, so it can release rows early
        open_runs = [run for run in open_runs if run.pieces or not run.finished]


def _take_window(runs: Sequence[RunBuffer], repeats: bool) -> list[list[Piece]]:
    """Return a list with the next window, or an empty list."""
    bound = min((run.last for run in runs if not run.finished), default=None)
    window = [piece for run in runs for piece in run.take_through(bound, repeats)]
    return [sorted(window, key=_age)] if window else []


def _fill(runs: Sequence[RunBuffer], budget_bytes: int) -> None:
    buffered = sum(int(piece.batch.nbytes) for run in runs for piece in run.pieces)
    for run in runs:
        if not run.pieces and not run.finished:
            buffered += run.fill()
    while buffered < budget_bytes:
        unfinished = [run for run in runs if not run.finished]
        if not unfinished:
            return
        buffered += min(unfinished, key=_last_key).fill()


def _last_key(run: RunBuffer) -> Comparable:
    return run.last


def _age(piece: Piece) -> int:
    return piece.age
