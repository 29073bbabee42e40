"""Create or extend a table with a long history: `make_history.py FOLDER SNAPSHOTS`.

Each commit updates one of fifty keys in one bucket, and commits compact. So the table has the same rows after any
number of snapshots. Its stored option is `write-only`, so that all libraries commit to it in the same way.
"""

from __future__ import annotations

import sys
from pathlib import Path

import maintenance

import paimon

OPTIONS = {"bucket": "1", "write-only": "true", "snapshot.time-retained": "3650 d", "snapshot.expire.limit": "1000000"}


def main(folder: str, snapshots: int) -> None:
    """Commit to the table in a folder until it has the given number of snapshots."""
    catalog = paimon.connect(Path(folder))
    catalog.create_database("b", exist_ok=True)
    catalog.create_table("b.t", maintenance.SCHEMA, primary_keys=["k"], options=OPTIONS, exist_ok=True)
    table = catalog.table("b.t", options={"write-only": "false"})
    newest = table.snapshot()
    number = newest.id if newest else 0
    while number < snapshots:
        result = table.write(maintenance.make_row(number))
        number = result.snapshot_ids[-1]
        if sys.stderr.isatty():
            print(f"\r{number} of {snapshots} snapshots", end="", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
