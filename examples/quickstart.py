"""Create a primary-key table, write, upsert, delete, read, and travel in time.

python examples/quickstart.py [WAREHOUSE]
"""

from __future__ import annotations

import sys
import tempfile

import paimon


def main(warehouse: str) -> None:
    """Run the example in a warehouse that has no table `shop.orders`."""
    catalog = paimon.connect(warehouse)
    catalog.create_database("shop", exist_ok=True)
    orders = catalog.create_table(
        "shop.orders",
        "id BIGINT NOT NULL, day STRING NOT NULL, amount DECIMAL(10, 2), note STRING",
        primary_keys=["id", "day"],
        partition_keys=["day"],
        options={"bucket": 2},
    )
    orders.write([{"id": i, "day": "2026-01-01", "amount": f"{i}.50", "note": "new"} for i in range(5)])
    orders.write([{"id": 3, "day": "2026-01-01", "amount": "99.00", "note": "corrected"}])
    orders.write([{"id": 0, "day": "2026-01-01", "op": "-D"}], kind_column="op")

    print(orders)
    print(orders.scan(where="amount > 2").to_arrow().to_pylist())
    print("before the correction:", orders.scan(where="id = 3", snapshot=1).to_arrow().to_pylist())
    print(orders.scan(where=paimon.col("day") == "2026-01-01").explain())
    for snapshot in orders.snapshots():
        print(snapshot.id, snapshot.commit_kind.value, snapshot.delta_record_count, "rows")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="paimon-quickstart-"))
