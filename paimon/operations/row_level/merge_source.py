"""Read the source of a MERGE into memory, index it, and find which rows of the target it can match.

Invariant: a source above the memory budget is refused by name, before the target is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.assignment.merge_clauses import TARGET, Merge, to_plain_name
from paimon.domain.assignment.merge_columnar import SourceIndex
from paimon.domain.columns.accept import can_accept
from paimon.domain.columns.convert import convert_array
from paimon.domain.errors import InvalidRequest
from paimon.domain.predicate.expression import And, Compare, In, Literal, Operator, Predicate
from paimon.domain.predicate.transform import join_conjuncts, map_names, restrict_to_columns
from paimon.domain.row.values import to_values
from paimon.domain.types.arrow import arrow_type, fields_from_arrow
from paimon.domain.types.data_types import DataField, DoubleType, FloatType
from paimon.domain.types.type_text import format_type
from paimon.operations.row_level.merge_match import Matching, name_source
from paimon.operations.table_context import TableContext
from paimon.operations.write.source import to_arrow_tables

_MOST_LISTED_KEYS = 256
"""Up to this number of different keys, files are pruned by each of them; above it, by the smallest and the largest."""


def read_source(context: TableContext, data: Any) -> tuple[tuple[DataField, ...], pa.RecordBatch]:
    """Read the rows of a source.

    Parameters
    ----------
    context : TableContext
        Engine and table; Python values get the types of its columns.
    data : object
        Rows in any form that `Table.write` takes.

    Returns
    -------
    tuple of DataField
        The columns.
    pyarrow.RecordBatch
        The rows, in canonical Arrow types.

    Raises
    ------
    InvalidRequest
        The data is not a table, has a column twice, or needs more than the memory budget.
    """
    limit = context.engine.memory.bytes
    tables: list[pa.Table] = []
    for table in to_arrow_tables(data, context.schema.fields):
        tables.append(table)
        if sum(t.nbytes for t in tables) > limit:
            raise InvalidRequest(
                f"The source of the merge needs more than the memory budget of {limit} bytes",
                subject="memory-budget",
                hint="merge the source in parts, or raise 'memory-budget'",
            )
    whole = pa.concat_tables(tables, promote_options="permissive") if tables else pa.table({})
    repeated = [name for i, name in enumerate(whole.column_names) if name in whole.column_names[:i]]
    if repeated:
        raise InvalidRequest(
            f"The source has column {repeated[0]!r} more than once",
            subject=repeated[0],
            hint="rename or drop one of them",
        )
    whole = pa.table(dict(_type_nulls(whole, context.schema.fields)))
    fields = fields_from_arrow(whole.schema)
    columns = [
        convert_array(_combine(column), field.type, field.name)
        for column, field in zip(whole.columns, fields, strict=True)
    ]
    return fields, pa.RecordBatch.from_arrays(columns, [f.name for f in fields])


def _type_nulls(table: pa.Table, fields: Sequence[DataField]) -> Iterator[tuple[str, pa.ChunkedArray]]:
    """Yield the columns; one that contains only nulls gets the type of the column of that name."""
    types = {f.name: arrow_type(f.type) for f in fields}
    for name, column in zip(table.column_names, table.columns, strict=True):
        yield name, column.cast(types.get(name, pa.string())) if pa.types.is_null(column.type) else column


def _combine(column: pa.ChunkedArray) -> pa.Array:
    combined = column.combine_chunks()
    if not isinstance(combined, pa.ChunkedArray):
        return combined
    return combined.chunk(0) if combined.num_chunks else pa.array([], column.type)


def index_source(context: TableContext, merge: Merge, source: pa.RecordBatch) -> Matching:
    """Index a source by the columns that must be equal to columns of the target.

    Parameters
    ----------
    context : TableContext
        Engine and table.
    merge : Merge
        The bound condition and clauses.
    source : pyarrow.RecordBatch
        The rows of the source.

    Returns
    -------
    Matching
        The merge and its source.

    Raises
    ------
    InvalidRequest
        A key of the source does not fit the type of its column.
    """
    keys = []
    for target, name in merge.on.pairs:
        column, values = context.schema.field_of(target), source[name]
        if not can_accept(column.type, values.type):
            raise InvalidRequest(
                f"Column {name!r} of the source has the Arrow type {values.type}, but {target!r} is "
                f"{format_type(column.type)}",
                subject=name,
                hint="cast the column of the source",
            )
        keys.append(convert_array(values, column.type.with_nullable(True), name))
    index = SourceIndex.of(keys, source.num_rows)
    return Matching(context.engine, context.table.table_name, merge, name_source(source), index)


def find_target_condition(context: TableContext, merge: Merge, matching: Matching) -> Predicate | None:
    """Return a condition that is true for each row of the target that the source can match; None if all can matter.

    Parameters
    ----------
    context : TableContext
        Engine and table.
    merge : Merge
        The bound condition and clauses.
    matching : Matching
        The index of the source.

    Returns
    -------
    Predicate, optional
        Over plain names of columns, with internal values.
    """
    if merge.not_matched_by_source:
        return None
    parts = []
    for (target, _), values in zip(merge.on.pairs, matching.index.values, strict=True):
        parts += _bound_keys(context.schema.field_of(target), values)
    if merge.on.condition is not None:
        of_target = [f"{TARGET}.{f.name}" for f in context.schema.fields]
        rest = restrict_to_columns(merge.on.condition, of_target)
        parts += [] if rest is None else [map_names(rest, to_plain_name)]
    condition = join_conjuncts(parts)
    return None if condition == Literal(True) else condition


def _bound_keys(column: DataField, values: pa.Array) -> list[Predicate]:
    """Return conditions that each of these values fulfils."""
    if isinstance(column.type, FloatType | DoubleType):
        return []  # the index holds their order, not their values
    if len(values) <= _MOST_LISTED_KEYS:
        return [In(column.name, tuple(to_values(values, column.type)))]
    if pa.types.is_boolean(values.type):
        return []
    bounds = pc.min_max(values)
    low, high = (to_values(pa.array([bounds[end]], values.type), column.type)[0] for end in ("min", "max"))
    return [And((Compare(column.name, Operator.GE, low), Compare(column.name, Operator.LE, high)))]
