"""Makes, or goes on with, a table of a long history: `history.py FOLDER SNAPSHOTS`.

Fifty keys in one bucket, updated one row a commit and compacted on the way: the table holds the same however many
snapshots lie behind it. As it stands it is `write-only`, so that all libraries commit to it alike.
"""

from __future__ import annotations

import sys
from pathlib import Path

import keeping

import paimon

OPTIONS = {"bucket": "1", "write-only": "true", "snapshot.time-retained": "3650 d", "snapshot.expire.limit": "1000000"}


def main(folder: str, snapshots: int) -> None:
    """Commit until there are so many."""
    catalog = paimon.connect(Path(folder))
    catalog.create_database("b", exist_ok=True)
    catalog.create_table("b.t", keeping.SCHEMA, primary_keys=["k"], options=OPTIONS, exist_ok=True)
    table = catalog.table("b.t", options={"write-only": "false"})
    newest = table.snapshot()
    number = newest.id if newest else 0
    while number < snapshots:
        done = table.write(keeping.row(number))
        number = done.snapshot_ids[-1]
        if sys.stderr.isatty():
            print(f"\r{number} of {snapshots} snapshots", end="", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
