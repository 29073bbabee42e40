"""The benchmarks run at a thousandth of their size: long histories and many files are created, measured and drawn."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.mark.slow("runs a group of benchmarks")
@pytest.mark.nightly
def test_a_long_history_is_measured_and_drawn(tmp_path: Path) -> None:
    figures, plot = tmp_path / "figures.json", tmp_path / "growth.svg"
    command = [sys.executable, str(BENCHMARKS / "run.py"), "history", "fsck", "manifests", "--only=limit,ours"]
    done = subprocess.run(
        [*command, "--repeat=1", "--scale=0.001", "--warm=16", f"--json={figures}", f"--plot={plot}"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    found = {result["title"]: result["figures"] for result in json.loads(figures.read_text())["results"]}
    manifests = (
        "all",
        "one partition",
        "one value",
        "slowest of 80 commits",
        "manifests sorted",
        "one partition, sorted",
    )
    assert all(found.pop(f"10000 files: {work}")["ours"]["cpu"] > 0 for work in manifests)
    assert found.keys() == {"long history", "fsck of 100 files", "fsck of 100 files, deep"}
    assert all(found["long history"][work]["cpu"] > 0 for work in ("commit", "plan", "read"))
    compared = [figure for title, figure in found.items() if title != "long history"]
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


@pytest.mark.nightly
def test_the_memory_of_each_verb_is_measured(tmp_path: Path) -> None:
    command = [sys.executable, str(BENCHMARKS / "memory_budget.py"), "--budget=16", "--times=0.05"]
    verbs = ["write", "compact with lookup", "sql group"]
    head, _, *lines = subprocess.check_output([*command, f"--folder={tmp_path}", *verbs], text=True).splitlines()
    assert head.startswith("| verb | budget MiB | rows MiB | growth MiB |")
    figures = [line.strip("| ").split(" | ") for line in lines]
    assert [cells[0] for cells in figures] == verbs
    assert all(float(cells[3]) >= 0 and cells[1] == "16" for cells in figures)


def test_the_repair_of_many_small_files_is_measured() -> None:
    command = [sys.executable, str(BENCHMARKS / "doctor.py"), "--files=40", "--commits=12", "--rows=3"]
    printed = subprocess.check_output(command, text=True)
    assert "small_files: 38 -> 0 files too many" in printed and "snapshots: 2 -> 0 snapshots" in printed
    assert "healthy: 2 data files" in printed


def test_concurrent_writers_report_the_outcome_of_their_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import concurrent_writer
    import concurrent_writers

    create, open_writer, read = concurrent_writer.CONTESTS["ours"](tmp_path)
    create()
    lines = [line.split(" ", 4) for n in range(2) for line in concurrent_writer.commit_rows(open_writer(), n, 3)]
    rows = read().to_pydict()
    stored = concurrent_writers.Counter((str(w), str(n)) for w, n in zip(rows["writer"], rows["number"], strict=True))
    stored["0", "0"] += 1
    del stored["1", "2"]
    figures = concurrent_writers.summarize_writers(3, lines, stored, cap=60)
    assert [figures[name] for name in ("acknowledged", "lost", "doubled", "refused", "failed")] == [6, 1, 1, 0, 0]


def test_curves_are_drawn_over_powers_of_ten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import growth

    results = [
        {"title": "long history", "library": "ours", "snapshots": 10**n, "figures": {"plan": {"cpu": 2.0 + n}}}
        for n in range(1, 5)
    ]
    (line,) = (e for e in ElementTree.fromstring(growth.draw_growth(results)).iter() if e.tag.endswith("polyline"))
    points = [tuple(map(float, point.split(","))) for point in line.attrib["points"].split()]
    assert [x for x, _ in points] == [growth.WIDTH * n / 3 for n in range(4)]
    steps = [before - after for (_, before), (_, after) in pairwise(points)]
    assert steps == pytest.approx([steps[0]] * 3, abs=0.2)
    assert steps[0] > 0


@pytest.mark.nightly
def test_bucket_modes_are_compared_with_fixed_buckets(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    command = [sys.executable, str(BENCHMARKS / "run.py"), "buckets", "--only=limit,ours", "--repeat=1"]
    done = subprocess.run(
        [*command, "--scale=0.0005", "--warm=16", f"--json={figures}"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""  # also no table with wrong rows
    results = {result["title"]: result for result in json.loads(figures.read_text())["results"]}
    rates = [results.pop(f"assignment alone, {name} keys") for name in ("new", "known")]
    assert all(rate["keys"] == 5_000 and rate["keys_per_core_second"] > 0 for rate in rates)
    writes = ("dynamic buckets", "postponed buckets", "postponed and compacted", "cross-partition buckets")
    indexes = ("key index and scan of the keys", "the same behind a full compaction")
    compared = {f"{mode}, {phase}" for mode in writes for phase in ("new keys", "updates")} | {*indexes}
    assert results.keys() == compared | {"fixed buckets, new keys", "fixed buckets, updates"}
    assert all(results[title]["base"] == "limit" for title in results)
    assert all(results[title]["figures"].keys() == {"limit", "ours"} for title in compared)
    assert all(results[title]["figures"]["ours"]["ratio"] > 0 for title in compared)


def test_a_peer_that_refuses_a_bucket_mode_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import run

    bench = run.Bench(sys.executable, 1, tmp_path, ["ours", "peer"], cap=60)
    source = tmp_path / "worker.py"
    source.write_text("import sys\nsys.exit('ValueError: no such buckets' if sys.argv[1] == 'peer' else 'MemoryError')")
    monkeypatch.setattr(run, "HERE", tmp_path)
    bench.compare("a write", "write", None, ["ours", "peer"])
    assert bench.results[0]["failures"] == {"ours": "MemoryError", "peer": "ValueError: no such buckets"}
    assert capsys.readouterr().out.split()[2:] == ["–", "failed", "refused", "–"]


@pytest.mark.nightly
def test_the_queries_of_tpch_are_measured() -> None:
    command = [sys.executable, str(BENCHMARKS / "tpch.py"), "--scale=0.001", "--repeat=1", "--layouts", "compacted"]
    _, _, line, *_ = subprocess.check_output(command, text=True).splitlines()
    name, *cells = line.strip("| ").split(" | ")
    assert name == "compacted"
    assert all(float(cell.split()[0]) > 0 for cell in cells)


@pytest.mark.nightly
def test_reads_of_compacted_tables_are_measured() -> None:
    command = [sys.executable, str(BENCHMARKS / "reading.py"), "--repeat=1"]
    environment = os.environ | {"BENCHMARK_SCALE": "0.001"}
    lines = subprocess.check_output(command, text=True, env=environment).splitlines()
    assert [line.split(" | ")[0] for line in lines[2:]][-2:] == ["| ten runs, all columns", "| ten runs, two columns"]
    assert len(lines) == 10


def test_point_lookups_are_measured() -> None:
    command = [sys.executable, str(BENCHMARKS / "point_lookup.py"), "--rows=400", "--files=4", "--repeat=2"]
    lines = subprocess.check_output(command, text=True).splitlines()
    assert [line.partition(":")[0] for line in lines[:4]] == ["lookup", "scan", "duckdb", "polars"]
    assert [line.partition(":")[0] for line in lines[4:7]] == ["lookup / scan", "lookup / duckdb", "lookup / polars"]
    assert all(float(line.partition(": ")[2]) > 0 for line in lines[4:7])


@pytest.mark.nightly
def test_filters_of_query_engines_are_measured() -> None:
    command = [sys.executable, str(BENCHMARKS / "engines.py"), "--rows=400", "--repeat=1"]
    _, *lines = subprocess.check_output(command, text=True).splitlines()
    assert {line.split()[0] for line in lines} == {"DuckDB", "Polars"} and len(lines) == 18
    assert all(float(line.split()[-1]) > 0 for line in lines)


def test_the_gate_fails_for_a_slower_row_and_measures_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import gate

    runs: list[str] = []

    def run_group(group: str, repeat: int, scale: float) -> gate.Times:
        runs.append(group)
        seconds = 2.4 if group == "scan" else 2.4 - 0.2 * runs.count(group)
        return {group: {"ours": seconds, "limit": 1.0}}

    figures = tmp_path / "gate.json"
    figures.write_text(json.dumps(dict.fromkeys((*gate.GROUPS, gate.STARTS), 2.0)))
    monkeypatch.setattr(gate, "run_group", run_group)
    monkeypatch.setattr(sys, "argv", ["gate.py", f"--figures={figures}"])
    assert gate.main() == 1
    assert runs == ["write", "scan", "scan", "scan", "append", "engines", "starts"]
    assert capsys.readouterr().err == "slower by more than 15%: scan\n"


@pytest.mark.slow("runs benchmarks for several minutes")
@pytest.mark.nightly
def test_no_row_of_the_gate_became_slower() -> None:
    done = subprocess.run([sys.executable, str(BENCHMARKS / "gate.py")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.nightly
def test_a_small_commit_is_measured(tmp_path: Path) -> None:
    command = [sys.executable, str(BENCHMARKS / "small_commits.py"), "--repeat=1", f"--folder={tmp_path}"]
    lines = subprocess.check_output(command, text=True).splitlines()
    assert [line.split()[0] for line in lines] == ["append", "key"]
    assert all(line.endswith("waits 3.0") for line in lines)
