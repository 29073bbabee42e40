"""Strategies for data types and columns.

Law: every drawn type can be written by Java 1.4 in the formats named; without a format, in Parquet.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from hypothesis import strategies as st

from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import MAX_LENGTH, DataField, DataType
from paimon.domain.types.ids import assign_ids

_ODD_NAMES = ("a b", "Größe", "列", "x.y", "SELECT", "k=v", "100%", "tick`s", "quote's", "a/b", "_hidden")
_lengths = st.integers(1, 12) | st.sampled_from([255, 4000, MAX_LENGTH])


@cache  # building strategies costs more than drawing from them
def atomic_types(file_format: str | None = None, nullable: bool | None = None) -> st.SearchStrategy[DataType]:
    """Types without parts; `file_format` leaves out what that format cannot hold, `nullable` None draws both."""
    finest = 6 if file_format == "avro" else 9
    plain: list[DataType] = [
        dt.BooleanType(),
        dt.TinyIntType(),
        dt.SmallIntType(),
        dt.IntType(),
        dt.BigIntType(),
        dt.FloatType(),
        dt.DoubleType(),
        dt.DateType(),
    ]
    kinds: st.SearchStrategy[DataType] = st.one_of(
        st.sampled_from(plain),
        _decimals(),
        st.builds(dt.CharType, st.integers(1, 12)),
        st.builds(dt.VarCharType, _lengths),
        st.builds(dt.BinaryType, st.integers(1, 12)),
        st.builds(dt.VarBinaryType, _lengths),
        st.builds(dt.TimeType, st.integers(0, 3)),
        st.builds(dt.TimestampType, st.integers(0, finest)),
        st.builds(dt.LocalZonedTimestampType, st.integers(0, finest)),
    )
    return _with_nullability(kinds, nullable)


@st.composite
def _decimals(draw: st.DrawFn) -> DataType:
    precision = draw(st.integers(1, 38))
    return dt.DecimalType(precision, draw(st.integers(0, precision)))


@st.composite
def _with_nullability(
    draw: st.DrawFn, kinds: st.SearchStrategy[DataType], nullable: bool | None
) -> DataType:
    chosen = draw(st.booleans()) if nullable is None else nullable
    return draw(kinds).with_nullable(chosen)


@cache
def key_types(file_format: str | None = None) -> st.SearchStrategy[DataType]:
    """Types of primary keys, partition columns and map keys: atomic, NOT NULL, no floating numbers."""
    floating = (dt.FloatType, dt.DoubleType)
    return atomic_types(file_format, nullable=False).filter(lambda t: not isinstance(t, floating))


@cache
def data_types(
    file_format: str | None = None, *, max_depth: int = 2, nullable: bool | None = None
) -> st.SearchStrategy[DataType]:
    """Any type, nested up to `max_depth` levels (0: atomic ones alone); nested fields are numbered from 0."""
    kinds = atomic_types(file_format)
    for _ in range(max_depth):
        kinds = st.one_of(atomic_types(file_format), _nested_types(kinds, file_format))
    return _with_nullability(kinds, nullable).map(_numbered)


def _numbered(data_type: DataType) -> DataType:
    return assign_ids((DataField(0, "", data_type),), start=-1)[0][0].type


def _nested_types(parts: st.SearchStrategy[DataType], file_format: str | None) -> st.SearchStrategy[DataType]:
    keys = key_types(file_format).map(lambda t: t.with_nullable(True))
    elements: st.SearchStrategy[DataType] = st.just(dt.VarCharType()) if file_format == "avro" else keys
    named = st.lists(st.tuples(column_names(), parts), min_size=1, max_size=3, unique_by=lambda p: p[0].lower())
    return st.one_of(
        st.builds(dt.ArrayType, parts),
        st.builds(dt.MapType, keys, parts),
        st.builds(dt.MultisetType, elements),
        named.map(lambda pairs: dt.RowType(DataField(0, name, part) for name, part in pairs)),
    )


@cache
def column_names(odd: bool = False) -> st.SearchStrategy[str]:
    """Names that are free for columns; `odd` ones need quoting or escaping somewhere."""
    plain = st.from_regex(r"[a-z][a-z0-9_]{0,5}", fullmatch=True).filter(lambda n: n != "rowkind")
    return plain | st.sampled_from(_ODD_NAMES) if odd else plain


def fields_of(types: Sequence[DataType], names: Sequence[str] | None = None) -> tuple[DataField, ...]:
    """Columns of these types with ids from 0, called c0, c1, … unless `names` says otherwise."""
    called = names or [f"c{i}" for i in range(len(types))]
    return assign_ids(DataField(0, n, t) for n, t in zip(called, types, strict=True))[0]
