"""Strategies for data types and columns.

Invariant: Java 1.4 can write each drawn type in the given format, or in Parquet if no format is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from hypothesis import strategies as st

from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import MAX_LENGTH, DataField, DataType
from paimon.domain.types.field_ids import assign_ids

_ODD_NAMES = ("a b", "Größe", "列", "x.y", "SELECT", "k=v", "100%", "tick`s", "quote's", "a/b", "_hidden")
_lengths = st.integers(1, 12) | st.sampled_from([255, 4000, MAX_LENGTH])


@cache  # building strategies costs more than drawing from them
def atomic_types(file_format: str | None = None, nullable: bool | None = None) -> st.SearchStrategy[DataType]:
    """Draw types that are not nested and that `file_format` can store; `nullable` None draws both."""
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
def _with_nullability(draw: st.DrawFn, kinds: st.SearchStrategy[DataType], nullable: bool | None) -> DataType:
    chosen = draw(st.booleans()) if nullable is None else nullable
    return draw(kinds).with_nullable(chosen)


@cache
def key_types(file_format: str | None = None) -> st.SearchStrategy[DataType]:
    """Draw types for primary keys, partition columns and map keys: not nested, NOT NULL, not floating-point."""
    floating = (dt.FloatType, dt.DoubleType)
    return atomic_types(file_format, nullable=False).filter(lambda t: not isinstance(t, floating))


@cache
def data_types(
    file_format: str | None = None, *, max_depth: int = 2, nullable: bool | None = None
) -> st.SearchStrategy[DataType]:
    """Draw types of all kinds; the ids of nested fields start at 0.

    Parameters
    ----------
    file_format : str, optional
        Draws only types that this format can store.
    max_depth : int
        The depth of nested types at most; 0 draws types that are not nested.
    nullable : bool, optional
        Whether the type is nullable; None draws both.

    Returns
    -------
    SearchStrategy
        Draws data types.
    """
    kinds = atomic_types(file_format)
    for _ in range(max_depth):
        kinds = st.one_of(atomic_types(file_format), _nested_types(kinds, file_format))
    return _with_nullability(kinds, nullable).map(_assign_ids)


def _assign_ids(data_type: DataType) -> DataType:
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
    """Draw column names; with `odd`, also names that need quoting or escaping in SQL, paths or JSON."""
    plain = st.from_regex(r"[a-z][a-z0-9_]{0,5}", fullmatch=True).filter(lambda n: n != "rowkind")
    return plain | st.sampled_from(_ODD_NAMES) if odd else plain


def fields_of(types: Sequence[DataType], names: Sequence[str] | None = None) -> tuple[DataField, ...]:
    """Return columns of these types with ids from 0, named c0, c1, … unless `names` are given."""
    field_names = names or [f"c{i}" for i in range(len(types))]
    return assign_ids(DataField(0, n, t) for n, t in zip(field_names, types, strict=True))[0]
