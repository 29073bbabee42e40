"""Eight processes that commit to one table at once, library by library: what was acknowledged a second, and what became
of it."""

from __future__ import annotations

import shutil
import statistics
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from merging import Bench

HERE = Path(__file__).resolve().parent
WRITERS = 8
COMMITS = 25
LIBRARIES = ("ours", "peer", "peer-native", "delta")
COUNTED = ("asked", "acknowledged", "lost", "doubled", "refused", "failed", "unfinished")


def writers(bench: Bench, scale: float) -> None:
    """The race, once for each library and repeat."""
    commits = max(int(COMMITS * scale), 1)
    for library in [x for x in LIBRARIES if x in bench.libraries]:
        found = [race(bench, library, commits) for _ in range(bench.repeat)]
        best = max(found, key=lambda f: f["commits/s"])
        counts = {name: sum(f[name] for f in found) for name in COUNTED}
        figures = best | counts
        bench.results.append({"title": f"{WRITERS} writers", "library": library, "figures": figures})
        told = ", ".join(f"{number} {name}" for name, number in counts.items())
        print(
            f"{WRITERS} writers x {commits}, {library:12}: {best['commits/s']:6.1f} commits/s (best of {len(found)}), "
            f"median {best['median_ms']:.0f} ms, slowest {best['slowest_ms']:.0f} ms, CPU {best['cpu']:.1f} s; {told}",
            flush=True,
        )
        for reason in sorted({reason for f in found for reason in f["reasons"]}):
            print(f"  {reason[:300]}")


def race(bench: Bench, library: str, commits: int) -> dict[str, Any]:
    """One race. Who is not done when the time is over is killed, and counts with what it was told."""
    folder = Path(tempfile.mkdtemp(dir=bench.folder))
    command = [bench.python(library), str(HERE / "racer.py"), library, str(folder)]
    subprocess.run([*command, "make"], check=True, stdout=subprocess.DEVNULL)
    running = [_started([*command, "write", str(writer), str(commits)]) for writer in range(WRITERS)]
    for process in running:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
    start = time.monotonic()
    for process in running:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    told = [line.split(" ", 4) for process in running for line in _heard(process, start + bench.cap)]
    reader = subprocess.run([*command, "read"], capture_output=True, text=True, check=True)
    shutil.rmtree(folder)
    return outcome(commits, told, Counter(tuple(line.split()) for line in reader.stdout.splitlines()), bench.cap)


def _started(command: list[str]) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)


def _heard(process: subprocess.Popen[str], until: float) -> list[str]:
    try:
        output, _ = process.communicate(timeout=max(0.1, until - time.monotonic()))
    except subprocess.TimeoutExpired:
        process.kill()
        output, _ = process.communicate()
    return output.splitlines()


def outcome(commits: int, told: list[list[str]], there: Counter[tuple[str, ...]], cap: float) -> dict[str, Any]:
    """What the writers were told, beside what is there; they are counted with the whole `cap` if one was not done."""
    answers = [line for line in told if line[0] != "took"]
    done = [line for line in told if line[0] == "took"]
    acknowledged = {(writer, number) for writer, number, answer, *_ in answers if answer == "acknowledged"}
    times = [float(ms) for _, _, answer, ms, _ in answers if answer == "acknowledged"] or [0.0]
    took = max(float(wall) for _, _, wall in done) if len(done) == WRITERS else cap
    return {
        "asked": WRITERS * commits,
        "acknowledged": len(acknowledged),
        "lost": len(acknowledged - there.keys()),
        "doubled": sum(times > 1 for times in there.values()),
        "refused": sum(answer == "refused" for _, _, answer, *_ in answers),
        "failed": sum(answer == "failed" for _, _, answer, *_ in answers),
        "reasons": sorted({reason for *_, reason in answers if reason})[:3],
        "unfinished": WRITERS * commits - len(answers),
        "commits/s": len(acknowledged) / took,
        "median_ms": statistics.median(times),
        "slowest_ms": max(times),
        "cpu": sum(float(cpu) for _, cpu, _ in done),
    }
