"""Measure reads, commits and maintenance of tables with many snapshots and files.

The limit of each maintenance work is what the file system alone needs for the same files. The functions are workloads
as `worker` describes them; their third parameter is `worker.measure`.
"""

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
"""Columns of the table with a long history, whose `KEYS` keys are updated repeatedly."""
COMMITS = 33
WARM_UP_COMMITS = 3
"""Commits at the start of a process that are not counted."""
REPEATS = 15
"""Number of plans and reads."""
RETAINED = 10
"""Number of snapshots after an expiry."""
DELETED_LIST = "deleted.json"
"""File with the names of the files that an expiry deletes."""

Measure = Callable[[Callable[[], Any]], dict[str, Any]]


def make_row(number: int) -> pa.Table:
    """Return the row of a commit by its number."""
    return pa.table({"k": [number % KEYS], "v": [f"value {number}"]}, SCHEMA)


def measure_history(library: Any, folder: Path, _: Measure) -> dict[str, Any]:
    """Measure a plan, a read of the latest snapshot, and a commit of one row.

    Each plan and each read opens the table again, without cached metadata. For this library, commits with maintenance
    are measured too. The figures are the seconds of a commit, and under ``"result"`` the medians of all work in
    milliseconds of wall and CPU time.
    """
    reads: list[tuple[str, Callable[[Any], Any]]] = [("plan", library.plan), ("read", library.scan)]
    figures = {}
    for name, read in reads:
        read(library.open_table(folder))
        figures[name] = _to_medians([_time(read, library.open_table(folder)) for _ in range(REPEATS)])
    table = library.open_table(folder)
    figures["commit"] = _time_commits(library, table)
    if library.name == "ours":
        figures["maintained commit"] = _time_commits(library, table.with_options({"write-only": False}))
    return {"cpu": figures["commit"]["cpu"] / 1000, "wall": figures["commit"]["wall"] / 1000, "result": figures}


def _time_commits(library: Any, table: Any) -> dict[str, float]:
    times = [_time(lambda rows: library.write(table, rows), make_row(n)) for n in range(COMMITS)]
    return _to_medians(times[WARM_UP_COMMITS:])


def _time(work: Callable[[Any], Any], subject: Any) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    work(subject)
    return time.perf_counter() - wall, time.process_time() - cpu


def _to_medians(times: list[tuple[float, float]]) -> dict[str, float]:
    return {unit: 1000 * statistics.median(t[place] for t in times) for place, unit in enumerate(("wall", "cpu"))}


def expire_snapshots(library: Any, folder: Path, measure: Measure) -> dict[str, Any]:
    """Measure an expiry of all snapshots but ten; the limit deletes the same files."""
    if library is None:
        names = json.loads((folder / DELETED_LIST).read_text())
        return measure(lambda: [os.unlink(folder / name) for name in names] and len(names))  # noqa: PTH108
    table = library.open_table(folder)
    return measure(lambda: table.maintain.expire_snapshots(retain_min=RETAINED, retain_max=RETAINED).snapshots)


def find_orphans(library: Any, folder: Path, measure: Measure) -> dict[str, Any]:
    """Measure a search for orphan files; the limit lists the directories and reads the age of each file."""
    return _measure_orphans(library, folder, measure, dry_run=True)


def delete_orphans(library: Any, folder: Path, measure: Measure) -> dict[str, Any]:
    """Measure a search for orphan files that deletes them."""
    return _measure_orphans(library, folder, measure, dry_run=False)


def _measure_orphans(library: Any, folder: Path, measure: Measure, dry_run: bool) -> dict[str, Any]:
    if library is None:
        return measure(lambda: _visit_files(folder / "b.db" / "t", dry_run))
    table = library.open_table(folder)
    return measure(lambda: table.maintain.remove_orphans(timedelta(0), dry_run=dry_run, allow_young=True).num_rows)


def _visit_files(root: Path, dry_run: bool) -> int:
    found = 0
    for entry in os.scandir(root):
        if entry.is_dir():
            found += _visit_files(Path(entry.path), dry_run)
        elif entry.stat().st_mtime > 0 and "orphan" in entry.name:
            found += 1
            if not dry_run:
                os.unlink(entry.path)  # noqa: PTH108
    return found


def check_table(library: Any, folder: Path, measure: Measure) -> dict[str, Any]:
    """Measure a check of a table; the limit reads the size of each data file."""
    if library is None:
        files = _list_data_files(folder)
        return measure(lambda: sum(os.stat(f).st_size > 0 for f in files))  # noqa: PTH116
    return _measure_check(library, folder, measure, deep=False)


def check_table_deep(library: Any, folder: Path, measure: Measure) -> dict[str, Any]:
    """Measure a check that reads the data files; the limit reads each with pyarrow."""
    if library is None:
        files = _list_data_files(folder)
        return measure(lambda: sum(pq.ParquetFile(f).read().num_rows for f in files))
    return _measure_check(library, folder, measure, deep=True)


def _measure_check(library: Any, folder: Path, measure: Measure, deep: bool) -> dict[str, Any]:
    table = library.open_table(folder)
    result = measure(lambda: len(table.maintain.check(deep=deep).faults))
    if result["result"]:
        raise ValueError(f"The check found {result['result']} faults in a table without faults.")
    return result


def _list_data_files(folder: Path) -> list[str]:
    return [str(f) for f in (folder / "b.db" / "t").glob("**/*.parquet")]


WORKLOADS = {
    "history": measure_history,
    "expire": expire_snapshots,
    "find-orphans": find_orphans,
    "delete-orphans": delete_orphans,
    "check": check_table,
    "check-deep": check_table_deep,
}
