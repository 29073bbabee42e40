"""Strategies for table schemas.

Invariant: each drawn schema passes `check_schema`, and Java 1.4 creates a table with it.
"""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.types.data_types import BinaryType, DataField, DataType, VarBinaryType
from paimon.domain.types.field_ids import assign_ids
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
    """Draw schemas of append tables.

    Parameters
    ----------
    draw : callable
        Supplied by Hypothesis; callers omit it.
    file_format : str, optional
        Draws only types that this format can store, and sets the option `file.format`.
    max_columns : int
        The largest number of columns, without partition and bucket keys.
    max_depth : int
        The depth of nested types at most.
    partitioned, bucketed : bool, optional
        Whether the table has partitions, or fixed buckets; None draws it.

    Returns
    -------
    TableSchema
        The schema with id 0.
    """
    partition_count = draw(st.integers(1, 2)) if _draw_if_none(draw, partitioned) else 0
    buckets = draw(st.integers(1, 3)) if _draw_if_none(draw, bucketed) else 0
    types = draw(st.lists(data_types(file_format, max_depth=max_depth), min_size=1, max_size=max_columns))
    key_count = partition_count + bool(buckets)
    keys = draw(st.lists(key_types(file_format), min_size=key_count, max_size=key_count))
    fields = _draw_columns(draw, [*keys, *types])
    options = {} if file_format is None else {"file.format": file_format}
    if buckets:
        options |= {"bucket": str(buckets), "bucket-key": fields[partition_count].name}
    return _create_schema(fields, tuple(f.name for f in fields[:partition_count]), (), options)


@st.composite
def primary_key_schemas(
    draw: st.DrawFn,
    file_format: str | None = None,
    *,
    max_columns: int = 4,
    max_depth: int = 1,
    partitioned: bool | None = None,
) -> TableSchema:
    """Draw schemas of primary-key tables with fixed buckets; the primary key includes the partition columns.

    Parameters
    ----------
    draw : callable
        Supplied by Hypothesis; callers omit it.
    file_format : str, optional
        Draws only types that this format can store, and sets the option `file.format`.
    max_columns : int
        The largest number of columns, without the primary key.
    max_depth : int
        The depth of nested types at most.
    partitioned : bool, optional
        Whether the table has partitions; None draws it.

    Returns
    -------
    TableSchema
        The schema with id 0.
    """
    partition_count = draw(st.integers(1, 2)) if _draw_if_none(draw, partitioned) else 0
    key_count = partition_count + draw(st.integers(1, 2))
    keys = draw(st.lists(key_types(file_format), min_size=key_count, max_size=key_count))
    types = draw(st.lists(data_types(file_format, max_depth=max_depth), min_size=1, max_size=max_columns))
    fields = _draw_columns(draw, [*keys, *types])
    options = {"bucket": str(draw(st.integers(1, 3)))}
    if file_format is not None:
        options["file.format"] = file_format
    key_names = tuple(draw(st.permutations([f.name for f in fields[:key_count]])))
    return _create_schema(fields, tuple(f.name for f in fields[:partition_count]), key_names, options)


def schemas(file_format: str | None = None, *, max_depth: int = 1) -> st.SearchStrategy[TableSchema]:
    """Draw schemas of append tables and of primary-key tables."""
    return append_schemas(file_format, max_depth=max_depth) | primary_key_schemas(file_format, max_depth=max_depth)


def _draw_if_none(draw: st.DrawFn, choice: bool | None) -> bool:
    return draw(st.booleans()) if choice is None else choice


def _draw_columns(draw: st.DrawFn, types: Sequence[DataType]) -> tuple[DataField, ...]:
    size = len(types)
    names = draw(st.lists(column_names(), min_size=size, max_size=size, unique_by=str.lower))
    return tuple(DataField(0, name, data_type) for name, data_type in zip(names, types, strict=True))


def _create_schema(
    fields: Sequence[DataField], partition_keys: tuple[str, ...], primary_keys: tuple[str, ...], options: dict[str, str]
) -> TableSchema:
    numbered, highest = assign_ids(fields)
    if any(f.name in partition_keys and isinstance(f.type, BinaryType | VarBinaryType) for f in numbered):
        options = options | {"partition.legacy-name": "false"}  # legacy names of binary partitions are refused
    return TableSchema(0, numbered, highest, partition_keys, primary_keys, options)
