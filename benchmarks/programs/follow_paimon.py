"""Follow 20 commits in an event loop. Arguments: warehouse, rows."""

import asyncio
import sys

import pyarrow as pa

import paimon

warehouse, rows = sys.argv[1], int(sys.argv[2]) // 20
columns = pa.schema([("id", pa.int64()), ("name", pa.string())])

catalog = paimon.connect(warehouse)
catalog.create_database("shop", exist_ok=True)
options = {"continuous.discovery-interval": "10 ms"}
table = catalog.create_table("shop.events", columns, options=options)


def write(number):
    table.write(pa.table([range(rows), [f"event {number}"] * rows], schema=columns))


async def follow():
    found = 0
    with table.follow(until=20) as changes:
        async for batch in changes:
            found += batch.num_rows
            if found % rows == 0 and found < 20 * rows:
                write(found // rows + 1)
    return found


write(1)
print(asyncio.run(follow()))
