"""Blocks of a key store: keys in a few sorted runs, or in any order, with the place of each.

A place is the partition and the bucket of a key, as a number. Sorted runs are searched as they are, and their places,
which are mostly equal, are stored once for each run of equal ones. Other blocks have lookup hashes. Sorted runs receive
them, too, once their searches have cost as much as the hashes cost.

Invariant: `find` returns exactly the pairs of rows with equal keys. A block holds a key once.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from attrs import frozen

from paimon.domain.lsm.lookup_hashes import LOOKUP_HASHES_FIELD, Rows, add_lookup_hashes, find_equal_keys
from paimon.domain.lsm.ordered_keys import find_ordered_keys, is_ordered_block
from paimon.domain.types.data_types import DataField
from paimon.ports.key_stores import Places

_HASH_BYTES = 8
"""The bytes of the lookup hashes for each row."""
_PLACE_BYTES = 8
_TEXT_COST = 8
"""A binary search of a text takes so many times as long as the hash of a row; that of a number as long."""
_HASH_COST = 3
"""The search of lookup hashes takes so many times as long as the hash of a row."""


class Piece(NamedTuple):
    """Some keys and their places, and whether the keys are in order."""

    keys: pa.RecordBatch
    places: Places
    is_run: bool


@frozen(eq=False)
class BlockPlaces:
    """The place (partition and bucket) of each row of a block, run-length encoded where that is possible."""

    # where each run of equal places ends; None if each row has its own value
    ends: npt.NDArray[np.int64] | None
    # the place of each run, or of each row if `ends` is None
    values: Places

    @classmethod
    def of(cls, parts: Sequence[Places]) -> BlockPlaces:
        """Return the places of successive rows."""
        if not all(map(_is_constant, parts)):
            return cls(None, np.concatenate(parts))
        return cls(np.cumsum([len(part) for part in parts]), np.array([part[0] for part in parts], np.int64))

    def take(self, rows: Rows) -> Places:
        """Return the places of some rows."""
        numbers = rows if self.ends is None else np.searchsorted(self.ends, rows, side="right")
        return self.values[numbers]


def _is_constant(places: Places) -> bool:
    """Return whether all places are equal, which the layout of a broadcast value shows."""
    return len(places) > 0 and (places.strides == (0,) or bool((places == places[0]).all()))


def find_run_ends(pieces: Sequence[Piece], fields: Sequence[DataField]) -> npt.NDArray[np.int64] | None:
    """Return where the sorted runs of successive pieces end; None if a piece is in no order."""
    if not all(piece.is_run for piece in pieces):
        return None
    ends = np.cumsum([piece.keys.num_rows for piece in pieces])
    borders = [
        pa.concat_batches([one.keys.slice(one.keys.num_rows - 1), other.keys.slice(0, 1)])
        for one, other in itertools.pairwise(pieces)
    ]
    is_end = [not is_ordered_block(border, fields) for border in borders]
    return ends[[*is_end, True]]


def count_bytes(keys: pa.RecordBatch) -> int:
    """Return the size of keys with a place and a lookup hash for each."""
    size: int = keys.nbytes + (_HASH_BYTES + _PLACE_BYTES) * keys.num_rows
    return size


class KeyBlock:
    """Keys with their places and sorted runs; counts searches to decide when to build lookup hashes.

    `run_ends` is where each sorted run ends; None if the keys are in no order.
    """

    def __init__(
        self,
        fields: Sequence[DataField],
        keys: pa.RecordBatch,
        places: BlockPlaces,
        run_ends: npt.NDArray[np.int64] | None,
    ) -> None:
        self._fields = fields
        self._run_ends = run_ends
        self._spent = 0
        self.keys = keys
        self.places = places
        self.hashes: pa.Array | None = None

    @property
    def nbytes(self) -> int:
        """The size with one place and one lookup hash for each row, whether the block has them or not."""
        return count_bytes(self.keys)

    def needs_hashes(self, wanted_rows: int) -> bool:
        """Count a search of so many keys, and return whether the lookup hashes have to be built before it."""
        if self.hashes is not None:
            return False
        if self._run_ends is None:
            return True
        cost = 1 if pa.types.is_integer(self.keys.column(0).type) else _TEXT_COST
        self._spent += wanted_rows * max(0, cost * len(self._run_ends) - _HASH_COST)
        rows: int = self.keys.num_rows
        return self._spent > rows

    def build_hashes(self) -> pa.Array:
        """Return the lookup hashes."""
        return add_lookup_hashes(self.keys, self._fields).column(LOOKUP_HASHES_FIELD.name)

    def find(self, wanted: pa.RecordBatch) -> tuple[Rows, Rows]:
        """Return the rows of `wanted` that the block has, ascending, and its row for each."""
        if self.hashes is not None:
            return find_equal_keys(wanted, self.keys.append_column(LOOKUP_HASHES_FIELD, self.hashes), self._fields)
        assert self._run_ends is not None
        row_of = np.full(wanted.num_rows, -1, np.int64)
        for start, end in itertools.pairwise([0, *self._run_ends.tolist()]):
            mine, theirs = find_ordered_keys(wanted, self.keys.slice(start, end - start), self._fields[0])
            row_of[mine] = theirs + start
        found = np.flatnonzero(row_of >= 0)
        return found, row_of[found]
