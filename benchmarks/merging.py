"""Which tables with merge engines are measured: written, read while their runs overlap, compacted, read again."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any, Protocol

ENGINES = ("deduplicate", "aggregation", "partial-update", "sequence-groups")
TIMES_BUDGET = 20
BUFFERS = (128, 16)
"""MiB of the write buffers that are measured."""
_MEMORY_SCALE = 3.0


class Bench(Protocol):
    """What runs the workers."""

    folder: Path
    libraries: list[str]
    repeat: int
    cap: float
    results: list[dict[str, Any]]

    def python(self, library: str) -> str:
        """The interpreter that has a library."""

    def compare(self, title: str, workload: str, source: Path | None, libraries: Any = ..., copied: bool = ...) -> None:
        """Measure the libraries in turn."""

    def table(self, workload: str) -> Path:
        """A table that this library wrote."""

    def worker(self, library: str, workload: str, folder: Path) -> dict[str, Any] | None:
        """One run in this folder."""

    def run(self, library: str, workload: str, source: Path | None, copied: bool) -> dict[str, Any] | None:
        """One run, in a copy of the source if asked."""


def engines(bench: Bench) -> None:
    """Writes and scans of ten overlapping runs."""
    for engine in ENGINES:
        if engine != "deduplicate":
            bench.compare(f"{engine} write", f"write-{engine}", None)
        table = bench.table(f"write-{engine}")
        bench.compare(f"{engine} scan, all columns", "scan-all", table)
        bench.compare(f"{engine} scan, 2 columns", "scan-2", table)


def upkeep(bench: Bench) -> None:
    """Full compaction and the scan after it; the peers compact nothing."""
    for engine in ENGINES:
        table = bench.table(f"write-{engine}")
        bench.compare(f"{engine} full compaction", "compact", table, ["limit", "ours"], copied=True)
        compacted = bench.folder / f"compacted-{engine}"
        if not compacted.exists():  # an earlier run may have left it in the folder
            shutil.copytree(table, compacted)
            bench.worker("ours", "compact", compacted)
            for old in _files(table):
                (compacted / old).unlink()  # what is left is what a scan reads, also of the limit
        bench.compare(f"{engine} compacted, all columns", "scan-all", compacted)
        bench.compare(f"{engine} compacted, 2 columns", "scan-2", compacted)


def changelogs(bench: Bench) -> None:
    """Ten commits of a table that tells changes by lookup, compacting as it writes."""
    for engine in ENGINES:
        bench.compare(f"{engine} lookup changelog", f"changelog-{engine}", None, ["limit", "ours"])


def _files(table: Path) -> list[Path]:
    return [file.relative_to(table) for file in table.glob("b.db/t/bucket-*/*.parquet")]


def memory(bench: Bench) -> None:
    """The peak of merges and writes many times as large as their budget. The last group to run, because it changes what
    workers are told."""
    os.environ |= {"BENCHMARK_SCALE": str(_MEMORY_SCALE), "BENCHMARK_BUCKETS": "1"}
    del os.environ["BENCHMARK_DATA"]  # its rows are of another scale
    for buffer in BUFFERS:
        _poured(bench, buffer)
    shutil.rmtree(bench.folder / "poured")
    for engine in ENGINES:  # of one bucket, so of ten runs
        table = bench.folder / f"large-{engine}"
        os.environ.pop("BENCHMARK_BUDGET", None)
        bench.worker("ours", f"write-{engine}", table)
        stored = sum((table / file).stat().st_size for file in _files(table)) >> 20
        budget = max(1, stored // TIMES_BUDGET)
        os.environ["BENCHMARK_BUDGET"] = f"{budget} mb"
        for workload in ("stream", "compact"):
            found = bench.worker("ours", workload, table)
            _tell(bench, f"{engine}, {workload}", f"{stored} MiB of files", budget, found)
        shutil.rmtree(table)


def _poured(bench: Bench, buffer: int) -> None:
    """One commit of far more rows than a write buffer of so many MiB holds, by the default budget."""
    folder = bench.folder / "poured"
    if not folder.exists():
        bench.worker("ours", "drawn", folder)
    os.environ["BENCHMARK_BUFFER"] = f"{buffer} mb"
    found = bench.worker("ours", "pour", folder)
    _tell(bench, f"write, buffer of {buffer} MiB", f"{round(200 * _MEMORY_SCALE)} MB of rows", buffer, found)


def _tell(bench: Bench, title: str, size: str, budget: int, found: dict[str, Any] | None) -> None:
    if found is None:
        return
    grown = found["grown_mib"]
    bench.results.append({"title": f"memory: {title}", "budget_mib": budget, "grown_mib": grown})
    print(
        f"{title:34}  {size}, budget {budget} MiB: peak {grown} MiB above imports = budget + {grown - budget}",
        flush=True,
    )


GROUPS = {"engines": engines, "upkeep": upkeep, "changelog": changelogs, "memory": memory}
