"""Files of BLOB columns: the bytes of Java, bounded batches, ranges of rows, and damage."""

from __future__ import annotations

import pyarrow as pa
import pytest
from support.golden_tables import golden_directory

from paimon.adapters.formats.blob import BlobFormat
from paimon.domain.errors import CorruptTable, InvalidRequest
from paimon.domain.types.data_types import BlobType, DataField
from paimon.ports.formats import ReadRequest, WriteRequest
from paimon.testing.contracts.formats import PATH
from paimon.testing.memory_files import MemoryFiles

FIELD = DataField(3, "pic", BlobType())
VALUES = [b"a" * 40, None, b"", b"b" * 10, None, b"c" * 100]


def write(values: list[bytes | None], field: DataField = FIELD) -> MemoryFiles:
    files = MemoryFiles()
    writer = BlobFormat().writer(files.create(PATH), WriteRequest(PATH, (field,)))
    for part in (values[:2], values[2:]):
        writer.write(pa.table({"pic": pa.array(part, pa.binary())}))
    written = writer.close()
    assert (written.row_count, written.size_bytes) == (len(values), len(files.read(PATH)))
    return files


def read(data: bytes, **request: object) -> list[list[bytes | None]]:
    asked = ReadRequest(PATH, (FIELD,), **request)  # type: ignore[arg-type]
    return [batch.column(0).to_pylist() for batch in BlobFormat().read(pa.BufferReader(data), asked)]


def test_rows_ranges_and_batches() -> None:
    data = write(VALUES).read(PATH)
    assert read(data) == [VALUES]
    assert read(data, batch_rows=4) == [VALUES[:4], VALUES[4:]]
    assert read(data, batch_bytes=80) == [VALUES[:3], VALUES[3:5], VALUES[5:]]
    assert read(data, row_ranges=((1, 2), (3, 4), (5, 6))) == [[None], [b"b" * 10], [b"c" * 100]]
    batches = list(BlobFormat().read(pa.BufferReader(data), ReadRequest(PATH, (), batch_rows=4)))
    assert [(b.num_rows, b.num_columns) for b in batches] == [(4, 0), (2, 0)]


def test_a_file_of_java_is_written_again_with_its_bytes() -> None:
    paths = sorted((golden_directory() / "blob" / "table").rglob("*.blob"))
    for path in paths:
        (values,) = read(path.read_bytes())
        assert write(values).read(PATH) == path.read_bytes()
    assert len(paths) == 2


def test_many_small_and_one_large_record() -> None:
    values: list[bytes | None] = [b"%d" % i for i in range(3_000)] + [b"x" * 3_000_000]
    assert [v for batch in read(write(values).read(PATH)) for v in batch] == values


def test_cut_files_are_corrupt() -> None:
    data = write(VALUES).read(PATH)
    for size in range(len(data)):
        with pytest.raises(CorruptTable):
            read(data[:size])


def test_a_null_of_a_not_null_column_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="Column pic is NOT NULL"):
        write([None], DataField(3, "pic", BlobType(nullable=False)))
