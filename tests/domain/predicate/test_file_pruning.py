"""Pruning files with columnar statistics equals pruning them one by one, and never loses a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from paimon.domain.manifest.avro_schema import MANIFEST_ENTRY
from paimon.domain.manifest.bounds import read_exact_bounds
from paimon.domain.manifest.entries import DataFileMeta, FileKind, ManifestEntry
from paimon.domain.manifest.entry_codec import entry_to_record
from paimon.domain.manifest.entry_columns import ENTRY_TYPE, EntryColumns, ManifestRecords, entry_columns
from paimon.domain.manifest.record_columns import ArrayColumns
from paimon.domain.predicate.evaluate_row import matches
from paimon.domain.predicate.expression import And, Compare, In, IsNull, Like, Not, Operator, Or, Predicate
from paimon.domain.predicate.prune_file import may_match
from paimon.domain.predicate.pruning_columnar import may_match_mask
from paimon.domain.row.binary_row import serialize
from paimon.domain.row.values import to_array
from paimon.domain.scan.prune_by_stats import value_mask
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.stats.collect import collect_column_stats
from paimon.domain.stats.simple_stats import EMPTY_ROW, ColumnStats, to_simple_stats
from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import DataField, DataType
from paimon.testing.strategies.values import values_of

TYPES: tuple[DataType, ...] = (
    dt.BooleanType(), dt.TinyIntType(), dt.SmallIntType(), dt.IntType(), dt.BigIntType(), dt.FloatType(),
    dt.DoubleType(),
    dt.DecimalType(9, 2), dt.DecimalType(30, 4), dt.VarCharType(), dt.DateType(), dt.TimeType(3), dt.TimestampType(3),
    dt.TimestampType(6), dt.LocalZonedTimestampType(9),
)  # fmt: skip


def entry(name: str, stats: Sequence[ColumnStats], types: Sequence[DataType], rows: int) -> ManifestEntry:
    file = DataFileMeta(name, 1, rows, value_stats=to_simple_stats(stats, types))
    return ManifestEntry(FileKind.ADD, EMPTY_ROW, 0, -1, file)


def columns_of(entries: Sequence[ManifestEntry]) -> EntryColumns:
    records = pa.array([entry_to_record(e) for e in entries], ENTRY_TYPE)
    return entry_columns([ManifestRecords(("manifest",), (len(entries),), ArrayColumns(records))])


def leaves(name: str, data_type: DataType) -> st.SearchStrategy[Predicate]:
    value = values_of(data_type.with_nullable(True))
    kinds: list[st.SearchStrategy[Predicate]] = [
        st.builds(Compare, st.just(name), st.sampled_from(Operator), value),
        st.builds(In, st.just(name), st.lists(value, max_size=3).map(tuple), st.booleans()),
        st.builds(IsNull, st.just(name), st.booleans()),
    ]
    if isinstance(data_type, dt.VarCharType):
        patterns = st.text("ab%_!", max_size=4).filter(lambda p: not p.replace("!!", "").endswith("!"))
        kinds.append(st.builds(Like, st.just(name), patterns, st.sampled_from([None]), st.booleans()))
    return st.one_of(kinds)


def predicates(types: Sequence[DataType]) -> st.SearchStrategy[Predicate]:
    base = st.one_of([leaves(f"c{i}", t) for i, t in enumerate(types)])
    return st.recursive(
        base,
        lambda inner: st.one_of(
            st.builds(And, st.lists(inner, max_size=3).map(tuple)),
            st.builds(Or, st.lists(inner, max_size=3).map(tuple)),
            st.builds(Not, inner),
        ),
        max_leaves=4,
    )


@st.composite
def cases(draw: st.DrawFn) -> tuple[tuple[DataType, ...], list[list[tuple[Any, ...]]], Predicate]:
    types = tuple(draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=3)))
    row = st.tuples(*(values_of(t) for t in types))
    return types, draw(st.lists(st.lists(row, max_size=3), min_size=1, max_size=4)), draw(predicates(types))


def fields_of(types: Sequence[DataType]) -> tuple[DataField, ...]:
    return tuple(DataField(i, f"c{i}", t) for i, t in enumerate(types))


def collect_stats(rows: Sequence[tuple[Any, ...]], types: Sequence[DataType]) -> list[ColumnStats]:
    return [collect_column_stats(to_array([row[i] for row in rows], t), t) for i, t in enumerate(types)]


@settings(max_examples=40, deadline=None)
@given(cases(), st.sampled_from(["parquet", "orc"]))
def test_columnar_pruning_equals_pruning_file_by_file(
    case: tuple[tuple[DataType, ...], list[list[tuple[Any, ...]]], Predicate], suffix: str
) -> None:
    types, files, predicate = case
    fields = fields_of(types)
    stats = [collect_stats(rows, types) for rows in files]
    entries = [entry(f"f{i}.{suffix}", s, types, len(files[i])) for i, s in enumerate(stats)]
    schema = TableSchema(0, fields, len(fields))
    mask = value_mask(columns_of(entries), predicate, schema, {0: schema})
    named = {f.name: f.type for f in fields}
    for file_stats, rows, marked in zip(stats, files, mask.tolist(), strict=True):
        by_name = {f"c{i}": s for i, s in enumerate(file_stats)}
        assert marked == may_match(predicate, by_name.get, named, len(rows), nan_in_bounds=suffix == "parquet")
        if suffix == "parquet" and any(matches(predicate, dict(zip(named, row, strict=True))) for row in rows):
            assert marked


@settings(max_examples=40, deadline=None)
@given(cases())
def test_rows_as_their_own_statistics_lose_no_row(
    case: tuple[tuple[DataType, ...], list[list[tuple[Any, ...]]], Predicate],
) -> None:
    types, files, predicate = case
    rows = [row for file in files for row in file]
    stored = pa.array([serialize(row, types) for row in rows], pa.binary())
    columns = {f"c{i}": read_exact_bounds(stored, i, len(types), t) for i, t in enumerate(types)}
    named = {f"c{i}": t for i, t in enumerate(types)}
    mask = may_match_mask(predicate, columns, named, pa.array([1] * len(rows), pa.int64()).to_numpy())
    for row, marked in zip(rows, mask.tolist(), strict=True):
        assert marked or matches(predicate, dict(zip(named, row, strict=True))) is not True


def test_statistics_of_another_schema_go_by_field_id() -> None:
    old = TableSchema(0, (DataField(0, "a", dt.IntType()), DataField(1, "b", dt.IntType())), 1)
    text = dt.VarCharType()
    new = TableSchema(1, (DataField(1, "a", dt.BigIntType()), DataField(0, "x", text), DataField(2, "n", text)), 2)
    stats = [ColumnStats(1, 2, 0), ColumnStats(10, 20, 0)]
    columns = columns_of([entry("f.parquet", stats, [dt.IntType(), dt.IntType()], 5)])
    expected = [
        (Compare("a", Operator.EQ, 15), True),
        (Compare("a", Operator.EQ, 1), False),
        (Compare("x", Operator.EQ, "zzz"), True),  # was INT: the order of text is another one
        (Compare("n", Operator.EQ, "v"), False),  # the file lacks it
        (IsNull("n"), True),
        (Compare("n", Operator.NE, "v"), False),
        (IsNull("n", negated=True), False),
    ]
    for predicate, marked in expected:
        assert value_mask(columns, predicate, new, {0: old, 1: new}).tolist() == [marked], predicate


def test_the_schema_of_records_is_that_of_the_columns() -> None:
    assert [f.name for f in ENTRY_TYPE] == [f["name"] for f in MANIFEST_ENTRY["fields"]]  # type: ignore[attr-defined]
