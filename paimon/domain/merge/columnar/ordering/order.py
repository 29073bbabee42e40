"""Rows of a merge in the order in which the merge functions see them, cut into groups of one key.

Law: `order` is ascending by key, then user sequence fields, then sequence number, then retracts before adds (before
the sequence number where `retracts_first`), then arrival; a group is what has one key.
Twin: `paimon.domain.merge.reference.merge`. Source: `SortMergeReader`, `UserDefinedSeqComparator`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.merge.columnar.ordering.nan_order import with_nans
from paimon.domain.merge.columnar.ordering.words import Part, Words, concatenated, packed, parts_of
from paimon.domain.merge.spec import MergeSpec
from paimon.domain.types.system import LEVEL, SEQUENCE_NUMBER, VALUE_KIND

Rows = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Scalar = TypeVar("Scalar", bound=np.generic)


class Groups(NamedTuple):
    """Row numbers in merge order, where in `order` each key begins, and which keys came as a single record."""

    order: Rows
    starts: Rows
    lone: Mask

    @property
    def ends(self) -> Rows:
        """One past the last row of each group."""
        return np.append(self.starts, len(self.order))[1:]

    @property
    def key_count(self) -> int:
        """How many groups there are."""
        return len(self.starts)

    @property
    def all_lone(self) -> bool:
        """Whether every key came as a single record."""
        return bool(self.lone.all())

    @property
    def first(self) -> Rows:
        """The row number of the first record of each group."""
        return self.order[self.starts]

    @property
    def last(self) -> Rows:
        """The row number of the last record of each group."""
        return self.order[self.ends - 1]

    @property
    def alone(self) -> Rows:
        """The places of the lone records."""
        return self.starts[self.lone]

    @property
    def rows(self) -> Rows | None:
        """The row number of each place in merge order; None where rows stand in it."""
        return self.order

    def of_row(self) -> Rows:
        """The number of the group of each place in `order`."""
        return np.repeat(np.arange(len(self.starts)), self.ends - self.starts)

    def ordered(self) -> Groups:
        """These groups; see `Arrival.ordered`."""
        return self

    def placed(self, values: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
        """What belongs to each place in `order`, out of what belongs to each row."""
        return values[self.order]


def groups_of(table: pa.Table, spec: MergeSpec) -> Groups:
    """Order and group a table that holds the key and the sequence fields (see `merge` for the system columns)."""
    keys = [part for column in concatenated([table[n] for n in spec.key_names]) for part in parts_of(column)]
    words = packed(keys)
    order = sorted_rows(packed([*keys, *_age_parts(table, spec, words)]), table.num_rows)
    starts = _starts(words, order)
    nans = _nans(table, spec)
    if nans is not None:
        order = with_nans(order, starts, nans, table, spec)
    return Groups(order, starts, np.diff(np.append(starts, len(order))) == 1)


def sorted_rows(words: list[Words], rows: int) -> Rows:
    """The stable order of rows by their words."""
    if not words:
        return np.arange(rows, dtype=np.int64)
    if len(words) > 1:
        return np.lexsort(words[::-1])
    width = max(rows - 1, 1).bit_length()
    if int(words[0].max()) >> (64 - width):
        return np.argsort(words[0], kind="stable")
    # key and row number in one word: sorting plain numbers moves half the memory that an argsort does
    tagged = (words[0] << np.uint64(width)) | np.arange(rows, dtype=np.uint64)
    tagged.sort(kind="stable")
    return (tagged & np.uint64((1 << width) - 1)).view(np.int64)


def _age_parts(table: pa.Table, spec: MergeSpec, keys: Sequence[Words]) -> list[Part]:
    parts: list[Part] = []
    for name, column in zip(spec.sequence_fields, concatenated([table[n] for n in spec.sequence_fields]), strict=True):
        parts += parts_of(column if name in spec.ordered_floats else one_zero(column), spec.sequence_descending)
    if spec.retracts_first and table.num_rows:
        parts.append(_adds(table))
    if SEQUENCE_NUMBER.name not in table.column_names:
        return parts
    (numbers,) = concatenated([table[SEQUENCE_NUMBER.name]])
    if parts or not stands_by_age(table, keys):
        parts += parts_of(numbers)
        parts.append(_adds(table))
    return parts


def _adds(table: pa.Table) -> Part:
    return Part((~retracts(table)).astype(np.uint64), 1)


def one_zero(column: pa.Array) -> pa.Array:
    """The column with 0.0 for -0.0: user sequences compare as Java's operators do."""
    return pc.add(column, pa.scalar(0.0, column.type)) if pa.types.is_floating(column.type) else column


def _nans(table: pa.Table, spec: MergeSpec) -> Mask | None:
    """Which rows have a NaN in their user sequence that equals everything; None where no row has."""
    mask = np.zeros(table.num_rows, dtype=np.bool_)
    for column in concatenated([table[n] for n in spec.sequence_fields if n not in spec.ordered_floats]):
        if pa.types.is_floating(column.type):
            mask |= np.asarray(pc.is_nan(column).fill_null(False))
    return mask if mask.any() else None


def stands_by_age(table: pa.Table, keys: Sequence[Words]) -> bool:
    """Whether of two rows of a key the later one is surely newer.

    Sequence numbers ascend; or they do from each stretch of ascending keys to the next, as where files follow each
    other by age.
    """
    if SEQUENCE_NUMBER.name not in table.column_names:
        return True
    numbers = np.asarray(concatenated([table[SEQUENCE_NUMBER.name]])[0])
    if (numbers[1:] > numbers[:-1]).all():
        return True
    starts = np.append(0, np.flatnonzero(~_ascents(keys, len(numbers))) + 1)
    lowest, highest = np.minimum.reduceat(numbers, starts), np.maximum.reduceat(numbers, starts)
    return bool((lowest[1:] > highest[:-1]).all())


def _ascents(keys: Sequence[Words], rows: int) -> Mask:
    """Where a key is larger than the one before it."""
    larger = np.zeros(rows - 1, dtype=np.bool_)
    for word in reversed(keys):
        larger = (word[1:] > word[:-1]) | ((word[1:] == word[:-1]) & larger)
    return larger


def kinds_of(table: pa.Table) -> npt.NDArray[np.int8]:
    """The row kind of each row; +I where the table has no kinds."""
    if VALUE_KIND.name not in table.schema.names:
        return np.zeros(table.num_rows, dtype=np.int8)
    (kinds,) = concatenated([table[VALUE_KIND.name]])
    return np.asarray(kinds)


def retracts(table: pa.Table) -> Mask:
    """Which rows are -U or -D; none where the table has no kinds."""
    if VALUE_KIND.name not in table.schema.names:
        return np.zeros(table.num_rows, dtype=np.bool_)
    values = kinds_of(table)
    mask: Mask = (values == 1) | (values == 3)
    return mask


def _starts(words: list[Words], order: Rows) -> Rows:
    if len(order) == 0:
        return np.empty(0, dtype=np.int64)
    change = np.zeros(len(order), dtype=np.bool_)
    change[0] = True
    for word in words:
        ordered = word[order]
        change[1:] |= ordered[1:] != ordered[:-1]
    return np.flatnonzero(change)


def restricted(groups: Groups, keep: Mask) -> Groups:
    """The groups of those places of `order` that are kept; groups without any are gone, `lone` stays what it was."""
    number = groups.of_row()[keep]
    present, starts = np.unique(number, return_index=True)
    return Groups(groups.order[keep], starts.astype(np.int64), groups.lone[present])


def lookup_groups(groups: Groups, table: pa.Table) -> Groups:
    """Of each key the records of level 0 or less and those of its smallest level above."""
    levels = np.asarray(concatenated([table[LEVEL.name]])[0]).astype(np.int64)[groups.order]
    if len(levels) == 0:
        return groups
    above = np.where(levels > 0, levels, np.iinfo(np.int64).max)
    smallest = np.minimum.reduceat(above, groups.starts)
    return restricted(groups, (levels <= 0) | (levels == smallest[groups.of_row()]))
