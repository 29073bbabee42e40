"""Run programs for pypaimon under pypaimon and `paimon.compat`, and the same work as programs for this library.

    python benchmarks/peer_programs.py                       three programs; creates .venv-peer if it is missing
    python benchmarks/peer_programs.py --rows 1000000 --repeat 5 upsert

Each figure is that of a whole process: imports, the commits and the reads. The runs of a program alternate, and the
best one counts. All of them must print the same.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from run import prepare_peer_python

PROGRAMS = Path(__file__).resolve().parent / "programs"
NAMES = ("append", "upsert", "follow")
WAYS = ("pypaimon", "paimon.compat", "paimon")


def command_of(way: str, name: str, peer: str) -> list[str]:
    """Return the command that runs a program.

    Parameters
    ----------
    way : str
        The package.
    name : str
        The program.
    peer : str
        A Python that has pypaimon.

    Returns
    -------
    list of str
        The command, without the arguments of the program.
    """
    written_for = "paimon" if way == "paimon" else "pypaimon"
    program = str(PROGRAMS / f"{name}_{written_for}.py")
    return {
        "pypaimon": [peer, program],
        "paimon.compat": [sys.executable, "-m", "paimon.compat", program],
        "paimon": [sys.executable, program],
    }[way]


def run_once(command: list[str], rows: int) -> tuple[float, float, float, str]:
    """Run a program in a new warehouse; return its wall and CPU seconds, its peak in MiB, and what it prints."""
    with tempfile.TemporaryDirectory() as folder:
        code = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); "
        code += "u = resource.getrusage(resource.RUSAGE_CHILDREN); print(u.ru_utime + u.ru_stime, u.ru_maxrss)"
        start = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", code, *command, folder, str(rows)], capture_output=True, text=True, check=False
        )
        wall = time.perf_counter() - start
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    printed, _, usage = done.stdout.strip().rpartition("\n")
    cpu, peak = usage.split()
    return wall, float(cpu), float(peak) / (1 if sys.platform == "darwin" else 1024), printed


def compare_ways(name: str, peer: str, rows: int, repeat: int, ways: tuple[str, ...]) -> list[str]:
    """Return a row of the table for each way to run a program.

    Parameters
    ----------
    name : str
        The program.
    peer : str
        A Python that has pypaimon.
    rows, repeat : int
        Rows of a commit, and runs of each way.
    ways : tuple of str
        The packages.

    Returns
    -------
    list of str
        Rows in Markdown.
    """
    best: dict[str, tuple[float, float, float, str]] = {}
    for _ in range(repeat):
        for way in ways:
            measured = run_once(command_of(way, name, peer), rows)
            best[way] = min(best.get(way, measured), measured)
    printed = {figures[3] for figures in best.values()}
    if len(printed) > 1:
        raise SystemExit(f"{name}: the programs print different results: {printed}")
    return [f"| {name} | {way} | {b[0]:.2f} | {b[1]:.2f} | {b[2]:.0f} |" for way, b in best.items()]


def main() -> None:
    """Print a table of the chosen programs."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("programs", nargs="*", default=list(NAMES), help=f"some of {', '.join(NAMES)}")
    parser.add_argument("--peer", help="a Python with pypaimon 2.1.0 (default: .venv-peer)")
    parser.add_argument("--rows", type=int, default=200_000, help="rows of a commit (default: 200,000)")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each program (default: 3)")
    parser.add_argument("--only", default=",".join(WAYS), help=f"comma list of {', '.join(WAYS)}")
    options = parser.parse_args()
    ways = tuple(options.only.split(","))
    peer = prepare_peer_python(options.peer) if "pypaimon" in ways else ""
    print("| Program | Package | Seconds | CPU seconds | Peak MiB |\n|---|---|---|---|---|")
    for name in options.programs:
        print("\n".join(compare_ways(name, peer, options.rows, options.repeat, ways)), flush=True)


if __name__ == "__main__":
    main()
