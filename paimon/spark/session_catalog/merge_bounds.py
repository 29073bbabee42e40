"""Bounds of the rows that the source of a MERGE INTO can match: their partitions, and the ranges of their keys.

Invariant: the bounds hold for each row of the table that a row of the source matches. Spark keeps the rows of the
source while the statement runs, so the bounds are those of the rows that it joins. Rows of a lost executor are computed
again, so a source with random values has no bounds.
"""

# One job reads the source, and the scan of the table gets what it finds as a predicate, which leaves out partitions,
# buckets and files:
#
#     ON t.day = s.day AND t.id = s.id        day   min(id)   max(id)
#                                             1     17        90
#                                             3     5         30         day IN (1, 3) AND id >= 5 AND id <= 90
#
# Spark itself prunes the target of a MERGE only where a source reads its files in Spark's own way.

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from typing import Any

from attrs import frozen
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from paimon.adapters.executors.spark import SPARK_ERRORS, describe_jobs, drop_cached_rows, stoppable_jobs
from paimon.domain.predicate.expression import And, Compare, In, Literal, Operator, Predicate
from paimon.domain.row.literals import INTEGER_BITS
from paimon.domain.types.data_types import DataType
from paimon.scan import Scan
from paimon.spark.frame_reads import to_frame_error
from paimon.spark.session_catalog.predicates import convert_value

_MOST_PARTITIONS = 1000
"""A source with more partitions has no bounds."""
_LARGE_BYTES = 64 * 1024 * 1024
"""If no partition can be left out, a table with fewer bytes is read as a whole: a job of Spark takes longer."""
_DAMAGED = "\ufffd"
"""What the bytes of a text that are not UTF-8 become in Python."""
_NUMBERS = count()


@frozen(eq=False)
class JoinedSource:
    """The source of a MERGE INTO, and what is true for each row that it can match; None for all rows."""

    frame: DataFrame
    bounds: Predicate | None = None


@contextmanager
def open_source(frame: DataFrame, mark: str, pairs: Mapping[str, Column], state: Any) -> Iterator[JoinedSource]:
    """Add the column `mark` without nulls to a source, and find its bounds if these can leave out much of the table.

    `pairs` has the values that must be equal to columns of the table, and `state` is the scan of the table.
    """
    marked = frame.withColumn(mark, F.lit(next(_NUMBERS)))  # the number of this statement: no other frame is equal
    is_random = not marked._jdf.queryExecution().analyzed().deterministic()
    if is_random or not pairs or not isinstance(state, Scan) or not _is_divided(state, pairs):
        yield JoinedSource(marked)
        return
    marked.persist()
    try:
        yield JoinedSource(marked, _find_bounds(marked, pairs, state))
    finally:
        drop_cached_rows(marked)


def _is_divided(state: Scan, pairs: Mapping[str, Column]) -> bool:
    """Return whether bounds can leave out partitions, or files of a large table."""
    splits = state.plan().splits
    keys = state.pinned.table.schema.partition_keys
    if len({split.partition for split in splits}) > 1 and not pairs.keys().isdisjoint(keys):
        return True
    return sum(file.file_size for split in splits for file in split.files) >= _LARGE_BYTES


def _find_bounds(frame: DataFrame, pairs: Mapping[str, Column], state: Scan) -> Predicate | None:
    """Run a job that finds the partitions of the source, and the smallest and the largest of its other keys."""
    schema = state.pinned.table.schema
    names = sorted(pairs, key=lambda name: name not in schema.partition_keys)  # the keys of partitions first
    rows = frame.select(*(pairs[name].alias(f"k{n}") for n, name in enumerate(names))).dropna()
    kinds = [field.dataType for field in rows.schema]
    plain = [F.unix_date(F.col(f"k{n}")) if isinstance(kind, T.DateType) else F.col(f"k{n}")
             for n, kind in enumerate(kinds)]  # fmt: skip
    listed = sum(name in schema.partition_keys for name in names)
    ends = [end(value) for value in plain[listed:] for end in (F.min, F.max)]
    grouped = rows.groupBy(*plain[:listed]).agg(F.count("*"), *ends).limit(_MOST_PARTITIONS + 1)
    try:
        name = state.pinned.table.table_name
        with describe_jobs(frame.sparkSession, "merge", name), stoppable_jobs(frame.sparkSession):
            groups = grouped.collect()
    except SPARK_ERRORS as error:
        raise to_frame_error(frame, error) from error
    if len(groups) > _MOST_PARTITIONS:
        return None
    types = {field.name: field.type for field in schema.fields}
    parts: list[Predicate] = []
    for n, (name, kind) in enumerate(zip(names, kinds, strict=True)):
        first = n if n < listed else listed + 1 + 2 * (n - listed)
        given = {group[at] for group in groups for at in ([n] if n < listed else [first, first + 1])} - {None}
        values = _convert(given, kind, types[name])
        if values is None:
            continue
        if not values:  # no row of the source has all keys
            return Literal(False)
        if n < listed:
            parts.append(In(name, tuple(sorted(values))))
        else:
            parts += [Compare(name, Operator.GE, min(values)), Compare(name, Operator.LE, max(values))]
    return And(tuple(parts)) if len(parts) > 1 else next(iter(parts), None)


def _convert(values: Iterable[Any], kind: T.DataType, column: DataType) -> list[Any] | None:
    """Return values of Spark as those of a predicate; None if one of them has no equal one, or does not fit."""
    try:
        found = [convert_value(kind, value) for value in values]
    except OverflowError:  # a date after the year 9999
        return None
    bits = INTEGER_BITS.get(type(column))
    fits = bits is None or all(-(1 << bits - 1) <= value < 1 << bits - 1 for value in found)
    damaged = any(isinstance(value, str) and _DAMAGED in value for value in found)
    return None if damaged or not fits or None in found else found
