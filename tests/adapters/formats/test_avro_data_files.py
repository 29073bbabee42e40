"""Avro data files fulfil the contract of the port FormatIO."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest

import paimon
from paimon.adapters.formats.avro import AvroFormat
from paimon.adapters.formats.avro.container import SYNC_BYTES
from paimon.domain.errors import CorruptTable
from paimon.domain.types.data_types import DataField, IntType, VarCharType
from paimon.ports.formats import FormatIO, ReadRequest, WriteRequest
from paimon.testing.contracts import FormatIOContract
from paimon.testing.contracts.formats import PATH
from paimon.testing.memory_files import MemoryFiles


class TestAvro(FormatIOContract):
    has_footer = False

    def make_format(self) -> FormatIO:
        return AvroFormat()

    def test_blocks_of_many_short_records(self) -> None:
        """Such blocks are decoded as columns: whole, a range of rows, and some of the columns."""
        rows = 60_000
        texts = pa.array([None if i % 3 == 0 else f"v{i}" for i in range(rows)], pa.string())
        table = pa.table({"k": pa.array(range(rows), pa.int32()), "v": texts})
        fields = (DataField(0, "k", IntType()), DataField(1, "v", VarCharType(2147483647)))
        files = MemoryFiles()
        writer = self.make_format().writer(files.create(PATH), WriteRequest(PATH, fields))
        writer.write(table)
        writer.close()
        self._check_read(files, fields, table)
        self._check_read(files, fields, table.slice(7_777, 33_333), row_ranges=((7_777, 41_110),))
        self._check_read(files, fields[1:], table.select(["v"]))

    def test_rows_after_a_block_that_is_not_read(self) -> None:
        """Only adjacent blocks are decoded together, because rows are selected by their position in the file."""
        fields = (DataField(0, "k", IntType()),)
        files, _ = self._write(fields, pa.table({"k": pa.array(range(20), pa.int32())}))  # blocks of 6 rows
        ranges = ((0, 2), (13, 15), (19, 20))
        batches = list(self.make_format().read(files.open(PATH), ReadRequest(PATH, fields, row_ranges=ranges)))
        assert [k for batch in batches for k in batch.column(0).to_pylist()] == [0, 1, 13, 14, 19]

    def test_rows_before_a_damaged_block_are_read(self) -> None:
        """Successive blocks are decoded together, but damage of the last one hides no row before it."""
        fields = (DataField(0, "k", IntType()),)
        files, _ = self._write(fields, pa.table({"k": pa.array(range(70_000), pa.int32())}))
        damaged = files.read(PATH)[:-1] + b"?"
        found: list[int] = []
        with pytest.raises(CorruptTable, match="sync marker"):
            for batch in self.make_format().read(pa.BufferReader(damaged), ReadRequest(PATH, fields)):
                found += batch.column(0).to_pylist()
        assert found == list(range(len(found))) and 30_000 < len(found) < 70_000

    def test_a_cut_file_is_read_only_where_a_block_ends(self) -> None:
        fields = (DataField(0, "k", IntType()), DataField(1, "v", VarCharType(2147483647)))
        table = pa.table({"k": pa.array(range(20), pa.int32()), "v": pa.array([f"v{i}" for i in range(20)])})
        files, _ = self._write(fields, table)
        whole = files.read(PATH)
        read: list[int] = []
        for size in range(len(whole)):
            self._check_cut(whole[:size], fields, table)
            with suppress(CorruptTable):
                batches = self.make_format().read(pa.BufferReader(whole[:size]), ReadRequest(PATH, fields))
                read.append(sum(b.num_rows for b in batches))
        assert read == [0, 6, 12, 18]


@pytest.mark.parametrize("predicate", [None, "k >= 0"])
def test_a_scan_refuses_a_file_cut_where_a_block_ends(tmp_path: Path, predicate: str | None) -> None:
    """The file is a whole Avro file of fewer rows; its size in the manifest differs."""
    catalog = paimon.connect(tmp_path)
    catalog.create_database("d")
    table = catalog.create_table("d.t", "k INT", options={"file.format": "avro", "write-only": "true"})
    table.write({"k": range(70_000)})
    (path,) = tmp_path.glob("d.db/t/bucket-*/*.avro")
    whole = path.read_bytes()
    sync = whole[-SYNC_BYTES:]
    ends = [at + SYNC_BYTES for at in range(len(whole)) if whole.startswith(sync, at)]
    assert len(ends) > 2
    for end in ends[:-1]:
        path.write_bytes(whole[:end])
        with pytest.raises(CorruptTable, match="bytes"):
            table.scan(where=predicate).to_arrow()
