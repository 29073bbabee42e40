"""Which columns of our Parquet files have a dictionary, and which rows an equality selects; no value changes."""

from __future__ import annotations

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


def write_table(table: pa.Table, **options: str) -> bytes:
    files = MemoryFiles()
    fields = fields_from_arrow(table.schema)
    writer = ParquetFormat().writer(files.create(PATH), WriteRequest(PATH, fields, options=options))
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
