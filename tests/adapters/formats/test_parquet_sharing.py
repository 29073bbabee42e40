"""Parquet files that another decoder reads: their bytes are checked first, and files of another form are not shared."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paimon.adapters.formats.parquet import shared_file
from paimon.adapters.formats.parquet.shared_file import SharedParquetFile, share_file
from paimon.domain.errors import CorruptTable
from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import DataField
from paimon.ports.formats import ShareRequest

LIMIT = 512 * 1024 * 1024
FIELDS = (DataField(0, "id", dt.BigIntType()), DataField(1, "word", dt.VarCharType()))
ROWS = pa.table({"id": pa.array(range(1000), pa.int64()), "word": [f"w{i % 7}" for i in range(1000)]})


def write(rows: pa.Table, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, **{"write_page_checksum": True, "compression": "zstd", **options})
    return sink.getvalue().to_pybytes()


def share(data: bytes, limit: int = LIMIT, **given: Any) -> SharedParquetFile | None:
    request = ShareRequest(**{"path": "f.parquet", "fields": FIELDS, "row_count": ROWS.num_rows, **given})
    return share_file(pa.BufferReader(data), request, limit)


def test_all_bytes_are_returned() -> None:
    data = write(ROWS, row_group_size=300)
    file = share(data)
    assert file is not None
    assert file.size == len(data)
    assert b"".join(file.read_at(100, start) for start in range(0, len(data), 100)) == data


@pytest.mark.parametrize(
    ("rows", "options"),
    [
        (ROWS, {"compression": "lz4"}),
        (ROWS, {"compression": "brotli"}),
        (ROWS, {"use_dictionary": False, "column_encoding": {"word": "DELTA_BYTE_ARRAY"}}),
        (ROWS.replace_schema_metadata({"org.apache.spark.version": "2.4.8"}), {}),
        (ROWS.rename_columns(["id", "other"]), {}),
        (ROWS.append_column("ID", ROWS["id"]), {}),
        (ROWS.set_column(0, "id", ROWS["id"].cast(pa.int32())), {}),
        (ROWS.set_column(0, "id", ROWS["id"].cast(pa.timestamp("us"))), {}),
    ],
)
def test_files_of_another_form_are_not_shared(rows: pa.Table, options: dict[str, Any]) -> None:
    assert share(write(rows, **options)) is None


def test_bloom_filters_of_floating_numbers_are_not_shared() -> None:
    rows = pa.table({"id": pa.array([0.0, -0.0] * 500)})
    fields = (DataField(0, "id", dt.DoubleType()),)
    assert share(write(rows), fields=fields) is not None
    assert share(write(rows, bloom_filter_options={"id": {"ndv": 2}}), fields=fields) is None


@pytest.mark.parametrize(
    ("values", "constant", "shared"),
    [
        (["a"] * 1000, "a", True),
        (["a"] * 1000, "b", False),
        (["a"] * 999 + ["b"], "a", False),
        (["a"] * 999 + [None], "a", False),
        ([None] * 1000, None, False),
    ],
)
def test_statistics_prove_constants(values: list[str | None], constant: str | None, shared: bool) -> None:
    rows = ROWS.set_column(1, "word", pa.array(values, pa.string()))
    found = share(write(rows), constants={"word": constant})
    assert (found is not None) == shared


def test_changed_bytes_of_pages_are_found() -> None:
    data = write(ROWS)
    chunk = pq.ParquetFile(pa.BufferReader(data)).metadata.row_group(0).column(1)
    start, end = chunk.dictionary_page_offset, chunk.dictionary_page_offset + chunk.total_compressed_size
    for position in (start + 30, chunk.data_page_offset - 1, chunk.data_page_offset + 60, end - 1):
        changed = data[:position] + bytes([data[position] ^ 4]) + data[position + 1 :]
        file = share(changed)
        assert file is not None
        with pytest.raises(CorruptTable):
            file.read_at(end - start, start)


def test_pages_that_decompress_to_too_much_are_refused() -> None:
    rows = pa.table({"word": ["0" * 20_000_000]})
    file = share(write(rows, use_dictionary=False), 1000, fields=FIELDS[1:], row_count=1)
    assert file is not None
    with pytest.raises(CorruptTable, match="more than the limit"):
        file.read_at(100, 4)


def test_another_number_of_rows_is_damage() -> None:
    with pytest.raises(CorruptTable, match="1000 rows"):
        share(write(ROWS), row_count=999)


@pytest.fixture
def checked_chunks(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The chunks that are checked, in order."""
    checked: list[tuple[int, int]] = []
    check = shared_file.check_flat_chunk

    def check_and_count(stored: Any, start: int, end: int, rows: int) -> Any:
        checked.append((end - start, rows))
        return check(stored, start, end, rows)

    monkeypatch.setattr(shared_file, "check_flat_chunk", check_and_count)
    return checked


def share_path(path: Path, checks: object | None = None, limit: int = LIMIT) -> SharedParquetFile:
    request = ShareRequest("f.parquet", FIELDS, ROWS.num_rows, checks=checks)
    found = share_file(pa.OSFile(str(path)), request, limit)
    assert found is not None and found.checks is not None
    return found


def test_an_unchanged_file_is_checked_once(tmp_path: Path, checked_chunks: list[tuple[int, int]]) -> None:
    path = tmp_path / "f.parquet"
    path.write_bytes(write(ROWS, row_group_size=500))
    first = share_path(path)
    whole = first.read_at(first.size, 0)
    assert len(checked_chunks) == 4
    again = share_path(path, first.checks)
    assert again.read_at(again.size, 0) == whole
    assert len(checked_chunks) == 4
    assert again.checks is first.checks


def test_a_file_that_was_checked_in_part_is_checked_further(
    tmp_path: Path, checked_chunks: list[tuple[int, int]]
) -> None:
    path = tmp_path / "f.parquet"
    path.write_bytes(write(ROWS, row_group_size=500))
    first = share_path(path)
    first.read_at(100, 4)
    assert len(checked_chunks) == 1
    again = share_path(path, first.checks)
    again.read_at(again.size, 0)
    assert len(checked_chunks) == 4


def test_a_changed_file_is_checked_again(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    data = write(ROWS)
    path.write_bytes(data)
    first = share_path(path)
    first.read_at(len(data), 0)
    times = path.stat()
    with path.open("r+b") as file:
        file.seek(34)
        file.write(bytes([data[34] ^ 4]))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns + 1))
    again = share_path(path, first.checks)
    assert again.checks is not first.checks
    with pytest.raises(CorruptTable):
        again.read_at(len(data), 0)


def test_the_limit_of_pages_holds_for_checked_chunks(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    rows = pa.table({"id": pa.array(range(1000), pa.int64()), "word": [str(i) * 9000 for i in range(1000)]})
    path.write_bytes(write(rows, use_dictionary=False))
    first = share_path(path)
    first.read_at(first.size, 0)
    with pytest.raises(CorruptTable, match="more than the limit"):
        share_path(path, first.checks, limit=1000).read_at(first.size, 0)


def test_a_file_in_memory_keeps_no_checks() -> None:
    file = share(write(ROWS))
    assert file is not None
    assert file.checks is None


def test_the_chunks_of_a_request_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    path.write_bytes(write(ROWS, row_group_size=500))
    checks: object | None = None
    read = []
    for fields in (FIELDS, FIELDS[:1], FIELDS, FIELDS[:1]):
        request = ShareRequest("f.parquet", fields, ROWS.num_rows, checks=checks)
        found = share_file(pa.OSFile(str(path)), request, LIMIT)
        assert found is not None
        checks = found.checks
        read.append(pq.read_table(pa.BufferReader(found.read_at(found.size, 0)), columns=[f.name for f in fields]))
    assert read[0].equals(ROWS) and read[1].equals(ROWS.select(["id"]))
    assert read[2:] == read[:2]


def test_kept_chunks_prove_no_other_number_of_rows(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    path.write_bytes(write(ROWS))
    checks = share_path(path).checks
    with pytest.raises(CorruptTable, match="its manifest records 999"):
        share_file(pa.OSFile(str(path)), ShareRequest("f.parquet", FIELDS, 999, checks=checks), LIMIT)


def test_kept_chunks_prove_no_other_constant(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    path.write_bytes(write(ROWS))
    checks = share_path(path).checks
    request = ShareRequest("f.parquet", FIELDS, ROWS.num_rows, {"id": 7}, checks)
    assert share_file(pa.OSFile(str(path)), request, LIMIT) is None
