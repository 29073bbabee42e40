"""Run the benchmarks of this library, of pypaimon in both modes, of delta-rs, and of the plain-file limit.

    python benchmarks/run.py                    everything (hours on 2 cores)
    python benchmarks/run.py scan lookup        the groups named
    python benchmarks/run.py --peer PYTHON      use a Python that has the peers (by default one is created)
    python benchmarks/run.py --json FILE        write the figures as JSON too
    python benchmarks/run.py --plot FILE        draw the curves of the group history as SVG

A figure is the CPU time in seconds of a process of its own, the least of `--repeat` runs, because other work on the
machine only adds to it. The libraries run one after the other. The ratio behind each figure is to the plain-file limit,
or to native pypaimon if there is no limit. All libraries scan the tables that this library wrote.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import bucket_groups
import concurrent_writers
import growth
import long_history
import merge_groups
import warm_up

HERE = Path(__file__).resolve().parent
LIBRARIES = ("limit", "ours", "peer", "peer-native")
_LONG_SECONDS = 60
"""Wall time above which work is not repeated; stopped work is not repeated either."""
_REFUSALS = ("ValueError:", "NotImplementedError:")
"""How the last line of a library that refuses a table begins; other errors are failures."""
MAINTENANCE_GROUPS = {
    "history": long_history.measure_growth,
    "expiry": long_history.measure_expiry,
    "orphans": long_history.measure_orphans,
    "fsck": long_history.measure_checks,
    "manifests": long_history.measure_manifests,
    "writers": concurrent_writers.measure_writers,
}
GROUPS = (
    *("write", "scan", "lookup", "append", "plan", "latency"),
    *MAINTENANCE_GROUPS,
    *bucket_groups.GROUPS,
    *merge_groups.GROUPS,
)


class Bench:
    """A run: starts workers, prints rows of a table, and collects the results."""

    def __init__(self, peer: str, repeat: int, folder: Path, libraries: list[str], cap: float) -> None:
        self._peer = peer
        self.repeat = repeat
        self.folder = folder
        self.libraries = libraries
        self.cap = cap
        self._stopped: set[str] = set()
        self._failures: dict[tuple[str, str], str] = {}
        self.results: list[dict[str, Any]] = []

    def find_python(self, library: str) -> str:
        """Return the interpreter that has a library."""
        return sys.executable if library in ("ours", "limit") else self._peer

    def run_worker(self, library: str, workload: str, folder: Path, capped: bool = True) -> dict[str, Any] | None:
        """Run a workload once in a directory.

        Parameters
        ----------
        library, workload : str
            Names of the library and of the work.
        folder : Path
            The directory.
        capped : bool
            Whether the worker is stopped after `cap` seconds.

        Returns
        -------
        dict or None
            The figures; None after a failure or a stop.
        """
        command = [self.find_python(library), str(HERE / "worker.py"), library, workload, str(folder)]
        try:
            cap = self.cap if capped else None
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=cap)
        except subprocess.TimeoutExpired:
            self._stopped.add(library)
            self._failures[library, workload] = f"stopped at {self.cap:.0f} s"
            print(f"  {library} {workload} was stopped after {self.cap:.0f} s", file=sys.stderr)
            return None
        if done.returncode:
            self._failures[library, workload] = message = (done.stderr.strip().splitlines() or [""])[-1]
            print(f"  {library} {workload} failed: {message}", file=sys.stderr)
            return None
        figures: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
        return figures

    def compare(
        self,
        title: str,
        workload: str,
        source: Path | None,
        libraries: Sequence[str] = LIBRARIES,
        copied: bool = False,
    ) -> None:
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
        chosen = [x for x in libraries if x in self.libraries]
        figures: dict[str, list[dict[str, Any]]] = {x: [] for x in chosen}
        self._stopped.clear()
        self._failures.clear()
        for library in chosen * self.repeat:
            if library in self._stopped or any(found["wall"] > _LONG_SECONDS for found in figures[library]):
                continue
            result = self.run_once(library, workload, source, copied)
            if result is not None:
                figures[library].append(result)
        self.print_row(title, figures, [workload])

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
        folder = source if source and not copied else Path(tempfile.mkdtemp(dir=self.folder))
        if source and copied:
            shutil.copytree(source, folder, dirs_exist_ok=True)
        result = self.run_worker(library, workload, folder)
        if folder != source:
            shutil.rmtree(folder, ignore_errors=True)
        return result

    def print_row(
        self, title: str, measured: Mapping[str, Sequence[dict[str, Any]]], workloads: Sequence[str] = ()
    ) -> None:
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
        found = {library: _summarize(repeats) for library, repeats in measured.items() if repeats}
        failures = {x: self._failures[x, work] for work in workloads for x in LIBRARIES if (x, work) in self._failures}
        base = found.get("limit") or found.get("peer-native")
        cells = []
        for library in LIBRARIES:
            figure = found.get(library)
            if figure and base:
                figure["ratio"] = figure["cpu"] / base["cpu"]
            cells.append(_format_cell(figure) if figure else _name_failure(failures.get(library)))
        print("  ".join([f"{title:34}", *(f"{cell:>25}" for cell in cells)]), flush=True)
        missing = {x: message for x, message in failures.items() if x not in found}
        row = {"title": title, "base": "limit" if "limit" in found else "peer-native", "figures": found}
        self.results.append(row | ({"failures": missing} if missing else {}))

    def make_table(self, workload: str) -> Path:
        """Return a table that this library writes with a workload."""
        folder = self.folder / f"table-{workload}"
        if not folder.exists() and self.run_worker("ours", workload, folder, capped=False) is None:
            sys.exit(f"Workload {workload!r} failed: this library could not write its table.")
        return folder

    def measure_latencies(self, workload: str) -> None:
        """Measure the median commit at the start and at the end of many; commits that merge manifests count apart."""
        for library in [x for x in ("ours", "peer", "peer-native") if x in self.libraries]:
            folder = Path(tempfile.mkdtemp(dir=self.folder))
            result = self.run_worker(library, workload, folder)
            if result is not None:
                for unit, place in (("wall", 0), ("CPU", 1)):
                    figures = _summarize_latency([(commit[place], commit[2]) for commit in result["result"]])
                    title = f"commit latency, {unit}"
                    self.results.append({"title": title, "library": library, "figures": figures})
                    print(
                        f"{title + ', ' + library:34}  first 100: {figures['first']:.1f} ms   last 100 of "
                        f"{figures['commits']}: {figures['last']:.1f} ms = {figures['last'] / figures['first']:.2f}x   "
                        f"{figures['merges']} merged manifests: {figures['merging']:.1f} ms (largest "
                        f"{figures['largest_merge']:.1f})",
                        flush=True,
                    )


def _summarize(found: list[dict[str, Any]]) -> dict[str, float]:
    return {
        "cpu": min(f["cpu"] for f in found),
        "cpu_median": statistics.median(f["cpu"] for f in found),
        "wall": statistics.median(f["wall"] for f in found),
        "peak_mib": max(f["peak_mib"] for f in found),
        "grown_mib": max(f["grown_mib"] for f in found),
        "faults": min(f.get("faults", 0) for f in found),
    }


def _name_failure(message: str | None) -> str:
    """Return what a cell without a figure shows; `Bench.run_worker` prints the message."""
    if message is None or message.startswith("stopped"):
        return message or "–"
    return "refused" if message.startswith(_REFUSALS) else "failed"


def _format_cell(figure: dict[str, float]) -> str:
    ratio = f" {figure['ratio']:5.2f}x" if "ratio" in figure else ""
    return f"{figure['cpu']:.3f} s{ratio} {figure['peak_mib']:5.0f} MiB"


def _summarize_latency(times: list[tuple[float, bool]]) -> dict[str, float]:
    """Compute medians in milliseconds; the first five commits are a warm-up."""
    plain = [took for took, merged in times[5:] if not merged]
    merging = [took for took, merged in times[5:] if merged] or [0.0]
    return {
        "commits": len(times),
        "first": statistics.median(plain[:100]),
        "last": statistics.median(plain[-100:]),
        "merges": sum(merged for _, merged in times),
        "merging": statistics.median(merging),
        "largest_merge": max(merging),
    }


PEERS = ("pypaimon", "pypaimon-rust", "deltalake")


def prepare_peer_python(given: str | None) -> str:
    """Return a Python with the peers, in an environment of its own because their requirements can contradict ours."""
    if given:
        return given
    home = HERE.parent / ".venv-peer"
    python = home / "bin" / "python"
    if not python.exists():
        venv.create(home, with_pip=True)
        subprocess.check_call([str(python), "-m", "pip", "install", "--quiet", *PEERS])
    return str(python)


def parse_arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("groups", nargs="*", choices=[*GROUPS, []], help="groups to run (default: all)")
    parser.add_argument("--peer", help="a Python with pypaimon, pypaimon-rust and deltalake")
    parser.add_argument(
        "--repeat", type=int, default=5, help="runs of each work, of which the fastest counts (default: 5)"
    )
    parser.add_argument("--only", help="comma list of limit, ours, peer, peer-native, delta")
    parser.add_argument("--json", type=Path, help="write all figures to this file too")
    parser.add_argument("--plot", type=Path, help="draw the results of the group history to this SVG file")
    parser.add_argument(
        "--scale", type=float, default=1.0, help="factor for the numbers of rows, keys, snapshots and files"
    )
    parser.add_argument(
        "--warm", type=int, default=0, help="MiB of memory that the process has when a measured part begins"
    )
    parser.add_argument("--short", action="store_true", help="fewer commits in the latency run")
    parser.add_argument("--cap", type=float, default=1_800, help="seconds after which the work of a library is stopped")
    parser.add_argument("--folder", type=Path, help="directory of the tables, which the next run uses again")
    return parser.parse_args()


def main() -> None:
    """Run the groups of the command line."""
    options = parse_arguments()
    wanted = options.groups or list(GROUPS)
    libraries = options.only.split(",") if options.only else [*LIBRARIES, "delta"]
    peer = "" if set(libraries) <= {"ours", "limit"} else prepare_peer_python(options.peer)
    os.environ["BENCHMARK_SCALE"] = str(options.scale)
    os.environ[warm_up.WARM] = str(options.warm)
    os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE), str(HERE.parent)])
    with tempfile.TemporaryDirectory(prefix="paimon-bench-") as folder:
        os.environ["BENCHMARK_DATA"] = folder
        if options.folder:
            options.folder.mkdir(parents=True, exist_ok=True)
        bench = Bench(peer, options.repeat, options.folder or Path(folder), libraries, options.cap)
        _run(bench, wanted, options)
        if options.plot:
            options.plot.write_text(growth.draw_growth(bench.results))
        if options.json:
            options.json.write_text(json.dumps({"repeat": options.repeat, "results": bench.results}, indent=2))


def _run(bench: Bench, wanted: list[str], options: argparse.Namespace) -> None:
    print("  ".join([f"{'CPU, ratio, peak memory':34}", *(f"{name:>25}" for name in LIBRARIES)]), flush=True)
    if "write" in wanted:
        bench.compare("primary-key write, int64 key", "write-int", None)
        bench.compare("primary-key write, string key", "write-string", None)
    if {"scan", "lookup"} & set(wanted):
        _scans(bench, wanted)
    if "append" in wanted:
        bench.compare("append write", "write-append", None)
        append = bench.make_table("write-append")
        bench.compare("append scan, all columns", "scan-all", append)
        bench.compare("append scan, 2 columns", "scan-2", append)
    if "plan" in wanted:
        _plans(bench)
    if "latency" in wanted:
        bench.measure_latencies("latency-short" if options.short else "latency")
    for group, measure in MAINTENANCE_GROUPS.items():
        if group in wanted:
            measure(bench, options.scale)
    for group, compare in {**bucket_groups.GROUPS, **merge_groups.GROUPS}.items():
        if group in wanted:
            compare(bench)


def _scans(bench: Bench, wanted: list[str]) -> None:
    integer = bench.make_table("write-int")
    if "scan" in wanted:
        bench.compare("merge-on-read, int64 key, all", "scan-all", integer)
        bench.compare("merge-on-read, int64 key, 2 columns", "scan-2", integer)
        string = bench.make_table("write-string")
        bench.compare("merge-on-read, string key, all", "scan-all", string)
        bench.compare("merge-on-read, string key, 2 col", "scan-2", string)
    if "lookup" in wanted:
        bench.compare("lookup of one key", "lookup", integer, ["ours", "peer", "peer-native"])


def _plans(bench: Bench) -> None:
    folder = bench.folder / "table-files"
    command = [sys.executable, str(HERE / "make_files.py"), str(folder)]
    if not (folder / "b.db" / "t").exists():  # a run with the same --folder has created it
        subprocess.check_call(command)
    peers = ["ours", "peer", "peer-native"]
    bench.compare("plan 20,000 files: all", "plan-all", folder, peers)
    bench.compare("plan 20,000 files: one partition", "plan-partition", folder, peers)
    bench.compare("plan 20,000 files: one value", "plan-value", folder, peers)


if __name__ == "__main__":
    main()
