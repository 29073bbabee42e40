"""Measure tables with a long history: growth with the number of snapshots, expiry, orphan files and checks.

Tables are created once per run, and copied for work that changes them.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import maintenance
import make_files
from merge_groups import Bench

HERE = Path(__file__).resolve().parent
SNAPSHOTS = 10_000
EXPIRED = 1_000
ORPHANS = 100_000
CHECKED = 10_000
ENTRY_COMMITS = 100
MARKS = (10, 30, 100, 300, 1_000, 3_000, 10_000)
WORK = ("commit", "maintained commit", "plan", "read")
"""Measured work; a maintained commit compacts and expires too."""
LIBRARIES = ("ours", "peer", "peer-native")


def measure_growth(bench: Bench, scale: float) -> None:
    """Measure commits, plans and reads after 10 to 10,000 snapshots; all libraries use copies of the same table."""
    largest = max(int(SNAPSHOTS * scale), MARKS[0])
    for mark in sorted({m for m in MARKS if m <= largest} | {largest}):
        table = _make_history(bench, mark)
        for library in [x for x in LIBRARIES if x in bench.libraries]:
            runs = [bench.run_once(library, "history", table, copied=True) for _ in range(bench.repeat)]
            found = [f["result"] for f in runs if f is not None]
            figures = {
                work: {unit: min(f[work][unit] for f in found) for unit in ("cpu", "wall")}
                for work in WORK if found and work in found[0]
            }  # fmt: skip
            text = ", ".join(f"{work} {f['cpu']:.1f} ({f['wall']:.1f})" for work, f in figures.items())
            print(f"after {mark} snapshots, {library:12}: {text or '–'}   CPU (wall) ms", flush=True)
            bench.results.append(
                {"title": "long history", "snapshots": mark, "library": library, "figures": figures}
            )  # fmt: skip


def measure_expiry(bench: Bench, scale: float) -> None:
    """Measure an expiry of all snapshots but ten; the limit deletes the same files."""
    count = max(int(EXPIRED * scale), 10)
    table = bench.folder / f"expiry-{count}"
    if not table.exists():
        shutil.copytree(_make_history(bench, count + maintenance.RETAINED), table)
        trial = bench.folder / "expired"
        shutil.copytree(table, trial)
        bench.run_worker("ours", "expire", trial)
        deleted = sorted(_list_files(table) - _list_files(trial))
        shutil.rmtree(trial)
        (table / maintenance.DELETED_LIST).write_text(json.dumps(deleted))
    deleted_count = len(json.loads((table / maintenance.DELETED_LIST).read_text()))
    bench.compare(f"expiry of {count}, {deleted_count} files", "expire", table, ["limit", "ours"], copied=True)


def measure_orphans(bench: Bench, scale: float) -> None:
    """Measure a search for orphan files, and a search that deletes them."""
    count = int(ORPHANS * scale)
    table = bench.folder / f"orphans-{count}"
    if not table.exists():
        shutil.copytree(_make_history(bench, max(int(EXPIRED * scale), 10)), table)
        for number in range(count):
            (table / "b.db" / "t" / "bucket-0" / f"data-orphan-{number}.parquet").touch()
    bench.compare(f"orphans among {count} found", "find-orphans", table, ["limit", "ours"])
    bench.compare(f"orphans among {count} deleted", "delete-orphans", table, ["limit", "ours"], copied=True)


def measure_checks(bench: Bench, scale: float) -> None:
    """Measure checks of a table with many small files."""
    commits = max(int(CHECKED * scale) // make_files.PARTITIONS, 1)
    table = bench.folder / f"checked-{commits}"
    if not table.exists():
        _run_script("make_files.py", table, commits)
    count = commits * make_files.PARTITIONS
    bench.compare(f"fsck of {count} files", "check", table, ["limit", "ours"])
    bench.compare(f"fsck of {count} files, deep", "check-deep", table, ["limit", "ours"])


def measure_manifests(bench: Bench, scale: float) -> None:
    """Measure plans and checks of a table with a million files in 10,000 partitions, its commits, and its manifests."""
    commits = max(int(ENTRY_COMMITS * scale), 1)
    table = bench.folder / f"entries-{commits}"
    if not table.exists():
        make_files.make_entries(table, commits)
    title = f"{commits * make_files.ENTRY_PARTITIONS} files: "
    for name, workload in (("all", "plan-all"), ("one partition", "plan-partition"), ("one value", "plan-value")):
        bench.compare(title + name, workload, table, ["ours", "peer-native"])
    bench.compare(title + "slowest of 80 commits", "slowest-commit", table, ["ours"], copied=True)
    bench.compare(title + "manifests sorted", "sort-manifests", table, ["ours"], copied=True)
    bench.compare(title + "one partition, sorted", "plan-sorted", table, ["ours"], copied=True)
    bench.compare(title + "all rows of $files", "list-files", table, ["ours"])
    if not list(table.glob("b.db/t/p=0/bucket-0/*")):
        make_files.make_empty_files(table)
    bench.compare(title + "fsck", "check", table, ["ours"])


def _make_history(bench: Bench, snapshots: int) -> Path:
    """Return a table with a number of snapshots, which extends the longest existing table."""
    table = bench.folder / f"history-{snapshots}"
    if not table.exists():
        shorter = [f for f in bench.folder.glob("history-*") if int(f.name.partition("-")[2]) < snapshots]
        made = bench.folder / f"making-{snapshots}"
        shutil.rmtree(made, ignore_errors=True)
        if shorter:
            shutil.copytree(max(shorter, key=lambda f: int(f.name.partition("-")[2])), made)
        _run_script("make_history.py", made, snapshots)
        made.rename(table)
    return table


def _run_script(name: str, *arguments: Any) -> None:
    subprocess.check_call([sys.executable, str(HERE / name), *map(str, arguments)])


def _list_files(folder: Path) -> set[str]:
    return {str(f.relative_to(folder)) for f in folder.rglob("*") if f.is_file()}
