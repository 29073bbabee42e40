"""Lookups in the higher levels return the record of the smallest level, with file and row, as a full search does."""

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
from support.tables import create_table

import paimon
from paimon.domain.deletion.vector import DeletionVector
from paimon.domain.manifest.entries import DataFileMeta, FileSource
from paimon.domain.scan.splits import DataSplit
from paimon.domain.types.system_columns import LEVEL, SEQUENCE_NUMBER, VALUE_KIND
from paimon.operations.compact.lookup import Lookup, UpperLevels
from paimon.operations.data_files.read_data_file import BatchLimit, Bucket
from paimon.operations.data_files.write_data_files import FileLayout, RollingFiles

EMPTY = b"\0\0\0\0"
KEY = st.tuples(st.sampled_from(["", "a", "b"]), st.integers(-3, 12))
KEYS = st.lists(KEY, unique=True, max_size=25).map(sorted)
Key = tuple[str, int]


def create_table_of_format(home: str, file_format: str) -> paimon.Table:
    options = {"bucket": "1", "file.format": file_format, "write-only": "true"}
    return create_table(home, "a STRING NOT NULL, b INT NOT NULL, v STRING", primary_keys=["a", "b"], options=options)


def directory(table: paimon.Table) -> str:
    return f"{table.location}/bucket-0"


def level_files(table: paimon.Table, keys: list[Key], level: int, cuts: int) -> list[DataFileMeta]:
    """The keys in files of a level, at most this number in each file."""
    layout = evolve(FileLayout.of(table.definition, level, FileSource.COMPACT), target_rows=cuts)
    rolling = RollingFiles(table.engine, layout, directory(table))
    if keys:
        rolling.write(pa.table({
            "a": [k[0] for k in keys], "b": pa.array([k[1] for k in keys], pa.int32()),
            "v": [f"{k}@{level}" for k in keys], "_SEQUENCE_NUMBER": pa.array(range(len(keys)), pa.int64()),
            "_VALUE_KIND": pa.array([0] * len(keys), pa.int8()),
        }))  # fmt: skip
    return rolling.close()


def to_key_table(keys: list[Key]) -> pa.Table:
    return pa.table({"a": pa.array([k[0] for k in keys], pa.string()), "b": pa.array([k[1] for k in keys], pa.int32())})


def open_upper_levels(
    table: paimon.Table, files: list[DataFileMeta], through: bytes, batch_rows: int, **more: Any
) -> UpperLevels:
    split = DataSplit(0, EMPTY, 0, 1, directory(table), tuple(files))
    columns = (*table.table_schema.fields, SEQUENCE_NUMBER, VALUE_KIND, LEVEL)
    limit = BatchLimit(batch_rows, 1 << 30)
    return UpperLevels(Bucket.of(table.context, split), tuple(files), columns, through, limit, **more)


@settings(max_examples=15, deadline=None)
@given(
    levels=st.dictionaries(st.integers(1, 5), KEYS, max_size=3),
    cuts=st.integers(1, 9),
    wanted=KEYS.filter(bool),
    step_count=st.integers(1, 5),
    batch_rows=st.integers(1, 7),
    deleted=st.none() | st.sets(st.integers(0, 8)),
    with_positions=st.booleans(),
    file_format=st.sampled_from(["parquet", "parquet", "orc", "avro"]),
)
def test_a_lookup_equals_a_full_search(
    levels: dict[int, list[Key]], cuts: int, wanted: list[Key], step_count: int, batch_rows: int,
    deleted: set[int] | None, with_positions: bool, file_format: str,
) -> None:  # fmt: skip
    with tempfile.TemporaryDirectory() as home:
        table = create_table_of_format(home, file_format)
        files = [f for level, keys in levels.items() for f in level_files(table, keys, level, cuts)]
        vector = None if deleted is None else DeletionVector.of(sorted(deleted))
        expected: dict[Key, tuple[str, str, int]] = {}
        for level in sorted(levels, reverse=True):
            own = [f for f in files if f.level == level]
            for number, key in enumerate(levels[level]):
                if number % cuts not in (deleted or ()):
                    expected[key] = (f"{key}@{level}", own[number // cuts].file_name, number % cuts)
        (highest,) = level_files(table, wanted[-1:], 0, 1)
        lookup = Lookup(open_upper_levels(
            table, files, highest.max_key, batch_rows=batch_rows, returns_positions=with_positions,
            vector_of=lambda _: vector,
        ))  # fmt: skip
        found: dict[Key, tuple[str, str, int]] = {}
        step = -(-len(wanted) // step_count)
        for start in range(0, len(wanted), step):
            part = wanted[start : start + step]
            got = lookup.find(to_key_table(part))
            places = got.positions.tolist() if with_positions else [-1] * len(got.requested)
            for row, place, file, position in zip(
                got.rows.to_pylist(), got.requested.tolist(), got.file_of.tolist(), places, strict=True
            ):
                assert part[place] == (row["a"], row["b"]) and row["_LEVEL"] == got.files[file].level
                found[part[place]] = (row["v"], got.files[file].file_name, position)
        hits = {k: v if with_positions else (*v[:2], -1) for k, v in expected.items() if k in set(wanted)}
        assert found == hits


def test_files_that_cannot_hold_a_key_are_not_opened(tmp_path: Path) -> None:
    table = create_table_of_format(str(tmp_path), "parquet")
    keys = [("a", k) for k in range(100)]
    files = level_files(table, keys, 5, 10)
    for file in (*files[:3], *files[4:6], *files[7:]):
        Path(directory(table), file.file_name).unlink()
    lookup = Lookup(open_upper_levels(table, files, files[6].max_key, batch_rows=4))
    assert lookup.find(to_key_table([("a", 31), ("a", 32)])).rows["b"].to_pylist() == [31, 32]
    assert lookup.find(to_key_table([("a", 38)])).requested.tolist() == [0]
    assert lookup.find(to_key_table([("a", 65), ("b", 0)])).rows["b"].to_pylist() == [65]


def test_lookup_memory_does_not_depend_on_the_file_size(tmp_path: Path) -> None:
    table = create_table_of_format(str(tmp_path), "parquet")
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
    lookup = Lookup(open_upper_levels(table, files, files[-1].max_key, batch_rows=1_000))
    before = pa.total_allocated_bytes()
    peak_bytes = 0
    for start in range(0, rows, 10_000):
        found = lookup.find(to_key_table([("x", start), ("x", start + 5_000)]))
        assert found.rows["b"].to_pylist() == [start, start + 5_000]
        peak_bytes = max(peak_bytes, pa.total_allocated_bytes() - before)
    assert peak_bytes < 12_000_000, f"{peak_bytes:,} bytes of {rows * 120:,}"


@pytest.mark.parametrize("batch_rows", [1, 3, 1_000])
def test_many_keys_of_many_windows(tmp_path: Path, batch_rows: int) -> None:
    table = create_table_of_format(str(tmp_path), "parquet")
    files = level_files(table, [("k", n) for n in range(0, 400, 2)], 3, 70)
    lookup = Lookup(open_upper_levels(table, files, files[-1].max_key, batch_rows=batch_rows))
    got: list[int] = []
    for start in range(0, 400, 50):
        got += lookup.find(to_key_table([("k", n) for n in range(start, start + 50)])).rows["b"].to_pylist()
    assert got == list(range(0, 400, 2))
