"""Wrong formats of data files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from attrs import evolve

from paimon.adapters.formats.parquet import ParquetFormat
from paimon.domain.errors import CorruptTable, StorageError
from paimon.domain.predicate.evaluate_columnar import evaluate
from paimon.domain.types.arrow import arrow_schema
from paimon.ports.files import OutputFile
from paimon.ports.formats import FormatWriter, ReadRequest, WriteRequest
from paimon.testing import contracts
from support.contract_mistakes.planting import plant

FORMATS = contracts.FormatIOContract
Batches = Iterator[pa.RecordBatch]
SKIPS = "test_a_predicate_skips_only_rows_that_do_not_match"


@plant(FORMATS, SKIPS, "It returns every row that matches.")
class NothingForAPredicate(ParquetFormat):
    def read(self, source: pa.NativeFile, request: ReadRequest) -> Batches:
        return iter(()) if request.predicate is not None else super().read(source, request)


@plant(FORMATS, SKIPS, "It returns every row that matches.")
class FirstBatchForAPredicate(ParquetFormat):
    def read(self, source: pa.NativeFile, request: ReadRequest) -> Batches:
        for batch in super().read(source, request):
            yield batch
            if request.predicate is not None:
                return


@plant(FORMATS, SKIPS, "It returns every row that matches.")
class NoNullsForAPredicate(ParquetFormat):
    def read(self, source: pa.NativeFile, request: ReadRequest) -> Batches:
        for batch in super().read(source, request):
            found = batch if request.predicate is None else batch.drop_null()
            if found.num_rows:
                yield found


@plant(FORMATS, SKIPS, "Half-open ranges of row positions in the file")
class RangesOfSelectedRows(ParquetFormat):
    def read(self, source: pa.NativeFile, request: ReadRequest) -> Batches:
        if request.predicate is None or request.row_ranges is None:
            yield from super().read(source, request)
            return
        found = pa.Table.from_batches(
            super().read(source, evolve(request, row_ranges=None)), arrow_schema(request.fields)
        )
        parts = [found.slice(low, high - low) for low, high in request.row_ranges]
        yield from pa.concat_tables(parts).to_batches(max_chunksize=request.batch_rows)


@plant(FORMATS, SKIPS, "The fields that the predicate names. They need not be requested.")
class PredicatesOfRequestedColumns(ParquetFormat):
    def read(self, source: pa.NativeFile, request: ReadRequest) -> Batches:
        for batch in super().read(source, request):
            if request.predicate is not None:
                batch = batch.filter(evaluate(request.predicate, batch))
            if batch.num_rows:
                yield batch


def _until_first_match(source: Any, request: ReadRequest, read: Callable[..., Batches], *, inclusive: bool) -> Batches:
    """Yield the rows of a file up to a row that the predicate selects."""
    whole = evolve(request, predicate=None, ascending=None, fields=request.predicate_fields)
    mask = evaluate(request.predicate, pa.Table.from_batches(read(source, whole), arrow_schema(whole.fields)))
    stop = pc.index(mask, True).as_py() + inclusive
    for batch in read(source, evolve(request, predicate=None, ascending=None)):
        if (rows := min(stop, batch.num_rows)) > 0:
            yield batch.slice(0, rows)
        stop -= batch.num_rows


@plant(FORMATS, "test_an_ascending_column_hides_no_match", "which may be one of several with the same value")
class StopAtTheFirstMatch(ParquetFormat):
    def read(self, source: pa.NativeFile, request: ReadRequest) -> Batches:
        if request.ascending is None:
            return super().read(source, request)
        return _until_first_match(source, request, super().read, inclusive=True)


@plant(FORMATS, "test_an_ascending_column_hides_no_match", "The reader may stop after the last row that can match")
class StopBeforeTheLastGroup(ParquetFormat):
    def read(self, source: pa.NativeFile, request: ReadRequest) -> Batches:
        batches = list(super().read(source, request))
        return iter(batches[:-1] if request.ascending else batches)


READS = "test_a_sorted_file_is_read"


@plant(FORMATS, READS, "No batch is empty, or has more than `batch_rows` rows.")
class EmptyBatches(ParquetFormat):
    def read(self, source: pa.NativeFile, request: ReadRequest) -> Batches:
        for batch in super().read(source, request):
            yield from (batch, batch.slice(0, 0))


@plant(FORMATS, READS, "No batch is empty, or has more than `batch_rows` rows.")
class LargeBatches(ParquetFormat):
    def read(self, source: pa.NativeFile, request: ReadRequest) -> Batches:
        return super().read(source, evolve(request, batch_rows=65_536))


@plant(FORMATS, READS, "Batches whose schema equals `paimon.domain.types.arrow.arrow_schema`")
class NullableBatches(ParquetFormat):
    def read(self, source: pa.NativeFile, request: ReadRequest) -> Batches:
        for batch in super().read(source, request):
            yield pa.RecordBatch.from_arrays(batch.columns, batch.schema.names)


@plant(FORMATS, READS, "and as only metadata the key ``paimon.type`` of some fields")
class BatchesWithMetadata(ParquetFormat):
    def read(self, source: pa.NativeFile, request: ReadRequest) -> Batches:
        for batch in super().read(source, request):
            yield batch.replace_schema_metadata({"created by": "me"})


@plant(FORMATS, "test_missing_and_pruned_columns", "No column is a dictionary or a view.")
class BatchesOfDictionaries(ParquetFormat):
    def read(self, source: pa.NativeFile, request: ReadRequest) -> Batches:
        for batch in super().read(source, request):
            columns = [c.dictionary_encode() if c.null_count == len(c) else c for c in batch.columns]
            yield pa.RecordBatch.from_arrays(columns, batch.schema.names)


@plant(FORMATS, READS, "Rows are in file order.")
class BatchesInReverse(ParquetFormat):
    def read(self, source: pa.NativeFile, request: ReadRequest) -> Batches:
        return iter(list(super().read(source, request))[::-1])


@plant(FORMATS, READS, "Only rows in them are returned")
class AllRanges(ParquetFormat):
    def read(self, source: pa.NativeFile, request: ReadRequest) -> Batches:
        return super().read(source, evolve(request, row_ranges=None))


@plant(FORMATS, "test_rows_can_be_counted", "Batches whose schema equals")
class NoRowsWithoutColumns(ParquetFormat):
    def read(self, source: pa.NativeFile, request: ReadRequest) -> Batches:
        return super().read(source, request) if request.fields else iter(())


@plant(FORMATS, "test_missing_and_pruned_columns", "A column that the file lacks is read as nulls.")
class NoNewColumns(ParquetFormat):
    def read(self, source: pa.NativeFile, request: ReadRequest) -> Batches:
        for batch in super().read(source, request):
            if any(column.null_count == batch.num_rows for column in batch.columns):
                raise CorruptTable(request.path, "lacks a column")
            yield batch


@plant(FORMATS, "test_a_failure_of_the_storage_is_no_damage", "never CorruptTable, because the file may be sound")
class FailuresAreDamage(ParquetFormat):
    def read(self, source: pa.NativeFile, request: ReadRequest) -> Batches:
        try:
            yield from super().read(source, request)
        except StorageError as error:
            raise CorruptTable(request.path, str(error)) from error


@plant(FORMATS, "test_a_failure_of_the_storage_is_no_damage", "The iterator is lazy and closes nothing.")
class ReadThatCloses(ParquetFormat):
    def read(self, source: pa.NativeFile, request: ReadRequest) -> Batches:
        yield from super().read(source, request)
        source.close()


@plant(FORMATS, "test_a_cut_file_is_not_read", "The file is truncated, changed or of another format.")
class RawErrorsOfFiles(ParquetFormat):
    def read(self, source: pa.NativeFile, request: ReadRequest) -> Batches:
        try:
            yield from super().read(source, request)
        except CorruptTable as error:
            raise OSError(str(error)) from error


@plant(FORMATS, "test_a_cut_file_is_not_read", "raises CorruptTable with its path")
class DamageIsTheEndOfAFile(ParquetFormat):
    def read(self, source: pa.NativeFile, request: ReadRequest) -> Batches:
        try:
            yield from super().read(source, request)
        except CorruptTable:
            return


class _Writer:
    """A writer that passes all calls on; subclasses change one."""

    def __init__(self, inner: FormatWriter, request: WriteRequest) -> None:
        self._inner, self._request = inner, request

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def _writing(writer: type[_Writer]) -> Any:
    class Format(ParquetFormat):
        def writer(self, sink: OutputFile, request: WriteRequest) -> Any:
            return writer(super().writer(sink, request), request)

    Format.__name__ = writer.__name__
    return Format


def plant_writer(case: str, promise: str) -> Callable[[type[_Writer]], Any]:
    """Register a format with this writer."""
    return lambda writer: plant(FORMATS, case, promise)(_writing(writer))


@plant_writer(READS, "One entry per field, with bounds as internal values")
class NullCountsAreRows(_Writer):
    def close(self) -> Any:
        written = self._inner.close()
        return evolve(written, column_stats=[evolve(s, null_count=written.row_count + 1) for s in written.column_stats])


@plant_writer(READS, "that are not truncated")
class BoundsOfTheFirstRow(_Writer):
    def close(self) -> Any:
        written = self._inner.close()
        return evolve(written, column_stats=[evolve(s, maximum=s.minimum) for s in written.column_stats])


@plant_writer(READS, "The size of the file.")
class SizesOfZero(_Writer):
    def close(self) -> Any:
        return evolve(self._inner.close(), size_bytes=0)


@plant_writer("test_aborted_writer_leaves_nothing", "Abort the sink. No file remains")
class AbortWithAFile(_Writer):
    _is_closed = False

    def abort(self) -> None:
        if not self._is_closed:
            self._inner.close()
        self._is_closed = True


@plant_writer("test_a_file_is_visible_at_close", "it grows with the rows")
class EstimateOfNothing(_Writer):
    def estimated_bytes(self) -> int:
        return 0

    def held_bytes(self) -> int:
        return 0


@plant_writer("test_a_null_in_a_column_that_is_not_null_is_refused", "A value is null in a column that is NOT NULL")
class NullsAreZeros(_Writer):
    def write(self, batch: Any) -> None:
        table = pa.Table.from_batches([batch]) if isinstance(batch, pa.RecordBatch) else batch
        filled = [pc.fill_null(c, 0) if pa.types.is_integer(c.type) else c for c in table.columns]
        self._inner.write(pa.Table.from_arrays(filled, schema=table.schema))


@plant_writer("test_batches_may_be_described_differently", "Flags of nullability and metadata of the schema may differ")
class StrictSchemas(_Writer):
    def write(self, batch: Any) -> None:
        if not batch.schema.equals(arrow_schema(self._request.fields), check_metadata=True):
            raise TypeError("another schema")
        self._inner.write(batch)


@plant_writer("test_batches_may_be_described_differently", "Arrays may be slices, and chunks may be empty.")
class FirstChunks(_Writer):
    def write(self, batch: Any) -> None:
        self._inner.write(batch if isinstance(batch, pa.RecordBatch) else batch.to_batches()[0])


@plant_writer("test_a_flush_frees_memory_and_keeps_all_rows", "Hand held rows to the sink")
class RowsOfTheLastFlush(_Writer):
    _is_flushed = False

    def flush(self) -> None:
        self._inner.flush()
        self._is_flushed = True

    def write(self, batch: Any) -> None:
        if not self._is_flushed:
            self._inner.write(batch)


@plant(FORMATS, "test_an_unknown_compression_is_refused", "has no such compression")
class AnyCompression(ParquetFormat):
    def writer(self, sink: OutputFile, request: WriteRequest) -> FormatWriter:
        known = request.compression if request.compression in ("zstd", "snappy", "none") else "none"
        return super().writer(sink, evolve(request, compression=known))


@plant(FORMATS, "test_threads_share_the_format", "All methods are safe to call from several threads.")
class FormatOfOneThread(ParquetFormat):
    def writer(self, sink: OutputFile, request: WriteRequest) -> FormatWriter:
        self._writer = super().writer(sink, request)
        return _Last(self)  # type: ignore[return-value]


class _Last:
    """The last writer of a format."""

    def __init__(self, owner: FormatOfOneThread) -> None:
        self._owner = owner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._owner._writer, name)
