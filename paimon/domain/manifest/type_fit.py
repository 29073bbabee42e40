"""Whether the values of a column still mean the same under another type, as far as types and statistics show it.

A change of a type rewrites no file. Files keep their values, and each read casts them, as Java casts them: a BIGINT of
3e9 reads as -1294967296 under INT, and the text 'abc' ends the read. Compaction then makes such a loss permanent. So
before the type of a column changes, each live file must prove that it loses nothing:

    file written under BIGINT     bounds of `id`        INT holds both bounds, so all values: proven
    data-1.parquet                1 … 40
    data-2.parquet                7 … 3000000000        3000000000 does not fit: refused, with file and value
    data-3.parquet                unknown               refused, because it is not proven

Three proofs exist, from the cheapest to the last resort:

1. The types alone: each INT is a BIGINT. `holds_all` tries the smallest and the largest value of the old type.
2. The bounds: casts between ordered types keep everything between two values that they keep. This holds for whole
   numbers, digits and ranges of times, not for fractions: between 1.0 and 2.0 is 1.5, which INT does not hold.
3. One value: if both bounds are the same, the file has this value alone, and it is cast to see what remains.

Invariant: a value that is not proven to remain counts as lost. A null remains null, and a file of nulls loses nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

from attrs import frozen

from paimon.domain.columns.cast import cast_column
from paimon.domain.errors import PaimonError
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.row.values import to_array, to_values
from paimon.domain.stats.simple_stats import ColumnStats, from_simple_stats
from paimon.domain.types import data_types as dt
from paimon.domain.types.casting import can_cast, has_same_text
from paimon.domain.types.data_types import MAX_LENGTH, DataField, DataType
from paimon.domain.types.system_columns import SYSTEM_FIELDS
from paimon.domain.types.type_text import format_type

_INTEGER_BITS = {dt.TinyIntType: 8, dt.SmallIntType: 16, dt.IntType: 32, dt.BigIntType: 64}
_EXACT_WHOLES = {dt.FloatType: 2**24, dt.DoubleType: 2**53}
_EXACT_DIGITS = {dt.FloatType: 6, dt.DoubleType: 15}
"""Decimals of so many digits differ as floats, too, and print as they were."""
_TEXT_LENGTHS = {dt.BooleanType: 5, dt.FloatType: 16, dt.DoubleType: 25}
_NANOS = 1_000_000_000
_NANOS_PER_DAY = 86_400 * _NANOS
_FAR = 2**63
_FIRST_TIME, _END_OF_TIMES = -719_528 * _NANOS_PER_DAY, 2_932_897 * _NANOS_PER_DAY
"""The years 0 to 9999: texts have four characters for a year."""
_NUMBERS = (*dt.INTEGER_TYPES, dt.FloatType, dt.DoubleType, dt.DecimalType)


@frozen
class TypeChange:
    """A column with two types: the one of a file, and the one that its values are read with."""

    name: str
    stored: DataType
    wanted: DataType
    position: int
    """The position among the columns of the file's schema."""


@frozen
class UnsafeCast:
    """A change of a column's type that loses values of a file, or may lose some."""

    file_name: str
    change: TypeChange
    # the text of the bound that does not fit; None if the statistics only do not prove that all values fit
    bound: str | None

    def describe(self) -> str:
        """Return the problem as the end of a sentence."""
        stored = format_type(self.change.stored.with_nullable(True))
        if self.bound is None:
            return f"the statistics of file {self.file_name!r} do not prove that each {stored} fits"
        return f"file {self.file_name!r} has the {stored} {self.bound}"


def find_type_changes(written: Sequence[DataField], current: Sequence[DataField]) -> tuple[TypeChange, ...]:
    """Return the columns, matched by id, whose current type does not hold every value of the type in a file."""
    types = {f.id: f.type for f in current}
    return tuple(
        TypeChange(f.name, f.type, types[f.id], position)
        for position, f in enumerate(written)
        if f.id in types and not holds_all(f.type, types[f.id])
    )


def find_wider_types(
    columns: Sequence[DataField], given: Sequence[DataField], allows_casts: bool
) -> dict[str, DataType]:
    """Return the types of data that hold every value of the column of the same name, and more.

    They are numbers for columns of numbers; with `allows_casts`, also other types, such as texts, and floating numbers
    for decimals. Lengths of texts and digits of times do not count, because engines have one type for them.
    """
    stored = {f.name: f.type for f in columns}
    return {f.name: f.type for f in given if f.name in stored and _is_wider(stored[f.name], f.type, allows_casts)}


def _is_wider(stored: DataType, given: DataType, allows_casts: bool) -> bool:
    is_exact = isinstance(stored, dt.DecimalType) and not isinstance(given, dt.DecimalType)
    is_numeric = isinstance(stored, _NUMBERS) and isinstance(given, _NUMBERS) and not is_exact
    families = (dt.CHARACTER_TYPES, dt.BYTES_TYPES, dt.TIMESTAMP_TYPES, dt.NESTED_TYPES, (dt.TimeType,))
    if any(isinstance(stored, f) and isinstance(given, f) for f in families) or has_same_text(stored, given):
        return False
    return (is_numeric or (allows_casts and can_cast(stored, given))) and holds_all(stored, given)


def find_unsafe_cast(
    file: DataFileMeta, written: Sequence[DataField], changes: Iterable[TypeChange]
) -> UnsafeCast | None:
    """Return the first column of a file whose values are not proven to fit; None if all fit."""
    by_name = _read_stats(file, written)
    for change in changes:
        if file.row_count == 0 or (file.write_cols is not None and change.name not in file.write_cols):
            continue
        stats = by_name.get(change.name, ColumnStats())
        if stats.null_count == file.row_count:
            continue
        if stats.minimum is None or stats.maximum is None:
            return UnsafeCast(file.file_name, change, None)
        if not holds_between(change.stored, change.wanted, stats.minimum, stats.maximum):
            return UnsafeCast(file.file_name, change, _find_bad_bound(change, stats))
    return None


def _read_stats(file: DataFileMeta, written: Sequence[DataField]) -> dict[str, ColumnStats]:
    """Return the statistics of a file by the names of its own schema."""
    by_name = {f.name: f for f in (*written, *SYSTEM_FIELDS)}
    names = file.value_stats_cols if file.value_stats_cols is not None else file.write_cols
    stored = list(written) if names is None else [by_name[n] for n in names if n in by_name]
    if names is not None and len(stored) < len(names):
        return {}  # the types of the statistics are not known
    found = from_simple_stats(file.value_stats, [f.type for f in stored])
    return {f.name: stats for f, stats in zip(stored, found, strict=False)}


def _find_bad_bound(change: TypeChange, stats: ColumnStats) -> str | None:
    """Return a bound that is a value of the file for certain, or that no value between fits either."""
    is_one = bool(stats.minimum == stats.maximum)
    if not is_one and not (_is_ordered(change.stored) and _is_ordered(change.wanted)):
        return None
    for bound in (stats.minimum, stats.maximum):
        if not holds_between(change.stored, change.wanted, bound, bound):
            return _format_bound(bound, change.stored)
    return None


def _is_ordered(data_type: DataType) -> bool:
    return isinstance(data_type, (*_NUMBERS, dt.DateType, *dt.TIMESTAMP_TYPES))


def _format_bound(bound: Any, data_type: DataType) -> str:
    try:
        (text,) = to_values(cast_column(to_array([bound], data_type), data_type, dt.VarCharType()), dt.VarCharType())
    except PaimonError:
        return str(bound)
    return repr(text) if isinstance(data_type, dt.CHARACTER_TYPES) else str(text)


def holds_all(stored: DataType, wanted: DataType) -> bool:
    """Return whether a type holds every value of another one, unchanged; nullability does not matter."""
    if has_same_text(stored, wanted):
        return True
    match stored, wanted:
        case dt.RowType(), dt.RowType():
            types = {f.id: f.type for f in wanted.fields}
            return all(holds_all(f.type, types[f.id]) for f in stored.fields if f.id in types)
        case dt.ArrayType(), dt.ArrayType():
            return holds_all(stored.element, wanted.element)
        case dt.MultisetType(), dt.MultisetType():
            return holds_all(stored.element, wanted.element)
        case dt.VectorType(), dt.VectorType():
            return stored.length == wanted.length and holds_all(stored.element, wanted.element)
        case dt.MapType(), dt.MapType():
            return holds_all(stored.key, wanted.key) and holds_all(stored.value, wanted.value)
    if isinstance(stored, (*dt.NESTED_TYPES, dt.VariantType)) or isinstance(wanted, (*dt.NESTED_TYPES, dt.VariantType)):
        return False
    low, high = _find_extremes(stored)
    return _holds_range(stored, wanted, low, high)


def holds_between(stored: DataType, wanted: DataType, low: Any, high: Any) -> bool:
    """Return whether a type holds every value of another one between two internal values, unchanged."""
    if holds_all(stored, wanted) or _holds_range(stored, wanted, low, high):
        return True
    return bool(low == high) and _holds_value(stored, wanted, low)


def _find_extremes(data_type: DataType) -> tuple[Any, Any]:
    """Return the smallest and the largest value of a type; None where the rules need none."""
    match data_type:
        case _ if type(data_type) in _INTEGER_BITS:
            half = 1 << (_INTEGER_BITS[type(data_type)] - 1)
            return -half, half - 1
        case dt.DecimalType(precision=precision, scale=scale):
            largest = Decimal((0, (9,) * precision, -scale))
            return largest.copy_negate(), largest
        case dt.TimestampType(precision=p) | dt.LocalZonedTimestampType(precision=p):
            unit = 1 if p > 6 else 1_000 if p > 3 else 1_000_000
            return -_FAR * unit, (_FAR - 1) * unit
        case dt.DateType():
            return -(2**31), 2**31 - 1
    return None, None


def _holds_range(stored: DataType, wanted: DataType, low: Any, high: Any) -> bool:
    """Return whether the cast of a range is known to keep its values, whichever they are."""
    match wanted:
        case _ if isinstance(wanted, _NUMBERS):
            return _holds_numbers(stored, wanted, low, high)
        case dt.BooleanType():
            return isinstance(stored, dt.INTEGER_TYPES) and 0 <= low <= high <= 1
        case dt.CharType() | dt.VarCharType():
            return _holds_texts(stored, wanted, low, high)
        case dt.VarBinaryType(length=length):
            if isinstance(stored, dt.BYTES_TYPES):
                return bool(stored.length <= length)
            return isinstance(stored, dt.CHARACTER_TYPES) and (length == MAX_LENGTH or 4 * stored.length <= length)
        case dt.TimestampType() | dt.LocalZonedTimestampType():
            return _holds_times(stored, wanted, low, high)
    return False


def _holds_numbers(stored: DataType, wanted: DataType, low: Any, high: Any) -> bool:
    if isinstance(stored, dt.BooleanType):
        return not isinstance(wanted, dt.DecimalType) or wanted.precision > wanted.scale
    if (
        isinstance(stored, dt.TIMESTAMP_TYPES)
        and stored.precision == 0
        and isinstance(wanted, dt.IntType | dt.BigIntType)
    ):
        return _holds_numbers(dt.BigIntType(), wanted, low // _NANOS, high // _NANOS)
    if isinstance(stored, dt.FloatType):
        return isinstance(wanted, dt.DoubleType)
    if not isinstance(stored, (*dt.INTEGER_TYPES, dt.DecimalType)):
        return False
    scale = stored.scale if isinstance(stored, dt.DecimalType) else 0
    largest = max(Decimal(low).copy_abs(), Decimal(high).copy_abs())  # abs rounds to the precision of the thread
    match wanted:
        case dt.DecimalType():
            return scale <= wanted.scale and largest < Decimal(f"1e{wanted.precision - wanted.scale}")
        case dt.FloatType() | dt.DoubleType():
            whole = _EXACT_WHOLES[type(wanted)]
            digits = Decimal(f"1e{_EXACT_DIGITS[type(wanted)] - scale}")
            return bool(largest <= whole if scale == 0 else largest < digits)
    half = 1 << (_INTEGER_BITS[type(wanted)] - 1)
    return scale == 0 and -half <= low <= high < half


def _holds_texts(stored: DataType, wanted: dt.CharType | dt.VarCharType, low: Any, high: Any) -> bool:
    if isinstance(stored, dt.CHARACTER_TYPES):
        return stored.length <= wanted.length and (
            isinstance(stored, dt.CharType) or isinstance(wanted, dt.VarCharType)
        )
    if isinstance(stored, (*dt.BYTES_TYPES, *dt.NESTED_TYPES, dt.BlobType, dt.VariantType)):
        return False
    if isinstance(stored, (dt.DateType, *dt.TIMESTAMP_TYPES)):
        return bool(_count_nanos(stored, low) >= _FIRST_TIME and _count_nanos(stored, high) < _END_OF_TIMES)
    if wanted.length == MAX_LENGTH:
        return True
    if isinstance(stored, (*dt.INTEGER_TYPES, dt.DecimalType)):
        return max(len(f"{value:f}" if isinstance(value, Decimal) else str(value)) for value in (low, high)) <= (
            wanted.length
        )
    return _TEXT_LENGTHS.get(type(stored), MAX_LENGTH) <= wanted.length


def _holds_times(stored: DataType, wanted: dt.TimestampType | dt.LocalZonedTimestampType, low: Any, high: Any) -> bool:
    """Return whether all digits remain, and whether memory can represent the times (see `types.time_range`)."""
    match stored:
        case dt.TimestampType(precision=p) | dt.LocalZonedTimestampType(precision=p):
            return p <= wanted.precision and (wanted.precision <= 6 or (low >= -_FAR and high < _FAR))
        case dt.DateType():
            return wanted.precision <= 6 or (low * _NANOS_PER_DAY >= -_FAR and high * _NANOS_PER_DAY < _FAR)
        case dt.TimeType(precision=p):
            return min(p, 3) <= wanted.precision
        case dt.IntType() | dt.BigIntType():
            unit = 1 if wanted.precision > 6 else 1_000 if wanted.precision > 3 else 1_000_000
            return bool(low * _NANOS >= -_FAR * unit and high * _NANOS < _FAR * unit)
    return False


def _holds_value(stored: DataType, wanted: DataType, value: Any) -> bool:
    """Return whether the cast of a single value keeps it; texts become numbers only."""
    try:
        (made,) = to_values(cast_column(to_array([value], stored), stored, wanted), wanted)
    except PaimonError:
        return False
    if made is None:
        return False
    if isinstance(stored, _NUMBERS) and isinstance(wanted, _NUMBERS):
        return bool(Decimal(made) == Decimal(value))
    if isinstance(stored, dt.CHARACTER_TYPES):
        return _is_same_text(value, made, wanted)
    return bool(_count_nanos(stored, value) == _count_nanos(wanted, made) is not None)


def _is_same_text(text: str, made: Any, wanted: DataType) -> bool:
    if isinstance(wanted, _NUMBERS):
        try:
            return bool(Decimal(text) == Decimal(made))
        except ArithmeticError:
            return False
    return isinstance(wanted, dt.CHARACTER_TYPES) and bool(made == text)


def _count_nanos(data_type: DataType, value: Any) -> Any:
    """Return a time in nanoseconds since 1970; None for other types."""
    match data_type:
        case dt.TimestampType() | dt.LocalZonedTimestampType():
            return value
        case dt.DateType():
            return value * _NANOS_PER_DAY
        case dt.TimeType():
            return value * 1_000_000
        case dt.IntType() | dt.BigIntType():
            return value * _NANOS
    return None
