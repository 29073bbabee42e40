"""Which floating sequences a write buffer orders wholly: Java sorts it by the first bytes of key and sequence.

Law: those bytes tell NaN, as the largest, from every other number, and -0.0 from 0.0; columns that they do not reach
are compared by Java's operators, to which NaN equals everything and the zeros are one. Source: `SortCodeGenerator`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import DataField, DataType

_WIDTHS: dict[type[DataType], int] = {
    dt.BooleanType: 1, dt.TinyIntType: 1, dt.SmallIntType: 2, dt.IntType: 4, dt.BigIntType: 8, dt.FloatType: 4,
    dt.DoubleType: 8, dt.DateType: 4, dt.TimeType: 4,
}  # fmt: skip
_TEXTS = (dt.CharType, dt.VarCharType, dt.BinaryType, dt.VarBinaryType)
_FLOATS = (dt.FloatType, dt.DoubleType)
_ENDLESS = 1 << 31
_FITTING = 18
"""Sort keys up to here are held whole."""
_HELD = 16
_TELLING = 2
"""A byte for null and one of the number tell a NaN from all but infinity and numbers near it, which one more would."""


def wholly_ordered(keys: Sequence[DataField], sequences: Sequence[DataField]) -> frozenset[str]:
    """The names of the floating columns among `sequences`, which follow the keys, that are ordered wholly."""
    fields = (*keys, *sequences)
    widths = list(_reached([*fields, DataField(0, "", dt.BigIntType())]))
    held = sum(widths) if sum(widths) <= _FITTING else min(_HELD, 8 * len(widths))
    starts = [sum(widths[:place]) for place in range(len(widths))]
    reached = {f.name: held - start for f, start in zip(fields, starts, strict=False)}
    return frozenset(f.name for f in sequences if isinstance(f.type, _FLOATS) and reached.get(f.name, 0) >= _TELLING)


def _reached(fields: Sequence[DataField]) -> Iterator[int]:
    """The bytes of each column in a sort key, a byte for null among them, up to one that ends it."""
    for field in fields:
        width = _width(field.type)
        if width is None:
            return
        yield width + 1
        if width == _ENDLESS:
            return


def _width(kind: DataType) -> int | None:
    if isinstance(kind, _TEXTS):
        return _ENDLESS
    if isinstance(kind, dt.DecimalType):
        return 8 if kind.precision <= 18 else None
    if isinstance(kind, dt.TimestampType):
        return 8 if kind.precision <= 3 else None
    return _WIDTHS.get(type(kind))
