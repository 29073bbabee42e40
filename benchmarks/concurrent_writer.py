"""Run one of several processes that commit to one table concurrently.

Usage: `concurrent_writer.py LIBRARY FOLDER make`, `… write WRITER COMMITS`, `… threads WRITERS COMMITS` or `… read`.

A writer prints ``ready``, waits for a line, and commits row by row. For each row it prints ``acknowledged``,
``refused`` or ``failed`` with milliseconds and the reason. At the end it prints its seconds of CPU and wall time. A
reader prints the rows of the table.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

SCHEMA = pa.schema([("writer", pa.int64()), ("number", pa.int64())])
RACES = ("conflict", "concurrent", "retr", "lost the race", "transaction failed", "failed to commit")
"""Words of error messages about a commit that lost against concurrent commits."""
Write = Callable[[pa.Table], None]
Contest = tuple[Callable[[], Any], Callable[[], Write], Callable[[], pa.Table]]
"""Functions of a library that create the table, open it for writes, and read it."""


def connect_ours(folder: Path) -> Contest:
    """Return the functions of this library."""
    import paimon

    def _create() -> None:
        catalog = paimon.connect(folder)
        catalog.create_database("b", exist_ok=True)
        catalog.create_table("b.t", SCHEMA, options={"write-only": "true"})

    def _open_table() -> Any:
        return paimon.connect(folder).table("b.t")

    return _create, lambda: _open_table().write, lambda: _open_table().scan().to_arrow()


def connect_peer(folder: Path, native: bool = False) -> Contest:
    """Return the functions of pypaimon, in its default mode or with its native extension."""
    import libraries

    library = libraries.Peer(native)

    def _open_writer() -> Write:
        table = library.open_table(folder)
        return lambda rows: library.write(table, rows)

    def _read() -> pa.Table:
        builder = library.open_table(folder).new_read_builder()
        return builder.new_read().to_arrow(builder.new_scan().plan().splits())

    return lambda: library.create_table(folder, SCHEMA, [], [], {"write-only": "true"}), _open_writer, _read


def connect_delta(folder: Path) -> Contest:
    """Return the functions of delta-rs, which opens the newest version for each write."""
    import deltalake

    place = str(folder)

    def _write(rows: pa.Table) -> None:
        deltalake.write_deltalake(place, rows, mode="append")

    def _read() -> pa.Table:
        return pa.table(deltalake.DeltaTable(place).to_pyarrow_table())

    return lambda: deltalake.DeltaTable.create(place, deltalake.Schema.from_arrow(SCHEMA)), lambda: _write, _read


def connect_alone(folder: Path) -> Contest:
    """Return the functions of this library, whose writers name their user, so that no commits share a snapshot."""
    create, open_writer, read = connect_ours(folder)
    return create, lambda: partial(open_writer(), commit_user="writer"), read


CONTESTS: dict[str, Callable[[Path], Contest]] = {
    "ours": connect_ours,
    "ours-alone": connect_alone,
    "peer": connect_peer,
    "peer-native": lambda folder: connect_peer(folder, native=True),
    "delta": connect_delta,
}


def commit_rows(write: Write, writer: int, commits: int) -> Iterator[str]:
    """Commit row by row; after an error, continue with the next row.

    Parameters
    ----------
    write : callable
        Commits a table of rows.
    writer : int
        Number of this process.
    commits : int
        Number of rows.

    Yields
    ------
    str
        A line for each row, then a line with the seconds of CPU and wall time.
    """
    start, cpu = time.perf_counter(), time.process_time()
    for number in range(commits):
        started = time.perf_counter()
        try:
            write(pa.table({"writer": [writer], "number": [number]}, SCHEMA))
            status, reason = "acknowledged", ""
        except Exception as error:  # each library has its own errors, so the words of the message decide
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            status = "refused" if any(word in reason.lower() for word in RACES) else "failed"
        yield f"{writer} {number} {status} {1000 * (time.perf_counter() - started):.0f} {reason}"
    yield f"took {time.process_time() - cpu} {time.perf_counter() - start}"


def commit_in_threads(write: Write, writers: int, commits: int) -> Iterator[str]:
    """Commit as several writers that are threads of this process; the lines are those of `commit_rows`.

    Parameters
    ----------
    write : callable
        Commits a table of rows.
    writers : int
        Number of threads.
    commits : int
        Number of rows of each.

    Yields
    ------
    str
        The lines of all writers. The first one has the seconds of CPU of all.
    """
    cpu = time.process_time()
    with ThreadPoolExecutor(writers) as pool:
        done = list(pool.map(lambda writer: list(commit_rows(write, writer, commits)), range(writers)))
    cpu = time.process_time() - cpu
    for writer, lines in enumerate(done):
        yield from lines[:-1]
        yield f"took {0 if writer else cpu} {lines[-1].split()[2]}"


def main(library: str, folder: str, mode: str, *more: str) -> None:
    """Run the process in a mode: ``make``, ``write``, ``threads`` or ``read``.

    Parameters
    ----------
    library : str
        A name in `CONTESTS`.
    folder : str
        Directory of the warehouse.
    mode : str
        The mode.
    *more : str
        The number of the writer (of the writers, in mode ``threads``) and of its commits.
    """
    create, open_writer, read = CONTESTS[library](Path(folder))
    if mode == "make":
        create()
    elif mode in ("write", "threads"):
        write = open_writer()
        print("ready", flush=True)
        sys.stdin.readline()
        for line in (commit_rows if mode == "write" else commit_in_threads)(write, int(more[0]), int(more[1])):
            print(line, flush=True)
    else:
        rows = read().select(["writer", "number"]).to_pydict()
        for writer, number in zip(rows["writer"], rows["number"], strict=True):
            print(writer, number)


if __name__ == "__main__":
    main(*sys.argv[1:])
