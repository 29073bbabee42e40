"""Append Arrow data in commits, then read one month of it: written for pypaimon. Arguments: warehouse, rows."""

import sys

import pyarrow as pa
from pypaimon import CatalogFactory, Schema

warehouse, rows = sys.argv[1], int(sys.argv[2])
columns = pa.schema([("id", pa.int64()), ("month", pa.int32()), ("name", pa.string()), ("price", pa.float64())])

catalog = CatalogFactory.create({"warehouse": warehouse})
catalog.create_database("shop", True)
catalog.create_table("shop.sales", Schema.from_pyarrow_schema(columns), False)
table = catalog.get_table("shop.sales")
for month in range(1, 6):
    numbers = range(month * rows, (month + 1) * rows)
    data = pa.table([numbers, [month] * rows, [f"item {i % 1000}" for i in numbers], [i / 7 for i in numbers]],
                    schema=columns)  # fmt: skip
    builder = table.new_batch_write_builder()
    writer, commit = builder.new_write(), builder.new_commit()
    writer.write_arrow(data)
    commit.commit(writer.prepare_commit())
    writer.close()
    commit.close()

builder = table.new_read_builder()
builder = builder.with_filter(builder.new_predicate_builder().equal("month", 3)).with_projection(["id", "price"])
frame = builder.new_read().to_pandas(builder.new_scan().plan().splits())
print(len(frame), round(float(frame["price"].sum())))
