"""Contract tests of the port FormatIO, with drawn schemas and tables.

An adapter that keeps the contract of `paimon.ports.formats` passes. Derive a class from `FormatIOContract`, whose
`make_format` returns the adapter.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from paimon.domain.errors import CorruptTable, PaimonError
from paimon.domain.row.values import to_values
from paimon.domain.stats.simple_stats import ColumnStats
from paimon.domain.types import data_types as dt
from paimon.domain.types.arrow import arrow_schema
from paimon.domain.types.data_types import DataField
from paimon.ports.formats import FileInspection, FormatIO, ReadRequest, WriteRequest, WrittenFile
from paimon.testing.memory_files import MemoryFiles
from paimon.testing.strategies import arrow_tables, data_types, fields_of

PATH = "/table/bucket-0/data-0"
MODERATE = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


@st.composite
def files_of(draw: st.DrawFn, file_format: str) -> tuple[tuple[DataField, ...], pa.Table]:
    """Draw columns that a format can store, and a table with these columns."""
    kinds = data_types(file_format, max_depth=2)
    fields = fields_of(draw(st.lists(kinds, min_size=1, max_size=4)))
    return fields, draw(arrow_tables(fields, max_size=20))


class FormatIOContract:
    """Derive a test class from this one and implement `make_format`."""

    has_footer = True
    """False for a format whose files have no end of their own (Avro): one cut between two blocks is a shorter file.

    What reads a table knows the size of each of its files, and refuses another one.
    """
    keeps_signs_of_zeros = True
    """False for a format whose readers may return a zero with the other sign (ORC, as Java reads it)."""

    def make_format(self) -> FormatIO:
        """Return the adapter.

        Raises
        ------
        NotImplementedError
            The derived class does not implement it.
        """
        raise NotImplementedError

    @MODERATE
    @given(st.data())
    def test_what_is_written_is_read(self, data: st.DataObject) -> None:
        """Reads of all columns, one column and row ranges return the written rows, in batches within the limit."""
        fields, table = data.draw(files_of(self.make_format().identifier))
        files, written = self._write(fields, table)
        assert written.row_count == table.num_rows
        assert written.size_bytes == len(files.read(PATH))
        self._check_read(files, fields, table, batch_rows=7)
        self._check_read(files, fields[-1:], table)
        low = data.draw(st.integers(0, table.num_rows))
        high = data.draw(st.integers(low, table.num_rows))
        self._check_read(files, fields, table.slice(low, high - low), row_ranges=((low, high),))
        ranges = ((0, min(low, 2)), (low, high))
        self._check_read(
            files,
            fields,
            pa.concat_tables([table.slice(0, min(low, 2)), table.slice(low, high - low)]),
            row_ranges=ranges,
        )

    @MODERATE
    @given(st.data())
    def test_statistics_bound_the_values(self, data: st.DataObject) -> None:
        """If a format returns bounds and null counts, they are correct, of a writer and of a finished file."""
        format_io = self.make_format()
        fields, table = data.draw(files_of(format_io.identifier))
        files, written = self._write(fields, table)
        self._check_statistics(fields, table, written.column_stats)
        if isinstance(format_io, FileInspection):
            content = format_io.inspect(files.open(PATH), PATH)
            assert (content.schema.names, content.row_count) == ([f.name for f in fields], table.num_rows)
            self._check_statistics(fields, table, format_io.read_statistics(files.open(PATH), PATH, fields))

    def _check_statistics(self, fields: Sequence[DataField], table: pa.Table, found: Sequence[ColumnStats]) -> None:
        assert len(found) == len(fields)
        for column, stats in zip(fields, found, strict=True):
            values = to_values(table.column(column.name), column.type)
            assert stats.null_count in (None, values.count(None))
            present = [v for v in values if v is not None]
            assert (stats.minimum is None) == (stats.maximum is None)
            if stats.minimum is not None and not isinstance(column.type, dt.FloatType | dt.DoubleType):
                assert stats.minimum <= min(present) and max(present) <= stats.maximum

    def test_missing_and_pruned_columns(self) -> None:
        """A column that is not in the file is null; fields of a ROW can be read selectively."""
        format_io = self.make_format()
        a, b = DataField(1, "a", dt.IntType()), DataField(2, "b", dt.VarCharType())
        row = DataField(0, "r", dt.RowType((a, b)))
        cells = [{"a": 1, "b": "x"}, None, {"a": None, "b": "y"}]
        files, _ = self._write((row,), pa.table({"r": pa.array(cells, arrow_schema([row]).field(0).type)}))
        wanted = (DataField(9, "new", dt.TimestampType(3)), DataField(0, "r", dt.RowType((b,))))
        got = list(format_io.read(files.open(PATH), ReadRequest(PATH, wanted)))
        assert pa.Table.from_batches(got).to_pylist() == [
            {"new": None, "r": {"b": "x"}},
            {"new": None, "r": None},
            {"new": None, "r": {"b": "y"}},
        ]

    def test_rows_can_be_counted(self) -> None:
        """A read of no column returns batches with the number of rows."""
        fields = fields_of([dt.IntType()])
        files, _ = self._write(fields, pa.table({"c0": pa.array(range(100), pa.int32())}))
        batches = self.make_format().read(files.open(PATH), ReadRequest(PATH, (), batch_rows=30))
        assert sum(b.num_rows for b in batches) == 100

    def test_a_flush_frees_memory_and_keeps_all_rows(self) -> None:
        """A flush does not increase the memory of a writer, and the file is complete."""
        files = MemoryFiles()
        fields = fields_of([dt.IntType()])
        writer = self.make_format().writer(files.create(PATH), WriteRequest(PATH, fields))
        for start in (0, 50):
            writer.write(pa.table({"c0": pa.array(range(start, start + 50), pa.int32())}))
            held = writer.held_bytes()
            writer.flush()
            assert 0 <= writer.held_bytes() <= held
        written = writer.close()
        batches = list(self.make_format().read(files.open(PATH), ReadRequest(PATH, fields)))
        assert written.row_count == 100 and pa.Table.from_batches(batches)["c0"].to_pylist() == list(range(100))

    def test_aborted_writer_leaves_nothing(self) -> None:
        """An aborted writer leaves no file."""
        files = MemoryFiles()
        fields = fields_of([dt.IntType()])
        writer = self.make_format().writer(files.create(PATH), WriteRequest(PATH, fields))
        writer.write(pa.table({"c0": pa.array([1], pa.int32())}))
        assert writer.estimated_bytes() >= 0
        writer.abort()
        assert files.contents == {}

    @MODERATE
    @given(st.data())
    def test_broken_files_are_corrupt(self, data: st.DataObject) -> None:
        """A truncated file raises CorruptTable with its path; a changed byte raises no other type than PaimonError.

        A file without a footer may be cut where it ends as a file of its first rows would; then these are read.
        """
        fields, table = data.draw(files_of(self.make_format().identifier))
        files, _ = self._write(fields, table)
        whole = files.read(PATH)
        at = data.draw(st.integers(0, len(whole) - 1))
        if data.draw(st.booleans()):
            self._check_cut(whole[:at], fields, table)
            return
        broken = whole[:at] + bytes([whole[at] ^ data.draw(st.integers(1, 255))]) + whole[at + 1 :]
        try:
            _drain(self.make_format(), broken, fields)
        except PaimonError as error:
            assert PATH in str(error) or not isinstance(error, CorruptTable)

    def _check_cut(self, cut: bytes, fields: Sequence[DataField], table: pa.Table) -> None:
        try:
            rows = _drain(self.make_format(), cut, fields)
        except CorruptTable as error:
            assert error.path == PATH
            return
        assert not self.has_footer and rows < table.num_rows
        files = MemoryFiles()
        files.contents[PATH] = cut
        self._check_read(files, fields, table.slice(0, rows))

    def _write(self, fields: Sequence[DataField], table: pa.Table) -> tuple[MemoryFiles, WrittenFile]:
        files = MemoryFiles()
        writer = self.make_format().writer(files.create(PATH), WriteRequest(PATH, fields))
        for batch in table.to_batches(max_chunksize=6):
            writer.write(batch)
        return files, writer.close()

    def _check_read(self, files: MemoryFiles, fields: Sequence[DataField], table: pa.Table, **more: Any) -> None:
        request = ReadRequest(PATH, fields, **more)
        batches = list(self.make_format().read(files.open(PATH), request))
        schema = arrow_schema(fields)
        assert all(b.schema.equals(schema) and 0 < b.num_rows <= request.batch_rows for b in batches)
        got = pa.Table.from_batches(batches, schema)
        got.validate(full=True)
        for column in fields:
            expected = to_values(table.column(column.name), column.type)
            assert self._render_values(to_values(got.column(column.name), column.type)) == self._render_values(expected)

    def _render_values(self, values: list[Any]) -> str:
        text = repr(values)  # as text, NaN equals itself and zeros have signs
        return text if self.keeps_signs_of_zeros else re.sub(r"-0\.0\b", "0.0", text)


def _drain(format_io: FormatIO, data: bytes, fields: Sequence[DataField]) -> int:
    return sum(b.num_rows for b in format_io.read(pa.BufferReader(data), ReadRequest(PATH, fields)))
