"""The benchmarks run: long histories and many files are made, measured and drawn, at a thousandth of their size."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


def test_a_table_of_years_is_measured_and_drawn(tmp_path: Path) -> None:
    figures, plot = tmp_path / "figures.json", tmp_path / "growth.svg"
    command = [sys.executable, str(BENCHMARKS / "run.py"), "history", "fsck", "--only=limit,ours"]
    done = subprocess.run(
        [*command, "--repeat=1", "--scale=0.001", "--warm=16", f"--json={figures}", f"--plot={plot}"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    found = {result["title"]: result["figures"] for result in json.loads(figures.read_text())["results"]}
    assert found.keys() == {"behind", "fsck of 100 files", "fsck of 100 files, deep"}
    assert all(found["behind"][work]["cpu"] > 0 for work in ("commit", "plan", "read"))
    compared = [figure for title, figure in found.items() if title != "behind"]
    assert all(figure.keys() == {"limit", "ours"} for figure in compared)
    assert all({"cpu", "faults"} <= side.keys() for figure in compared for side in figure.values())
    assert ElementTree.parse(plot).getroot().tag.endswith("svg")


def test_the_memory_of_a_writer_is_measured() -> None:
    command = [sys.executable, str(BENCHMARKS / "writer_memory.py"), "--commits=30", "--interval=15", "--retained=3"]
    head, _, *lines = subprocess.check_output(command, text=True).splitlines()
    assert head.startswith("| commits | resident MiB | cached files |")
    figures = [[float(cell.replace(",", "")) for cell in line.strip("| ").split(" | ")] for line in lines]
    assert [line[0] for line in figures] == [15, 30]
    assert all(line[column] > 0 for line in figures for column in (1, 2, 5))


def test_writers_race_and_tell_what_became_of_their_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import racer
    import throughput

    make, opened, read = racer.CONTESTS["ours"](tmp_path)
    make()
    told = [line.split(" ", 4) for writer in range(2) for line in racer.race(opened(), writer, 3)]
    rows = read().to_pydict()
    there = throughput.Counter((str(w), str(n)) for w, n in zip(rows["writer"], rows["number"], strict=True))
    there["0", "0"] += 1
    del there["1", "2"]
    figures = throughput.outcome(3, told, there, cap=60)
    assert [figures[name] for name in ("acknowledged", "lost", "doubled", "refused", "failed")] == [6, 1, 1, 0, 0]


def test_curves_are_drawn_over_powers_of_ten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import growth

    results = [
        {"title": "behind", "library": "ours", "snapshots": 10**n, "figures": {"plan": {"cpu": 2.0 + n}}}
        for n in range(1, 5)
    ]
    (line,) = (e for e in ElementTree.fromstring(growth.drawn(results)).iter() if e.tag.endswith("polyline"))
    points = [tuple(map(float, point.split(","))) for point in line.attrib["points"].split()]
    assert [x for x, _ in points] == [growth.WIDTH * n / 3 for n in range(4)]
    steps = [before - after for (_, before), (_, after) in pairwise(points)]
    assert steps == pytest.approx([steps[0]] * 3, abs=0.2)
    assert steps[0] > 0
