"""Contract tests of the port FormatIO, with drawn schemas and tables.

An adapter that keeps the contract of `paimon.ports.formats` passes. Derive a class from `FormatIOContract`, whose
`make_format` returns the adapter.
"""

from __future__ import annotations

import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import partial
from io import BytesIO
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from paimon.domain.errors import CorruptTable, InvalidRequest, PaimonError, StorageError, Unsupported
from paimon.domain.predicate.evaluate_columnar import evaluate
from paimon.domain.predicate.expression import And, Compare, In, IsNull, Like, Literal, Not, Operator, Or, Predicate
from paimon.domain.row.values import to_values
from paimon.domain.stats.simple_stats import ColumnStats
from paimon.domain.types import data_types as dt
from paimon.domain.types.arrow import arrow_schema
from paimon.domain.types.data_types import DataField
from paimon.ports.formats import FileInspection, FormatIO, ReadRequest, WriteRequest, WrittenFile
from paimon.testing.contracts.files import expect_error
from paimon.testing.contracts.races import run_together
from paimon.testing.memory_files import MemoryFiles
from paimon.testing.strategies import arrow_tables, data_types, fields_of
from paimon.testing.strategies.predicates import predicates

PATH = "/table/bucket-0/data-0"
MODERATE = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))

_ROWS = 600
_GROUP_ROWS = 100
_RANGES = ((50, 120), (300, 301), (590, _ROWS))
_SORTED = (
    DataField(0, "id", dt.IntType()),
    DataField(1, "k", dt.BigIntType(nullable=False)),
    DataField(2, "x", dt.IntType()),
    DataField(3, "s", dt.VarCharType()),
)
"""Row positions; numbers that ascend, each of them 30 times; numbers with nulls in any order; texts."""
_LACKING = DataField(9, "new", dt.IntType())
_ASCENDING: tuple[Predicate, ...] = (
    *(Compare("k", op, n) for op in Operator for n in (-1, 0, 3, 7, 19, 20)),
    In("k", (3, 9)),  # type: ignore[arg-type]
    And((Compare("k", Operator.GE, 6), Compare("k", Operator.LE, 7))),
    Or((Compare("k", Operator.EQ, 2), Compare("k", Operator.EQ, 15))),
    Or((Compare("k", Operator.EQ, 2), Compare("x", Operator.EQ, 5))),
    Not(Compare("k", Operator.LT, 16)),
)
_PREDICATES: tuple[Predicate, ...] = (
    *_ASCENDING,
    *(Compare("x", op, n) for op in Operator for n in (-1, 5, 96)),
    *(IsNull(name, negated) for name in ("x", "k", "new") for negated in (False, True)),
    *(In("x", (1, 96), negated) for negated in (False, True)),  # type: ignore[arg-type]
    *(Like("s", "text 1%", None, negated) for negated in (False, True)),
    Not(And((Compare("x", Operator.GT, 5), IsNull("s")))),
    *(Literal(value) for value in (True, False, None)),
)


@st.composite
def files_of(draw: st.DrawFn, file_format: str) -> tuple[tuple[DataField, ...], pa.Table]:
    """Draw columns that a format can store, and a table with these columns."""
    kinds = data_types(file_format, max_depth=2)
    fields = fields_of(draw(st.lists(kinds, min_size=1, max_size=4)))
    return fields, draw(arrow_tables(fields, max_size=20))


class FormatIOContract(ABC):
    """Derive a test class from this one and implement `make_format`."""

    has_footer = True
    """False for a format whose files have no end of their own (Avro): one cut between two blocks is a shorter file.

    What reads a table knows the size of each of its files, and refuses another one.
    """
    keeps_signs_of_zeros = True
    """False for a format whose readers may return a zero with the other sign (ORC, as Java reads it)."""

    @abstractmethod
    def make_format(self) -> FormatIO:
        """Return the adapter."""

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

    def test_a_sorted_file_is_read(self) -> None:
        """Of several groups: all rows, ranges of them, and statistics."""
        files, table, written = self._write_sorted()
        assert (written.row_count, written.size_bytes) == (_ROWS, len(files.read(PATH)))
        self._check_statistics(_SORTED, table, written.column_stats)
        self._check_read(files, _SORTED, table, batch_rows=64)
        ranges = pa.concat_tables([table.slice(low, high - low) for low, high in _RANGES])
        self._check_read(files, _SORTED, ranges, batch_rows=64, row_ranges=_RANGES)

    def test_a_cut_file_is_not_read(self) -> None:
        """It raises CorruptTable with its path, whatever is missing of it."""
        files, table, _ = self._write_sorted()
        whole = files.read(PATH)
        for at in np.linspace(0, len(whole) - 1, 40).astype(int):
            self._check_cut(whole[:at], _SORTED, table)

    def test_a_predicate_skips_only_rows_that_do_not_match(self) -> None:
        """Of any operator, on requested, on other and on missing columns, together with row ranges."""
        files, table, _ = self._write_sorted()
        for predicate in _PREDICATES:
            for ranges in (None, _RANGES):
                self._check_skips(files, table, predicate, row_ranges=ranges)

    def test_an_ascending_column_hides_no_match(self) -> None:
        """A reader that stops early returns all rows with the last value, and all that another condition selects."""
        files, table, _ = self._write_sorted()
        for predicate in _ASCENDING:
            self._check_skips(files, table, predicate, ascending="k")
            self._check_skips(files, table, predicate, ascending="k", row_ranges=_RANGES)

    @settings(MODERATE, max_examples=20)
    @given(st.data())
    def test_drawn_predicates_skip_no_match(self, data: st.DataObject) -> None:
        """Of columns of any type."""
        fields, table = data.draw(files_of(self.make_format().identifier))
        rows = list(zip(*(to_values(table.column(f.name), f.type) for f in fields), strict=True))
        predicate = data.draw(predicates(fields, rows=rows))
        files, _ = self._write(fields, table)
        request = ReadRequest(PATH, fields, predicate, fields, batch_rows=7)
        got = pa.Table.from_batches(self.make_format().read(files.open(PATH), request), arrow_schema(fields))
        wanted = table.filter(evaluate(predicate, table))
        columns = [(got[f.name], wanted[f.name], f.type) for f in fields]
        found, expected = (
            [self._render_values(list(row)) for row in zip(*(to_values(c[i], c[2]) for c in columns), strict=True)]
            for i in (0, 1)
        )
        rest = iter(found)
        assert all(row in rest for row in expected)  # in their order

    def _write_sorted(self) -> tuple[MemoryFiles, pa.Table, WrittenFile]:
        numbers = np.arange(_ROWS)
        texts = [None if n % 7 == 0 else f"text {n * 31 % 40}" for n in range(_ROWS)]
        shuffled = [None if n % 5 == 0 else n * 37 % 97 for n in range(_ROWS)]
        arrays = [pa.array(numbers, pa.int32()), pa.array(numbers // 30, pa.int64())]
        arrays += [pa.array(shuffled, pa.int32()), pa.array(texts, pa.string())]
        table = pa.Table.from_arrays(arrays, schema=arrow_schema(_SORTED))
        files = MemoryFiles()
        request = WriteRequest(PATH, _SORTED, block_rows=_GROUP_ROWS)
        writer = self.make_format().writer(files.create(PATH), request)
        for batch in table.to_batches(max_chunksize=_GROUP_ROWS):
            writer.write(batch)
            writer.flush()
        return files, table, writer.close()

    def _check_skips(self, files: MemoryFiles, table: pa.Table, predicate: Predicate, **more: Any) -> None:
        all_fields = (*_SORTED, _LACKING)
        request = ReadRequest(PATH, (_SORTED[3], _SORTED[0]), predicate, all_fields, batch_rows=64, **more)
        got = pa.Table.from_batches(self.make_format().read(files.open(PATH), request), arrow_schema(request.fields))
        ids = got["id"].to_pylist()
        whole = table.append_column("new", pa.nulls(_ROWS, pa.int32()))
        matching = set(np.flatnonzero(evaluate(predicate, whole).fill_null(False).to_numpy(False)).tolist())
        ranges = request.row_ranges or ((0, _ROWS),)
        allowed = {row for low, high in ranges for row in range(low, high)}
        assert ids == sorted(set(ids)), predicate
        assert matching & allowed <= set(ids) <= allowed, predicate
        assert got["s"].equals(table["s"].take(got["id"]))

    def test_missing_and_pruned_columns(self) -> None:
        """A column that is not in the file is null; fields of a ROW can be read selectively."""
        format_io = self.make_format()
        a, b = DataField(1, "a", dt.IntType()), DataField(2, "b", dt.VarCharType())
        row = DataField(0, "r", dt.RowType((a, b)))
        cells = [{"a": 1, "b": "x"}, None, {"a": None, "b": "y"}]
        files, _ = self._write((row,), pa.table({"r": pa.array(cells, arrow_schema([row]).field(0).type)}))
        wanted = (DataField(9, "new", dt.TimestampType(3)), DataField(0, "r", dt.RowType((b,))))
        got = list(format_io.read(files.open(PATH), ReadRequest(PATH, wanted)))
        assert all(batch.schema.equals(arrow_schema(wanted), check_metadata=True) for batch in got)
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

    def test_batches_may_be_described_differently(self) -> None:
        """Flags of nullability and metadata are ignored; slices, empty chunks and empty tables are written."""
        fields = (
            DataField(0, "a", dt.IntType(nullable=False)),
            DataField(1, "s", dt.ArrayType(element=dt.VarCharType())),
            DataField(2, "r", dt.RowType(fields=(DataField(3, "n", dt.IntType()),))),
        )
        cells = [None if n % 4 == 0 else [f"{n}", None] * (n % 3) for n in range(30)]
        numbers = pa.array([-1, *(n or None for n in range(30))], pa.int32())
        structs = pa.StructArray.from_arrays([numbers.slice(1)], ["n"], mask=pa.array([n % 3 == 1 for n in range(30)]))
        plain = pa.schema(
            [
                pa.field("a", pa.int32(), True, {"k": "v"}),
                pa.field("s", pa.list_(pa.string())),
                pa.field("r", structs.type),
            ],
            {"m": "1"},
        )
        columns = [pa.array(range(30), pa.int32()), pa.array(cells, pa.list_(pa.string())), structs]
        rows = pa.Table.from_arrays(columns, schema=plain)
        pieces = (
            rows.slice(0, 3),
            rows.slice(3, 5),
            rows.slice(0, 0),
            pa.concat_tables([rows.slice(8, 0), rows.slice(8, 7), rows.slice(15, 9)]),
        )
        files = MemoryFiles()
        writer = self.make_format().writer(files.create(PATH), WriteRequest(PATH, fields))
        for piece in (*pieces, rows.combine_chunks().to_batches()[0].slice(24, 2)):
            writer.write(piece)
        assert writer.close().row_count == 26
        self._check_read(files, fields, rows.slice(0, 26))

    def test_a_null_in_a_column_that_is_not_null_is_refused(self) -> None:
        """Before the file is visible."""
        files = MemoryFiles()
        fields = (DataField(0, "a", dt.IntType(nullable=False)),)
        writer = self.make_format().writer(files.create(PATH), WriteRequest(PATH, fields))

        def write_null() -> None:
            """Write one null, and finish the file."""
            writer.write(pa.table({"a": pa.array([1, None], pa.int32())}))
            writer.close()

        expect_error(InvalidRequest, write_null)
        writer.abort()
        assert files.contents == {}

    def test_an_unknown_compression_is_refused(self) -> None:
        """The rows are not stored in another way."""
        files = MemoryFiles()
        fields = fields_of([dt.IntType()])
        request = WriteRequest(PATH, fields, compression="no such codec")

        def write() -> None:
            """Write one row."""
            writer = self.make_format().writer(files.create(PATH), request)
            writer.write(pa.table({"c0": pa.array([1], pa.int32())}))
            writer.close()

        error = expect_error(PaimonError, write)
        assert isinstance(error, InvalidRequest | Unsupported)
        assert files.contents == {}

    def test_a_file_is_visible_at_close(self) -> None:
        """The size grows with the rows, and a second abort does nothing."""
        files = MemoryFiles()
        fields = fields_of([dt.VarBinaryType()])
        writer = self.make_format().writer(files.create(PATH), WriteRequest(PATH, fields))
        values = [np.random.default_rng(n).bytes(200) for n in range(2_000)]
        writer.write(pa.table({"c0": pa.array(values, pa.binary())}))
        assert writer.estimated_bytes() + writer.held_bytes() > 100_000
        assert files.contents == {}
        written = writer.close()
        assert written.size_bytes == len(files.read(PATH)) > 100_000

    def test_a_failure_of_the_storage_is_no_damage(self) -> None:
        """A read raises the StorageError of its source, and leaves the source open."""
        files, _, _ = self._write_sorted()
        format_io, whole = self.make_format(), files.read(PATH)
        source = files.open(PATH)
        assert _count_rows(format_io.read(source, ReadRequest(PATH, _SORTED))) == _ROWS
        assert not source.closed
        for failing_read in (1, 2):
            failing = pa.PythonFile(_FailingSource(whole, failing_read), "r")
            request = ReadRequest(PATH, _SORTED, is_concurrent=False)
            expect_error(StorageError, lambda file=failing, r=request: _count_rows(format_io.read(file, r)))  # type: ignore[misc]

    def test_threads_share_the_format(self) -> None:
        """Each writes and reads its own file."""
        format_io = self.make_format()
        fields = fields_of([dt.IntType()])
        opened = threading.Barrier(3, timeout=60)  # no thread writes before all have their writer

        def write_and_read(start: int) -> bool:
            """Return whether the rows of this thread are read."""
            files = MemoryFiles()
            writer = format_io.writer(files.create(PATH), WriteRequest(PATH, fields))
            opened.wait()
            rows = pa.table({"c0": pa.array(range(start, start + 50), pa.int32())})
            writer.write(rows)
            writer.close()
            batches = format_io.read(files.open(PATH), ReadRequest(PATH, fields, batch_rows=20))
            return bool(pa.Table.from_batches(batches)["c0"].to_pylist() == rows["c0"].to_pylist())

        assert all(run_together([partial(write_and_read, n * 1_000) for n in range(3)], pauses=2_000))

    def test_aborted_writer_leaves_nothing(self) -> None:
        """An aborted writer leaves no file."""
        files = MemoryFiles()
        fields = fields_of([dt.IntType()])
        writer = self.make_format().writer(files.create(PATH), WriteRequest(PATH, fields))
        writer.write(pa.table({"c0": pa.array([1], pa.int32())}))
        assert writer.estimated_bytes() >= 0
        for _ in range(2):
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
        assert all(
            b.schema.equals(schema, check_metadata=True) and 0 < b.num_rows <= request.batch_rows for b in batches
        )
        got = pa.Table.from_batches(batches, schema)
        got.validate(full=True)
        for column in fields:
            expected = to_values(table.column(column.name), column.type)
            assert self._render_values(to_values(got.column(column.name), column.type)) == self._render_values(expected)

    def _render_values(self, values: list[Any]) -> str:
        text = repr(values)  # as text, NaN equals itself and zeros have signs
        return text if self.keeps_signs_of_zeros else re.sub(r"-0\.0\b", "0.0", text)


def _drain(format_io: FormatIO, data: bytes, fields: Sequence[DataField]) -> int:
    return _count_rows(format_io.read(pa.BufferReader(data), ReadRequest(PATH, fields)))


def _count_rows(batches: Iterator[pa.RecordBatch]) -> int:
    return sum(batch.num_rows for batch in batches)


class _FailingSource(BytesIO):
    """A file whose reads fail from the n-th on."""

    def __init__(self, data: bytes, failing_read: int) -> None:
        super().__init__(data)
        self._left = failing_read

    def read(self, size: int | None = -1) -> bytes:
        """Read bytes, or fail.

        Raises
        ------
        StorageError
            This read, or one before it, fails.
        """
        self._left -= 1
        if self._left <= 0:
            raise StorageError(PATH, "simulated failure")
        return super().read(size)
