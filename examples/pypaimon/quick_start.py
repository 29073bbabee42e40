"""Create a table, write Arrow data and a data frame, and read them in several forms."""

import tempfile

import pandas as pd
import pyarrow as pa
from pypaimon import CatalogFactory, Schema

catalog = CatalogFactory.create({"warehouse": tempfile.mkdtemp()})
catalog.create_database("shop", True)

columns = pa.schema([("id", pa.int64()), ("item", pa.string()), ("price", pa.float64())])
catalog.create_table("shop.sales", Schema.from_pyarrow_schema(columns, comment="one row for each sale"), False)
table = catalog.get_table("shop.sales")


def write(data):
    builder = table.new_batch_write_builder()
    writer, commit = builder.new_write(), builder.new_commit()
    try:
        if isinstance(data, pd.DataFrame):
            writer.write_pandas(data)
        else:
            writer.write_arrow(data)
        commit.commit(writer.prepare_commit())
    finally:
        writer.close()
        commit.close()


write(pa.table({"id": [1, 2, 3], "item": ["pen", "ink", "paper"], "price": [1.5, 7.25, 3.0]}, schema=columns))
write(pd.DataFrame({"id": [4, 5], "item": ["brush", "easel"], "price": [4.0, 60.0]}))

builder = table.new_read_builder()
splits = builder.new_scan().plan().splits()
read = builder.new_read()

print("rows:", read.to_arrow(splits).num_rows)
print("frame:", read.to_pandas(splits).sort_values("id")["item"].tolist())
print("batches:", sum(batch.num_rows for batch in read.to_arrow_batch_reader(splits)))
print("rows one by one:", sorted(row.get_field(0) for row in read.to_iterator(splits)))
connection = read.to_duckdb(splits, "sales")
print("by SQL:", connection.execute("SELECT sum(price) FROM sales").fetchone())
print("comment:", table.comment())
print("columns:", [f"{field.name} {field.type}" for field in table.fields])
