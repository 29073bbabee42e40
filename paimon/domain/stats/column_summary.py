"""Summarize a column over many batches: nulls, bounds, lengths, and the number of distinct values.

Invariant: summaries of parts, merged in any order, equal the summary of the whole; memory does not grow with the rows.
Source: `PaimonStatsUtils.computeColumnStats`, whose sketch is Spark's.
"""

# The number of distinct values is exact while the values themselves fit into `exact_bytes`. A sketch takes over from
# then on: HyperLogLog, which needs 16 KiB for any number of values.
#
#     hash of a value   10110010100110 | 000100110101110101      32 bits
#                       register 11430   first 1 at place 4
#
# Each of the 2^14 registers holds the highest place that its values had. A register in which place k was seen has
# about 2^k different values, so the harmonic mean over all registers estimates the number; the standard error is
# 1.04 / sqrt(2^14) = 0.8 %. Registers that are empty, and those at the last place, say less, and get weights of their
# own (O. Ertl, "New cardinality estimation algorithms for HyperLogLog sketches", 2017). The estimate is corrected for
# different values with the same hash. Two sketches are merged by the larger number of each register, so the order of
# batches, splits and tasks has no effect.
#
# The registers are kept from the first batch on, because the values that overflow are then not read again:
#
#     batch 1   values {a b c}      registers of a b c
#     batch 2   values {a … z}      registers of a … z          exact_bytes reached: the values are dropped
#     batch 3   -                   registers of all

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from attrs import define, field

from paimon.domain.columns.cast import cast_column
from paimon.domain.row.row_hash_columnar import hash_rows
from paimon.domain.row.values import to_array
from paimon.domain.stats.collect import collect_column_stats, combine_column_stats
from paimon.domain.stats.simple_stats import ColumnStats
from paimon.domain.stats.table_statistics import ColumnStatistics
from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import DataField, DataType

_INDEX_BITS = 14
_REGISTERS = 1 << _INDEX_BITS
_PLACES = 32 - _INDEX_BITS
_HASHES = float(1 << 32)
_LENGTHS: Mapping[type[DataType], int] = {
    dt.BooleanType: 1,
    dt.TinyIntType: 1,
    dt.SmallIntType: 2,
    dt.IntType: 4,
    dt.BigIntType: 8,
    dt.FloatType: 4,
    dt.DoubleType: 8,
    dt.DateType: 4,
    dt.TimeType: 4,
    dt.TimestampType: 8,
    dt.LocalZonedTimestampType: 8,
}
"""Bytes of a value, as Spark counts them; DECIMAL takes 8 up to 18 digits, and 16 above."""
_VARIABLE = (*dt.CHARACTER_TYPES, *dt.BYTES_TYPES)

Registers = npt.NDArray[np.uint8]


def can_be_summarized(data_type: DataType) -> bool:
    """Return whether ANALYZE can summarize columns of the type: all but nested values, VARIANT and BLOB."""
    return isinstance(data_type, (*_LENGTHS, *_VARIABLE, dt.DecimalType))


def _no_registers() -> Registers:
    return np.zeros(_REGISTERS, np.uint8)


@define(eq=False)
class ColumnSummary:
    """The summary of the batches of one column so far. A state machine, which can be pickled."""

    type: DataType
    # bytes of distinct values, of which twice as many are held; with more values, their number is an estimate
    exact_bytes: int
    _rows: int = 0
    _bounds: ColumnStats = field(factory=lambda: ColumnStats(null_count=0))
    _length_sum: int = 0
    _largest_length: int = 0
    _registers: Registers = field(factory=_no_registers)
    # distinct values in parts, which may repeat each other; None if they exceeded the memory
    _parts: list[pa.Array] | None = field(factory=list)

    @property
    def is_exact(self) -> bool:
        """Whether the number of distinct values is exact."""
        return self._parts is not None

    def add(self, array: pa.Array) -> None:
        """Add a batch: a canonical array of the type."""
        values = array.drop_null()
        self._rows += len(array)
        self._add_bounds(array)
        if isinstance(self.type, _VARIABLE) and len(values):
            lengths = pc.utf8_length(values) if isinstance(self.type, dt.CHARACTER_TYPES) else pc.binary_length(values)
            self._length_sum += pc.sum(lengths).as_py()
            self._largest_length = max(self._largest_length, pc.max(lengths).as_py())
        distinct = values.unique()
        _count_hashes(self._registers, hash_rows([distinct], [self.type]))
        self._add_values([distinct])

    def merge(self, other: ColumnSummary) -> None:
        """Add the batches of another summary of the same column."""
        self._rows += other._rows
        self._bounds = combine_column_stats(self._bounds, other._bounds, self.type)
        self._length_sum += other._length_sum
        self._largest_length = max(self._largest_length, other._largest_length)
        np.maximum(self._registers, other._registers, out=self._registers)
        self._add_values(other._parts)

    def _add_bounds(self, array: pa.Array) -> None:
        """Texts and bytes have no bounds, as in Java: they may be long."""
        nulls = ColumnStats(null_count=array.null_count)
        found = nulls if isinstance(self.type, _VARIABLE) else collect_column_stats(array, self.type)
        self._bounds = combine_column_stats(self._bounds, found, self.type)

    def _add_values(self, parts: list[pa.Array] | None) -> None:
        """Keep distinct values while they fit. Parts are joined only at twice the limit, so in linear time."""
        if self._parts is None or parts is None:
            self._parts = None
            return
        self._parts += parts
        if sum(part.nbytes for part in self._parts) > 2 * self.exact_bytes:
            whole = pa.concat_arrays(self._parts).unique()
            self._parts = [whole] if whole.nbytes <= self.exact_bytes else None

    def count_distinct(self) -> int:
        """Return the number of distinct values that are not null; an estimate unless `is_exact`."""
        if self._parts is not None:
            return len(pa.concat_arrays(self._parts).unique()) if self._parts else 0
        return min(_estimate_count(self._registers), self._rows - (self._bounds.null_count or 0))

    def to_statistics(self, column: DataField) -> ColumnStatistics:
        """Return what ANALYZE stores about the column."""
        values = self._rows - (self._bounds.null_count or 0)
        average, largest = self._measure_lengths(values)
        return ColumnStatistics(
            column.id,
            self.count_distinct(),
            _format_bound(self._bounds.minimum, self.type),
            _format_bound(self._bounds.maximum, self.type),
            self._bounds.null_count,
            average,
            largest,
        )

    def _measure_lengths(self, values: int) -> tuple[int | None, int | None]:
        if isinstance(self.type, _VARIABLE):
            return (-(-self._length_sum // values), self._largest_length) if values else (None, None)
        if isinstance(self.type, dt.DecimalType):
            size = 8 if self.type.precision <= 18 else 16
        else:
            size = _LENGTHS[type(self.type)]
        return size, size


def _format_bound(value: object, data_type: DataType) -> str | None:
    """Return a bound as Java stores it; dates and times as numbers."""
    if value is None:
        return None
    if isinstance(data_type, dt.DateType | dt.TimeType):
        return str(value)
    text: str = cast_column(to_array([value], data_type), data_type, dt.VarCharType())[0].as_py()
    return text


def _count_hashes(registers: Registers, hashes: npt.NDArray[np.int32]) -> None:
    """Raise each register to the place of the first 1 in the hashes that belong to it."""
    bits = hashes.view(np.uint32)
    index = (bits >> np.uint32(_PLACES)).astype(np.intp)
    rest = (bits & np.uint32((1 << _PLACES) - 1)).astype(np.float64)
    # the exponent of a number is the place of its highest bit; 0 has none
    places = (_PLACES + 1 - np.frexp(rest)[1]).astype(np.uint8)
    np.maximum.at(registers, index, places)


def _estimate_count(registers: Registers) -> int:
    """Estimate the number of values from the registers, without a bias for few or many values (Ertl 2017)."""
    counts = np.bincount(registers, minlength=_PLACES + 2).tolist()
    full, empty = counts[_PLACES + 1] / _REGISTERS, counts[0] / _REGISTERS
    total = _REGISTERS * _weigh_full(full)
    for count in reversed(counts[1 : _PLACES + 1]):
        total = 0.5 * (total + count)
    total += _REGISTERS * _weigh_empty(empty)
    raw = _REGISTERS**2 / (2 * math.log(2) * total)
    return round(-_HASHES * math.log1p(-min(raw, 0.999 * _HASHES) / _HASHES))


def _weigh_empty(share: float) -> float:
    """Return the sum of the share, its square, twice its 4th, four times its 8th power, and so on."""
    if share == 1:
        return math.inf
    total, previous, factor = share, -1.0, 1.0
    while total != previous:
        share *= share
        previous, total = total, total + share * factor
        factor *= 2
    return total


def _weigh_full(share: float) -> float:
    """Return the weight of the registers at the last place, whose values may have gone on."""
    if share in {0, 1}:
        return 0.0
    total, previous, factor = 1 - share, -1.0, 1.0
    while total != previous:
        share = math.sqrt(share)
        factor /= 2
        previous, total = total, total - (1 - share) ** 2 * factor
    return total / 3
