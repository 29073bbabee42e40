"""Append Arrow data in commits, then read one month of it. Arguments: warehouse, rows."""

import sys

import pyarrow as pa

import paimon

warehouse, rows = sys.argv[1], int(sys.argv[2])
columns = pa.schema([("id", pa.int64()), ("month", pa.int32()), ("name", pa.string()), ("price", pa.float64())])

catalog = paimon.connect(warehouse)
catalog.create_database("shop", exist_ok=True)
table = catalog.create_table("shop.sales", columns)
for month in range(1, 6):
    numbers = range(month * rows, (month + 1) * rows)
    data = pa.table([numbers, [month] * rows, [f"item {i % 1000}" for i in numbers], [i / 7 for i in numbers]],
                    schema=columns)  # fmt: skip
    table.write(data)

frame = table.scan(columns=["id", "price"], where="month = 3").to_pandas()
print(len(frame), round(float(frame["price"].sum())))
