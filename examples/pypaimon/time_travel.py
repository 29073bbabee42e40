"""Tags, branches, time travel and rollback."""

import tempfile

import pyarrow as pa
from pypaimon import CatalogFactory, Schema

catalog = CatalogFactory.create({"warehouse": tempfile.mkdtemp()})
catalog.create_database("shop", True)
columns = pa.schema([pa.field("item", pa.string(), nullable=False), ("pieces", pa.int32())])
catalog.create_table(
    "shop.stock", Schema.from_pyarrow_schema(columns, primary_keys=["item"], options={"bucket": "1"}), False
)


def write(name, **pieces):
    table = catalog.get_table(name)
    builder = table.new_batch_write_builder()
    writer, commit = builder.new_write(), builder.new_commit()
    rows = {"item": list(pieces), "pieces": list(pieces.values())}
    writer.write_arrow(pa.table(rows, schema=columns))
    commit.commit(writer.prepare_commit())
    writer.close()
    commit.close()


def read(table):
    builder = table.new_read_builder()
    rows = builder.new_read().to_arrow(builder.new_scan().plan().splits()).to_pylist()
    return dict(sorted((row["item"], row["pieces"]) for row in rows))


write("shop.stock", pen=5, ink=2)
table = catalog.get_table("shop.stock")
table.create_tag("monday")
write("shop.stock", pen=4, paper=9)
write("shop.stock", ink=0)

print("now:", read(table))
print("tag:", read(table.copy({"scan.tag-name": "monday"})))
print("snapshot 2:", read(table.copy({"scan.snapshot-id": "2"})))
print("tags:", table.list_tags(), "of snapshot", table.tag_manager().get("monday").id)

catalog.create_branch("shop.stock", "trial", "monday")
write("shop.stock$branch_trial", brush=7)
print("branch:", read(catalog.get_table("shop.stock$branch_trial")))
print("main is unchanged:", read(table))
print("branches:", catalog.list_branches("shop.stock"))

names = ["snapshot_id", "commit_kind", "total_record_count"]
builder = catalog.get_table("shop.stock$snapshots").new_read_builder().with_projection(names)
print("history:", builder.new_read().to_arrow(builder.new_scan().plan().splits()).to_pylist())

table.rollback_to("monday")
print("rolled back:", read(catalog.get_table("shop.stock")))
print("deleted:", table.delete_tag("monday"), table.delete_tag("monday"))
