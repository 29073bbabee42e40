"""Upsert the same keys five times, then read them merged. Arguments: warehouse, rows."""

import sys

import pyarrow as pa

import paimon

warehouse, rows = sys.argv[1], int(sys.argv[2])
columns = pa.schema([pa.field("id", pa.int64(), nullable=False), ("round", pa.int32()), ("name", pa.string())])

catalog = paimon.connect(warehouse)
catalog.create_database("shop", exist_ok=True)
table = catalog.create_table("shop.stock", columns, primary_keys=["id"], options={"bucket": 4})
for number in range(5):
    data = pa.table([range(rows), [number] * rows, [f"item {i % 1000}" for i in range(rows)]], schema=columns)
    table.write(data)

merged = table.scan().to_arrow()
print(merged.num_rows, set(merged["round"].to_pylist()))
