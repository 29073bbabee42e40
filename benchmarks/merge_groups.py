"""Measure tables of all merge engines: writes, scans of overlapping runs, compactions, changelogs and memory."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any, Protocol

ENGINES = ("deduplicate", "aggregation", "partial-update", "sequence-groups")
TIMES_BUDGET = 20
BUFFERS = (128, 16)
"""Sizes of the measured write buffers in MiB."""
_MEMORY_SCALE = 3.0


class Bench(Protocol):
    """The part of a benchmark run that the groups use."""

    folder: Path
    libraries: list[str]
    repeat: int
    cap: float
    results: list[dict[str, Any]]

    def find_python(self, library: str) -> str:
        """Return the interpreter that has a library."""

    def compare(self, title: str, workload: str, source: Path | None, libraries: Any = ..., copied: bool = ...) -> None:
        """Measure the libraries one after the other, and print a row.

        Parameters
        ----------
        title : str
            Name of the row.
        workload : str
            Name of the work.
        source : Path or None
            The table that all libraries read; None if each writes to its own directory.
        libraries : sequence of str
            Libraries that can do the work.
        copied : bool
            Whether each library gets a copy of the source, which it can change.
        """

    def make_table(self, workload: str) -> Path:
        """Return a table that this library writes with a workload."""

    def run_worker(self, library: str, workload: str, folder: Path) -> dict[str, Any] | None:
        """Run a workload once in a directory.

        Parameters
        ----------
        library, workload : str
            Names of the library and of the work.
        folder : Path
            The directory.

        Returns
        -------
        dict or None
            The figures; None after a failure or a stop.
        """

    def run_once(self, library: str, workload: str, source: Path | None, copied: bool) -> dict[str, Any] | None:
        """Run a workload once, in the source, in a copy of it, or in a new directory.

        Parameters
        ----------
        library, workload : str
            Names of the library and of the work.
        source : Path or None
            The table.
        copied : bool
            Whether to copy the source first.

        Returns
        -------
        dict or None
            The figures; None after a failure or a stop.
        """


def measure_merge_engines(bench: Bench) -> None:
    """Measure writes of ten commits, and scans of their overlapping runs."""
    for engine in ENGINES:
        if engine != "deduplicate":
            bench.compare(f"{engine} write", f"write-{engine}", None)
        table = bench.make_table(f"write-{engine}")
        bench.compare(f"{engine} scan, all columns", "scan-all", table)
        bench.compare(f"{engine} scan, 2 columns", "scan-2", table)


def measure_compactions(bench: Bench) -> None:
    """Measure a full compaction and the scans after it; the peers do not compact."""
    for engine in ENGINES:
        table = bench.make_table(f"write-{engine}")
        bench.compare(f"{engine} full compaction", "compact", table, ["limit", "ours"], copied=True)
        compacted = bench.folder / f"compacted-{engine}"
        if not compacted.exists():  # a run with the same --folder has created it
            shutil.copytree(table, compacted)
            bench.run_worker("ours", "compact", compacted)
            for old in _files(table):
                (compacted / old).unlink()  # the limit reads all files, so only live files may remain
        bench.compare(f"{engine} compacted, all columns", "scan-all", compacted)
        bench.compare(f"{engine} compacted, 2 columns", "scan-2", compacted)


def measure_rescales(bench: Bench) -> None:
    """Measure a rescale to twice and to half the number of buckets; the peers read the table and overwrite it."""
    table = bench.make_table("write-deduplicate")
    for name in ("double", "half"):
        bench.compare(f"rescale to {name} the buckets", f"rescale-{name}", table, copied=True)


def measure_changelogs(bench: Bench) -> None:
    """Measure ten commits with a lookup changelog and with compaction during the writes."""
    for engine in ENGINES:
        bench.compare(f"{engine} lookup changelog", f"changelog-{engine}", None, ["limit", "ours"])


def _files(table: Path) -> list[Path]:
    return [file.relative_to(table) for file in table.glob("b.db/t/bucket-*/*.parquet")]


def measure_memory(bench: Bench) -> None:
    """Measure peak memory of merges and writes far above their budget; runs last, as it changes workers."""
    os.environ |= {"BENCHMARK_SCALE": str(_MEMORY_SCALE), "BENCHMARK_BUCKETS": "1"}
    del os.environ["BENCHMARK_DATA"]  # the stored rows have another scale
    for buffer in BUFFERS:
        _measure_large_commit(bench, buffer)
    shutil.rmtree(bench.folder / "large-commit")
    for engine in ENGINES:  # one bucket with ten runs
        table = bench.folder / f"large-{engine}"
        os.environ.pop("BENCHMARK_BUDGET", None)
        bench.run_worker("ours", f"write-{engine}", table)
        stored = sum((table / file).stat().st_size for file in _files(table)) >> 20
        budget = max(1, stored // TIMES_BUDGET)
        os.environ["BENCHMARK_BUDGET"] = f"{budget} mb"
        for workload in ("stream", "compact"):
            found = bench.run_worker("ours", workload, table)
            _report(bench, f"{engine}, {workload}", f"{stored} MiB of files", budget, found)
        shutil.rmtree(table)


def _measure_large_commit(bench: Bench, buffer: int) -> None:
    """Measure one commit of more rows than the write buffer of a number of MiB holds, with the default budget."""
    folder = bench.folder / "large-commit"
    if not folder.exists():
        bench.run_worker("ours", "make-rows", folder)
    os.environ["BENCHMARK_BUFFER"] = f"{buffer} mb"
    found = bench.run_worker("ours", "large-commit", folder)
    _report(bench, f"write, buffer of {buffer} MiB", f"{round(200 * _MEMORY_SCALE)} MB of rows", buffer, found)


def _report(bench: Bench, title: str, size: str, budget: int, found: dict[str, Any] | None) -> None:
    if found is None:
        return
    grown = found["grown_mib"]
    bench.results.append({"title": f"memory: {title}", "budget_mib": budget, "grown_mib": grown})
    print(
        f"{title:34}  {size}, budget {budget} MiB: peak {grown} MiB above imports = budget + {grown - budget}",
        flush=True,
    )


GROUPS = {
    "engines": measure_merge_engines,
    "compaction": measure_compactions,
    "rescale": measure_rescales,
    "changelog": measure_changelogs,
    "memory": measure_memory,
}
