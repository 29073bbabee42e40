"""Row groups of Parquet files whose columns are encoded in tasks of an executor."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paimon.adapters.executors.local import SerialExecutor, ThreadExecutor
from paimon.adapters.formats.parquet import ParquetFormat
from paimon.adapters.formats.parquet.row_groups import ConcurrentRowGroups, SerialRowGroups
from paimon.adapters.formats.parquet.schema import make_write_schema, to_stored
from paimon.domain.errors import InvalidRequest
from paimon.domain.types import data_types as dt
from paimon.domain.types.arrow import arrow_schema
from paimon.domain.types.data_types import DataField
from paimon.ports.executor import Executor
from paimon.ports.formats import ReadRequest, WriteRequest
from paimon.testing.memory_files import MemoryFiles
from paimon.testing.strategies import arrow_tables, data_types, fields_of

PATH = "/t/data.parquet"
FIELDS = (
    DataField(0, "id", dt.BigIntType(nullable=False)),
    DataField(1, "x", dt.DoubleType()),
    DataField(2, "s", dt.VarCharType(length=100)),
    DataField(3, "l", dt.ArrayType(dt.IntType())),
    DataField(4, "none", dt.DoubleType()),
)
EXECUTORS = [SerialExecutor(), ThreadExecutor(2)]


def make_rows(count: int) -> pa.Table:
    """Rows of which one column has no bounds, so that its page index has none either."""
    numbers = np.random.default_rng(count).integers(0, 1 << 40, count)
    lists = pa.array([[n % 7, None] if n % 3 else None for n in range(count)], pa.list_(pa.int32()))
    texts = pa.array([f"text {n % 1000}" for n in range(count)])
    columns = [numbers, numbers / 7, texts, lists, np.full(count, np.nan)]
    return pa.table([pa.array(c) for c in columns], [f.name for f in FIELDS]).cast(arrow_schema(FIELDS))


def write_file(rows: pa.Table, executor: Executor | None) -> bytes:
    files = MemoryFiles()
    writer = ParquetFormat().writer(files.create(PATH), WriteRequest(PATH, FIELDS, executor=executor))
    for start in range(0, rows.num_rows, 100_000):
        writer.write(rows.slice(start, 100_000))
    assert writer.close().row_count == rows.num_rows
    return files.read(PATH)


@settings(max_examples=40)
@given(data=st.data())
def test_both_ways_write_the_same_bytes(data: st.DataObject) -> None:
    fields = fields_of(data.draw(st.lists(data_types("parquet"), min_size=1, max_size=4)))
    tables = data.draw(st.lists(arrow_tables(fields, min_size=1), min_size=1, max_size=3))
    schema = make_write_schema(fields)
    options = {
        "compression": data.draw(st.sampled_from(["zstd", "none"])),
        "use_dictionary": data.draw(st.booleans()),
        "store_schema": False,
        "write_page_index": True,
        "write_page_checksum": True,
    }
    written = []
    for executor in (None, *EXECUTORS):
        sink = pa.BufferOutputStream()
        groups = (
            SerialRowGroups(sink, schema, options)
            if executor is None
            else ConcurrentRowGroups(sink, schema, options, executor)
        )
        for table in tables:
            columns = [to_stored(table[f.name].combine_chunks(), f.type) for f in fields]
            groups.write(pa.Table.from_arrays(columns, schema=schema))
        groups.close()
        written.append(sink.getvalue().to_pybytes())
    assert written[1] == written[0]
    assert written[2] == written[0]


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_large_file_does_not_depend_on_the_executor(executor: Executor) -> None:
    rows = make_rows(500_000)
    data = write_file(rows, executor)
    assert data == write_file(rows, None)
    batches = ParquetFormat().read(pa.BufferReader(data), ReadRequest(PATH, FIELDS))
    read = pa.Table.from_batches(batches, arrow_schema(FIELDS))
    assert read.drop_columns(["none"]).equals(rows.drop_columns(["none"]))
    assert pq.ParquetFile(pa.BufferReader(data)).metadata.row_group(0).column(0).has_column_index


def test_a_null_that_a_task_refuses_leaves_no_file() -> None:
    rows = make_rows(500_000)
    ids = pa.array(np.arange(500_000), mask=np.arange(500_000) == 499_999)
    files = MemoryFiles()
    request = WriteRequest(PATH, FIELDS, executor=ThreadExecutor(2))
    writer = ParquetFormat().writer(files.create(PATH), request)
    with pytest.raises(InvalidRequest, match="cannot be written as Parquet"):
        writer.write(rows.set_column(0, "id", ids))
        writer.close()
    writer.abort()
    assert files.status(PATH) is None


def test_only_large_groups_are_divided() -> None:
    used: list[int] = []

    class Counting(SerialExecutor):
        def map(self, function, tasks, discard=None):
            used.append(1)
            return super().map(function, tasks)

    write_file(make_rows(1_000), Counting())
    assert not used
    write_file(make_rows(500_000), Counting())
    assert used == [1]
