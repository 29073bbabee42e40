"""A table with a primary key in partitions: upserts, filters, projections, limits and shards."""

import tempfile

import pyarrow as pa
from pypaimon import CatalogFactory, Schema

catalog = CatalogFactory.create({"warehouse": tempfile.mkdtemp()})
catalog.create_database("shop", True)

columns = pa.schema(
    [
        pa.field("day", pa.string(), nullable=False),
        pa.field("id", pa.int64(), nullable=False),
        ("state", pa.string()),
        ("amount", pa.decimal128(10, 2)),
    ]
)
options = {"bucket": "2"}
schema = Schema.from_pyarrow_schema(columns, partition_keys=["day"], primary_keys=["day", "id"], options=options)
catalog.create_table("shop.orders", schema, False)
table = catalog.get_table("shop.orders")


def upsert(rows):
    builder = table.new_batch_write_builder()
    writer, commit = builder.new_write(), builder.new_commit()
    writer.write_arrow(pa.Table.from_pylist(rows, schema=columns))
    commit.commit(writer.prepare_commit())
    writer.close()
    commit.close()


def order(day, number, state, cents):
    return {"day": day, "id": number, "state": state, "amount": pa.scalar(cents / 100).cast(columns[3].type).as_py()}


upsert([order("mon", i, "new", 100 * i) for i in range(1, 9)])
upsert([order("tue", i, "new", 50 * i) for i in range(1, 5)])
upsert([order("mon", i, "paid", 100 * i + 1) for i in (2, 4, 6)])


def show(title, builder, scan=None):
    splits = (scan or builder.new_scan()).plan().splits()
    rows = builder.new_read().to_arrow(splits).to_pylist()
    print(title, sorted(rows, key=str))
    return rows


predicates = table.new_read_builder().new_predicate_builder()
paid = predicates.equal("state", "paid")
monday = predicates.is_in("day", ["mon"])
large = predicates.or_predicates([predicates.greater_than("id", 6), predicates.between("id", 1, 2)])

show("paid:", table.new_read_builder().with_filter(paid).with_projection(["id", "amount"]))
both = predicates.and_predicates([monday, large])
show("monday, first or last:", table.new_read_builder().with_filter(both).with_projection(["id", "state"]))
show("names:", table.new_read_builder().with_filter(predicates.startswith("state", "pa")).with_projection(["id"]))
limited = table.new_read_builder().with_limit(3)
print("limit:", limited.new_read().to_arrow(limited.new_scan().plan().splits()).num_rows)

builder = table.new_read_builder().with_projection(["day", "id"])
parts = [builder.new_read().to_arrow(builder.new_scan().with_shard(i, 3).plan().splits()) for i in range(3)]
print("shards:", sorted(tuple(row.values()) for row in pa.concat_tables(parts).to_pylist()))
print("snapshots:", [(s.id, s.commit_kind) for s in table.snapshot_manager().list_snapshots()])
