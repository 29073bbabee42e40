"""Compare a short run with the figures of `gate.json`, and fail for each row that became 15 % slower.

    python benchmarks/gate.py             about 4 minutes on 2 cores; exit code 1 if a row is slower
    python benchmarks/gate.py --record    write the figures of this run to `gate.json`

A figure is the ratio of two CPU times of the same run: this library and the limit, which does the same without tables.
Other work on the machine can only make a time longer. So each time is the least of several runs, and a row that seems
slower is measured again, up to three times. A machine of another kind needs its own figures.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

HERE = Path(__file__).resolve().parent
RECORDED = HERE / "gate.json"
SLOWER = 1.15
ROUNDS = 3
GROUPS = ("write", "scan", "append", "engines")
STARTS = "starts"
_READ = "import paimon, sys; paimon.open_table(sys.argv[1]).scan(where='id = 7').to_arrow()"
_COMMAND = "from paimon.cli.main import main; main({words})"
_MAKE = """
import paimon, sys
catalog = paimon.connect(sys.argv[1])
catalog.create_database("d")
table = catalog.create_table("d.t", "id BIGINT NOT NULL, name STRING", primary_keys=["id"], options={"bucket": 1})
for name in "ab":
    table.write([{"id": number, "name": name} for number in range(1_000)])
"""

Times = dict[str, dict[str, float]]
"""CPU seconds by row, of "ours" and of the "limit"."""


def run_group(group: str, repeat: int, scale: float) -> Times:
    """Measure the rows of a group of `run.py`, or how long processes take to start."""
    if group == STARTS:
        return measure_starts(repeat)
    with tempfile.TemporaryDirectory() as folder:
        figures = Path(folder) / "figures.json"
        command = [sys.executable, str(HERE / "run.py"), group, "--only=limit,ours", "--warm=256", f"--json={figures}"]
        subprocess.run([*command, f"--repeat={repeat}", f"--scale={scale}"], check=True, stdout=subprocess.DEVNULL)
        results = json.loads(figures.read_text())["results"]
    rows = {row["title"]: {side: found["cpu"] for side, found in row["figures"].items()} for row in results}
    return {title: sides for title, sides in rows.items() if sides.keys() >= {"ours", "limit"}}


def measure_starts(repeat: int) -> Times:
    """Measure processes that read one row, show a table, and list the commands, beside those that import libraries."""
    with tempfile.TemporaryDirectory() as lake:
        subprocess.run([sys.executable, "-c", _MAKE, lake], check=True)
        table = f"{lake}/d.db/t"
        programs = {
            "start: the first row": (_READ, "import numpy, pyarrow.parquet"),
            "start: paimon show": (_COMMAND.format(words=["show", table]), "import numpy, pyarrow.parquet"),
            "start: paimon --help": ("from paimon.cli.main import main; main([])", "import argparse"),
        }
        return {
            title: {"ours": _least_cpu(ours, table, repeat), "limit": _least_cpu(limit, table, repeat)}
            for title, (ours, limit) in programs.items()
        }


def _least_cpu(code: str, table: str, repeat: int) -> float:
    """Return the CPU seconds of the fastest of several processes, after one that compiles the modules."""
    found = []
    for _ in range(repeat + 1):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code, table], check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(found[1:])


def keep_least(times: Times, others: Times) -> None:
    """Replace times by those of another run that are shorter."""
    for title, sides in others.items():
        known = times.setdefault(title, dict(sides))
        for side, seconds in sides.items():
            known[side] = min(known[side], seconds)


def to_ratios(times: Times) -> dict[str, float]:
    """Return how many times longer than the limit each row takes."""
    return {title: round(sides["ours"] / sides["limit"], 3) for title, sides in times.items()}


def find_slower(ratios: Mapping[str, float], recorded: Mapping[str, float]) -> list[str]:
    """Return the rows that are slower than recorded, and those that only one side has."""
    return [
        title
        for title in sorted({*ratios, *recorded})
        if title not in ratios or title not in recorded or ratios[title] > recorded[title] * SLOWER
    ]


def measure(groups: Iterable[str], recorded: Mapping[str, float], repeat: int, scale: float) -> dict[str, float]:
    """Measure all groups, and groups with slower rows again; print a line for each row."""
    ratios: dict[str, float] = {}
    for group in groups:
        times: Times = {}
        for _ in range(ROUNDS if recorded else 1):
            keep_least(times, run_group(group, repeat, scale))
            found = to_ratios(times)
            if not find_slower(found, {title: recorded.get(title, 0.0) for title in found}):
                break
        for title, ratio in found.items():
            before = recorded.get(title)
            print(f"{title:45} {ratio:7.2f}  recorded {'–' if before is None else f'{before:.2f}'}", flush=True)
        ratios |= found
    return ratios


def main() -> int:
    """Run the gate, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true", help="write the figures to gate.json")
    parser.add_argument("--repeat", type=int, default=5, help="runs of each work in a round (default: 5)")
    parser.add_argument("--scale", type=float, default=0.1, help="factor for the numbers of rows (default: 0.1)")
    parser.add_argument("--figures", type=Path, default=RECORDED, help="file of the figures (default: gate.json)")
    options = parser.parse_args()
    recorded = {} if options.record else json.loads(options.figures.read_text())
    ratios = measure((*GROUPS, STARTS), recorded, options.repeat, options.scale)
    if options.record:
        options.figures.write_text(json.dumps(ratios, indent=2, sort_keys=True) + "\n")
        return 0
    slower = find_slower(ratios, recorded)
    for title in slower:
        print(f"slower by more than {SLOWER - 1:.0%}: {title}", file=sys.stderr)
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
