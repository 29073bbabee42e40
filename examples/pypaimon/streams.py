"""Write a stream of commits, and follow it in an event loop with row kinds and a consumer."""

import asyncio
import tempfile

import pyarrow as pa
from pypaimon import CatalogFactory, Schema
from pypaimon.table.row.generic_row import GenericRow

catalog = CatalogFactory.create({"warehouse": tempfile.mkdtemp()})
catalog.create_database("shop", True)
columns = pa.schema([pa.field("id", pa.int64(), nullable=False), ("state", pa.string())])
options = {"bucket": "1", "changelog-producer": "input"}
catalog.create_table("shop.orders", Schema.from_pyarrow_schema(columns, primary_keys=["id"], options=options), False)
table = catalog.get_table("shop.orders")

builder = table.new_stream_write_builder()
writer, commit = builder.new_write(), builder.new_commit()


def write(identifier, *rows):
    for number, state in rows:
        writer.write_row(GenericRow([number, state], table.fields))
    commit.commit(writer.prepare_commit(identifier), identifier)


async def follow(last_snapshot, later):
    reader = table.new_stream_read_builder().with_poll_interval_ms(50).with_include_row_kind(True)
    reader = reader.with_consumer_id("dashboard")
    scan, read = reader.new_streaming_scan(), reader.new_read()
    async for plan in scan.stream():
        rows = read.to_arrow(plan.splits()).to_pylist()
        print("changes:", sorted(tuple(row.values()) for row in rows))
        if scan.next_snapshot_id > last_snapshot:
            return
        write(*later.pop(0))


write(1, (1, "new"), (2, "new"))
asyncio.run(follow(3, [(2, (1, "paid")), (3, (2, "sent"), (3, "new"))]))
writer.close()
commit.close()
reader = table.new_read_builder()
print("rows:", sorted(map(str, reader.new_read().to_arrow(reader.new_scan().plan().splits()).to_pylist())))
