"""Follow 20 commits in an event loop: written for pypaimon. Arguments: warehouse, rows."""

import asyncio
import sys

import pyarrow as pa
from pypaimon import CatalogFactory, Schema

warehouse, rows = sys.argv[1], int(sys.argv[2]) // 20
columns = pa.schema([("id", pa.int64()), ("name", pa.string())])

catalog = CatalogFactory.create({"warehouse": warehouse})
catalog.create_database("shop", True)
catalog.create_table("shop.events", Schema.from_pyarrow_schema(columns), False)
table = catalog.get_table("shop.events")


def write(number):
    data = pa.table([range(rows), [f"event {number}"] * rows], schema=columns)
    builder = table.new_batch_write_builder()
    writer, commit = builder.new_write(), builder.new_commit()
    writer.write_arrow(data)
    commit.commit(writer.prepare_commit())
    writer.close()
    commit.close()


async def follow():
    builder = table.new_stream_read_builder().with_poll_interval_ms(10)
    scan, read, found = builder.new_streaming_scan(), builder.new_read(), 0
    async for plan in scan.stream():
        found += read.to_arrow(plan.splits()).num_rows
        if scan.next_snapshot_id > 20:
            break
        write(scan.next_snapshot_id)
    return found


write(1)
print(asyncio.run(follow()))
