"""Create an append table of one-row files in 100 partitions: `make_files.py FOLDER [COMMITS]`.

By default it has 20,000 files in 200 commits.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa

import paimon

COMMITS = 200
PARTITIONS = 100


def main(folder: str, commits: int = COMMITS) -> None:
    """Create the table in a folder, with one commit of 100 files after the other."""
    catalog = paimon.connect(Path(folder))
    catalog.create_database("b", exist_ok=True)
    columns = pa.schema([("p", pa.int32()), ("v", pa.int64()), ("text", pa.string())])
    table = catalog.create_table("b.t", columns, partition_keys=["p"], options={"write-only": "true"})
    for commit in range(commits):
        values = [commit * PARTITIONS + p for p in range(PARTITIONS)]
        table.write(
            pa.table({"p": pa.array(range(PARTITIONS), pa.int32()), "v": values, "text": [f"row {v}" for v in values]})
        )
        if sys.stderr.isatty():
            print(f"\r{commit + 1} of {commits} commits", end="\n" if commit + 1 == commits else "", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
