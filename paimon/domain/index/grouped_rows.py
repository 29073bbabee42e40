"""Number the different keys of a column, and group its rows by them: what all indexes with bitmaps are built from."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from attrs import frozen

from paimon.domain.columns.buffers import combine_column, read_validity
from paimon.domain.index.index_keys import KeyForm, Keys, to_keys
from paimon.domain.types.arrow_arrays import to_numpy


@frozen(eq=False)
class GroupedRows:
    """The rows of a column by key. Keys are numbered as they first appear."""

    row_count: int
    # the different keys, as int64 or binary, without null
    keys: pa.Array
    # the rows that are not null, key after key, ascending within a key
    rows: Keys
    # where the rows of each key start in `rows`, and their end
    bounds: Keys
    null_rows: Keys

    @property
    def ends_with_known_key(self) -> bool:
        """Whether a row with a known key follows the first row of the last new key."""
        return len(self.rows) > 0 and bool(self.rows.max() != self.rows[self.bounds[-2]])


@frozen(eq=False)
class NumberedRows:
    """The rows of a column with the number of their key. Keys are numbered as they first appear."""

    row_count: int
    # the different keys, as int64 or binary, without null
    keys: pa.Array
    # the rows that are not null, ascending
    rows: Keys
    # the number of the key of each of these rows
    numbers: Keys
    null_rows: Keys

    def group(self) -> GroupedRows:
        """Return the rows by key."""
        narrow = self.numbers.astype(np.min_scalar_type(len(self.keys)))  # 16 bits are sorted by digits, much faster
        order = np.argsort(narrow, kind="stable")
        bounds = np.zeros(len(self.keys) + 1, np.int64)
        np.cumsum(np.bincount(self.numbers, minlength=len(self.keys)), out=bounds[1:])
        return GroupedRows(self.row_count, self.keys, self.rows[order], bounds, self.null_rows)


class RowNumberer:
    """Takes the values of a file column by column; closed once."""

    def __init__(self, form: KeyForm) -> None:
        self._form = form
        self._chunks: list[pa.Array] = []

    def add(self, column: pa.Array) -> None:
        """Add the values of a canonical Arrow array."""
        self._chunks.append(to_keys(column, self._form).dictionary_encode())

    def close(self) -> NumberedRows:
        """Return the rows of all added values."""
        kind = pa.int64() if self._form.width else pa.binary()
        column = combine_column(pa.chunked_array(self._chunks, pa.dictionary(pa.int32(), kind)).unify_dictionaries())
        valid = read_validity(column.indices)
        numbers = to_numpy(column.indices.drop_null())
        return NumberedRows(len(column), column.dictionary, np.flatnonzero(valid), numbers, np.flatnonzero(~valid))
