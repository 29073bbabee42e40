"""Processes that each read one shard of a table read all its rows, each row once."""

from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow as pa
import pytest

import paimon


def make_table(root: Path, options: dict[str, object], primary_keys: tuple[str, ...] = ()) -> paimon.Table:
    catalog = paimon.connect(root)
    catalog.create_database("shop")
    return catalog.create_table(
        "shop.orders", "id BIGINT NOT NULL, name STRING", primary_keys=primary_keys, options=options
    )


def read_shards(table: paimon.Table, shards: int) -> list[pa.Table]:
    builder = table.new_read_builder()
    reader = pickle.loads(pickle.dumps(builder.new_read()))
    plans = [builder.new_scan().with_shard(shard, shards).plan() for shard in range(shards)]
    return [reader.to_arrow(pickle.loads(pickle.dumps(plan.splits()))) for plan in plans]


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_shards_of_an_append_table_divide_files_by_rows(tmp_path: Path, file_format: str) -> None:
    table = make_table(tmp_path, {"file.format": file_format, "write-only": "true"})
    for start in (0, 1000, 2000):
        table.write({"id": range(start, start + 1000), "name": [str(i) for i in range(1000)]})
    parts = read_shards(table, 7)
    assert {part.num_rows for part in parts} == {428, 429}
    assert pa.concat_tables(parts)["id"].to_pylist() == table.scan().to_arrow()["id"].to_pylist()


def test_shards_leave_out_rows_of_deletion_vectors(tmp_path: Path) -> None:
    table = make_table(tmp_path, {"deletion-vectors.enabled": "true", "bucket": "-1"})
    table.write({"id": range(100), "name": ["x"] * 100})
    table.delete(where="id IN (0, 33, 34, 99)")
    parts = read_shards(table, 3)
    assert sorted(pa.concat_tables(parts)["id"].to_pylist()) == [i for i in range(100) if i not in (0, 33, 34, 99)]
    assert [part.num_rows for part in parts] == [32, 32, 32]


def test_shards_of_a_table_with_a_primary_key_keep_merged_files_together(tmp_path: Path) -> None:
    table = make_table(tmp_path, {"bucket": "5", "write-only": "true"}, ("id",))
    for name in ("old", "new"):
        table.write({"id": range(200), "name": [name] * 200})
    parts = read_shards(table, 3)
    rows = pa.concat_tables(parts)
    assert sorted(rows["id"].to_pylist()) == list(range(200))
    assert set(rows["name"].to_pylist()) == {"new"}
    assert all(part.num_rows for part in parts)


def test_a_slice_counts_rows_before_the_filter(tmp_path: Path) -> None:
    table = make_table(tmp_path, {"write-only": "true"})
    table.write({"id": range(100), "name": ["x"] * 100})
    builder = table.new_read_builder().with_filter("id >= 50 OR id < 10")
    plan = builder.new_scan().with_slice(5, 60).plan()
    assert builder.new_read().to_arrow(plan.splits())["id"].to_pylist() == [*range(5, 10), *range(50, 60)]


def test_a_slice_of_merged_files_is_refused(tmp_path: Path) -> None:
    table = make_table(tmp_path, {"bucket": "1", "write-only": "true"}, ("id",))
    for name in ("old", "new"):
        table.write({"id": [1, 2], "name": [name] * 2})
    with pytest.raises(paimon.InvalidRequest, match="have no positions"):
        table.new_read_builder().new_scan().with_slice(0, 1).plan()


def test_counting_a_slice_reads_no_column(tmp_path: Path) -> None:
    table = make_table(tmp_path, {"write-only": "true"})
    table.write({"id": range(100), "name": ["x"] * 100})
    builder = table.new_read_builder().with_projection([])
    plan = builder.new_scan().with_slice(90, 200).plan()
    assert sum(batch.num_rows for batch in builder.new_read().to_batches(plan.splits())) == 10
