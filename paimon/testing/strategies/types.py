"""Strategies for data types and columns.

Invariant: Java 1.4 can write each drawn type in the given format, or in Parquet if no format is given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from hypothesis import strategies as st

from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import MAX_LENGTH, DataField, DataType
from paimon.domain.types.field_ids import assign_ids

_ODD_NAMES = ("a b", "Größe", "列", "x.y", "SELECT", "k=v", "100%", "tick`s", "quote's", "a/b", "_hidden")
_PLAIN = ("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DATE")
"""The types without parameters; together they are drawn as often as one of the others."""
ATOMIC_TYPE_NAMES = (
    *_PLAIN, "DECIMAL", "CHAR", "VARCHAR", "BINARY", "VARBINARY", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ",
)  # fmt: skip
TYPE_NAMES = (*ATOMIC_TYPE_NAMES, "ARRAY", "MAP", "MULTISET", "ROW")
_lengths = st.integers(1, 12) | st.sampled_from([255, 4000, MAX_LENGTH])


@cache  # building strategies costs more than drawing from them
def _atomic_types_by_name(file_format: str | None) -> Mapping[str, st.SearchStrategy[DataType]]:
    precisions = st.integers(0, 6 if file_format == "avro" else 9)
    return {
        "BOOLEAN": st.just(dt.BooleanType()),
        "TINYINT": st.just(dt.TinyIntType()),
        "SMALLINT": st.just(dt.SmallIntType()),
        "INT": st.just(dt.IntType()),
        "BIGINT": st.just(dt.BigIntType()),
        "FLOAT": st.just(dt.FloatType()),
        "DOUBLE": st.just(dt.DoubleType()),
        "DATE": st.just(dt.DateType()),
        "DECIMAL": _decimals(),
        "CHAR": st.builds(dt.CharType, st.integers(1, 12)),
        "VARCHAR": st.builds(dt.VarCharType, _lengths),
        "BINARY": st.builds(dt.BinaryType, st.integers(1, 12)),
        "VARBINARY": st.builds(dt.VarBinaryType, _lengths),
        "TIME": st.builds(dt.TimeType, st.integers(0, 3)),
        "TIMESTAMP": st.builds(dt.TimestampType, precisions),
        "TIMESTAMP_LTZ": st.builds(dt.LocalZonedTimestampType, precisions),
    }


@cache
def atomic_types(file_format: str | None = None, nullable: bool | None = None) -> st.SearchStrategy[DataType]:
    """Draw types that are not nested and that `file_format` can store; `nullable` None draws both."""
    by_name = _atomic_types_by_name(file_format)
    plain = st.sampled_from(_PLAIN).flatmap(by_name.__getitem__)
    others = [kinds for name, kinds in by_name.items() if name not in _PLAIN]
    return _with_nullability(st.one_of(plain, *others), nullable)


@cache
def types_named(
    name: str, file_format: str | None = None, parts: tuple[str, ...] = ("INT",)
) -> st.SearchStrategy[DataType]:
    """Draw nullable types of one name, such as ``DECIMAL`` with any precision.

    Parameters
    ----------
    name : str
        One of `paimon.testing.strategies.types.TYPE_NAMES`.
    file_format : str, optional
        Draws only types that this format can store.
    parts : tuple of str
        For a nested type, the names of the types of its elements, keys and fields that are not nested.

    Returns
    -------
    SearchStrategy
        Draws data types.
    """
    by_name = _atomic_types_by_name(file_format)
    if name in by_name:
        return by_name[name]
    elements = st.one_of(*(by_name[part] for part in parts if part in by_name))
    keys = st.one_of(*(by_name[part] for part in parts if part in by_name and part not in ("FLOAT", "DOUBLE")))
    return _nested_types_by_name(elements, keys, file_format)[name].map(_assign_ids)


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
    return st.one_of(*_nested_types_by_name(parts, keys, file_format).values())


def _nested_types_by_name(
    parts: st.SearchStrategy[DataType], keys: st.SearchStrategy[DataType], file_format: str | None
) -> Mapping[str, st.SearchStrategy[DataType]]:
    elements: st.SearchStrategy[DataType] = st.just(dt.VarCharType()) if file_format == "avro" else keys
    named = st.lists(st.tuples(column_names(), parts), min_size=1, max_size=3, unique_by=lambda p: p[0].lower())
    return {
        "ARRAY": st.builds(dt.ArrayType, parts),
        "MAP": st.builds(dt.MapType, keys, parts),
        "MULTISET": st.builds(dt.MultisetType, elements),
        "ROW": named.map(lambda pairs: dt.RowType(DataField(0, name, part) for name, part in pairs)),
    }


@cache
def column_names(odd: bool = False) -> st.SearchStrategy[str]:
    """Draw column names; with `odd`, also names that need quoting or escaping in SQL, paths or JSON."""
    plain = st.from_regex(r"[a-z][a-z0-9_]{0,5}", fullmatch=True).filter(lambda n: n != "rowkind")
    return plain | st.sampled_from(_ODD_NAMES) if odd else plain


def fields_of(types: Sequence[DataType], names: Sequence[str] | None = None) -> tuple[DataField, ...]:
    """Return columns of these types with ids from 0, named c0, c1, … unless `names` are given."""
    field_names = names or [f"c{i}" for i in range(len(types))]
    return assign_ids(DataField(0, n, t) for n, t in zip(field_names, types, strict=True))[0]
