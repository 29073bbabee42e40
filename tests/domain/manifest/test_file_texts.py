"""The texts of the files of system tables: many files at once equal one file after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paimon.domain.errors import CorruptTable
from paimon.domain.manifest import file_texts_columnar
from paimon.domain.manifest.entries import DataFileMeta, FileKind, ManifestEntry
from paimon.domain.manifest.entry_codec import entry_to_record
from paimon.domain.manifest.entry_columns import ENTRY_TYPE
from paimon.domain.manifest.file_texts import format_files
from paimon.domain.manifest.file_texts_columnar import format_file_columns
from paimon.domain.options.table_options import TableOptions
from paimon.domain.partition.row_texts import JAVA_TEXTS
from paimon.domain.paths import TablePaths
from paimon.domain.row.binary_row import serialize, to_decimal
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.stats.simple_stats import EMPTY_ROW, EMPTY_STATS, SimpleStats
from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import DataField, DataType
from paimon.testing.strategies.values import values_of

ATOMIC: tuple[DataType, ...] = (
    dt.BooleanType(), dt.TinyIntType(), dt.SmallIntType(), dt.IntType(), dt.BigIntType(), dt.FloatType(),
    dt.DoubleType(), dt.DecimalType(9, 2), dt.DecimalType(30, 4), dt.CharType(5), dt.VarCharType(), dt.BinaryType(4),
    dt.VarBinaryType(20), dt.DateType(), dt.TimeType(3), dt.TimestampType(3), dt.TimestampType(9),
    dt.LocalZonedTimestampType(6),
)  # fmt: skip
TYPES = (*ATOMIC, dt.BlobType(), dt.ArrayType(dt.IntType()), dt.RowType((DataField(90, "x", dt.IntType()),)))
CASTS = {dt.IntType(): dt.BigIntType(), dt.FloatType(): dt.DoubleType(), dt.BigIntType(): dt.VarCharType()}
"""Evolved types."""


@pytest.fixture(autouse=True, scope="module")
def _group_few_files() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file_texts_columnar, "_FEWEST_FILES", 1)
        yield


def schema_of(schema_id: int, fields: Sequence[DataField]) -> TableSchema:
    return TableSchema(
        id=schema_id, fields=tuple(fields), highest_field_id=99, partition_keys=(), primary_keys=("k, \x00'é",),
        options={}, comment=None, time_millis=0,
    )  # fmt: skip


def to_records(files: Sequence[DataFileMeta]) -> pa.StructArray:
    entries = [entry_to_record(ManifestEntry(FileKind.ADD, EMPTY_ROW, 0, -1, file)) for file in files]
    return pa.array(entries, ENTRY_TYPE).field("_FILE")


def define(schema: TableSchema) -> TableDefinition:
    return TableDefinition("d.t", TablePaths("/lake/t"), schema, TableOptions.of({}))


@st.composite
def tables(draw: st.DrawFn) -> tuple[TableDefinition, dict[int, TableSchema], list[DataFileMeta]]:
    types = draw(st.lists(st.sampled_from(TYPES), min_size=2, max_size=4))
    key = DataField(0, "k, \x00'é", dt.VarCharType(nullable=False))
    old = [key, *(DataField(i + 1, f"c{len(types) - i}", t) for i, t in enumerate(types))]
    evolve = draw(st.booleans())
    new = [DataField(f.id, f.name, CASTS.get(f.type, f.type) if evolve else f.type) for f in old[:-1]]
    new.append(DataField(50, old[-1].name, dt.DateType()))  # dropped, and added again
    schemas = {0: schema_of(0, old), 1: schema_of(1, new)}
    files = [draw(files_of(schemas[draw(st.sampled_from((0, 0, 1)))], i)) for i in range(draw(st.integers(1, 6)))]
    return define(schemas[1]), schemas, files


@st.composite
def files_of(draw: st.DrawFn, schema: TableSchema, number: int) -> DataFileMeta:
    names = draw(st.none() | st.lists(st.sampled_from([f.name for f in schema.fields]), unique=True))
    dense = draw(st.booleans())
    fields = [f for f in schema.fields if names is None or f.name in names]
    names = None if names is None else tuple(f.name for f in fields)
    fields = fields[: draw(st.sampled_from((len(fields), len(fields), 1)))]
    rows = [tuple(draw(values_of(f.type.with_nullable(True))) for f in fields) for _ in range(2)]
    counts = tuple(draw(st.lists(st.none() | st.integers(0, 9), max_size=len(fields))))
    keys = [serialize((draw(values_of(f.type)),), (f.type,)) for f in (schema.fields[0],) * 2]
    bounds = [serialize(row, [f.type for f in fields]) for row in rows]
    return DataFileMeta(
        f"f{number}", 1, 7, *(keys if draw(st.booleans()) else (EMPTY_ROW, EMPTY_ROW)),
        value_stats=SimpleStats(*bounds, counts), schema_id=schema.id, level=number % 2,
        value_stats_cols=names if dense else None, write_cols=None if dense else names,
    )  # fmt: skip


@given(tables())
@settings(max_examples=60, deadline=None)
def test_texts_of_many_files_equal_those_of_each(
    drawn: tuple[TableDefinition, dict[int, TableSchema], list[DataFileMeta]],
) -> None:
    table, schemas, files = drawn
    expected = format_files(files, table, schemas, JAVA_TEXTS)
    found = format_file_columns(to_records(files), table, schemas, JAVA_TEXTS)
    assert found.to_pylist() == expected.to_pylist()
    assert found.schema == expected.schema


def test_texts_remain_in_the_order_of_the_files_where_all_groups_are_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_texts_columnar, "_FEWEST_FILES", 2)
    schema = schema_of(0, [DataField(0, "k, \x00'é", dt.VarCharType())])
    rows = [serialize((text,), (dt.VarCharType(),)) for text in "abc"]
    files = [DataFileMeta(f"f{r}", 1, 1, r, r, level=i % 2, schema_id=i // 2) for i, r in enumerate([*rows, rows[0]])]
    schemas = {0: schema, 1: schema_of(1, schema.fields)}
    assert format_file_columns(to_records(files[:3]), define(schema), schemas, JAVA_TEXTS)["min_key"].to_pylist() == [
        "[a]", "[b]", "[c]",
    ]  # fmt: skip


ONE_VALUE: dict[type[DataType], Any] = {
    dt.BooleanType: True, dt.FloatType: -0.0, dt.DoubleType: float("nan"), dt.VarCharType: "a long text \U0001f40d",
    dt.CharType: "", dt.BinaryType: b"\xc3z", dt.VarBinaryType: b"ab",
}  # fmt: skip


@pytest.mark.parametrize("data_type", ATOMIC, ids=str)
def test_no_atomic_type_is_formatted_file_by_file(data_type: DataType, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = schema_of(0, [DataField(0, "k, \x00'é", data_type)])
    value = ONE_VALUE.get(type(data_type), 1)
    if isinstance(data_type, dt.DecimalType):
        value = to_decimal(-5, data_type.scale)
    rows = [serialize((v,), (data_type,)) for v in (value, None)]
    files = [DataFileMeta(f"f{i}", 1, 1, r, r, EMPTY_STATS, SimpleStats(r, r, (i,))) for i, r in enumerate(rows)]
    expected = format_files(files, define(schema), {0: schema}, JAVA_TEXTS)
    monkeypatch.setattr(file_texts_columnar, "format_files", None)
    assert format_file_columns(to_records(files), define(schema), {0: schema}, JAVA_TEXTS).equals(expected)


@pytest.mark.parametrize("damage", [b"\xff\xff\xff\xff" + bytes(20), b"\x00\x00\x00\x01" + bytes(8), None])
def test_damaged_rows_are_reported(damage: bytes | None) -> None:
    schema = schema_of(0, [DataField(0, "k, \x00'é", dt.VarCharType())])
    good = serialize(("a long text",), (dt.VarCharType(),))
    row = good.replace(b"long", b"lo\xffg") if damage is None else damage
    files = [DataFileMeta("f", 1, 1, value_stats=SimpleStats(r, r, (0,))) for r in (good, row)]
    with pytest.raises(CorruptTable, match="binary row"):
        format_file_columns(to_records(files), define(schema), {0: schema}, JAVA_TEXTS)
