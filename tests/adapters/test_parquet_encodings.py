"""Which columns of our Parquet files have a dictionary, and that it changes no row."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paimon.adapters.formats.parquet import ParquetFormat
from paimon.adapters.formats.parquet.dictionary import dictionary_leaves
from paimon.domain.types.arrow import arrow_schema, fields_from_arrow
from paimon.ports.formats import ReadRequest, WriteRequest
from paimon.testing.memory_files import MemoryFiles

PATH = "/t/data.parquet"
ROWS = 3_000
UNIQUE = pa.array(range(ROWS), pa.int64())
REPEATED = pa.array([f"city {i % 20}" for i in range(ROWS)])


def written(table: pa.Table, **options: str) -> bytes:
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
    assert with_dictionary(written(table)) == {"repeated", "nested.list.element.a"}


@pytest.mark.parametrize(("asked", "found"), [("true", {"unique", "repeated"}), ("false", set())])
def test_an_option_decides_for_all_columns(asked, found):
    table = pa.table({"unique": UNIQUE, "repeated": REPEATED})
    assert with_dictionary(written(table, **{"parquet.enable.dictionary": asked})) == found


def test_a_column_of_nulls_and_an_empty_file():
    nulls = pa.table({"a": pa.nulls(ROWS, pa.string())})
    assert dictionary_leaves(nulls) == ["a"]
    assert pq.ParquetFile(pa.BufferReader(written(nulls.slice(0, 0)))).metadata.num_rows == 0


@settings(max_examples=30, deadline=None)
@given(st.lists(st.one_of(st.none(), st.integers(0, 3), st.integers(0, 1 << 40)), max_size=1500))
def test_rows_come_back_whatever_was_chosen(values):
    table = pa.table({"a": pa.array(values, pa.int64()), "b": pa.array([str(v) for v in values], pa.string())})
    fields = fields_from_arrow(table.schema)
    batches = ParquetFormat().read(pa.BufferReader(written(table)), ReadRequest(PATH, fields))
    assert pa.Table.from_batches(batches, arrow_schema(fields)).to_pydict() == table.to_pydict()
