"""Keys looked up in the levels above: the record of the smallest level, its file and row, as a search of all says."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

import paimon
from paimon.domain.deletion.vector import DeletionVector
from paimon.domain.manifest.entries import DataFileMeta, FileSource
from paimon.domain.scan.splits import DataSplit
from paimon.domain.types.system import LEVEL, SEQUENCE_NUMBER, VALUE_KIND
from paimon.operations.maintain.rewriting.probe import Probe
from paimon.operations.maintain.rewriting.probed_file import Above
from paimon.operations.read.data_file import Bucket
from paimon.operations.write.files.data_files import RollingFiles
from paimon.operations.write.files.layout import FileLayout

EMPTY = b"\0\0\0\0"
KEY = st.tuples(st.sampled_from(["", "a", "b"]), st.integers(-3, 12))
KEYS = st.lists(KEY, unique=True, max_size=25).map(sorted)
Key = tuple[str, int]


def made(home: str, file_format: str) -> paimon.Table:
    catalog = paimon.connect(home)
    catalog.create_database("db")
    options = {"bucket": "1", "file.format": file_format, "write-only": "true"}
    return catalog.create_table(
        "db.t", "a STRING NOT NULL, b INT NOT NULL, v STRING", primary_keys=["a", "b"], options=options
    )


def directory(table: paimon.Table) -> str:
    return f"{table.location}/bucket-0"


def level_files(table: paimon.Table, keys: list[Key], level: int, cuts: int) -> list[DataFileMeta]:
    """The keys in files of a level, at most so many in each."""
    layout = evolve(FileLayout.of(table.definition, level, FileSource.COMPACT), target_rows=cuts)
    rolling = RollingFiles(table.engine, layout, directory(table))
    if keys:
        rolling.write(pa.table({
            "a": [k[0] for k in keys], "b": pa.array([k[1] for k in keys], pa.int32()),
            "v": [f"{k}@{level}" for k in keys], "_SEQUENCE_NUMBER": pa.array(range(len(keys)), pa.int64()),
            "_VALUE_KIND": pa.array([0] * len(keys), pa.int8()),
        }))  # fmt: skip
    return rolling.close()


def asked(keys: list[Key]) -> pa.Table:
    return pa.table({"a": pa.array([k[0] for k in keys], pa.string()), "b": pa.array([k[1] for k in keys], pa.int32())})


def above_of(table: paimon.Table, files: list[DataFileMeta], through: bytes, **more: Any) -> Above:
    split = DataSplit(0, EMPTY, 0, 1, directory(table), tuple(files))
    columns = (*table.table_schema.fields, SEQUENCE_NUMBER, VALUE_KIND, LEVEL)
    return Above(Bucket.of(table.engine, table.definition, split), tuple(files), columns, through, **more)


@settings(max_examples=15, deadline=None)
@given(
    levels=st.dictionaries(st.integers(1, 5), KEYS, max_size=3),
    cuts=st.integers(1, 9),
    wanted=KEYS.filter(bool),
    turns=st.integers(1, 5),
    batch_rows=st.integers(1, 7),
    deleted=st.none() | st.sets(st.integers(0, 8)),
    tells=st.booleans(),
    file_format=st.sampled_from(["parquet", "parquet", "orc", "avro"]),
)
def test_a_probe_finds_what_a_search_of_all_finds(
    levels: dict[int, list[Key]], cuts: int, wanted: list[Key], turns: int, batch_rows: int,
    deleted: set[int] | None, tells: bool, file_format: str,
) -> None:  # fmt: skip
    with tempfile.TemporaryDirectory() as home:
        table = made(home, file_format)
        files = [f for level, keys in levels.items() for f in level_files(table, keys, level, cuts)]
        vector = None if deleted is None else DeletionVector.of(sorted(deleted))
        expected: dict[Key, tuple[str, str, int]] = {}
        for level in sorted(levels, reverse=True):
            own = [f for f in files if f.level == level]
            for number, key in enumerate(levels[level]):
                if number % cuts not in (deleted or ()):
                    expected[key] = (f"{key}@{level}", own[number // cuts].file_name, number % cuts)
        (highest,) = level_files(table, wanted[-1:], 0, 1)
        probe = Probe(above_of(
            table, files, highest.max_key, batch_rows=batch_rows, tells_positions=tells, vector_of=lambda _: vector
        ))  # fmt: skip
        found: dict[Key, tuple[str, str, int]] = {}
        step = -(-len(wanted) // turns)
        for start in range(0, len(wanted), step):
            part = wanted[start : start + step]
            got = probe.find(asked(part))
            places = got.positions.tolist() if tells else [-1] * len(got.asked)
            for row, place, file, position in zip(
                got.rows.to_pylist(), got.asked.tolist(), got.file_of.tolist(), places, strict=True
            ):
                assert part[place] == (row["a"], row["b"]) and row["_LEVEL"] == got.files[file].level
                found[part[place]] = (row["v"], got.files[file].file_name, position)
        hits = {k: v if tells else (*v[:2], -1) for k, v in expected.items() if k in set(wanted)}
        assert found == hits


def test_files_that_cannot_hold_a_key_are_not_opened(tmp_path: Path) -> None:
    table = made(str(tmp_path), "parquet")
    keys = [("a", k) for k in range(100)]
    files = level_files(table, keys, 5, 10)
    for file in (*files[:3], *files[4:6], *files[7:]):
        Path(directory(table), file.file_name).unlink()
    probe = Probe(above_of(table, files, files[6].max_key, batch_rows=4))
    assert probe.find(asked([("a", 31), ("a", 32)])).rows["b"].to_pylist() == [31, 32]
    assert probe.find(asked([("a", 38)])).asked.tolist() == [0]
    assert probe.find(asked([("a", 65), ("b", 0)])).rows["b"].to_pylist() == [65]


def test_what_is_held_is_small_however_large_the_files(tmp_path: Path) -> None:
    table = made(str(tmp_path), "parquet")
    rows = 300_000
    layout = evolve(FileLayout.of(table.definition, 5, FileSource.COMPACT), block_bytes=1 << 20)
    rolling = RollingFiles(table.engine, layout, directory(table))
    for start in range(0, rows, 50_000):
        numbers = np.arange(start, start + 50_000)
        rolling.write(pa.table({
            "a": ["x"] * 50_000, "b": pa.array(numbers, pa.int32()), "v": [f"{n:0100d}" for n in numbers],
            "_SEQUENCE_NUMBER": numbers, "_VALUE_KIND": pa.array([0] * 50_000, pa.int8()),
        }))  # fmt: skip
    files = rolling.close()
    probe = Probe(above_of(table, files, files[-1].max_key, batch_rows=1_000))
    before = pa.total_allocated_bytes()
    held = 0
    for start in range(0, rows, 10_000):
        found = probe.find(asked([("x", start), ("x", start + 5_000)]))
        assert found.rows["b"].to_pylist() == [start, start + 5_000]
        held = max(held, pa.total_allocated_bytes() - before)
    assert held < 12_000_000, f"{held:,} bytes beside {rows * 120:,}"


@pytest.mark.parametrize("batch_rows", [1, 3, 1_000])
def test_many_keys_of_many_windows(tmp_path: Path, batch_rows: int) -> None:
    table = made(str(tmp_path), "parquet")
    files = level_files(table, [("k", n) for n in range(0, 400, 2)], 3, 70)
    probe = Probe(above_of(table, files, files[-1].max_key, batch_rows=batch_rows))
    got: list[int] = []
    for start in range(0, 400, 50):
        got += probe.find(asked([("k", n) for n in range(start, start + 50)])).rows["b"].to_pylist()
    assert got == list(range(0, 400, 2))
