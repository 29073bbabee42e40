"""The benchmarks, side by side in one run: this library, pypaimon in both modes, delta-rs where processes race, and
the plain-file limit.

    python benchmarks/run.py                    everything (hours on 2 cores)
    python benchmarks/run.py scan lookup        the groups named
    python benchmarks/run.py --peer PYTHON      a Python that has the peers (made if not given)
    python benchmarks/run.py --json FILE        the figures as JSON too
    python benchmarks/run.py --plot FILE        the curves of the group history, as SVG

Each figure is CPU seconds of a process of its own, the least of `--repeat` runs (what else runs on the machine only
adds to it), the libraries in turn. What counts are the ratios, printed behind each figure: to the plain-file limit, or
to native pypaimon where files have none. Scans read the tables that this library wrote, so all read the same files.
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
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import growth
import merging
import settling
import throughput
import years

HERE = Path(__file__).resolve().parent
LIBRARIES = ("limit", "ours", "peer", "peer-native")
_LONG = 60
"""Seconds (wall): what takes longer is not repeated, nor what was stopped."""
KEEPING = {
    "history": years.histories,
    "expiry": years.expiry,
    "orphans": years.orphans,
    "fsck": years.checks,
    "writers": throughput.writers,
}
GROUPS = (
    *("write", "scan", "lookup", "append", "plan", "latency"),
    *KEEPING,
    *("engines", "upkeep", "changelog", "memory"),
)


class Bench:
    """Runs workers, prints rows of a table and keeps what it printed."""

    def __init__(self, peer: str, repeat: int, folder: Path, libraries: list[str], cap: float) -> None:
        self._peer = peer
        self.repeat = repeat
        self.folder = folder
        self.libraries = libraries
        self.cap = cap
        self._stopped: set[str] = set()
        self.results: list[dict[str, Any]] = []

    def python(self, library: str) -> str:
        """The interpreter that has a library."""
        return sys.executable if library in ("ours", "limit") else self._peer

    def worker(self, library: str, workload: str, folder: Path, capped: bool = True) -> dict[str, Any] | None:
        """One run; None where it failed, or took longer than the cap."""
        command = [self.python(library), str(HERE / "worker.py"), library, workload, str(folder)]
        try:
            cap = self.cap if capped else None
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=cap)
        except subprocess.TimeoutExpired:
            self._stopped.add(library)
            print(f"  {library} {workload} was stopped after {self.cap:.0f} s", file=sys.stderr)
            return None
        if done.returncode:
            print(f"  {library} {workload} failed: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
            return None
        answer: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
        return answer

    def compare(
        self,
        title: str,
        workload: str,
        source: Path | None,
        libraries: Sequence[str] = LIBRARIES,
        copied: bool = False,
    ) -> None:
        """All libraries in turn; with a `source` they read it (or a copy, if they change it), else each writes to a
        folder of its own."""
        chosen = [x for x in libraries if x in self.libraries]
        figures: dict[str, list[dict[str, Any]]] = {x: [] for x in chosen}
        self._stopped.clear()
        for _ in range(self.repeat):
            for library in chosen:
                if library in self._stopped or any(found["wall"] > _LONG for found in figures[library]):
                    continue
                result = self.run(library, workload, source, copied)
                if result is not None:
                    figures[library].append(result)
        stopped = [x for x in chosen if x in self._stopped and not figures[x]]
        self.show(title, {library: _summary(found) for library, found in figures.items() if found}, stopped)

    def run(self, library: str, workload: str, source: Path | None, copied: bool) -> dict[str, Any] | None:
        """One run, in the source, in a copy of it, or in a new folder."""
        folder = source if source and not copied else Path(tempfile.mkdtemp(dir=self.folder))
        if source and copied:
            shutil.copytree(source, folder, dirs_exist_ok=True)
        result = self.worker(library, workload, folder)
        if folder != source:
            shutil.rmtree(folder, ignore_errors=True)
        return result

    def show(self, title: str, found: dict[str, dict[str, float]], stopped: Sequence[str] = ()) -> None:
        """A row of the table; of a library that was stopped, after how many seconds."""
        base = found.get("limit") or found.get("peer-native")
        cells = []
        for library in LIBRARIES:
            figure = found.get(library)
            if figure and base:
                figure["ratio"] = figure["cpu"] / base["cpu"]
            missing = f"stopped at {self.cap:.0f} s" if library in stopped else "–"
            cells.append(_cell(figure) if figure else missing)
        print("  ".join([f"{title:34}", *(f"{cell:>25}" for cell in cells)]), flush=True)
        row = {"title": title, "base": "limit" if "limit" in found else "peer-native", "figures": found}
        self.results.append(row | ({"stopped": dict.fromkeys(stopped, self.cap)} if stopped else {}))

    def table(self, workload: str) -> Path:
        """A table that this library wrote by this workload."""
        folder = self.folder / f"table-{workload}"
        if not folder.exists() and self.worker("ours", workload, folder, capped=False) is None:
            sys.exit("this library could not write its own table")
        return folder

    def latencies(self, workload: str) -> None:
        """Median commit at the start and at the end of many; those that merged manifests apart."""
        for library in [x for x in ("ours", "peer", "peer-native") if x in self.libraries]:
            folder = Path(tempfile.mkdtemp(dir=self.folder))
            result = self.worker(library, workload, folder)
            if result is not None:
                for unit, place in (("wall", 0), ("CPU", 1)):
                    figures = _latency([(commit[place], commit[2]) for commit in result["answer"]])
                    title = f"commit latency, {unit}"
                    self.results.append({"title": title, "library": library, "figures": figures})
                    print(
                        f"{title + ', ' + library:34}  first 100: {figures['first']:.1f} ms   last 100 of "
                        f"{figures['commits']}: {figures['last']:.1f} ms = {figures['last'] / figures['first']:.2f}x   "
                        f"{figures['merges']} merged manifests: {figures['merging']:.1f} ms (largest "
                        f"{figures['largest_merge']:.1f})",
                        flush=True,
                    )


def _summary(found: list[dict[str, Any]]) -> dict[str, float]:
    return {
        "cpu": min(f["cpu"] for f in found),
        "cpu_median": statistics.median(f["cpu"] for f in found),
        "wall": statistics.median(f["wall"] for f in found),
        "peak_mib": max(f["peak_mib"] for f in found),
        "grown_mib": max(f["grown_mib"] for f in found),
        "faults": min(f.get("faults", 0) for f in found),
    }


def _cell(figure: dict[str, float]) -> str:
    ratio = f" {figure['ratio']:5.2f}x" if "ratio" in figure else ""
    return f"{figure['cpu']:.3f} s{ratio} {figure['peak_mib']:5.0f} MiB"


def _latency(times: list[tuple[float, bool]]) -> dict[str, float]:
    """Medians in milliseconds; the first five commits warm the process up."""
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


def peer_python(given: str | None) -> str:
    """A Python with the peers, whose own requirements may contradict ours."""
    if given:
        return given
    home = HERE.parent / ".venv-peer"
    python = home / "bin" / "python"
    if not python.exists():
        venv.create(home, with_pip=True)
        subprocess.check_call([str(python), "-m", "pip", "install", "--quiet", *PEERS])
    return str(python)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("groups", nargs="*", choices=[*GROUPS, []], help="what to run (default: all)")
    parser.add_argument("--peer", help="a Python that has pypaimon, pypaimon-rust and deltalake")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--only", help="comma list of limit, ours, peer, peer-native, delta")
    parser.add_argument("--json", type=Path, help="write all figures to this file too")
    parser.add_argument("--plot", type=Path, help="draw what the group history found to this file (SVG)")
    parser.add_argument("--scale", type=float, default=1.0, help="so many times the rows, keys, snapshots and files")
    parser.add_argument("--warm", type=int, default=0, help="MiB of memory at hand when a measured part begins")
    parser.add_argument("--short", action="store_true", help="fewer commits in the latency run")
    parser.add_argument("--cap", type=float, default=1_800, help="seconds after which a library's run is stopped")
    parser.add_argument("--folder", type=Path, help="where tables are made and found again by the next run")
    return parser.parse_args()


def main() -> None:
    given = arguments()
    wanted = given.groups or list(GROUPS)
    libraries = given.only.split(",") if given.only else [*LIBRARIES, "delta"]
    peer = "" if set(libraries) <= {"ours", "limit"} else peer_python(given.peer)
    os.environ["BENCHMARK_SCALE"] = str(given.scale)
    os.environ[settling.WARM] = str(given.warm)
    os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE), str(HERE.parent)])
    with tempfile.TemporaryDirectory(prefix="paimon-bench-") as folder:
        os.environ["BENCHMARK_DATA"] = folder
        if given.folder:
            given.folder.mkdir(parents=True, exist_ok=True)
        bench = Bench(peer, given.repeat, given.folder or Path(folder), libraries, given.cap)
        _run(bench, wanted, given)
        if given.plot:
            given.plot.write_text(growth.drawn(bench.results))
        if given.json:
            given.json.write_text(json.dumps({"repeat": given.repeat, "results": bench.results}, indent=2))


def _run(bench: Bench, wanted: list[str], given: argparse.Namespace) -> None:
    print("  ".join([f"{'CPU, ratio, peak memory':34}", *(f"{name:>25}" for name in LIBRARIES)]), flush=True)
    if "write" in wanted:
        bench.compare("primary-key write, int64 key", "write-int", None)
        bench.compare("primary-key write, string key", "write-string", None)
    if {"scan", "lookup"} & set(wanted):
        _scans(bench, wanted)
    if "append" in wanted:
        bench.compare("append write", "write-append", None)
        append = bench.table("write-append")
        bench.compare("append scan, all columns", "scan-all", append)
        bench.compare("append scan, 2 columns", "scan-2", append)
    if "plan" in wanted:
        _plans(bench)
    if "latency" in wanted:
        bench.latencies("latency-short" if given.short else "latency")
    for group, measure in KEEPING.items():
        if group in wanted:
            measure(bench, given.scale)
    for group, compare in merging.GROUPS.items():
        if group in wanted:
            compare(bench)


def _scans(bench: Bench, wanted: list[str]) -> None:
    integer = bench.table("write-int")
    if "scan" in wanted:
        bench.compare("merge-on-read, int64 key, all", "scan-all", integer)
        bench.compare("merge-on-read, int64 key, 2 columns", "scan-2", integer)
        string = bench.table("write-string")
        bench.compare("merge-on-read, string key, all", "scan-all", string)
        bench.compare("merge-on-read, string key, 2 col", "scan-2", string)
    if "lookup" in wanted:
        bench.compare("lookup of one key", "lookup", integer, ["ours", "peer", "peer-native"])


def _plans(bench: Bench) -> None:
    folder = bench.folder / "table-files"
    command = [sys.executable, str(HERE / "many_files.py"), str(folder)]
    if not (folder / "b.db" / "t").exists():  # else it is an earlier run's
        subprocess.check_call(command)
    peers = ["ours", "peer", "peer-native"]
    bench.compare("plan 20,000 files: all", "plan-all", folder, peers)
    bench.compare("plan 20,000 files: one partition", "plan-partition", folder, peers)
    bench.compare("plan 20,000 files: one value", "plan-value", folder, peers)


if __name__ == "__main__":
    main()
