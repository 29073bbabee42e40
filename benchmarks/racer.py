"""One of several processes that commit to one table at once: `racer.py LIBRARY FOLDER make`, `… write WRITER COMMITS`,
`… read`.

A writer says ``ready``, waits for a line, commits row by row, and prints each row when it is told what became of it:
``acknowledged``, ``refused`` or ``failed``, with its milliseconds and the reason; at last its seconds of CPU and wall
time. A reader prints the rows that are there.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

SCHEMA = pa.schema([("writer", pa.int64()), ("number", pa.int64())])
RACES = ("conflict", "concurrent", "retr", "lost the race", "transaction failed", "failed to commit")
"""Words of errors that say that others were faster."""
Write = Callable[[pa.Table], None]
Contest = tuple[Callable[[], Any], Callable[[], Write], Callable[[], pa.Table]]
"""How a library makes the table, opens it to write, and reads it."""


def ours(folder: Path) -> Contest:
    """This library, with the table's own options."""
    import paimon

    def make() -> None:
        catalog = paimon.connect(folder)
        catalog.create_database("b", exist_ok=True)
        catalog.create_table("b.t", SCHEMA, options={"write-only": "true"})

    def table() -> Any:
        return paimon.connect(folder).table("b.t")

    return make, lambda: table().write, lambda: table().scan().to_arrow()


def peer(folder: Path, native: bool = False) -> Contest:
    """pypaimon, by default or with its native extension."""
    import worker

    library = worker.Peer(native)

    def opened() -> Write:
        table = library.open(folder)
        return lambda rows: library.write(table, rows)

    def read() -> pa.Table:
        builder = library.open(folder).new_read_builder()
        return builder.new_read().to_arrow(builder.new_scan().plan().splits())

    return lambda: library.make(folder, SCHEMA, [], [], {"write-only": "true"}), opened, read


def delta(folder: Path) -> Contest:
    """delta-rs, which opens the newest version for each write."""
    import deltalake

    place = str(folder)

    def write(rows: pa.Table) -> None:
        deltalake.write_deltalake(place, rows, mode="append")

    def read() -> pa.Table:
        return pa.table(deltalake.DeltaTable(place).to_pyarrow_table())

    return lambda: deltalake.DeltaTable.create(place, deltalake.Schema.from_arrow(SCHEMA)), lambda: write, read


CONTESTS: dict[str, Callable[[Path], Contest]] = {
    "ours": ours,
    "peer": peer,
    "peer-native": lambda folder: peer(folder, native=True),
    "delta": delta,
}


def race(write: Write, writer: int, commits: int) -> Iterator[str]:
    """Commit row by row; a library that gives up is told to go on with the next row."""
    start, cpu = time.perf_counter(), time.process_time()
    for number in range(commits):
        begun = time.perf_counter()
        try:
            write(pa.table({"writer": [writer], "number": [number]}, SCHEMA))
            answer, reason = "acknowledged", ""
        except Exception as error:  # whatever the library says: only its words tell a lost race
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            answer = "refused" if any(word in reason.lower() for word in RACES) else "failed"
        yield f"{writer} {number} {answer} {1000 * (time.perf_counter() - begun):.0f} {reason}"
    yield f"took {time.process_time() - cpu} {time.perf_counter() - start}"


def main(library: str, folder: str, what: str, *more: str) -> None:
    make, opened, read = CONTESTS[library](Path(folder))
    if what == "make":
        make()
    elif what == "write":
        write = opened()
        print("ready", flush=True)
        sys.stdin.readline()
        for line in race(write, int(more[0]), int(more[1])):
            print(line, flush=True)
    else:
        rows = read().select(["writer", "number"]).to_pydict()
        for writer, number in zip(rows["writer"], rows["number"], strict=True):
            print(writer, number)


if __name__ == "__main__":
    main(*sys.argv[1:])
