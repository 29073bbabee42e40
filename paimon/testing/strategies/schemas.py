"""Strategies for table schemas.

Law: each drawn schema passes `check_schema`, and Java 1.4 creates a table of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.types.data_types import DataField, DataType
from paimon.domain.types.ids import assign_ids
from paimon.testing.strategies.types import column_names, data_types, key_types


@st.composite
def append_schemas(
    draw: st.DrawFn,
    file_format: str | None = None,
    *,
    max_columns: int = 4,
    max_depth: int = 1,
    partitioned: bool | None = None,
    bucketed: bool | None = None,
) -> TableSchema:
    """Tables without primary keys; None draws whether it has partitions, and fixed buckets."""
    parts = draw(st.integers(1, 2)) if _drawn(draw, partitioned) else 0
    buckets = draw(st.integers(1, 3)) if _drawn(draw, bucketed) else 0
    types = draw(st.lists(data_types(file_format, max_depth=max_depth), min_size=1, max_size=max_columns))
    keys = draw(st.lists(key_types(file_format), min_size=parts + bool(buckets), max_size=parts + bool(buckets)))
    fields = _columns(draw, [*keys, *types])
    options = {} if file_format is None else {"file.format": file_format}
    if buckets:
        options |= {"bucket": str(buckets), "bucket-key": fields[parts].name}
    return _schema(fields, tuple(f.name for f in fields[:parts]), (), options)


@st.composite
def primary_key_schemas(
    draw: st.DrawFn,
    file_format: str | None = None,
    *,
    max_columns: int = 4,
    max_depth: int = 1,
    partitioned: bool | None = None,
) -> TableSchema:
    """Tables with primary keys and fixed buckets (partition columns are a part of the primary key, as they must be)."""
    parts = draw(st.integers(1, 2)) if _drawn(draw, partitioned) else 0
    inner = draw(st.integers(1, 2))
    keys = draw(st.lists(key_types(file_format), min_size=parts + inner, max_size=parts + inner))
    types = draw(st.lists(data_types(file_format, max_depth=max_depth), min_size=1, max_size=max_columns))
    fields = _columns(draw, [*keys, *types])
    options = {"bucket": str(draw(st.integers(1, 3)))}
    if file_format is not None:
        options["file.format"] = file_format
    key_names = tuple(draw(st.permutations([f.name for f in fields[: parts + inner]])))
    return _schema(fields, tuple(f.name for f in fields[:parts]), key_names, options)


def schemas(file_format: str | None = None, *, max_depth: int = 1) -> st.SearchStrategy[TableSchema]:
    """Append tables and primary-key tables."""
    return append_schemas(file_format, max_depth=max_depth) | primary_key_schemas(file_format, max_depth=max_depth)


def _drawn(draw: st.DrawFn, choice: bool | None) -> bool:
    return draw(st.booleans()) if choice is None else choice


def _columns(draw: st.DrawFn, types: Sequence[DataType]) -> tuple[DataField, ...]:
    size = len(types)
    names = draw(st.lists(column_names(), min_size=size, max_size=size, unique_by=str.lower))
    return tuple(DataField(0, name, data_type) for name, data_type in zip(names, types, strict=True))


def _schema(
    fields: Sequence[DataField], partition_keys: tuple[str, ...], primary_keys: tuple[str, ...], options: dict[str, str]
) -> TableSchema:
    numbered, highest = assign_ids(fields)
    return TableSchema(0, numbered, highest, partition_keys, primary_keys, options)
