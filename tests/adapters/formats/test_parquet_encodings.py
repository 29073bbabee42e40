"""How the columns of our Parquet files are stored, and which rows an equality selects; no value changes."""

from __future__ import annotations

import hashlib
from decimal import Decimal

import duckdb
import numpy as np
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paimon.adapters.formats.parquet import ParquetFormat
from paimon.adapters.formats.parquet.writer import choose_dictionary_leaves
from paimon.domain.predicate.expression import And, Compare, In, Operator
from paimon.domain.types.arrow import arrow_schema, fields_from_arrow
from paimon.ports.formats import ReadRequest, WriteRequest
from paimon.testing.memory_files import MemoryFiles

PATH = "/t/data.parquet"
ROWS = 3_000
UNIQUE = pa.array(range(ROWS), pa.int64())
REPEATED = pa.array([f"city {i % 20}" for i in range(ROWS)])


def write_table(table: pa.Table, least_saving: float = 0.0, **options: str) -> bytes:
    files = MemoryFiles()
    fields = fields_from_arrow(table.schema)
    request = WriteRequest(PATH, fields, options=options, least_saving=least_saving)
    writer = ParquetFormat().writer(files.create(PATH), request)
    writer.write(table)
    writer.close()
    return files.read(PATH)


def with_dictionary(data: bytes) -> set[str]:
    group = pq.ParquetFile(pa.BufferReader(data)).metadata.row_group(0)
    columns = (group.column(i) for i in range(group.num_columns))
    return {column.path_in_schema for column in columns if column.has_dictionary_page}


def test_only_columns_that_repeat_values_get_a_dictionary():
    nested = pa.array([[{"a": i}] for i in range(ROWS)], pa.list_(pa.struct([("a", pa.int64())])))
    table = pa.table({"unique": UNIQUE, "repeated": REPEATED, "nested": nested})
    assert with_dictionary(write_table(table)) == {"repeated", "nested.list.element.a"}


@pytest.mark.parametrize(("asked", "found"), [("true", {"unique", "repeated"}), ("false", set())])
def test_an_option_decides_for_all_columns(asked, found):
    table = pa.table({"unique": UNIQUE, "repeated": REPEATED})
    assert with_dictionary(write_table(table, **{"parquet.enable.dictionary": asked})) == found


@pytest.mark.parametrize("options", [{}, {"parquet.enable.dictionary": "true"}])
def test_long_decimals_have_no_dictionary_because_java_skips_row_groups_by_it(options):
    kinds = {"long": pa.decimal128(19, 2), "short": pa.decimal128(18, 2)}
    table = pa.table({name: pa.array([Decimal("1.50")] * ROWS, kind) for name, kind in kinds.items()})
    table = table.append_column("nested", pa.array([[Decimal("1.50")]] * ROWS, pa.list_(kinds["long"])))
    assert with_dictionary(write_table(table, **options)) == {"short"}


def test_a_column_of_nulls_and_an_empty_file():
    nulls = pa.table({"a": pa.nulls(ROWS, pa.string())})
    assert choose_dictionary_leaves(nulls) == ["a"]
    assert pq.ParquetFile(pa.BufferReader(write_table(nulls.slice(0, 0)))).metadata.num_rows == 0


@settings(max_examples=30, deadline=None)
@given(st.lists(st.one_of(st.none(), st.integers(0, 3), st.integers(0, 1 << 40)), max_size=1500))
def test_rows_are_unchanged_with_any_encoding(values):
    table = pa.table({"a": pa.array(values, pa.int64()), "b": pa.array([str(v) for v in values], pa.string())})
    fields = fields_from_arrow(table.schema)
    batches = ParquetFormat().read(pa.BufferReader(write_table(table)), ReadRequest(PATH, fields))
    assert pa.Table.from_batches(batches, arrow_schema(fields)).to_pydict() == table.to_pydict()


MANY = 8_000
"""From this number of rows on, a file chooses its encodings and codecs."""
RANDOM = np.random.default_rng(27).integers(-(1 << 62), 1 << 62, MANY)
LAYOUTS = {
    "sorted": (np.cumsum(RANDOM % 1000), "delta", False),
    "random": (RANDOM, "plain", False),
    "texts": ([f"a text of {number % 5000}" for number in range(MANY)], "plain", True),
    "words": ([f"{number:x}" for number in RANDOM], "plain", True),
    "digests": ([hashlib.sha256(number.tobytes()).digest() for number in RANDOM], "plain", False),
    "floats": (RANDOM / 7, "plain", False),
}


def layout_of(data: bytes, leaf: str) -> tuple[str, bool]:
    """Return the encoding and whether the codec is used."""
    group = pq.read_metadata(pa.BufferReader(data)).row_group(0)
    (column,) = (group.column(i) for i in range(group.num_columns) if group.column(i).path_in_schema == leaf)
    has = "DELTA_BINARY_PACKED" in column.encodings
    assert column.compression in ("ZSTD", "UNCOMPRESSED")
    return "delta" if has else "plain", column.compression == "ZSTD"


def test_a_column_is_stored_in_the_way_that_saves_enough():
    data = write_table(pa.table({name: values for name, (values, _, _) in LAYOUTS.items()}), least_saving=0.2)
    assert {name: layout_of(data, name) for name in LAYOUTS} == {n: case[1:] for n, case in LAYOUTS.items()}


def test_options_and_short_files_keep_plain_values_and_one_codec():
    table = pa.table({"sorted": LAYOUTS["sorted"][0], "random": RANDOM})
    plain = write_table(table, **{"parquet.delta-integers": "false"})
    assert [layout_of(plain, name) for name in table.column_names] == [("plain", True)] * 2
    short = write_table(table.slice(0, MANY - 1), least_saving=0.2)
    assert [layout_of(short, name) for name in table.column_names] == [("plain", True)] * 2
    dictionaries = write_table(table, **{"parquet.enable.dictionary": "true"})
    assert layout_of(dictionaries, "sorted") == ("plain", True)
    without = write_table(table, **{"parquet.enable.dictionary": "false"})
    assert layout_of(without, "sorted") == ("delta", True)


INTEGERS = {
    pa.int8(): 1 << 7, pa.int16(): 1 << 15, pa.int32(): 1 << 31, pa.int64(): 1 << 63, pa.date32(): 1 << 20,
    pa.time32("ms"): 86_400_000, pa.timestamp("ms"): 1 << 45, pa.timestamp("us", "UTC"): 1 << 50,
    pa.timestamp("ns"): 1 << 55, pa.decimal128(9, 2): 10**9, pa.decimal128(18, 4): 10**18,
}  # fmt: skip


def make_integers(kind: pa.DataType, pattern: list[int | None], step: int) -> pa.Array:
    """Return a column of the type in which the pattern repeats, each time moved by a step, within the type's range."""
    most = INTEGERS[kind]
    least = 0 if pa.types.is_time(kind) else -most
    times = -(-MANY // len(pattern))
    cells = [None if n is None else least + (n + i * step) % (most - least) for i in range(times) for n in pattern]
    if pa.types.is_decimal(kind):
        return pa.array([None if n is None else Decimal(max(n, 1 - most)).scaleb(-kind.scale) for n in cells], kind)
    width = pa.int32() if pa.types.is_date(kind) or pa.types.is_time(kind) else pa.int64()
    return pa.array(cells, width).cast(kind) if pa.types.is_temporal(kind) else pa.array(cells, kind)


@settings(max_examples=8, deadline=None)
@given(
    st.lists(st.one_of(st.none(), st.integers(0, 1 << 64)), min_size=1, max_size=60),
    st.sampled_from([0, 1, 7, (1 << 40) + 1]),
)
def test_each_integer_is_read_as_written(pattern, step):
    table = pa.table({str(kind): make_integers(kind, pattern, step) for kind in INTEGERS})
    fields = fields_from_arrow(table.schema)
    table = table.cast(arrow_schema(fields))
    data = write_table(table, least_saving=0.2)
    read = pa.Table.from_batches(
        ParquetFormat().read(pa.BufferReader(data), ReadRequest(PATH, fields)), arrow_schema(fields)
    )
    assert read.equals(table)


def test_other_readers_return_the_same_integers(tmp_path):
    rows = pa.table({str(kind): make_integers(kind, [3, None, 1 << 62, 9], 7) for kind in INTEGERS})
    rows = rows.drop_columns(["timestamp[ns]"])  # INT96, which each reader turns into its own precision
    path = tmp_path / "data.parquet"
    path.write_bytes(write_table(rows, least_saving=0.2))
    assert pq.read_table(path).cast(rows.schema).equals(rows)
    assert polars.read_parquet(path).to_arrow().cast(rows.schema).equals(rows)
    with duckdb.connect() as connection:
        found = connection.sql(f"SELECT * FROM read_parquet('{path}')").to_arrow_table()
    times = pa.time64("us")  # as DuckDB stores them
    assert found.cast(rows.schema.set(5, pa.field("time32[ms]", times))).equals(
        rows.set_column(5, "time32[ms]", rows["time32[ms]"].cast(times))
    )


def looked_up(data: bytes, table: pa.Table, predicate) -> pa.Table:
    fields = fields_from_arrow(table.schema)
    request = ReadRequest(PATH, fields, predicate, fields[:1], batch_rows=7)
    return pa.Table.from_batches(ParquetFormat().read(pa.BufferReader(data), request), arrow_schema(fields))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 9), max_size=60), *[st.integers(0, 10)] * 2, st.sampled_from(["100", "1mb"]))
def test_an_equality_leaves_the_rows_from_its_first_match_to_its_last(keys, one, other, block):
    columns = {name: pa.array(range(len(keys)), pa.int64()) for name in "abc"}
    table = pa.table({"k": pa.array(keys, pa.int64()), **columns})
    data = write_table(table, **{"parquet.block.size": block})
    wanted = In("k", (one, other))
    found = looked_up(data, table, And((wanted, Compare("k", Operator.GE, 0))))
    matching = [i for i, key in enumerate(keys) if key in (one, other)]
    assert [row["a"] for row in found.to_pylist() if row["k"] in (one, other)] == matching
    assert found.equals(table.take(found["a"]))
    if block == "1mb":
        assert found.num_rows == (matching[-1] - matching[0] + 1 if matching else 0)


def test_an_inequality_skips_no_page():
    table = pa.table({name: pa.array([1, 2, 3], pa.int64()) for name in "kabc"})
    assert looked_up(write_table(table), table, In("k", (2,), negated=True)).equals(table)
