"""Avro data files keep the contract of formats."""

from __future__ import annotations

import pyarrow as pa

from paimon.adapters.formats.avro import AvroFormat
from paimon.domain.types.data_types import DataField, IntType, VarCharType
from paimon.ports.formats import FormatIO, WriteRequest
from paimon.testing.contracts import FormatIOContract
from paimon.testing.contracts.formats import PATH
from paimon.testing.memory_files import MemoryFiles


class TestAvro(FormatIOContract):
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
        self._check_read(files, fields, table.slice(7_777, 33_333), row_range=(7_777, 41_110))
        self._check_read(files, fields[1:], table.select(["v"]))
