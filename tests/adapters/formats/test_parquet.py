"""Parquet: the contract of the port FormatIO, files of Java, and our files described like those of Java."""

from __future__ import annotations

import json
import math
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.golden_tables import golden_directory

from paimon.adapters.files.local import LocalFiles
from paimon.adapters.formats.parquet import ParquetFormat
from paimon.adapters.formats.thrift import decode, decode_head, encode, encode_head
from paimon.domain.errors import CorruptTable, InvalidRequest, StorageError, Unsupported
from paimon.domain.predicate.evaluate_columnar import evaluate
from paimon.domain.predicate.evaluate_row import matches
from paimon.domain.predicate.expression import And, Compare, In, IsNull, Operator, Or
from paimon.domain.row.binary_row import deserialize
from paimon.domain.row.values import to_values
from paimon.domain.schema.table_schema import schema_from_json
from paimon.domain.stats.simple_stats import ColumnStats
from paimon.domain.types import data_types as dt
from paimon.domain.types.arrow import arrow_schema
from paimon.domain.types.data_types import DataField
from paimon.domain.types.type_text import parse_type
from paimon.ports.formats import FormatIO, ReadRequest, WriteRequest, WrittenFile
from paimon.testing.contracts import FileSharingContract, FormatIOContract
from paimon.testing.memory_files import MemoryFiles
from paimon.testing.strategies import arrow_tables, fields_of

PATH = "/t/data.parquet"
FORMAT = ParquetFormat()
TYPED_CASES = ["types_flat_parquet", "types_nested_parquet", "types_nano_parquet", "types_variant_parquet",
               "fp_edges_parquet"]  # fmt: skip


class TestParquet(FormatIOContract, FileSharingContract):
    def make_format(self) -> FormatIO:
        return FORMAT


def write_file(fields: tuple[DataField, ...], table: pa.Table, **more) -> tuple[bytes, WrittenFile]:
    files = MemoryFiles()
    writer = FORMAT.writer(files.create(PATH), WriteRequest(PATH, fields, **more))
    writer.write(table)
    done = writer.close()
    return files.read(PATH), done


def read(data: bytes, fields: tuple[DataField, ...], **more) -> pa.Table:
    batches = FORMAT.read(pa.BufferReader(data), ReadRequest(PATH, fields, **more))
    return pa.Table.from_batches(batches, arrow_schema(fields))


def cells(table: pa.Table, fields: tuple[DataField, ...]) -> list[str]:
    """The values as text, in which NaN equals itself."""
    return [repr(to_values(table.column(f.name), f.type)) for f in fields]


def find_golden_files(case: str) -> tuple[Path, list[Path], tuple[DataField, ...]]:
    home = golden_directory() / case
    schema = (home / "table" / "schema" / "schema-0").read_bytes()
    files = sorted((home / "table").glob("bucket-*/*.parquet"))
    return home, files, schema_from_json(schema, case).fields


def schema_text(source: pa.Buffer | str) -> str:
    return str(pq.ParquetFile(source).schema).split("\n", 1)[1]


@pytest.mark.parametrize("case", TYPED_CASES)
def test_our_files_look_like_javas(case: str) -> None:
    home, files, fields = find_golden_files(case)
    entries = [json.loads(line) for line in (home / "expected" / "meta.jsonl").read_text("utf8").splitlines()]
    assert files
    for file in files:
        table = read(file.read_bytes(), fields)
        data, done = write_file(fields, table)
        assert schema_text(pa.BufferReader(data)) == schema_text(str(file))
        assert pq.read_metadata(pa.BufferReader(data)).metadata is None
        assert cells(read(data, fields), fields) == cells(table, fields)
        for entry in entries:
            if entry.get("fileName") == file.name:
                check_stats(entry, fields, done)


def check_stats(entry: dict, fields: tuple[DataField, ...], done: WrittenFile) -> None:
    """Our statistics equal those that Java reads from its own footer, before truncation."""
    columns_with_stats = [
        i for i, f in enumerate(fields) if entry["valueStatsCols"] is None or f.name in entry["valueStatsCols"]
    ]
    types = [fields[i].type for i in columns_with_stats]
    lows = deserialize(bytes.fromhex(entry["valueStatsMinHex"]), types)
    highs = deserialize(bytes.fromhex(entry["valueStatsMaxHex"]), types)
    for i, low, high, nulls in zip(columns_with_stats, lows, highs, entry["valueStatsNullCounts"], strict=True):
        ours = done.column_stats[i]
        if isinstance(low, str) and len(low) >= 16:
            assert ours.minimum.startswith(low)
        else:
            assert is_same_bound(ours.minimum, low)
        if not (isinstance(high, str) and len(high) >= 16):
            assert is_same_bound(ours.maximum, high)
        assert ours.null_count == nulls
    for i in set(range(len(fields))) - set(columns_with_stats):
        assert done.column_stats[i] == ColumnStats()


def is_same_bound(ours: object, theirs: object) -> bool:
    """Equal, NaN too; footers widen a zero to the zero that bounds both."""
    return repr(ours) == repr(theirs) or (isinstance(ours, float) and ours == theirs == 0)


def test_every_parquet_file_of_java_is_read() -> None:
    """Check the columns of the file with pyarrow: canonical, valid, with all rows."""
    count = 0
    for file in sorted(golden_directory().glob("*/table/**/*.parquet")):
        schema = pq.read_schema(file)
        if file.parent.name == "manifest" or file.parents[2].name == "variant_shredded":
            continue
        names = [n for n in schema.names if not pa.types.is_nested(schema.field(n).type)]
        fields = tuple(DataField(i, n, PLAIN[str(schema.field(n).type)]) for i, n in enumerate(names)
                       if str(schema.field(n).type) in PLAIN)  # fmt: skip
        source = LocalFiles().open(str(file))
        batches = list(FORMAT.read(source, ReadRequest(str(file), fields)))
        assert sum(b.num_rows for b in batches) == pq.read_metadata(file).num_rows
        for batch in batches:
            batch.validate(full=True)
        count += 1
    assert count > 500


PLAIN = {
    "int32": dt.IntType(), "int64": dt.BigIntType(), "string": dt.VarCharType(), "bool": dt.BooleanType(),
    "int8": dt.TinyIntType(), "int16": dt.SmallIntType(), "float": dt.FloatType(), "double": dt.DoubleType(),
    "binary": dt.VarBinaryType(), "date32[day]": dt.DateType(), "timestamp[ms]": dt.TimestampType(3),
    "timestamp[us]": dt.TimestampType(6), "timestamp[ns]": dt.TimestampType(9), "time32[ms]": dt.TimeType(3),
}  # fmt: skip


def test_nanoseconds_are_int96_also_before_1970() -> None:
    fields = fields_of([dt.TimestampType(9), dt.LocalZonedTimestampType(7), dt.TimestampType(3)])
    nanos = [-1, 0, None, 1_700_000_000_123_456_789, -(2**62)]
    table = pa.Table.from_arrays(
        [pa.array(nanos, f.type) if f.type.unit == "ns" else pa.array([-1, 0, None, 1, 2], f.type)
         for f in arrow_schema(fields)], schema=arrow_schema(fields)
    )  # fmt: skip
    data, done = write_file(fields, table)
    stored = pq.ParquetFile(pa.BufferReader(data)).schema
    assert [stored.column(i).physical_type for i in range(3)] == ["INT96", "INT96", "INT64"]
    assert read(data, fields).equals(table)
    assert done.column_stats[0] == ColumnStats(None, None, 1)
    assert done.column_stats[2] == ColumnStats(-1_000_000, 2_000_000, 1)


FAR_SECONDS = [253_402_300_799, -62_135_596_800, 9_223_372_037, -9_223_372_038]


@pytest.mark.parametrize("seconds", FAR_SECONDS)
@pytest.mark.parametrize("kind", ["TIMESTAMP(9)", "TIMESTAMP(7) WITH LOCAL TIME ZONE", "ARRAY<ROW<a TIMESTAMP(9)>>"])
def test_far_nanoseconds_are_refused_not_wrapped(seconds: int, kind: str) -> None:
    data, fields = write_int96(kind, seconds)
    with pytest.raises(Unsupported, match=r"before 1678 or after 2261.* in column 'c'"):
        read(data, fields)
    with pytest.raises(Unsupported):  # such a type of a file: other writers store whole microseconds
        out = pa.BufferOutputStream()
        pq.write_table(pa.table({"c": pa.array([seconds * 10**6], pa.timestamp("us"))}), out)
        read(out.getvalue().to_pybytes(), (DataField(0, "c", dt.TimestampType(9)),))


@pytest.mark.parametrize("seconds", [9_223_372_036, -9_223_372_036, 0, -1, *FAR_SECONDS])
def test_int96_is_read_with_the_digits_of_the_column(seconds: int) -> None:
    data, _ = write_int96("TIMESTAMP(9)", seconds)
    for precision, per_second in ((0, 1), (3, 1000), (6, 10**6)):
        (column,) = read(data, (DataField(0, "c", dt.TimestampType(precision)),)).columns
        assert column.cast(pa.int64()).to_pylist() == [None, seconds * per_second]
    if seconds not in FAR_SECONDS:
        (column,) = read(data, (DataField(0, "c", dt.TimestampType(9)),)).columns
        assert column.cast(pa.int64()).to_pylist() == [None, seconds * 10**9]


@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), min_size=1))
def test_every_nanosecond_of_64_bits_is_read_as_written(nanos: list[int | None]) -> None:
    fields = fields_of([dt.TimestampType(9)])
    table = pa.Table.from_arrays([pa.array(nanos, pa.timestamp("ns"))], schema=arrow_schema(fields))
    assert read(write_file(fields, table)[0], fields).equals(table)


def write_int96(kind: str, seconds: int) -> tuple[bytes, tuple[DataField, ...]]:
    """Write a null and a time as another writer does."""
    array = pa.array([None, seconds * 10**6], pa.timestamp("us"))
    if kind.startswith("ARRAY"):
        rows = pa.StructArray.from_arrays([array], ["a"], mask=array.is_null())
        array = pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), rows)
    out = pa.BufferOutputStream()
    pq.write_table(pa.table({"c": array}), out, use_deprecated_int96_timestamps=True)
    assert "INT96" in str(pq.ParquetFile(pa.BufferReader(out.getvalue())).schema).upper()
    return out.getvalue().to_pybytes(), (DataField(0, "c", parse_type(kind)),)


def test_statistics_that_footers_leave_out() -> None:
    nan = math.nan
    fields = fields_of([dt.DoubleType(), dt.FloatType(), dt.VarCharType(), dt.VarBinaryType(), dt.VarCharType()])
    texts = ["b" * 5000, "a" * 5000, None]
    columns = [[nan, 1.0, -2.0], [nan, nan, None], texts, [b"x", None, None], [None] * 3]
    table = pa.Table.from_arrays(
        [pa.array(c, f.type) for c, f in zip(columns, arrow_schema(fields), strict=True)], schema=arrow_schema(fields)
    )
    _, done = write_file(fields, table)
    double, single, text, binary, nulls = done.column_stats
    assert (double.minimum, double.null_count) == (-2.0, 0)
    assert math.isnan(double.maximum)
    assert math.isnan(single.minimum) and math.isnan(single.maximum)
    assert text == ColumnStats("a" * 5000, "b" * 5000, 1)
    assert binary == ColumnStats(None, None, 2)
    assert nulls == ColumnStats(None, None, 3)


def test_row_groups_follow_the_block_size() -> None:
    fields = fields_of([dt.BigIntType(nullable=False)])
    table = pa.Table.from_arrays([pa.array(range(100_000), pa.int64())], schema=arrow_schema(fields))
    data, done = write_file(fields, table, block_bytes=80_000)
    footer = pq.read_metadata(pa.BufferReader(data))
    assert [footer.row_group(g).num_rows for g in range(footer.num_row_groups)] == [10_000] * 10
    assert done.column_stats == (ColumnStats(0, 99_999, 0),)
    assert read(data, fields).equals(table)
    assert read(data, fields, row_ranges=((9_999, 30_001),)).column(0).to_pylist() == list(range(9_999, 30_001))
    few = read(data, fields, predicate=Compare("c0", Operator.GE, 95_000), predicate_fields=fields)
    assert few.column(0).to_pylist() == list(range(90_000, 100_000))


def test_row_groups_follow_the_number_of_rows_without_a_size_option() -> None:
    fields = fields_of([dt.BigIntType(nullable=False)])
    table = pa.Table.from_arrays([pa.array(range(100_000), pa.int64())], schema=arrow_schema(fields))
    for asked, sizes in ({}, [40_000, 40_000, 20_000]), ({"options": {"parquet.block.size": "1 mb"}}, [100_000]):
        data, done = write_file(fields, table, block_rows=40_000, **asked)
        footer = pq.read_metadata(pa.BufferReader(data))
        assert [footer.row_group(g).num_rows for g in range(footer.num_row_groups)] == sizes
        assert done.column_stats == (ColumnStats(0, 99_999, 0),)
        assert read(data, fields).equals(table)


PREDICATES = st.recursive(
    st.builds(Compare, st.just("c0"), st.sampled_from(Operator), st.integers(-3, 3))
    | st.builds(Compare, st.just("c1"), st.sampled_from(Operator), st.sampled_from(["", "a", "ab", "é", "z"]))
    | st.builds(Compare, st.just("c2"), st.sampled_from(Operator), st.sampled_from([-0.0, 0.0, 1.5, math.nan]))
    | st.builds(IsNull, st.sampled_from(["c0", "c1", "c2"]), st.booleans()),
    lambda parts: st.builds(And, st.lists(parts, max_size=3)) | st.builds(Or, st.lists(parts, max_size=3)),
    max_leaves=4,
)


@settings(max_examples=80, deadline=None)
@given(st.data(), PREDICATES)
def test_skipping_loses_no_row_that_matches(data: st.DataObject, predicate) -> None:
    fields = fields_of([dt.TinyIntType(), dt.VarCharType(3), dt.DoubleType()])
    table = data.draw(arrow_tables(fields, max_size=20))
    content, _ = write_file(fields, table, block_bytes=40)

    def rows(source: pa.Table) -> list[tuple]:
        return list(zip(*(to_values(source.column(f.name), f.type) for f in fields), strict=True))

    def hits(source: pa.Table) -> list[str]:
        names = [f.name for f in fields]
        return [repr(r) for r in rows(source) if matches(predicate, dict(zip(names, r, strict=True))) is True]

    assert hits(read(content, fields, predicate=predicate, predicate_fields=fields)) == hits(table)


KEYS = {dt.IntType(): st.integers(-9, 9), dt.VarCharType(3): st.text("aé\U0001f600z", max_size=2)}


@settings(max_examples=80, deadline=None)
@given(st.data(), st.sampled_from(list(KEYS)), st.integers(1, 9), st.integers(1, 9))
def test_a_lookup_in_sorted_rows_equals_a_full_search(
    data: st.DataObject, kind: dt.DataType, block_rows: int, batch_rows: int
) -> None:
    fields = fields_of([kind, dt.IntType(), dt.IntType(), dt.IntType()])
    keys = data.draw(st.lists(KEYS[kind], max_size=30).map(lambda found: sorted(found, key=_in_bytes)))
    table = pa.table([keys, *[range(len(keys))] * 3], arrow_schema(fields))
    content, _ = write_file(fields, table, block_rows=block_rows)
    literals = data.draw(st.lists(KEYS[kind] | st.none(), min_size=1, max_size=3))
    key = fields[0].name
    predicate = In(key, literals) if len(literals) > 1 else Compare(key, Operator.EQ, literals[0])
    asked = {"predicate": predicate, "predicate_fields": fields[:1], "batch_rows": batch_rows, "ascending": key}
    found = read(content, fields, **asked)
    assert found.filter(evaluate(predicate, found)).equals(table.filter(evaluate(predicate, table)))


def _in_bytes(value: int | str) -> int | bytes:
    return value.encode() if isinstance(value, str) else value


def test_no_page_after_a_lookup_key_is_decoded() -> None:
    fields = fields_of([dt.IntType()] * 4)
    content, _ = write_file(fields, pa.table([range(100_000)] * 4, arrow_schema(fields)))
    chunk = pq.read_metadata(pa.BufferReader(content)).row_group(0).column(0)
    damaged = bytearray(content)
    damaged[chunk.data_page_offset + chunk.total_compressed_size - 10] ^= 0xFF
    key = fields[0].name
    asked = {"predicate": Compare(key, Operator.EQ, 5), "predicate_fields": fields[:1]}
    assert read(bytes(damaged), fields, ascending=key, **asked).num_rows == 1
    with pytest.raises(CorruptTable):
        read(bytes(damaged), fields, **asked)


def test_footers_survive_the_rewriting() -> None:
    for file in find_golden_files("types_nested_parquet")[1]:
        data = file.read_bytes()
        footer = data[-8 - int.from_bytes(data[-8:-4], "little") : -8]
        assert encode(decode(footer)) == footer
        for last in (2, 4):
            assert encode_head(*decode_head(footer, last)) == footer


def test_compression_and_page_options() -> None:
    fields = fields_of([dt.VarCharType()])
    table = pa.Table.from_arrays([pa.array(["x"] * 5000)], schema=arrow_schema(fields))
    for name, stored in {"zstd": "ZSTD", "snappy": "SNAPPY", "none": "UNCOMPRESSED", "gzip": "GZIP"}.items():
        data, _ = write_file(fields, table, compression=name, options={"parquet.enable.dictionary": "false"})
        column = pq.read_metadata(pa.BufferReader(data)).row_group(0).column(0)
        assert (column.compression, column.has_dictionary_page) == (stored, False)
        assert read(data, fields).equals(table)
    with pytest.raises(Unsupported):
        write_file(fields, table, compression="lzo")


def test_a_mutated_page_is_detected() -> None:
    fields = fields_of([dt.VarBinaryType()])
    table = pa.Table.from_arrays([pa.array([b"secret" * 50])], schema=arrow_schema(fields))
    data, _ = write_file(fields, table, compression="none")
    with pytest.raises(CorruptTable, match=PATH):
        read(data.replace(b"secret", b"sEcret", 1), fields)


def test_a_visible_null_in_a_required_part_is_refused() -> None:
    inner = DataField(1, "a", dt.IntType(nullable=False))
    fields = (DataField(0, "r", dt.RowType((inner,))),)
    kind = arrow_schema(fields).field(0).type
    hidden = pa.Table.from_arrays([pa.array([{"a": 1}, None], kind)], schema=arrow_schema(fields))
    assert read(write_file(fields, hidden)[0], fields).to_pylist() == hidden.to_pylist()
    with pytest.raises(InvalidRequest):
        write_file(fields, pa.Table.from_arrays([pa.array([{"a": None}], kind)], schema=arrow_schema(fields)))


def test_missing_variants_are_null() -> None:
    fields = fields_of([dt.VariantType()])
    schema = arrow_schema(fields)
    variants = [None, {"value": b"\x0c\x01", "metadata": b"\x01\x00\x00"}, None]
    table = pa.Table.from_arrays([pa.array(variants, schema.field(0).type)], schema=schema)
    assert read(write_file(fields, table)[0], fields).to_pylist() == table.to_pylist()


def test_a_null_in_a_required_column_is_refused() -> None:
    fields = fields_of([dt.IntType(nullable=False)])
    with pytest.raises(InvalidRequest, match=PATH):
        write_file(fields, pa.Table.from_arrays([pa.array([None], pa.int32())], schema=arrow_schema(fields)))


def test_a_row_without_fields_is_refused() -> None:
    fields = fields_of([dt.ArrayType(element=dt.RowType(fields=()))])
    with pytest.raises(Unsupported, match=r"file\.format=avro"):
        write_file(fields, arrow_schema(fields).empty_table())


def test_storage_errors_pass_unchanged() -> None:
    fields = fields_of([dt.VarBinaryType()])
    table = pa.Table.from_arrays([pa.array([b"x" * 1000])], schema=arrow_schema(fields))
    sink = _Full(MemoryFiles().create(PATH))
    with pytest.raises(StorageError, match="full"):
        writer = FORMAT.writer(sink, WriteRequest(PATH, fields))
        writer.write(table)
        writer.close()
    writer.abort()
    source = pa.PythonFile(_Broken(), "r")
    with pytest.raises(StorageError, match="gone"):
        list(FORMAT.read(source, ReadRequest(PATH, fields)))


class _Full:
    """A sink that takes little."""

    def __init__(self, inner) -> None:
        self.inner, self.left = inner, 100

    def write(self, data: bytes) -> int:
        self.left -= len(data)
        if self.left < 0:
            raise StorageError(PATH, "the disk is full")
        return self.inner.write(data)

    def __getattr__(self, name: str):
        return getattr(self.inner, name)


class _Broken:
    """A source whose storage is no longer reachable."""

    closed = False

    def seek(self, *_: int) -> int:
        return 0

    def tell(self) -> int:
        return 1_000

    def read(self, size: int = -1) -> bytes:
        raise StorageError(PATH, "the storage is gone")

    def close(self) -> None:
        pass


def test_files_of_other_writers() -> None:
    """Other units, large strings, dictionaries and lists with other names can be read too."""
    sink = pa.BufferOutputStream()
    when = datetime(1969, 12, 31, 23, 59, 59)
    foreign = pa.table({
        "c0": pa.array([when], pa.timestamp("us")), "c1": pa.array(["x"], pa.large_string()),
        "c2": pa.array(["d"]).dictionary_encode(), "c3": pa.array([[1]], pa.list_(pa.field("array", pa.int32()))),
    })  # fmt: skip
    pq.write_table(foreign, sink, use_compliant_nested_type=False)
    fields = fields_of([dt.TimestampType(0), dt.VarCharType(), dt.VarCharType(), dt.ArrayType(dt.IntType())])
    table = read(sink.getvalue().to_pybytes(), fields)
    assert table.to_pylist() == [{"c0": when, "c1": "x", "c2": "d", "c3": [1]}]
    predicate = Compare("c0", Operator.EQ, -1_000_000_000)
    assert read(sink.getvalue().to_pybytes(), fields, predicate=predicate, predicate_fields=fields).num_rows == 1


def test_estimates_grow_with_the_written_rows() -> None:
    fields = fields_of([dt.BigIntType()])
    writer = FORMAT.writer(MemoryFiles().create(PATH), WriteRequest(PATH, fields, block_bytes=10_000))
    sizes = []
    for start in range(0, 20_000, 1_000):
        writer.write(pa.Table.from_arrays([pa.array(range(start, start + 1000))], schema=arrow_schema(fields)))
        sizes.append(writer.estimated_bytes())
    done = writer.close()
    assert sizes[-1] > sizes[0] > 0
    assert abs(sizes[-1] - done.size_bytes) < done.size_bytes * 0.5
