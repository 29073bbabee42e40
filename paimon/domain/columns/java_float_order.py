"""Order FLOAT and DOUBLE values as Java does, where Arrow, numpy and Python order NaN and the two zeros differently.

Java has two orders. The *total order* (`Double.compare`) puts -0.0 below 0.0 and NaN above all values, and treats all
NaN as equal. It applies to keys, statistics, predicates and aggregates. The *operator order* (`<`, `>`) treats the
zeros as equal, and a NaN as equal to every value. It applies to user sequences, so the winner of a merge depends on
which records are compared. `docs/decisions/java-float-order.md` gives the reasons and the cost.

Invariant: no other module of the domain defines an order of NaN or of signed zeros. A reference and its columnar
function use different functions of this module.

Source: `Double.compare`, `InternalRowUtils.compare`, `UserDefinedSeqComparator`, `LoserTree`, `SortCodeGenerator`,
`PartialUpdateMergeFunction`.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen

from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import DataField, DataType
from paimon.domain.types.system_columns import KEY_PREFIX, SEQUENCE_NUMBER, VALUE_KIND

Rows = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.floating[Any]]
Ordinals = npt.NDArray[np.signedinteger[Any]]

FLOAT_TYPES = (dt.FloatType, dt.DoubleType)

# The total order, value by value.

NEGATIVE_ZERO_ORDINAL = -1
"""`to_float_ordinal(-0.0)`."""
POSITIVE_ZERO_ORDINAL = 0
"""`to_float_ordinal(0.0)`."""
NAN_ORDINAL = 0x7FF8_0000_0000_0000
"""`to_float_ordinal` of every NaN: the largest ordinal of a DOUBLE."""


def compare_values(a: Any, b: Any) -> int:
    """Compare two internal values of one type: null first, floats in the total order, others in their natural order."""
    if a is None or b is None:
        return (a is not None) - (b is not None)
    if isinstance(a, float):
        return _compare_floats(a, b)
    return int(a > b) - int(a < b)


def _compare_floats(a: float, b: float) -> int:
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) - math.isnan(b)
    if a == b == 0.0:
        return int(math.copysign(1, a) - math.copysign(1, b)) // 2
    return (a > b) - (a < b)


def to_float_ordinal(value: float) -> int:
    """Return a 64-bit integer with the total order of the value; equals an element of `to_float_ordinals`."""
    if value != value:
        return NAN_ORDINAL
    bits: int = struct.unpack(">q", struct.pack(">d", value))[0]
    return bits if bits >= 0 else -(bits & 0x7FFF_FFFF_FFFF_FFFF) - 1


def to_float_sort_key(value: float) -> tuple[bool, float, bool]:
    """Return a tuple that Python compares as the value compares in the total order."""
    is_nan = math.isnan(value)
    return is_nan, 0.0 if is_nan else value, not is_nan and math.copysign(1.0, value) > 0


# The total order, column by column.


def to_float_ordinals(values: Floats) -> Ordinals:
    """Return integers, as wide as the floats, that compare as the floats do in the total order; all NaN are equal."""
    width = values.dtype.itemsize * 8
    integer = np.int32 if width == 32 else np.int64
    canonical = np.where(np.isnan(values), np.array(np.nan, values.dtype), values)
    return _flip_negative(canonical.view(integer))


def from_float_ordinals(ordinals: Ordinals) -> Floats:
    """Return the floats of ordinals, as wide as they are; the inverse of `to_float_ordinals`."""
    floating = np.float32 if ordinals.dtype.itemsize == 4 else np.float64
    floats: Floats = _flip_negative(ordinals).view(floating)
    return floats


def _flip_negative(bits: Ordinals) -> Ordinals:
    """Invert all bits but the sign of negative numbers; twice gives the same numbers again."""
    sign = np.right_shift(bits, bits.dtype.itemsize * 8 - 1)
    flipped: Ordinals = np.bitwise_xor(bits, np.bitwise_and(sign, np.iinfo(bits.dtype).max))
    return flipped


def to_ordinal_array(array: pa.Array) -> pa.Array:
    """Return the ordinals of an Arrow array of FLOAT or DOUBLE as int32 or int64; nulls stay null."""
    integer = pa.int32() if pa.types.is_float32(array.type) else pa.int64()
    buffers = array.buffers()
    dtype = np.float32 if pa.types.is_float32(array.type) else np.float64
    raw: Floats = np.frombuffer(buffers[1], dtype)
    ordinals = to_float_ordinals(raw[array.offset : array.offset + len(array)])
    if array.null_count == 0:
        return pa.array(ordinals, integer)
    return pa.array(ordinals, integer, mask=np.asarray(array.is_null()))


def unify_nans(column: pa.Array) -> pa.Array:
    """Replace every NaN by the same NaN, so that equal values have equal bits; other types are returned unchanged."""
    if not pa.types.is_floating(column.type):
        return column
    return pc.if_else(pc.is_nan(column), pa.scalar(float("nan"), column.type), column)


def find_float_bounds(values: Floats) -> tuple[float, float]:
    """Return the smallest and the largest of at least one value in the total order, nulls excluded."""
    numbers = values[~np.isnan(values)]
    if len(numbers) == 0:
        return math.nan, math.nan
    low, high = float(numbers.min()), float(numbers.max())
    is_negative = np.signbit(numbers[numbers == 0]) if 0.0 in (low, high) else np.empty(0, bool)
    if low == 0:
        low = -0.0 if is_negative.any() else 0.0
    if high == 0:
        high = -0.0 if is_negative.all() else 0.0
    return low, high if len(numbers) == len(values) else math.nan


# The operator order.


def compare_by_operators(a: Any, b: Any) -> int:
    """Compare user sequences by Java's operators (null first, NaN equal to all): -1, 0, 1. Not transitive."""
    if a is None or b is None:
        return (a is not None) - (b is not None)
    return int(a > b) - int(a < b)


def is_larger_sequence(a: Sequence[Any], b: Sequence[Any], descending: bool) -> bool:
    """Return whether a user sequence is larger than another one in the operator order; False if they are equal.

    Null is the smallest value in both directions. With `descending`, the smaller of two other values counts as the
    larger one.
    """
    for left, right in zip(a, b, strict=True):
        if left is None or right is None:
            if left is not right:
                return left is not None
        elif left < right or left > right:
            return bool(left < right if descending else left > right)
    return False


def unify_zeros(column: pa.Array) -> pa.Array:
    """Replace -0.0 by 0.0, which the operators treat as equal; other types are returned unchanged."""
    return pc.add(column, pa.scalar(0.0, column.type)) if pa.types.is_floating(column.type) else column


def mask_nan_rows(columns: Sequence[pa.Array], row_count: int) -> Mask | None:
    """Mark the rows that have a NaN in one of the columns; None where no row has one."""
    mask = np.zeros(row_count, dtype=np.bool_)
    for column in columns:
        if pa.types.is_floating(column.type):
            mask |= np.asarray(pc.is_nan(column).fill_null(False))
    return mask if mask.any() else None


# Records of one key, some of which have a NaN in their user sequence. A NaN equals every value, so no sort finds the
# order. Such keys are few, so their records are ordered one by one.

RUN = f"{KEY_PREFIX}#run"
"""The column with the node of a record's run in the tree that merges runs: the number of the run plus the number of
runs, so that half of it is the node where the run meets its neighbour. No column of a table has such a name."""


@frozen
class SequenceOrder:
    """How user sequences order the records of one key."""

    # the sequence fields, most significant first
    fields: tuple[str, ...] = ()
    # the smallest user sequence wins
    descending: bool = False
    # a retract precedes an add with an equal user sequence, whichever was written first
    retracts_first: bool = False
    # the floating fields in the total order; the others are in the operator order
    totally_ordered: frozenset[str] = frozenset()


def order_groups_with_nans(
    order: Rows, starts: Rows, nans: Mask, table: pa.Table, sequence_order: SequenceOrder
) -> Rows:
    """Reorder the records of the keys that have a NaN in a user sequence; return a copy of `order`.

    A record follows all records with a smaller sequence number, but precedes those with a larger user sequence. Records
    of sorted runs follow each other as a loser tree over the runs returns them. `order` holds row numbers, key after
    key; `starts` are the beginnings of the keys in it. `table` has the sequence fields, and may have system columns and
    `RUN`.
    """
    ordered = order.copy()
    ends = np.append(starts, len(order))[1:]
    for group in np.flatnonzero(np.logical_or.reduceat(nans[order], starts)).tolist():
        own = slice(int(starts[group]), int(ends[group]))
        rows = np.sort(order[own])
        records = _read_key_records(table.take(pa.array(rows)), sequence_order)
        ordered[own] = rows[
            _sort_by_insertion(records) if records.nodes is None else _sort_by_loser_tree(records, records.nodes)
        ]
    return ordered


class _KeyRecords(NamedTuple):
    """The records of one key by their position: user sequences, ages, and nodes of their runs (None: no runs)."""

    sequences: list[tuple[Any, ...]]
    ages: list[tuple[int, int]]
    nodes: list[int] | None
    descending: bool

    def is_before(self, a: int, b: int) -> bool:
        """Return whether record `a` precedes record `b` where only these two are compared."""
        if is_larger_sequence(self.sequences[a], self.sequences[b], self.descending):
            return False
        is_smaller = is_larger_sequence(self.sequences[b], self.sequences[a], self.descending)
        return is_smaller or (self.ages[a], a) < (self.ages[b], b)


def _read_key_records(table: pa.Table, sequence_order: SequenceOrder) -> _KeyRecords:
    names, rows = table.column_names, table.num_rows
    numbers = table[SEQUENCE_NUMBER.name].to_pylist() if SEQUENCE_NUMBER.name in names else [0] * rows
    kinds = table[VALUE_KIND.name].to_pylist() if VALUE_KIND.name in names else [0] * rows
    nodes = table[RUN].to_pylist() if RUN in names else []
    return _KeyRecords(
        list(zip(*(_read_sequence_values(table, name, sequence_order) for name in sequence_order.fields), strict=True)),
        [_to_age(number, kind in (0, 2), sequence_order) for number, kind in zip(numbers, kinds, strict=True)],
        nodes if nodes and len(set(nodes)) == rows else None,
        sequence_order.descending,
    )


def _read_sequence_values(table: pa.Table, name: str, sequence_order: SequenceOrder) -> list[Any]:
    values: list[Any] = table[name].to_pylist()
    if name not in sequence_order.totally_ordered:
        return values
    return [None if value is None else to_float_ordinal(value) for value in values]


def _to_age(number: int, is_add: bool, sequence_order: SequenceOrder) -> tuple[int, int]:
    return (is_add, number) if sequence_order.retracts_first else (number, is_add)


def _sort_by_insertion(records: _KeyRecords) -> list[int]:
    """Insert one record after the other, the oldest first, in front of those with a larger user sequence."""
    ordered: list[int] = []
    for row in sorted(range(len(records.ages)), key=lambda r: records.ages[r]):
        place = len(ordered)
        while place and is_larger_sequence(
            records.sequences[ordered[place - 1]], records.sequences[row], records.descending
        ):
            place -= 1
        ordered.insert(place, row)
    return ordered


def _sort_by_loser_tree(records: _KeyRecords, nodes: Sequence[int]) -> list[int]:
    """Return records as a loser tree of sorted runs does: the next one wins a tournament of the remaining records."""
    remaining = dict(zip(nodes, range(len(nodes)), strict=True))
    ordered: list[int] = []
    while remaining:
        slots = dict(remaining)
        while len(slots) > 1:
            node = max(slots)
            row = slots.pop(node)
            other = slots.get(node // 2)
            slots[node // 2] = row if other is None or records.is_before(row, other) else other
        (first,) = slots.values()
        ordered.append(first)
        del remaining[nodes[first]]
    return ordered


class NanKey(NamedTuple):
    """A key with a NaN in a sequence group: group id, positions of its records, and their sequences."""

    number: int
    places: Rows
    sequences: list[tuple[Any, ...]]

    def mask_in_order(self, removed: Sequence[bool] | Mask) -> Mask:
        """Mark the records that are in order in the sequence group.

        A record is in order unless the sequence that the group holds is larger. The group holds the sequence of the
        last record in order, or of a record that removed the row.
        """
        in_order = np.zeros(len(self.sequences), dtype=np.bool_)
        held: tuple[Any, ...] | None = None
        for place, values in enumerate(self.sequences):
            has_sequence = any(value is not None for value in values)
            in_order[place] = has_sequence and (held is None or not is_larger_sequence(held, values, descending=False))
            if in_order[place] or removed[place]:
                held = values
        return in_order


def find_nan_keys(columns: Sequence[pa.Array], nans: Mask, group_ids: Rows, rows: Rows) -> list[NanKey]:
    """Find the keys with a NaN in a group's sequence field, by ascending group id; all in merge order."""
    keys = np.unique(group_ids[nans[rows]])
    places = np.flatnonzero(np.isin(group_ids, keys))
    places = places[np.argsort(group_ids[places], kind="stable")]
    sequences = list(zip(*(c.take(pa.array(rows[places])).to_pylist() for c in columns), strict=True))
    bounds = [*np.searchsorted(group_ids[places], keys).tolist(), len(places)]
    return [
        NanKey(int(key), places[start:end], sequences[start:end])
        for key, start, end in zip(keys.tolist(), bounds, bounds[1:], strict=False)
    ]


# The write buffer of Java sorts by the first bytes of key and sequence. Those bytes follow the total order. Columns
# that they do not reach are compared by the operators.

_WIDTHS: dict[type[DataType], int] = {
    dt.BooleanType: 1, dt.TinyIntType: 1, dt.SmallIntType: 2, dt.IntType: 4, dt.BigIntType: 8, dt.FloatType: 4,
    dt.DoubleType: 8, dt.DateType: 4, dt.TimeType: 4,
}  # fmt: skip
_TEXTS = (dt.CharType, dt.VarCharType, dt.BinaryType, dt.VarBinaryType)
_UNBOUNDED_WIDTH = 1 << 31
_WHOLE_KEY_BYTES = 18
"""Sort keys of up to so many bytes are stored completely."""
_PREFIX_BYTES = 16
"""So many bytes are stored of longer sort keys."""
_DECISIVE_BYTES = 2
"""A byte for null and one byte of the number separate NaN from all numbers except infinity and numbers close to it."""


def find_totally_ordered_floats(keys: Sequence[DataField], sequences: Sequence[DataField]) -> frozenset[str]:
    """Return the names of the floating sequence fields that a write buffer sorts in the total order.

    The columns are those that the sort key reaches: it consists of the key columns, then the sequence fields.
    """
    fields = (*keys, *sequences)
    widths = list(_list_sort_key_widths([*fields, DataField(0, "", dt.BigIntType())]))
    stored = sum(widths) if sum(widths) <= _WHOLE_KEY_BYTES else min(_PREFIX_BYTES, 8 * len(widths))
    starts = [sum(widths[:place]) for place in range(len(widths))]
    reached = {f.name: stored - start for f, start in zip(fields, starts, strict=False)}
    floats = (f for f in sequences if isinstance(f.type, FLOAT_TYPES))
    return frozenset(f.name for f in floats if reached.get(f.name, 0) >= _DECISIVE_BYTES)


def _list_sort_key_widths(fields: Sequence[DataField]) -> Iterator[int]:
    """Yield the bytes of each column in a sort key, the null byte included, up to a column that ends the sort key."""
    for field in fields:
        width = _get_width(field.type)
        if width is None:
            return
        yield width + 1
        if width == _UNBOUNDED_WIDTH:
            return


def _get_width(data_type: DataType) -> int | None:
    if isinstance(data_type, _TEXTS):
        return _UNBOUNDED_WIDTH
    if isinstance(data_type, dt.DecimalType):
        return 8 if data_type.precision <= 18 else None
    if isinstance(data_type, dt.TimestampType):
        return 8 if data_type.precision <= 3 else None
    return _WIDTHS.get(type(data_type))
