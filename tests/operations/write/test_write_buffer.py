"""The write buffer returns the rows that it received, and has only one copy in memory while they are combined."""

from __future__ import annotations

import weakref
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from attrs import evolve

import paimon
from paimon.domain.merge.merge_engines import MERGE_ENGINES
from paimon.operations.write import row_writers
from paimon.operations.write.row_writers import WriteBuffer, take_rows
from paimon.ports.effects import NoProcessEffects


def test_rows_leave_the_buffer_in_one_piece_and_in_order() -> None:
    buffer = WriteBuffer(100)
    assert buffer.drain() is None
    tables = [pa.table({"a": [n, n + 1], "b": [str(n), None]}) for n in range(0, 6, 2)]
    for number, table in enumerate(tables):
        buffer.add(table, np.full(2, number))
    assert buffer.is_full
    drained = buffer.drain()
    assert drained is not None
    assert drained[0].equals(pa.concat_tables(tables))
    assert all(column.num_chunks == 1 for column in drained[0].columns)
    assert drained[1].tolist() == [0, 0, 1, 1, 2, 2]
    assert not buffer.is_full
    assert buffer.drain() is None


@pytest.mark.parametrize(
    ("lengths", "codes", "chunks"),
    [((20_000, 13_000), (3, 3), 2), ((20_000, 13_000), (3, 4), 1), ((20_000, 12_000, 10), (3, 3, 3), 1)],
    ids=["long chunks of one bucket", "two buckets", "short chunks"],
)
def test_long_chunks_of_one_bucket_are_not_copied(
    lengths: tuple[int, ...], codes: tuple[int, ...], chunks: int
) -> None:
    tables = [pa.table({"a": np.arange(n), "s": pa.array(["x"] * n)}) for n in lengths]
    for accepts_chunks, expected in ((True, chunks), (False, 1)):
        buffer = WriteBuffer(1)
        for table, code in zip(tables, codes, strict=True):
            buffer.add(table, np.full(len(table), code))
        drained = buffer.drain(accepts_chunks=accepts_chunks)
        assert drained is not None
        assert [column.num_chunks for column in drained[0].columns] == [expected, expected]
        assert drained[0].equals(pa.concat_tables(tables))
        assert drained[1].tolist() == [code for n, code in zip(lengths, codes, strict=True) for _ in range(n)]


def test_a_table_without_rows_is_not_held() -> None:
    buffer = WriteBuffer(100)
    buffer.add(pa.table({"a": pa.array([], pa.int64())}), np.zeros(0, np.int64))
    assert buffer.drain(1) is None


def test_columns_that_are_copied_are_freed_one_by_one() -> None:
    columns = [pa.chunked_array([[n, n + 1, n + 2]]) for n in range(3)]
    references = [weakref.ref(column) for column in columns]
    chosen = take_rows(columns, np.array([2, 0]))
    assert [column.to_pylist() for column in chosen] == [[2, 0], [3, 1], [4, 2]]
    assert not columns
    assert [ref() for ref in references] == [None, None, None]


@pytest.mark.parametrize("limit", [1, 40, 100, 1_000])
def test_rows_are_drained_in_parts_of_about_the_requested_size(limit: int) -> None:
    buffer = WriteBuffer(1)
    tables = [pa.table({"a": list(range(start, start + size))}) for start, size in ((0, 3), (3, 40), (43, 1), (44, 6))]
    for table in tables:
        buffer.add(table, np.asarray(table["a"]))
    parts = []
    while (part := buffer.drain(limit)) is not None:
        parts.append(part)
    assert buffer.held_bytes == 0
    assert pa.concat_tables([rows for rows, _ in parts]).equals(pa.concat_tables(tables).combine_chunks())
    assert all(np.array_equal(rows["a"], codes) for rows, codes in parts)
    row = 16  # an int64, and the code of its bucket
    assert all(row * len(codes) < limit + max(limit, row) for _, codes in parts)
    assert len(parts) <= 1 + 2 * row * 50 // limit or limit < row


def test_a_cleared_buffer_is_empty() -> None:
    buffer = WriteBuffer(1)
    buffer.add(pa.table({"a": [1]}), np.zeros(1, np.int64))
    buffer.clear()
    assert (buffer.drain(), buffer.held_bytes, buffer.is_full) == (None, 0, False)


SUMS = {"fields.v.aggregate-function": "sum"}
ENGINES: list[tuple[str, dict[str, str], bool]] = [
    *((engine, {}, False) for engine in MERGE_ENGINES),
    ("deduplicate", {"sequence.field": "v"}, True),
    ("aggregation", SUMS, False),
    ("aggregation", SUMS, True),
    ("aggregation", SUMS | {"sequence.field": "t"}, False),
    ("aggregation", {"fields.t.aggregate-function": "listagg"}, False),
    ("deduplicate", {"changelog-producer": "input"}, True),
]
"""Merge engine, further options, and whether rows have kinds. Not all of them can be merged in parts."""


@pytest.mark.parametrize("share", [pytest.param(0, marks=pytest.mark.nightly), 0.5], ids=["even", "a key of half"])
@pytest.mark.parametrize(("engine", "more", "has_kinds"), ENGINES)
def test_files_are_the_same_however_small_the_parts_that_were_spilled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str, more: dict[str, str], has_kinds: bool, share: float
) -> None:
    monkeypatch.setattr(row_writers, "_MIN_PART_BYTES", 1)
    monkeypatch.setattr(row_writers, "_BATCH_ROWS", 16)
    draw = np.random.default_rng(7)
    keys = draw.integers(0, 300, 900)
    rows = pa.table({
        "k": np.where(draw.random(900) < share, 150, keys),
        "v": pa.array(draw.integers(0, 9, 900), mask=draw.random(900) < 0.3),
        "t": [f"text {n}" for n in range(900)],
        "kind": draw.choice(["+I", "+U", "-U", "-D"], 900),
    })  # fmt: skip
    rows = rows if has_kinds else rows.drop_columns(["kind"])
    catalog = paimon.connect(tmp_path)
    catalog.create_database("d")
    written = []
    for name, buffer in (("whole", "256 mb"), ("parts", "8 kb")):
        options = {"bucket": "3", "merge-engine": engine, "write-buffer-size": buffer, "write-only": "true", **more}
        columns = "k BIGINT NOT NULL, v BIGINT, t STRING"
        table = catalog.create_table(f"d.{name}", columns, primary_keys=["k"], options=options)
        table.write(rows, kind_column="kind" if has_kinds else None)
        buckets = sorted((tmp_path / "d.db" / name).glob("bucket-*"))
        written.append([pq.read_table(file) for bucket in buckets for file in bucket.glob("data-*")])
        if "changelog-producer" in more:  # a file for each part
            changes = [pa.concat_tables(map(pq.read_table, bucket.glob("changelog-*"))) for bucket in buckets]
            written[-1] += [c.sort_by([("_KEY_k", "ascending"), ("_SEQUENCE_NUMBER", "ascending")]) for c in changes]
    assert len(written[0]) == (6 if "changelog-producer" in more else 3)
    assert written[0] == written[1]


def test_memory_of_decoders_and_encoders_is_returned_while_large_files_are_read_and_written(tmp_path: Path) -> None:
    released: list[int] = []

    class Recording(NoProcessEffects):
        def release_thread_memory(self) -> None:
            released.append(1)

    catalog = paimon.connect(tmp_path)
    catalog.create_database("d")
    table = catalog.create_table("d.t", "k BIGINT", options={"bucket": "-1"})
    own = table.with_engine(evolve(table.engine, process=Recording()))
    rows = pa.table({"k": pa.array(range(3_000_000), pa.int64())})
    own.write(rows)
    written = len(released)
    assert written >= 1
    assert own.scan().to_arrow().num_rows == rows.num_rows
    assert len(released) >= written + 2
    own.write(rows.slice(0, 10))
    assert own.scan(where="k < 3").count() == 6
