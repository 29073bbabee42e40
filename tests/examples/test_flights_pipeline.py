"""The parts of the flights pipeline that need no Spark: its numbers, its picture, its lines, its next commands."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections import defaultdict
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import numpy as np
import pyarrow as pa
import pytest
from flights import events, plot, source
from flights.pipeline import FLIGHTS_DDL, format_next_commands
from flights.states import collect_states, read_delays
from flights.steps import Steps, divert_errors
from flights.streaming import ChangeStream, check_batches
from PIL import Image
from rich.console import Console

import paimon
from paimon.domain.errors import CorruptTable
from paimon.table import Table

if TYPE_CHECKING:
    from pyspark.sql.streaming import StreamingQuery

COMMITS = 4


@pytest.fixture(scope="module")
def stream() -> list[pa.Table]:
    every_hundredth = source.read_flights().take(pa.array(range(0, 336_776, 100)))
    return events.split_into_commits(events.make_change_stream(every_hundredth), COMMITS)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory, stream: list[pa.Table]) -> Table:
    catalog = paimon.connect(tmp_path_factory.mktemp("demo lake"))
    catalog.create_database("flights")
    table = catalog.create_table("flights.flights", FLIGHTS_DDL, primary_keys=events.KEYS, partition_keys=["month"],
                                 options={"bucket": 1, "sequence.field": "version"})  # fmt: skip
    for part in stream:
        table.write(part, kind_column="op")
    table.compact(full=True)
    return table


def test_late_events_are_those_behind_newer_ones_of_earlier_commits(stream: list[pa.Table]) -> None:
    newest: dict[tuple[object, ...], int] = defaultdict(lambda: -1)
    wanted = []
    for part in stream:
        rows = list(zip(*(part[name].to_pylist() for name in (*events.KEYS, "version")), strict=True))
        wanted.append(sum(version < newest[tuple(key)] for *key, version in rows))
        for *key, version in rows:
            newest[tuple(key)] = max(newest[tuple(key)], version)
    assert events.count_late(stream) == wanted
    assert wanted[0] == 0 < wanted[-1]


def test_states_agree_with_the_table(table: Table, stream: list[pa.Table]) -> None:
    states = collect_states(table, events.count_late(stream))
    assert [state.label for state in states] == ["1", "2", "3", "4", "compaction"]
    assert [state.late_count for state in states] == [*events.count_late(stream), 0]
    for state, snapshot in zip(states, table.snapshots(), strict=True):
        assert sum(state.rows_by_status.values()) == table.scan(snapshot=snapshot.id).count()
        assert sum(state.records_by_level.values()) == table.scan(snapshot=snapshot.id).plan().row_count
    before, after = states[-2:]
    assert set(before.records_by_level) == {0} and before.run_count == before.file_count > after.run_count == 12
    assert 0 not in after.records_by_level
    assert sum(after.records_by_level.values()) == sum(after.rows_by_status.values())
    assert before.rows_by_status == after.rows_by_status


def test_levels_have_colours_of_their_own() -> None:
    assert len({plot.choose_level_colour(level, 5) for level in (0, 3, 5)}) == 3


def test_the_picture_has_the_colours_of_levels_states_and_delays(
    table: Table, stream: list[pa.Table], tmp_path: Path
) -> None:
    states = collect_states(table, events.count_late(stream))
    plot.draw(states, read_delays(table), {}, tmp_path / "flights.png")
    image = Image.open(tmp_path / "flights.png").convert("RGB")
    assert image.width > 1_500 and image.height > 800
    counted = {f"#{r:02x}{g:02x}{b:02x}": n for n, (r, g, b) in image.getcolors(1 << 24) or ()}
    for colour in (plot.ORANGE, plot.BLUE, plot.GREY):
        assert counted[colour] > 2_000


def as_seen_without_green(colour: str) -> np.ndarray:
    """A colour as a reader with deuteranopia sees it (Machado, Oliveira and Fernandes, 2009), as linear RGB."""
    matrix = np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]])
    values = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)
    return np.clip(matrix @ linear, 0, 1)


@pytest.mark.parametrize(
    "colours",
    [[plot.choose_level_colour(level, 5) for level in (0, 3, 5)], [*plot.STATUS_COLOURS.values()]],
    ids=["l", "s"],
)
def test_colours_differ_for_readers_with_deuteranopia(colours: list[str]) -> None:
    seen = [as_seen_without_green(colour) for colour in colours]
    for i, one in enumerate(seen):
        for other in seen[:i]:
            assert np.abs(one - other).sum() > 0.25
    red, green = as_seen_without_green("#d73027"), as_seen_without_green("#1a9850")  # of the map that was here before
    assert np.abs(red - green).sum() < np.abs(seen[0] - seen[-1]).sum()


def test_a_missing_batch_fails_the_run(tmp_path: Path, stream: list[pa.Table]) -> None:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("flights")
    table = catalog.create_table("flights.t", "id INT")
    builder = table.new_stream_write_builder("spark")
    for number in (0, 1, 3):
        with builder.new_write() as writer:
            writer.write({"id": [number]})
            builder.new_commit().commit(number, writer.prepare_commit(number))
        if number == 1:
            check_batches(table, 2)
    with pytest.raises(CorruptTable, match=r"has the batches \[0, 1, 3\], and not 0 to 3 once each"):
        check_batches(table, 4)
    changes = ChangeStream.create(tmp_path / "stream")
    changes.send(stream)
    assert [path.name for path in sorted(changes.inbox.iterdir())] == [f"{n:04}.parquet" for n in range(COMMITS)]
    assert list(ChangeStream.create(tmp_path / "stream").inbox.iterdir()) == []


def test_a_step_prints_its_outcome_and_its_seconds() -> None:
    printed = StringIO()
    steps = Steps(Console(file=printed, width=200))
    with steps.step("check: read embedded") as step:
        step.report("336,776 rows, equal to the source")
    line = printed.getvalue().splitlines()[-1]
    assert line.startswith("✓ check: read embedded") and " 0.0 s  336,776 rows, equal to the source" in line


def test_errors_of_other_processes_go_to_a_file(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    loud = [sys.executable, "-c", "import sys; print('WARN noise', file=sys.stderr)"]
    with divert_errors(tmp_path / "log"):
        subprocess.run(loud, check=True)
    print("heard again", file=sys.stderr)
    assert capfd.readouterr().err == "heard again\n"
    assert (tmp_path / "log").read_text() == "WARN noise\n"


def test_errors_are_printed_where_the_block_fails(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RuntimeError), divert_errors(tmp_path / "log"):
        os.write(2, b"java: no such file\n")
        raise RuntimeError("no gateway")
    assert "java: no such file" in capfd.readouterr().err


def test_the_next_commands_run_as_printed(table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = Path(table.location).parents[2]
    monkeypatch.chdir(lake)
    lines = format_next_commands(table.location)
    assert len(lines) == 4 and lines[0] == "Next:"
    for line in lines[1:]:
        assert str(lake) not in line.replace(str(Path(sys.executable).parent), "")
        done = subprocess.run(shlex.split(line), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip()


def test_the_folder_runs_as_a_program(tmp_path: Path) -> None:
    """The script needs no module path and no working directory, and refuses unsupported tables before Spark starts."""
    program = [sys.executable, str(Path(__file__).resolve().parents[2] / "examples" / "flights")]
    helped = subprocess.run([*program, "--help"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert all(option in helped.stdout for option in ("--warehouse", "--out", "--commits"))
    refused = subprocess.run([*program, "--commits", "1"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert refused.stderr.startswith("flights: Option --commits must be at least 2")
    assert not list(tmp_path.iterdir())


def test_a_killed_query_loses_its_last_record_with_the_checksum(tmp_path: Path, table: Table) -> None:
    changes = ChangeStream.create(tmp_path / "stream")
    records = changes.checkpoint / "commits"
    records.mkdir(parents=True)
    for name in ("0", ".0.crc", "1", ".1.crc"):
        (records / name).touch()
    stopped = SimpleNamespace(isActive=False, stop=lambda: None)
    changes.kill(cast("StreamingQuery", stopped), table, 1)
    assert sorted(path.name for path in records.iterdir()) == [".0.crc", "0"]
