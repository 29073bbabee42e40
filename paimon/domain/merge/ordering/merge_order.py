"""Order the rows of a merge as the merge functions see them, and cut them into groups of one key.

Invariant: rows ascend by key, then user sequence, then sequence number, then retracts before adds, then position. Where
`retracts_first`, the row kind precedes the sequence number. Equals `paimon.domain.merge.merge_reference`.

Source: `SortMergeReader`, `UserDefinedSeqComparator`.
"""

# Records reach a merge from several sorted runs. Their order decides which one wins, and it has four parts:
#
#     key   user sequence   sequence number   row kind
#      1         20                7             +I
#      1         10                9             +U       written later, but its sequence field is smaller: it loses
#      2         10                8             -D
#      2         10                8             +U       both halves of an update in one commit: retracts come first
#
# 1. All parts become normalized keys (`normalized_keys`), and one stable sort orders all rows of the table. Rows that
#    are equal in all parts keep their order. With `row-kind-flag` (`retracts_first`), the row kind comes
#    before the sequence number.
# 2. A group begins where the key changes (`mark_key_starts`). `Groups` holds row numbers, not rows: nothing is moved
#    before an engine takes what it needs. Above, `order` is 1 0 2 3, and `starts` is 0 2.
# 3. A user sequence with a NaN has no order: in Java, a NaN compares equal to everything, and the result depends on
#    which runs meet first in its loser tree. `order_groups_with_nans` repeats that for the groups that have one.
# 4. Groups then lose the records that an engine does not see (`restrict_groups`): a lookup merge sees those of level 0
#    and of the smallest higher level, `ignore-delete` sees no retracts.
#
# Often the sort is not needed. Where files follow each other by age, and keys are dense, `key_groups` numbers the keys
# and leaves rows where they are, and `newest_rows` only marks the last row of each key.

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from paimon.domain.columns.java_float_order import mask_nan_rows, order_groups_with_nans, unify_zeros
from paimon.domain.merge.merge_spec import MergeSpec
from paimon.domain.merge.ordering.normalized_keys import KeyPart, KeyWord, combine_chunks, pack_keys, to_key_parts
from paimon.domain.types.arrow_arrays import to_numpy
from paimon.domain.types.system_columns import LEVEL, SEQUENCE_NUMBER, VALUE_KIND

Rows = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Scalar = TypeVar("Scalar", bound=np.generic)


class Groups(NamedTuple):
    """Row numbers in merge order, where each key begins in `order`, and which keys have exactly one record."""

    order: Rows
    starts: Rows
    singletons: Mask

    @property
    def ends(self) -> Rows:
        """The position after the last row of each group."""
        return np.append(self.starts, len(self.order))[1:]

    @property
    def key_count(self) -> int:
        """The number of groups."""
        return len(self.starts)

    @property
    def all_singletons(self) -> bool:
        """Whether every key has exactly one record."""
        return bool(self.singletons.all())

    @property
    def first(self) -> Rows:
        """The row number of the first record of each group."""
        return self.order[self.starts]

    @property
    def last(self) -> Rows:
        """The row number of the last record of each group."""
        return self.order[self.ends - 1]

    @property
    def singleton_positions(self) -> Rows:
        """The positions of the singletons."""
        return self.starts[self.singletons]

    @property
    def rows(self) -> Rows | None:
        """The row number of each position in merge order."""
        return self.order

    def group_ids(self) -> Rows:
        """Return the group id of each position in merge order."""
        return np.repeat(np.arange(len(self.starts)), self.ends - self.starts)

    def to_key_order(self) -> Groups:
        """Return these groups; see `GroupsByAge.to_key_order`."""
        return self

    def gather(self, values: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
        """Return values by row as values by position in merge order."""
        return values[self.order]


def group_rows_by_key(table: pa.Table, spec: MergeSpec) -> Groups:
    """Sort rows by key and merge order, and group them; see `merge` for the columns."""
    parts = [part for column in combine_chunks([table[n] for n in spec.key_names]) for part in to_key_parts(column)]
    keys = pack_keys(parts)
    order = argsort_keys(pack_keys([*parts, *_age_parts(table, spec, keys)]), table.num_rows)
    starts = np.flatnonzero(mark_key_starts(keys, order))
    nans = _mask_nans(table, spec)
    if nans is not None:
        order = order_groups_with_nans(order, starts, nans, table, spec.sequence_order)
    return Groups(order, starts, np.diff(np.append(starts, len(order))) == 1)


def argsort_keys(keys: list[KeyWord], rows: int) -> Rows:
    """Return the stable order of rows by their normalized keys."""
    if not keys:
        return np.arange(rows, dtype=np.int64)
    if len(keys) > 1:
        return np.lexsort(keys[::-1])
    width = max(rows - 1, 1).bit_length()
    if int(keys[0].max()) >> (64 - width):
        return np.argsort(keys[0], kind="stable")
    # key and row number in one word: sorting plain numbers moves half the memory that an argsort does
    tagged = (keys[0] << np.uint64(width)) | np.arange(rows, dtype=np.uint64)
    tagged.sort(kind="stable")
    return (tagged & np.uint64((1 << width) - 1)).view(np.int64)


def _age_parts(table: pa.Table, spec: MergeSpec, keys: Sequence[KeyWord]) -> list[KeyPart]:
    """Return the parts of the sort key that follow the key columns."""
    parts: list[KeyPart] = []
    for name, column in zip(
        spec.sequence_fields, combine_chunks([table[n] for n in spec.sequence_fields]), strict=True
    ):
        parts += to_key_parts(column if name in spec.ordered_floats else unify_zeros(column), spec.sequence_descending)
    if spec.retracts_first and table.num_rows:
        parts.append(_drop_retracts(table))
    if SEQUENCE_NUMBER.name not in table.column_names:
        return parts
    (numbers,) = combine_chunks([table[SEQUENCE_NUMBER.name]])
    if parts or not is_ordered_by_age(table, keys):
        parts += to_key_parts(numbers)
        parts.append(_drop_retracts(table))
    return parts


def _drop_retracts(table: pa.Table) -> KeyPart:
    return KeyPart((~mask_retracts(table)).astype(np.uint64), 1)


def _mask_nans(table: pa.Table, spec: MergeSpec) -> Mask | None:
    """Mark the rows with a NaN in a user sequence that is in the operator order; None where no row has one."""
    names = [n for n in spec.sequence_fields if n not in spec.ordered_floats]
    return mask_nan_rows(combine_chunks([table[n] for n in names]), table.num_rows)


def is_ordered_by_age(table: pa.Table, keys: Sequence[KeyWord]) -> bool:
    """Return whether of two rows with the same key the later one is certainly newer.

    That is so if sequence numbers ascend, or if they ascend from each stretch of ascending keys to the next, as where
    files follow each other by age.
    """
    if SEQUENCE_NUMBER.name not in table.column_names:
        return True
    numbers = to_numpy(combine_chunks([table[SEQUENCE_NUMBER.name]])[0])
    if (numbers[1:] > numbers[:-1]).all():
        return True
    starts = np.append(0, np.flatnonzero(~_mask_ascents(keys, len(numbers))) + 1)
    lowest, highest = np.minimum.reduceat(numbers, starts), np.maximum.reduceat(numbers, starts)
    return bool((lowest[1:] > highest[:-1]).all())


def _mask_ascents(keys: Sequence[KeyWord], rows: int) -> Mask:
    """Mark the rows with a larger key than the row before, from the second row on."""
    larger = np.zeros(rows - 1, dtype=np.bool_)
    for word in reversed(keys):
        larger = (word[1:] > word[:-1]) | ((word[1:] == word[:-1]) & larger)
    return larger


def get_row_kinds(table: pa.Table) -> npt.NDArray[np.int8]:
    """Return the row kind of each row; +I where the table has no row kinds."""
    if VALUE_KIND.name not in table.schema.names:
        return np.zeros(table.num_rows, dtype=np.int8)
    (kinds,) = combine_chunks([table[VALUE_KIND.name]])
    return to_numpy(kinds)


def mask_retracts(table: pa.Table) -> Mask:
    """Mark the rows that are -U or -D; none where the table has no row kinds."""
    if VALUE_KIND.name not in table.schema.names:
        return np.zeros(table.num_rows, dtype=np.bool_)
    values = get_row_kinds(table)
    mask: Mask = (values == 1) | (values == 3)
    return mask


def mark_key_starts(keys: Sequence[KeyWord], order: Rows) -> Mask:
    """Mark the positions of an order by key at which another key begins."""
    is_start = np.zeros(len(order), dtype=np.bool_)
    is_start[:1] = True
    for word in keys:
        ordered = word[order]
        is_start[1:] |= ordered[1:] != ordered[:-1]
    return is_start


def number_keys_in_order(order: Rows, is_start: Mask) -> Rows:
    """Return the number of each row's key, from 0 on, for rows ordered by key."""
    numbers = np.empty(len(order), dtype=np.int64)
    numbers[order] = np.cumsum(is_start) - 1
    return numbers


def restrict_groups(groups: Groups, keep: Mask) -> Groups:
    """Return the groups with the kept positions only; `singletons` describes the groups before."""
    number = groups.group_ids()[keep]
    present, starts = np.unique(number, return_index=True)
    return Groups(groups.order[keep], starts.astype(np.int64), groups.singletons[present])


def restrict_to_lookup(groups: Groups, table: pa.Table) -> Groups:
    """Return, for each key, the records of level 0 or less and those of its smallest higher level."""
    levels = to_numpy(combine_chunks([table[LEVEL.name]])[0]).astype(np.int64)[groups.order]
    if len(levels) == 0:
        return groups
    above = np.where(levels > 0, levels, np.iinfo(np.int64).max)
    smallest = np.minimum.reduceat(above, groups.starts)
    return restrict_groups(groups, (levels <= 0) | (levels == smallest[groups.group_ids()]))
