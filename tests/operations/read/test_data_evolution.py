"""Rows whose columns are in several files: data evolution, as Java writes it."""

from __future__ import annotations

import pyarrow as pa
import pytest
from support.golden_tables import golden_directory

import paimon

TABLE = golden_directory() / "data_evolution" / "table"
BLOBS = golden_directory() / "blob" / "table"


@pytest.fixture
def whole() -> pa.Table:
    table = paimon.open_table(TABLE)
    assert isinstance(table, paimon.Table)
    return table.scan().to_arrow()


def test_projections_and_filters_agree_with_the_complete_read(whole: pa.Table) -> None:
    table = paimon.open_table(TABLE)
    assert isinstance(table, paimon.Table)
    assert table.scan().count() == whole.num_rows
    for name in whole.schema.names:
        assert table.scan(columns=[name]).to_arrow()[name].to_pylist() == whole[name].to_pylist()
    for row in whole.to_pylist():
        expected = [r for r in whole.to_pylist() if (r["id"], r["b"]) == (row["id"], row["b"])]
        assert table.scan(where=f"id = {row['id']} AND b = '{row['b']}'").to_arrow().to_pylist() == expected


def test_blob_columns_are_read_with_and_without_others() -> None:
    table = paimon.open_table(BLOBS)
    assert isinstance(table, paimon.Table)
    whole = table.scan().to_arrow()
    assert whole.num_rows == table.scan().count() == 12 and whole["pic"].null_count == 0
    assert table.scan(columns=["pic"]).to_arrow()["pic"].to_pylist() == whole["pic"].to_pylist()
    assert table.scan(columns=["id", "name"]).to_arrow() == whole.select(["id", "name"])
    builder = table.new_read_builder()
    read = builder.new_read()
    shards = [read.to_arrow(builder.new_scan().with_shard(i, 5).plan().splits()) for i in range(5)]
    assert pa.concat_tables(shards) == whole
