"""Footers of local Parquet files are kept as long as the files stay as they are."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paimon.adapters.cache import LruCache
from paimon.adapters.formats.guards.parquet_batches import BatchPlan
from paimon.adapters.formats.parquet import ParquetFormat, reader
from paimon.adapters.formats.parquet.known_files import KnownFile
from paimon.domain.errors import CorruptTable
from paimon.domain.types.ddl import parse_columns
from paimon.ports.formats import ReadRequest

FIELDS = parse_columns("a BIGINT, b STRING")


class Reader:
    """Reads a file with one format, and counts how often pages are checked."""

    def __init__(self, file: Path, monkeypatch: pytest.MonkeyPatch, cache_bytes: int = 1 << 20) -> None:
        self.file, self.checks = file, 0
        self.cache = LruCache(cache_bytes)
        self._format = ParquetFormat(cache=self.cache)
        original = reader.plan_batches

        def count(*arguments: object) -> BatchPlan:
            self.checks += 1
            return original(*arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(reader, "plan_batches", count)

    def read(self, columns: int = 2, source: pa.NativeFile | None = None) -> list[dict[str, object]]:
        request = ReadRequest(str(self.file), tuple(FIELDS[:columns]))
        with source or pa.OSFile(str(self.file)) as opened:
            return pa.Table.from_batches(self._format.read(opened, request)).to_pylist()

    def known(self) -> KnownFile | None:
        found = self.cache.get(str(self.file), "footer of Parquet")
        return found if isinstance(found, KnownFile) else None


def write(file: Path, first: int, rows: int = 3) -> list[dict[str, object]]:
    """Write another file, and put it in the place of the one that is there."""
    table = pa.table({"a": range(first, first + rows), "b": [f"text {n}" for n in range(first, first + rows)]})
    pq.write_table(table, file.with_suffix(".new"), write_page_checksum=True)
    os.replace(file.with_suffix(".new"), file)
    return table.to_pylist()


def test_a_second_read_checks_no_pages_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = Reader(tmp_path / "f.parquet", monkeypatch)
    rows = write(found.file, 1)
    assert found.read() == rows and found.checks == 1
    known = found.known()
    assert found.read() == rows and found.checks == 1 and found.known() is known is not None
    assert found.read(1) == [{"a": row["a"]} for row in rows] and found.checks == 2
    with pa.memory_map(str(found.file)) as mapped:
        assert found.read(source=mapped) == rows and found.checks == 2


def test_a_file_that_was_replaced_is_read_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also with the same name, size and times of modification."""
    found = Reader(tmp_path / "f.parquet", monkeypatch)
    found_at = []
    for first in (1, 4, 7):
        rows = write(found.file, first)
        os.utime(found.file, (1_000_000, 1_000_000))
        found_at.append(found.file.stat().st_size)
        assert found.read() == rows and found.checks == (first + 2) // 3
    assert len(set(found_at)) == 1


def test_a_file_that_was_damaged_after_a_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = Reader(tmp_path / "f.parquet", monkeypatch)
    write(found.file, 1)
    found.read()
    with found.file.open("r+b") as file:
        file.seek(20)
        file.write(b"\xff" * 20)
    with pytest.raises(CorruptTable, match=r"f\.parquet"):
        found.read()
    assert found.checks == 2


def test_checksums_are_compared_until_each_page_was_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[bool] = []
    original = pq.ParquetFile

    def open_file(*arguments: object, **options: object) -> pq.ParquetFile:
        if "page_checksum_verification" in options:
            opened.append(bool(options["page_checksum_verification"]))
        return original(*arguments, **options)

    found = Reader(tmp_path / "f.parquet", monkeypatch)
    rows = write(found.file, 1, 20_000)
    monkeypatch.setattr(pq, "ParquetFile", open_file)
    with pa.OSFile(str(found.file)) as source:
        request = ReadRequest(str(found.file), tuple(FIELDS), batch_rows=100)
        assert next(iter(ParquetFormat(cache=found.cache).read(source, request))).to_pylist() == rows[:100]
    assert [found.read(1), found.read(), found.read()] == [[{"a": row["a"]} for row in rows], rows, rows]
    write(found.file, 2)
    found.read()
    assert opened == [True, True, True, False, True]


def test_files_in_memory_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = Reader(tmp_path / "f.parquet", monkeypatch)
    rows = write(found.file, 1)
    for checks in (1, 2):
        assert found.read(source=pa.BufferReader(found.file.read_bytes())) == rows and found.checks == checks
    assert found.known() is None
    unknown = KnownFile(None, *[pq.read_metadata(found.file)] * 2, pq.read_schema(found.file))
    unknown.note_checksums([0], [0])
    assert unknown.needs_checksums([0], [0]), "bytes of a remote file are sent again"


def test_the_memory_of_known_files_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = Reader(tmp_path / "f.parquet", monkeypatch, cache_bytes=30_000)
    for number in range(5):
        found.file = tmp_path / f"f-{number}.parquet"
        rows = write(found.file, number)
        assert found.read() == rows
    assert 0 < found.cache.size_bytes <= 30_000
    kept = found.known()
    assert kept is not None
    for number in range(100):
        plan = BatchPlan(number, frozenset())
        assert kept.plan_batches(number, lambda plan=plan: plan) == plan  # type: ignore[misc]
    assert len(kept._plans) <= 48
