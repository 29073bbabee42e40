"""The benchmarks, side by side in one run: this library, pypaimon in both modes, and the plain-file limit.

    python benchmarks/run.py                    everything (about half an hour on 2 cores)
    python benchmarks/run.py scan lookup        the groups named
    python benchmarks/run.py --peer PYTHON      a Python that has pypaimon and pypaimon-rust (default: made in
    .venv-peer)

Each figure is CPU seconds of a process of its own, median of `--repeat` runs, the libraries in turn; what counts are
the ratios to the plain-file limit, printed behind each figure. Scans read the tables that this library wrote, so all
read the same files.
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
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
LIBRARIES = ("limit", "ours", "peer", "peer-native")
GROUPS = ("write", "scan", "lookup", "append", "plan", "latency")


class Bench:
    """Runs workers and prints rows of a table."""

    def __init__(self, peer: str, repeat: int, folder: Path, libraries: list[str]) -> None:
        self._peer = peer
        self._repeat = repeat
        self.folder = folder
        self._libraries = libraries

    def worker(self, library: str, workload: str, folder: Path) -> dict[str, Any] | None:
        python = self._peer if library.startswith("peer") else sys.executable
        command = [python, str(HERE / "worker.py"), library, workload, str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"  {library} {workload} failed: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
            return None
        answer: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
        return answer

    def compare(self, title: str, workload: str, source: Path | None, libraries: list[str] | None = None) -> None:
        """All libraries in turn; with a `source` they read it, else each writes to a folder of its own."""
        chosen = [x for x in (libraries or LIBRARIES) if x in self._libraries]
        figures: dict[str, list[dict[str, Any]]] = {x: [] for x in chosen}
        for _ in range(self._repeat):
            for library in chosen:
                folder = source or Path(tempfile.mkdtemp(dir=self.folder))
                result = self.worker(library, workload, folder)
                if result is not None:
                    figures[library].append(result)
                if source is None:
                    shutil.rmtree(folder, ignore_errors=True)
        self._print(title, figures)

    def _print(self, title: str, figures: dict[str, list[dict[str, Any]]]) -> None:
        base = figures.get("limit") or figures.get("peer-native")
        unit = statistics.median(f["cpu"] for f in base) if base else None
        cells = []
        for library, found in figures.items():
            if not found:
                cells.append(f"{library} –")
                continue
            cpu = statistics.median(f["cpu"] for f in found)
            ratio = "" if not unit else f" = {cpu / unit:.2f}x"
            cells.append(f"{library} {cpu:.3f} s{ratio} ({max(f['peak_mib'] for f in found)} MiB)")
        print(f"{title:34} " + "   ".join(cells), flush=True)

    def latencies(self, workload: str) -> None:
        """Median commit at the start and at the end of many, slow ones (merging manifests) apart."""
        for library in [x for x in ("ours", "peer", "peer-native") if x in self._libraries]:
            folder = Path(tempfile.mkdtemp(dir=self.folder))
            result = self.worker(library, workload, folder)
            if result is None:
                continue
            times = result["answer"]
            first, last = statistics.median(times[5:105]), statistics.median(times[-100:])
            slow = [t for t in times if t > 3 * first]
            print(
                f"{'commit latency, ' + library:34} first 100: {first:.1f} ms   last 100 of {len(times)}: {last:.1f} ms"
                f" = {last / first:.2f}x   {len(slow)} over 3x (median {statistics.median(slow or [0]):.0f} ms)",
                flush=True,
            )


def peer_python(given: str | None) -> str:
    """A Python with the peers, whose own requirements may contradict ours."""
    if given:
        return given
    home = HERE.parent / ".venv-peer"
    python = home / "bin" / "python"
    if not python.exists():
        venv.create(home, with_pip=True)
        subprocess.check_call([str(python), "-m", "pip", "install", "--quiet", "pypaimon", "pypaimon-rust"])
    return str(python)


def tables(bench: Bench, workload: str) -> Path:
    """A table that this library wrote by this workload."""
    folder = bench.folder / f"table-{workload}"
    if bench.worker("ours", workload, folder) is None:
        sys.exit("this library could not write its own table")
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("groups", nargs="*", choices=[*GROUPS, []], help="what to run (default: all)")
    parser.add_argument("--peer", help="a Python that has pypaimon and pypaimon-rust")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--only", help="comma list of limit, ours, peer, peer-native")
    parser.add_argument("--short", action="store_true", help="fewer commits in the latency run")
    given = parser.parse_args()
    wanted = given.groups or GROUPS
    libraries = given.only.split(",") if given.only else list(LIBRARIES)
    peer = peer_python(given.peer) if any(x.startswith("peer") for x in libraries) else ""
    os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE), str(HERE.parent)])
    with tempfile.TemporaryDirectory(prefix="paimon-bench-") as folder:
        bench = Bench(peer, given.repeat, Path(folder), libraries)
        if "write" in wanted:
            bench.compare("primary-key write, int64 key", "write-int", None)
            bench.compare("primary-key write, string key", "write-string", None)
        if {"scan", "lookup"} & set(wanted):
            _scans(bench, wanted)
        if "append" in wanted:
            bench.compare("append write", "write-append", None)
            append = tables(bench, "write-append")
            bench.compare("append scan, all columns", "scan-all", append)
            bench.compare("append scan, 2 columns", "scan-2", append)
        if "plan" in wanted:
            _plans(bench)
        if "latency" in wanted:
            bench.latencies("latency-short" if given.short else "latency")


def _scans(bench: Bench, wanted: list[str] | tuple[str, ...]) -> None:
    integer = tables(bench, "write-int")
    if "scan" in wanted:
        bench.compare("merge-on-read, int64 key, all", "scan-all", integer)
        bench.compare("merge-on-read, int64 key, 2 columns", "scan-2", integer)
        string = tables(bench, "write-string")
        bench.compare("merge-on-read, string key, all", "scan-all", string)
        bench.compare("merge-on-read, string key, 2 col", "scan-2", string)
    if "lookup" in wanted:
        bench.compare("lookup of one key", "lookup", integer, ["ours", "peer", "peer-native"])


def _plans(bench: Bench) -> None:
    folder = bench.folder / "table-files"
    command = [sys.executable, str(HERE / "many_files.py"), str(folder)]
    subprocess.check_call(command)
    peers = ["ours", "peer", "peer-native"]
    bench.compare("plan 20,000 files: all", "plan-all", folder, peers)
    bench.compare("plan 20,000 files: one partition", "plan-partition", folder, peers)
    bench.compare("plan 20,000 files: one value", "plan-value", folder, peers)


if __name__ == "__main__":
    main()
