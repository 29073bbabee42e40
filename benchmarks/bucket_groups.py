"""Compare the bucket modes: each library writes new keys and then updates into a table of each mode."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import merge_groups

MODES = ("fixed", "dynamic", "postponed", "cross-partition")
PHASES = {"new": "new keys", "update": "updates"}
_LONG_SECONDS = 60
"""Wall time above which work is not repeated."""

Figures = dict[str, Any]


class Bench(merge_groups.Bench, Protocol):
    """The part of a benchmark run that the group uses."""

    def print_row(self, title: str, measured: Mapping[str, Sequence[Figures]], workloads: Sequence[str] = ...) -> None:
        """Print a row of the table, and add it to the results.

        Parameters
        ----------
        title : str
            Name of the row.
        measured : mapping of str to sequence of dict
            The figures of all repeats by library.
        workloads : sequence of str
            Names of the work and of what must run before it. If they failed, the row has no figure of the library.
        """


class _Comparison:
    """The figures of all modes, phases and libraries; a state machine.

    Attributes
    ----------
    cross_table : Path, optional
        The first cross-partition table that this library wrote; the caller deletes it.
    """

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._found: dict[str, dict[str, list[Figures]]] = {}
        self._ended: set[tuple[str, str]] = set()
        self.cross_table: Path | None = None

    def run_mode(self, mode: str, library: str) -> None:
        """Write the new keys and the updates with one library, unless an earlier repeat failed or took long."""
        if (mode, library) in self._ended:
            return
        folder = Path(tempfile.mkdtemp(dir=self._bench.folder))
        done = all(self._run_phase(mode, phase, library, folder) for phase in PHASES)
        if not done or self._took_long(mode, library):
            self._ended.add((mode, library))
        if done and (mode != "postponed" or library == "ours"):
            self._check_rows(mode, library, folder)
        if done and (mode, library) == ("cross-partition", "ours") and self.cross_table is None:
            self.cross_table = folder
        else:
            shutil.rmtree(folder, ignore_errors=True)

    def print_rows(self) -> None:
        """Print a row for each mode and phase; the limit is the same in all of them."""
        for phase, name in PHASES.items():
            limits = self._found.get(f"buckets-fixed-{phase}", {}).get("limit", [])
            for mode in MODES:
                workload = f"buckets-{mode}-{phase}"
                needed = [f"buckets-{mode}-new", workload]
                self._bench.print_row(
                    f"{mode} buckets, {name}", {"limit": limits} | self._found.get(workload, {}), needed
                )
                if mode == "postponed":
                    compacted = {"limit": limits} | self._found.get(f"{workload}-compact", {})
                    self._bench.print_row(f"{mode} and compacted, {name}", compacted, [*needed, "buckets-compact"])

    def _run_phase(self, mode: str, phase: str, library: str, folder: Path) -> bool:
        workload = f"buckets-{mode}-{phase}"
        figures = self._bench.run_worker(library, workload, folder)
        if figures is None:
            return False
        self._add(workload, library, figures)
        if mode == "postponed" and library == "ours":
            moved = self._bench.run_worker(library, "buckets-compact", folder)
            if moved is None:
                return False
            self._add(f"{workload}-compact", library, _sum_figures(figures, moved))
        return True

    def _add(self, workload: str, library: str, figures: Figures) -> None:
        self._found.setdefault(workload, {}).setdefault(library, []).append(figures)

    def _took_long(self, mode: str, library: str) -> bool:
        walls = [self._found[f"buckets-{mode}-{phase}"][library][-1]["wall"] for phase in PHASES]
        return max(walls) > _LONG_SECONDS

    def _check_rows(self, mode: str, library: str, folder: Path) -> None:
        """Compare the number of rows that this library reads with the number of keys."""
        counted = self._bench.run_worker("ours", "buckets-count", folder)
        if counted is None or counted["result"] == counted["keys"]:
            return
        title = f"{mode} buckets of {library}: wrong rows"
        self._bench.results.append({"title": title, "rows": counted["result"], "keys": counted["keys"]})
        print(f"  {title}: {counted['result']:,} instead of {counted['keys']:,}", file=sys.stderr)


def _sum_figures(first: Figures, second: Figures) -> Figures:
    """Return the figures of two works in sequence: times are added, and of peaks the larger one counts."""
    sums = {name: first[name] + second[name] for name in ("cpu", "wall", "faults")}
    return sums | {name: max(first[name], second[name]) for name in ("peak_mib", "grown_mib")}


def measure_bucket_modes(bench: Bench) -> None:
    """Measure the writes into all bucket modes, the assignment alone, and the build of the key index."""
    bench.run_worker("limit", "buckets-rows", bench.folder)  # else the first writer would find the memory of this work
    comparison = _Comparison(bench)
    for _ in range(bench.repeat):
        for mode, library in _list_writes(bench.libraries):
            comparison.run_mode(mode, library)
    comparison.print_rows()
    if "ours" in bench.libraries:
        _measure_assignment(bench)
    if comparison.cross_table is not None:
        _measure_key_index(bench, comparison.cross_table)
        shutil.rmtree(comparison.cross_table)


def _list_writes(libraries: Sequence[str]) -> Iterable[tuple[str, str]]:
    """Return modes and libraries; fixed buckets of this library are the limit."""
    for mode in MODES:
        named = ("limit", "peer", "peer-native") if mode == "fixed" else ("ours", "peer", "peer-native")
        yield from ((mode, library) for library in named if library in libraries)


def _measure_assignment(bench: Bench) -> None:
    for name in ("new", "known"):
        runs = [bench.run_worker("ours", f"assign-{name}-keys", bench.folder) for _ in range(bench.repeat)]
        found = [figures for figures in runs if figures is not None]
        if not found:
            continue
        rate = round(max(figures["keys"] / figures["cpu"] for figures in found))
        title = f"assignment alone, {name} keys"
        bench.results.append({"title": title, "keys": found[0]["keys"], "keys_per_core_second": rate})
        print(f"{title:34}  {rate:,} keys a second and core", flush=True)


def _measure_key_index(bench: Bench, table: Path) -> None:
    """Measure the build of the key index of a table behind overlapping runs, and behind a full compaction."""
    bench.compare("key index and scan of the keys", "build-key-index", table, ["limit", "ours"])
    if bench.run_worker("ours", "compact", table) is not None:
        bench.compare("the same behind a full compaction", "build-key-index", table, ["limit", "ours"])


GROUPS = {"buckets": measure_bucket_modes}
