"""Upsert the same keys five times, then read them merged: written for pypaimon. Arguments: warehouse, rows."""

import sys

import pyarrow as pa
from pypaimon import CatalogFactory, Schema

warehouse, rows = sys.argv[1], int(sys.argv[2])
columns = pa.schema([pa.field("id", pa.int64(), nullable=False), ("round", pa.int32()), ("name", pa.string())])

catalog = CatalogFactory.create({"warehouse": warehouse})
catalog.create_database("shop", True)
schema = Schema.from_pyarrow_schema(columns, primary_keys=["id"], options={"bucket": "4"})
catalog.create_table("shop.stock", schema, False)
table = catalog.get_table("shop.stock")
for number in range(5):
    data = pa.table([range(rows), [number] * rows, [f"item {i % 1000}" for i in range(rows)]], schema=columns)
    builder = table.new_batch_write_builder()
    writer, commit = builder.new_write(), builder.new_commit()
    writer.write_arrow(data)
    commit.commit(writer.prepare_commit())
    writer.close()
    commit.close()

builder = table.new_read_builder()
merged = builder.new_read().to_arrow(builder.new_scan().plan().splits())
print(merged.num_rows, set(merged["round"].to_pylist()))
