"""What a table of many snapshots and files costs its keepers: the measured work, ours and the file system's alone."""

from __future__ import annotations

import json
import os
import statistics
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

KEYS = 50
SCHEMA = pa.schema([pa.field("k", pa.int64(), nullable=False), ("v", pa.string())])
"""Of the table with a long history: so many keys are updated again and again."""
COMMITS = 33
WARM = 3
"""So many commits of a process are not counted."""
LOOKS = 15
KEPT = 10
"""Snapshots that expiry leaves."""
GONE = "gone.json"
"""The file that names what an expiry deleted."""

Measured = Callable[[Callable[[], Any]], dict[str, Any]]


def row(number: int) -> pa.Table:
    """What one commit updates."""
    return pa.table({"k": [number % KEYS], "v": [f"value {number}"]}, SCHEMA)


def behind(library: Any, folder: Path, _: Measured) -> dict[str, Any]:
    """Medians, in milliseconds of wall and CPU time: a plan, a read of the newest state, and a commit of one row.

    Plans and reads begin with a table opened anew, of which nothing is remembered. Only this library can also keep the
    table up as it commits: a second figure.
    """
    looks: list[tuple[str, Callable[[Any], Any]]] = [("plan", library.plan), ("read", library.scan)]
    figures = {}
    for name, look in looks:
        look(library.open(folder))
        figures[name] = _medians([_timed(look, library.open(folder)) for _ in range(LOOKS)])
    table = library.open(folder)
    figures["commit"] = _commits(library, table)
    if library.name == "ours":
        figures["upkeep"] = _commits(library, table.with_options({"write-only": False}))
    return {"cpu": figures["commit"]["cpu"] / 1000, "wall": figures["commit"]["wall"] / 1000, "answer": figures}


def _commits(library: Any, table: Any) -> dict[str, float]:
    times = [_timed(lambda rows: library.write(table, rows), row(n)) for n in range(COMMITS)]
    return _medians(times[WARM:])


def _timed(work: Callable[[Any], Any], subject: Any) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    work(subject)
    return time.perf_counter() - wall, time.process_time() - cpu


def _medians(times: list[tuple[float, float]]) -> dict[str, float]:
    return {unit: 1000 * statistics.median(t[place] for t in times) for place, unit in enumerate(("wall", "cpu"))}


def expire(library: Any, folder: Path, measured: Measured) -> dict[str, Any]:
    """All snapshots but ten. The limit unlinks the very files, whose names it is told."""
    if library is None:
        gone = json.loads((folder / GONE).read_text())
        return measured(lambda: [os.unlink(folder / name) for name in gone] and len(gone))  # noqa: PTH108
    table = library.open(folder)
    return measured(lambda: table.maintain.expire_snapshots(retain_min=KEPT, retain_max=KEPT).snapshots)


def orphans(library: Any, folder: Path, measured: Measured) -> dict[str, Any]:
    """Find stray files. The limit walks through the table's directories and asks each file's age."""
    return _orphans(library, folder, measured, dry_run=True)


def clean(library: Any, folder: Path, measured: Measured) -> dict[str, Any]:
    """Find stray files and delete them."""
    return _orphans(library, folder, measured, dry_run=False)


def _orphans(library: Any, folder: Path, measured: Measured, dry_run: bool) -> dict[str, Any]:
    if library is None:
        return measured(lambda: _walk(folder / "b.db" / "t", dry_run))
    table = library.open(folder)
    return measured(lambda: table.maintain.remove_orphans(timedelta(0), dry_run=dry_run, allow_young=True).num_rows)


def _walk(root: Path, dry_run: bool) -> int:
    found = 0
    for entry in os.scandir(root):
        if entry.is_dir():
            found += _walk(Path(entry.path), dry_run)
        elif entry.stat().st_mtime > 0 and "stray" in entry.name:
            found += 1
            if not dry_run:
                os.unlink(entry.path)  # noqa: PTH108
    return found


def check(library: Any, folder: Path, measured: Measured) -> dict[str, Any]:
    """Prove that a table is whole. The limit asks each data file's size."""
    if library is None:
        files = _data_files(folder)
        return measured(lambda: sum(os.stat(f).st_size > 0 for f in files))  # noqa: PTH116
    return _check(library, folder, measured, deep=False)


def check_deep(library: Any, folder: Path, measured: Measured) -> dict[str, Any]:
    """Prove it by reading the data files. The limit reads each with pyarrow."""
    if library is None:
        files = _data_files(folder)
        return measured(lambda: sum(pq.ParquetFile(f).read().num_rows for f in files))
    return _check(library, folder, measured, deep=True)


def _check(library: Any, folder: Path, measured: Measured, deep: bool) -> dict[str, Any]:
    table = library.open(folder)
    result = measured(lambda: len(table.maintain.check(deep=deep).faults))
    if result["answer"]:
        raise ValueError(f"the check found {result['answer']} faults in a table that is whole")
    return result


def _data_files(folder: Path) -> list[str]:
    return [str(f) for f in (folder / "b.db" / "t").glob("**/*.parquet")]


WORKLOADS = {
    "behind": behind,
    "expire": expire,
    "orphans": orphans,
    "clean": clean,
    "check": check,
    "check-deep": check_deep,
}
