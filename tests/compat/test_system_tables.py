"""System tables have the columns, types and texts of pypaimon 2.1.0; those of the package `paimon` stay Java's."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import paimon.compat

COLUMNS = {
    "buckets": "partition STRING, bucket INT!, record_count BIGINT!, file_size_in_bytes BIGINT!, file_count BIGINT!, "
    "last_update_time TIMESTAMP(3)",
    "files": "partition STRING, bucket INT!, file_path STRING!, file_format STRING!, schema_id BIGINT!, level INT!, "
    "record_count BIGINT!, file_size_in_bytes BIGINT!, min_key STRING, max_key STRING, null_value_counts STRING!, "
    "min_value_stats STRING!, max_value_stats STRING!, min_sequence_number BIGINT, max_sequence_number BIGINT, "
    "creation_time TIMESTAMP(3), deleteRowCount BIGINT, file_source STRING, first_row_id BIGINT, "
    "write_cols ARRAY<STRING>",
    "manifests": "file_name STRING!, file_size BIGINT!, num_added_files BIGINT!, num_deleted_files BIGINT!, "
    "schema_id BIGINT!, min_partition_stats STRING, max_partition_stats STRING, min_row_id BIGINT, max_row_id BIGINT",
    "options": "key STRING!, value STRING!",
    "partitions": "partition STRING, record_count BIGINT!, file_size_in_bytes BIGINT!, file_count BIGINT!, "
    "last_update_time TIMESTAMP(3), created_at TIMESTAMP(3), created_by STRING, updated_by STRING, options STRING, "
    "total_buckets INT!, done BOOLEAN!, deleted_record_count BIGINT",
    "schemas": "schema_id BIGINT!, fields STRING!, partition_keys STRING!, primary_keys STRING!, options STRING!, "
    "comment STRING, update_time TIMESTAMP(3)!",
    "snapshots": "snapshot_id BIGINT!, schema_id BIGINT!, commit_user STRING!, commit_identifier BIGINT!, "
    "commit_kind STRING!, commit_time TIMESTAMP(3)!, base_manifest_list STRING!, delta_manifest_list STRING!, "
    "changelog_manifest_list STRING, total_record_count BIGINT, delta_record_count BIGINT, "
    "changelog_record_count BIGINT, watermark BIGINT, next_row_id BIGINT, writer_version STRING",
    "tags": "tag_name STRING!, snapshot_id BIGINT!, schema_id BIGINT!, commit_time TIMESTAMP(3)!, "
    "record_count BIGINT, create_time TIMESTAMP(3), time_retained STRING",
}
"""The columns of pypaimon; those with an exclamation mark are not null."""
ROWS = pa.schema(
    [
        pa.field("id", pa.int32(), nullable=False),
        pa.field("day", pa.date32(), nullable=False),
        ("note", pa.string()),
        ("cents", pa.decimal128(6, 2)),
        ("data", pa.binary()),
    ]
)
DAYS = [datetime.date(2024, 1, 2), datetime.date(2024, 1, 1)]


@pytest.fixture
def catalog() -> Iterator[Any]:
    paimon.compat.install()
    from pypaimon import CatalogFactory, Schema

    made = CatalogFactory.create({"warehouse": "memory://system-tables"})
    made.create_database("d", True)
    options = {"bucket": "1", "deletion-vectors.enabled": "true"}
    schema = Schema.from_pyarrow_schema(ROWS, partition_keys=["day"], primary_keys=["id", "day"], options=options)
    made.create_table("d.t", schema, False)
    yield made
    made.drop_database("d", cascade=True)
    paimon.compat.uninstall()


def write(table: Any, ids: list[int], days: list[datetime.date]) -> None:
    builder = table.new_batch_write_builder()
    writer = builder.new_write()
    values = [{"id": i, "day": d, "note": "ä", "cents": i, "data": b"\xff"} for i, d in zip(ids, days, strict=True)]
    writer.write_arrow(pa.Table.from_pylist(values, schema=ROWS))
    builder.new_commit().commit(writer.prepare_commit())


def read(table: Any) -> list[dict[str, Any]]:
    builder = table.new_read_builder()
    rows: list[dict[str, Any]] = builder.new_read().to_arrow(builder.new_scan().plan().splits()).to_pylist()
    return rows


@pytest.mark.parametrize("name", COLUMNS)
def test_columns_are_those_of_pypaimon(catalog: Any, name: str) -> None:
    table = catalog.get_table(f"d.t${name}")
    shown = [f"{f.name} {str(f.type).replace(' NOT NULL', '!')}" for f in table.row_type().fields]
    assert ", ".join(shown) == COLUMNS[name]
    assert set(table.primary_keys()) <= set(table.field_names)
    before = table.new_read_builder().new_read().to_arrow([])
    write(table.base_table, [1, 2], DAYS)
    builder = table.new_read_builder()
    after = builder.new_read().to_arrow(builder.new_scan().plan().splits())
    assert before.schema == after.schema and after.column_names == table.field_names


def test_texts_are_those_of_pypaimon(catalog: Any) -> None:
    table = catalog.get_table("d.t")
    write(table, [1, 2, 3], [DAYS[0], *DAYS])
    write(table, [1], [DAYS[0]])  # it marks a row as deleted
    files = read(catalog.get_table("d.t$files"))
    assert {file["partition"] for file in files} == {"day=2024-01-01", "day=2024-01-02"}
    first = next(file for file in files if file["record_count"] == 2)
    assert (first["min_key"], first["max_key"], first["file_source"]) == ("[1]", "[2]", "0")
    assert first["min_value_stats"] == '{"id":1,"day":"2024-01-02","note":"ä","cents":"1.00","data":null}'
    assert json.loads(first["null_value_counts"]) == dict.fromkeys(ROWS.names, 0)

    buckets = [(row["partition"], row["bucket"]) for row in read(catalog.get_table("d.t$buckets"))]
    assert buckets == [("day=2024-01-01", 0), ("day=2024-01-02", 0)]
    partitions = {row["partition"]: row for row in read(catalog.get_table("d.t$partitions"))}
    found = partitions["day=2024-01-02"]
    assert (found["total_buckets"], found["done"], found["deleted_record_count"]) == (1, False, 1)
    assert (found["record_count"], partitions["day=2024-01-01"]["deleted_record_count"]) == (3, 0)

    snapshots = read(catalog.get_table("d.t$snapshots"))
    expected = [snapshot.time_millis for snapshot in table.snapshot_manager().list_snapshots()]
    utc = datetime.UTC
    assert [round(row["commit_time"].replace(tzinfo=utc).timestamp() * 1000) for row in snapshots] == expected
    assert json.loads(read(catalog.get_table("d.t$schemas"))[0]["options"])["bucket"] == "1"
    java = table.inner.system_table("files").scan(["partition", "min_key"]).to_arrow().to_pylist()
    assert {"partition": "{2024-01-02}", "min_key": "[1]"} in java


def test_rows_are_filtered_projected_and_limited(catalog: Any) -> None:
    write(catalog.get_table("d.t"), [1, 2], DAYS)
    builder = catalog.get_table("d.t$files").new_read_builder()
    condition = builder.new_predicate_builder().equal("partition", "day=2024-01-01")
    builder.with_filter(condition).with_projection(["partition", "record_count"]).with_limit(1)
    assert list(builder.new_read().to_iterator(builder.new_scan().plan().splits())) == [
        {"partition": "day=2024-01-01", "record_count": 1}
    ]


def test_partitions_of_other_types_have_python_texts(catalog: Any) -> None:
    from pypaimon import Schema

    columns = pa.schema([("id", pa.int32()), ("flag", pa.bool_()), ("rate", pa.float32())])
    catalog.create_table("d.p", Schema.from_pyarrow_schema(columns, partition_keys=["flag", "rate"]), False)
    builder = catalog.get_table("d.p").new_batch_write_builder()
    writer = builder.new_write()
    writer.write_arrow(pa.table({"id": [1], "flag": [True], "rate": [None]}, schema=columns))
    builder.new_commit().commit(writer.prepare_commit())
    assert read(catalog.get_table("d.p$partitions"))[0]["partition"] == "flag=True/rate=None"
    assert read(catalog.get_table("d.p$buckets"))[0]["partition"] == "flag=True/rate=__NULL__"
    assert read(catalog.get_table("d.p$manifests"))[0]["min_partition_stats"] is None
