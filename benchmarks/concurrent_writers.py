"""Measure eight processes, then eight threads of one, that commit to one table, one library after the other.

The figures are acknowledged commits per second, and the rows that were lost, doubled or refused.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from merge_groups import Bench

HERE = Path(__file__).resolve().parent
WRITERS = 8
COMMITS = 25
LIBRARIES = ("ours", "peer", "peer-native", "delta")
THREADED = ("ours", "ours-alone", "peer", "delta")
"""The libraries whose writers may be threads; of `ours-alone` each commit makes a snapshot."""
COUNTED = ("attempted", "acknowledged", "lost", "doubled", "refused", "failed", "unfinished")


def measure_writers(bench: Bench, scale: float) -> None:
    """Measure each library, as often as the run repeats."""
    commits = max(int(COMMITS * scale), 1)
    cases = [("writers", library) for library in LIBRARIES] + [("threads", library) for library in THREADED]
    for kind, library in [case for case in cases if case[1].removesuffix("-alone") in bench.libraries]:
        found = [run_writers(bench, library, commits, kind == "threads") for _ in range(bench.repeat)]
        best = max(found, key=lambda f: f["commits/s"])
        counts = {name: sum(f[name] for f in found) for name in COUNTED}
        figures = best | counts
        bench.results.append({"title": f"{WRITERS} {kind}", "library": library, "figures": figures})
        text = ", ".join(f"{number} {name}" for name, number in counts.items())
        print(
            f"{WRITERS} {kind} x {commits}, {library:12}: {best['commits/s']:6.1f} commits/s (best of {len(found)}), "
            f"median {best['median_ms']:.0f} ms, slowest {best['slowest_ms']:.0f} ms, CPU {best['cpu']:.1f} s; {text}",
            flush=True,
        )
        for reason in sorted({reason for f in found for reason in f["reasons"]}):
            print(f"  {reason[:300]}")


def run_writers(bench: Bench, library: str, commits: int, in_threads: bool = False) -> dict[str, Any]:
    """Run all writers once; at the cap, kill those that are still running.

    Parameters
    ----------
    bench : Bench
        The run.
    library : str
        Name of the library.
    commits : int
        Number of commits of each writer.
    in_threads : bool
        Whether the writers are threads of one process.

    Returns
    -------
    dict
        The figures of `summarize_writers`.
    """
    folder = Path(tempfile.mkdtemp(dir=bench.folder))
    command = [
        bench.find_python(library.removesuffix("-alone")),
        str(HERE / "concurrent_writer.py"),
        library,
        str(folder),
    ]
    subprocess.run([*command, "make"], check=True, stdout=subprocess.DEVNULL)
    writers = [["threads", str(WRITERS)]] if in_threads else [["write", str(writer)] for writer in range(WRITERS)]
    running = [_start_writer([*command, *writer, str(commits)]) for writer in writers]
    start = _release_writers(running)
    lines = [line.split(" ", 4) for process in running for line in _read_output(process, start + bench.cap)]
    reader = subprocess.run([*command, "read"], capture_output=True, text=True, check=True)
    shutil.rmtree(folder)
    return summarize_writers(
        commits, lines, Counter(tuple(line.split()) for line in reader.stdout.splitlines()), bench.cap
    )


def _release_writers(running: Sequence[subprocess.Popen[str]]) -> float:
    """Let all writers begin as soon as each is ready, and return this time."""
    for process in running:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
    start = time.monotonic()
    for process in running:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    return start


def _start_writer(command: list[str]) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)


def _read_output(process: subprocess.Popen[str], until: float) -> list[str]:
    try:
        output, _ = process.communicate(timeout=max(0.1, until - time.monotonic()))
    except subprocess.TimeoutExpired:
        process.kill()
        output, _ = process.communicate()
    return output.splitlines()


def summarize_writers(
    commits: int, lines: list[list[str]], stored: Counter[tuple[str, ...]], cap: float
) -> dict[str, Any]:
    """Compare the output of the writers with the rows of the table.

    Parameters
    ----------
    commits : int
        Number of commits of each writer.
    lines : list of list of str
        The words of the lines that the writers printed.
    stored : collections.Counter
        How often each row, as writer and number, is in the table.
    cap : float
        Seconds that count for the run if a writer did not finish.

    Returns
    -------
    dict
        Counts of rows by status, commits per second, milliseconds of a commit, and CPU seconds.
    """
    statuses = [line for line in lines if line[0] != "took"]
    done = [line for line in lines if line[0] == "took"]
    acknowledged = {(writer, number) for writer, number, status, *_ in statuses if status == "acknowledged"}
    times = [float(ms) for _, _, status, ms, _ in statuses if status == "acknowledged"] or [0.0]
    took = max(float(wall) for _, _, wall in done) if len(done) == WRITERS else cap
    return {
        "attempted": WRITERS * commits,
        "acknowledged": len(acknowledged),
        "lost": len(acknowledged - stored.keys()),
        "doubled": sum(times > 1 for times in stored.values()),
        "refused": sum(status == "refused" for _, _, status, *_ in statuses),
        "failed": sum(status == "failed" for _, _, status, *_ in statuses),
        "reasons": sorted({reason for *_, reason in statuses if reason})[:3],
        "unfinished": WRITERS * commits - len(statuses),
        "commits/s": len(acknowledged) / took,
        "median_ms": statistics.median(times),
        "slowest_ms": max(times),
        "cpu": sum(float(cpu) for _, cpu, _ in done),
    }
