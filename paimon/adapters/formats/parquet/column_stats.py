"""Convert the statistics in a Parquet footer to ColumnStats, and select by them the ranges of rows that a read needs.

Invariant: bounds are internal values that bound every value of the column, with NaN as the largest. Nested columns have
no statistics; binary columns and INT96 have a null count only. A row group is skipped only if its statistics prove that
no row matches, or if it lies outside of the ranges of rows. No row outside of a narrowed range matches.
Source: `ParquetSimpleStatsExtractor`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from attrs import evolve, frozen

from paimon.adapters.formats.guards.parquet_batches import GroupRange
from paimon.adapters.formats.parquet.leaf_columns import find_first_leaves
from paimon.adapters.formats.parquet.schema import is_int96
from paimon.adapters.formats.row_ranges import RowRanges
from paimon.domain.predicate.evaluate_columnar import evaluate
from paimon.domain.predicate.expression import Compare, In, Operator, Predicate
from paimon.domain.predicate.prune_file import may_match
from paimon.domain.predicate.transform import join_conjuncts, split_conjuncts
from paimon.domain.stats.simple_stats import ColumnStats
from paimon.domain.types import data_types as dt
from paimon.domain.types.arrow_arrays import to_numpy
from paimon.domain.types.data_types import DataField, DataType
from paimon.ports.formats import ReadRequest

NAN = float("nan")
NO_STATS = ColumnStats()
_LOGICAL_UNIT_NANOS = {"milliseconds": 1_000_000, "microseconds": 1_000, "nanoseconds": 1}
_EXACT = Context(prec=50)
_UNBOUNDED = (*dt.BYTES_TYPES, dt.BlobType)


def read_chunk_stats(chunk: pq.ColumnChunkMetaData, data_type: DataType) -> ColumnStats:
    """Return the statistics of one column chunk; bounds of floating columns leave NaN out, as the file does."""
    found = chunk.statistics
    if found is None or isinstance(data_type, (*dt.NESTED_TYPES, dt.VariantType)):
        return NO_STATS
    nulls = found.null_count if found.has_null_count else None
    unbounded = isinstance(data_type, _UNBOUNDED) or is_int96(data_type) or _has_unknown_unit(found, data_type)
    if not found.has_min_max or unbounded:
        return ColumnStats(None, None, nulls)
    value = _choose_reader(data_type, str(found.logical_type))
    try:
        return ColumnStats(value(found.min_raw), value(found.max_raw), nulls)
    except UnicodeDecodeError:  # other writers truncate long bounds inside of a character
        return ColumnStats(None, None, nulls)


def combine_stats(parts: Iterable[ColumnStats], counts: Iterable[int]) -> ColumnStats:
    """Combine the statistics of a column's chunks, which have `counts` rows; what one lacks is unknown."""
    known = list(zip(parts, counts, strict=True))
    if not known or any(p.null_count is None for p, _ in known):
        return NO_STATS
    nulls = sum(p.null_count for p, _ in known if p.null_count is not None)
    bounded = [p for p, rows in known if p.null_count != rows]
    if not bounded or any(p.minimum is None for p in bounded):
        return ColumnStats(None, None, nulls)
    lowest = min((p.minimum for p in bounded), key=_order_nan_last)
    highest = max((p.maximum for p in bounded), key=_order_nan_last)
    return ColumnStats(lowest, highest, nulls)


def _order_nan_last(value: Any) -> tuple[bool, Any]:
    return (True, 0) if value != value else (False, value)


def _has_unknown_unit(found: pq.Statistics, data_type: DataType) -> bool:
    """Return whether the file holds times in a unit that Java would not have chosen."""
    logical_type = str(found.logical_type)
    if isinstance(data_type, dt.TIMESTAMP_TYPES):
        return not any(unit in logical_type for unit in _LOGICAL_UNIT_NANOS)
    return isinstance(data_type, dt.TimeType) and "milliseconds" not in logical_type


def _choose_reader(data_type: DataType, logical: str) -> Callable[[Any], Any]:
    match data_type:
        case dt.CharType() | dt.VarCharType():
            return _read_text
        case dt.DecimalType(scale=scale):
            return lambda raw: _read_decimal(raw, scale)
        case dt.TimestampType() | dt.LocalZonedTimestampType():
            nanos = next(n for unit, n in _LOGICAL_UNIT_NANOS.items() if unit in logical)
            return lambda raw: raw * nanos
    return lambda raw: raw


def _read_text(raw: Any) -> str:
    return raw if isinstance(raw, str) else bytes(raw).decode()


def _read_decimal(raw: Any, scale: int) -> Decimal:
    unscaled = raw if isinstance(raw, int) else int.from_bytes(raw, "big", signed=True)
    return Decimal(unscaled).scaleb(-scale, _EXACT)


# 1. `plan_group_ranges` leaves out row groups by their statistics and by the row ranges of the request. Neighbors that
#    remain are one piece; with several row ranges, each row group is a piece.
# 2. `narrow_piece` cuts a piece for an equality. A lookup (id = 42) wants one row, but files that overlap have nearly
#    the same statistics. So a first pass decodes only the columns of the equality:
#
#        id       3   9   42  42  57   80  91             the rows from the first match to the last are the new piece;
#                        [......]                         only these are decoded in the other columns
#
#    If the rows are in ascending order of the column, the pass ends with the batch whose last value is larger (57).
#
# `split_into_steps` cuts a piece into what is decoded at once.


_STEP_ROWS = 1 << 20
_COLUMNS_PER_FILTER_COLUMN = 4
"""A first pass is worth its cost if the read has at least so many columns for each column of the equalities."""
_FILTER_BATCH_ROWS = 65_536
"""Rows that are decoded before the next check whether a later row can match."""


def plan_group_ranges(footer: pq.FileMetaData, schema: pa.Schema, request: ReadRequest) -> Iterator[GroupRange]:
    """Yield the ranges of adjacent row groups that may match, in the order of the file."""
    ranges = RowRanges.of(request, footer.num_rows)
    joins = len(ranges.starts) == 1
    leaves = {} if request.predicate is None else find_first_leaves(schema)
    piece: GroupRange | None = None
    start = 0
    for group in range(footer.num_row_groups):
        chunk = footer.row_group(group)
        rows = chunk.num_rows
        low, high = ranges.find_hull(start, rows)
        start += rows
        if low >= high or not _may_match(chunk, leaves, request):
            continue
        if joins and piece is not None and piece.groups[-1] == group - 1:
            piece = evolve(piece, groups=(*piece.groups, group), count=piece.count + high - low)
            continue
        if piece is not None:
            yield piece
        piece = GroupRange((group,), low, high - low)
    if piece is not None:
        yield piece


def split_into_steps(piece: GroupRange, footer: pq.FileMetaData) -> Iterator[GroupRange]:
    """Split a piece into steps of a million rows or one row group, so that a read can stop early."""
    left, groups, rows = piece.skip + piece.count, list[int](), 0
    for group in piece.groups:
        groups.append(group)
        rows += footer.row_group(group).num_rows
        if rows >= min(_STEP_ROWS, left):
            yield GroupRange(tuple(groups), 0, min(rows, left))
            left, groups, rows = left - rows, [], 0


def _may_match(chunk: pq.RowGroupMetaData, leaves: dict[str, int], request: ReadRequest) -> bool:
    if request.predicate is None:
        return True
    types = {f.name: f.type for f in request.predicate_fields}

    def stats(name: str) -> ColumnStats | None:
        """Return the statistics of a column; None if they are unknown."""
        if name not in leaves or name not in types:
            return None
        return read_chunk_stats(chunk.column(leaves[name]), types[name])

    return may_match(request.predicate, stats, types, chunk.num_rows)


@frozen
class LookupFilter:
    """The equalities of a first pass, before the other columns are decoded."""

    predicate: Predicate
    # columns of the equalities
    fields: tuple[DataField, ...]
    # rows that are decoded together
    batch_rows: int
    # true of a row behind which no row matches; None if the rows are not sorted by an equality's column
    is_past: Predicate | None = None


def find_lookup_filter(request: ReadRequest) -> LookupFilter | None:
    """Return the equalities among the conjuncts of a read's predicate; None if they do not justify a first pass."""
    if request.predicate is None:
        return None
    held = {f.name: f for f in request.predicate_fields}
    equalities = [
        (column, part) for part in split_conjuncts(request.predicate) if (column := _equality_column(part)) in held
    ]
    fields = tuple(f for name, f in held.items() if any(name == column for column, _ in equalities))
    if not fields or _COLUMNS_PER_FILTER_COLUMN * len(fields) > len(request.fields):
        return None
    wanted = join_conjuncts(part for _, part in equalities)
    is_past = next((_to_larger_than(part) for column, part in equalities if column == request.ascending), None)
    return LookupFilter(
        wanted, fields, request.batch_rows if is_past is None else min(request.batch_rows, _FILTER_BATCH_ROWS), is_past
    )


def _equality_column(part: Predicate) -> str | None:
    """Return the column of a comparison with one value or with a list of values; None for any other predicate."""
    match part:
        case Compare(column=column, op=Operator.EQ) | In(column=column, negated=False):
            return column
    return None


def _to_larger_than(part: Predicate) -> Predicate | None:
    """Return a predicate that is true if the column is larger than all values of an equality."""
    match part:
        case Compare(column=column, literal=literal):
            return Compare(column, Operator.GT, literal)
        case In(column=column, literals=literals):
            known = [literal for literal in literals if literal is not None]
            return Compare(column, Operator.GT, max(known)) if known else None
    return None


def _is_true_of_last_row(batch: pa.RecordBatch, predicate: Predicate) -> bool:
    """Return whether a predicate is true of the last row."""
    return bool(evaluate(predicate, batch.slice(batch.num_rows - 1))[0].as_py())


def narrow_piece(piece: GroupRange, lookup: LookupFilter, batches: Iterable[pa.RecordBatch]) -> GroupRange | None:
    """Return the part of a piece, whose rows `batches` are, from its first to its last match; None without one."""
    first = last = -1
    start = 0
    for batch in batches:
        matching = evaluate(lookup.predicate, batch)
        if matching.true_count:
            hits = np.flatnonzero(to_numpy(matching))
            first = start + int(hits[0]) if first < 0 else first
            last = start + int(hits[-1])
        start += batch.num_rows
        if lookup.is_past is not None and start < piece.count and _is_true_of_last_row(batch, lookup.is_past):
            break
    return None if first < 0 else evolve(piece, skip=piece.skip + first, count=last - first + 1)
