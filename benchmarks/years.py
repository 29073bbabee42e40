"""Which long-lived tables are measured: behind how many snapshots, what is expired, cleaned and checked.

Tables are made once a run and copied for whoever changes them.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import keeping
import many_files
from merging import Bench

HERE = Path(__file__).resolve().parent
SNAPSHOTS = 10_000
EXPIRED = 1_000
STRAY = 100_000
CHECKED = 10_000
MARKS = (10, 30, 100, 300, 1_000, 3_000, 10_000)
WORK = ("commit", "upkeep", "plan", "read")
"""The second is a commit that compacts and expires too."""
LIBRARIES = ("ours", "peer", "peer-native")


def histories(bench: Bench, scale: float) -> None:
    """A commit, a plan and a read of the newest state behind ever more snapshots; all libraries on the same table."""
    most = max(int(SNAPSHOTS * scale), MARKS[0])
    for mark in sorted({m for m in MARKS if m <= most} | {most}):
        table = _history(bench, mark)
        for library in [x for x in LIBRARIES if x in bench.libraries]:
            runs = [bench.run(library, "behind", table, copied=True) for _ in range(bench.repeat)]
            found = [f["answer"] for f in runs if f is not None]
            figures = {
                work: {unit: min(f[work][unit] for f in found) for unit in ("cpu", "wall")}
                for work in WORK if found and work in found[0]
            }  # fmt: skip
            told = ", ".join(f"{work} {f['cpu']:.1f} ({f['wall']:.1f})" for work, f in figures.items())
            print(f"behind {mark} snapshots, {library:12}: {told or '–'}   CPU (wall) ms", flush=True)
            bench.results.append(
                {"title": "behind", "snapshots": mark, "library": library, "figures": figures}
            )  # fmt: skip


def expiry(bench: Bench, scale: float) -> None:
    """Expiry of all snapshots but ten, beside the unlinking of the same files."""
    count = max(int(EXPIRED * scale), 10)
    table = bench.folder / f"expiry-{count}"
    if not table.exists():
        shutil.copytree(_history(bench, count + keeping.KEPT), table)
        tried = bench.folder / "expired"
        shutil.copytree(table, tried)
        bench.worker("ours", "expire", tried)
        gone = sorted(_files(table) - _files(tried))
        shutil.rmtree(tried)
        (table / keeping.GONE).write_text(json.dumps(gone))
    gone_count = len(json.loads((table / keeping.GONE).read_text()))
    bench.compare(f"expiry of {count}, {gone_count} files", "expire", table, ["limit", "ours"], copied=True)


def orphans(bench: Bench, scale: float) -> None:
    """Stray files found, and deleted."""
    count = int(STRAY * scale)
    table = bench.folder / f"stray-{count}"
    if not table.exists():
        shutil.copytree(_history(bench, max(int(EXPIRED * scale), 10)), table)
        for number in range(count):
            (table / "b.db" / "t" / "bucket-0" / f"data-stray-{number}.parquet").touch()
    bench.compare(f"orphans among {count} found", "orphans", table, ["limit", "ours"])
    bench.compare(f"orphans among {count} deleted", "clean", table, ["limit", "ours"], copied=True)


def checks(bench: Bench, scale: float) -> None:
    """A table of many small files proved whole."""
    commits = max(int(CHECKED * scale) // many_files.PARTITIONS, 1)
    table = bench.folder / f"checked-{commits}"
    if not table.exists():
        _script("many_files.py", table, commits)
    count = commits * many_files.PARTITIONS
    bench.compare(f"fsck of {count} files", "check", table, ["limit", "ours"])
    bench.compare(f"fsck of {count} files, deep", "check-deep", table, ["limit", "ours"])


def _history(bench: Bench, snapshots: int) -> Path:
    """The table behind so many snapshots; the same table grows from mark to mark."""
    table = bench.folder / f"history-{snapshots}"
    if not table.exists():
        shorter = [f for f in bench.folder.glob("history-*") if int(f.name.partition("-")[2]) < snapshots]
        made = bench.folder / f"making-{snapshots}"
        shutil.rmtree(made, ignore_errors=True)
        if shorter:
            shutil.copytree(max(shorter, key=lambda f: int(f.name.partition("-")[2])), made)
        _script("history.py", made, snapshots)
        made.rename(table)
    return table


def _script(name: str, *arguments: Any) -> None:
    subprocess.check_call([sys.executable, str(HERE / name), *map(str, arguments)])


def _files(folder: Path) -> set[str]:
    return {str(f.relative_to(folder)) for f in folder.rglob("*") if f.is_file()}
