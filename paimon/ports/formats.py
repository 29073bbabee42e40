"""FormatIO and RecordIO: the ports for data files as Arrow batches, and for manifests as records.

Invariant: a truncated, changed or foreign file raises CorruptTable with its path, never an error of a third-party
library. A file of a format without a footer (Avro) that is cut between two blocks is a valid file of fewer rows.
Suites: `paimon.testing.contracts.formats`, `file_sharing` and `records` there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa
from attrs import field, frozen

from paimon.domain.manifest.record_columns import RecordColumns
from paimon.domain.predicate.expression import Predicate
from paimon.domain.stats.simple_stats import ColumnStats
from paimon.domain.types.data_types import DataField
from paimon.ports.executor import Executor
from paimon.ports.files import OutputFile
from paimon.ports.queries import SharedFile


def _fields(values: Iterable[DataField]) -> tuple[DataField, ...]:
    return tuple(values)


@frozen
class ReadRequest:
    """The columns and rows to read of one data file.

    Parameters
    ----------
    path : str
        The path that errors name.
    fields : tuple of DataField
        The requested columns, with names, types and ids of the schema that wrote the file. A column that the file lacks
        is read as nulls. A ROW type may have a part of its fields.
    predicate : Predicate, optional
        A filter, bound to `predicate_fields`. A reader may leave out rows that do not match, such as those of a row
        group whose statistics exclude the predicate. It returns every row that matches. Ignoring the filter is correct.
    predicate_fields : tuple of DataField
        The fields that the predicate names. They need not be requested.
    batch_rows : int
        The largest number of rows of a batch.
    row_ranges : tuple of (int, int), optional
        Half-open ranges of row positions in the file, ascending and disjoint. Only rows in them are returned, and parts
        of the file without such rows are not decoded where the format allows it. None reads all rows.
    ascending : str, optional
        The name of a predicate field by which the rows of the file are sorted in ascending order. The reader may stop
        after the last row that can match, which may be one of several with the same value. Ignoring the order is
        correct. Never a floating-point column, because formats order NaN and zeros differently.
    batch_bytes : int, optional
        The most bytes that a batch may need if each value were the longest one. Formats that do not know the length of
        values ignore it.
    is_concurrent : bool
        Whether the reader may decode columns in threads of its own. Each thread keeps memory that it freed.
    """

    path: str
    fields: tuple[DataField, ...] = field(converter=_fields)
    predicate: Predicate | None = None
    predicate_fields: tuple[DataField, ...] = field(converter=_fields, default=())
    batch_rows: int = 65_536
    row_ranges: tuple[tuple[int, int], ...] | None = None
    ascending: str | None = None
    batch_bytes: int | None = None
    is_concurrent: bool = True


@frozen
class WriteRequest:
    """The layout of one new data file.

    Parameters
    ----------
    path : str
        The path that errors name.
    fields : tuple of DataField
        The columns in their order, with ids. System columns have their reserved ids.
    compression : str
        ``"zstd"``, ``"snappy"``, ``"lz4"``, ``"gzip"``, ``"none"`` …
    zstd_level : int
        The level of zstd.
    block_bytes : int, optional
        The size of a row group or stripe in bytes. None is the default of the format.
    block_rows : int, optional
        The largest number of rows of a row group if `block_bytes` is None. Formats that do not need it ignore it.
    least_saving : float
        The share of its bytes that the codec must save in a column, 0 to 1. A format with a codec for each column
        stores a column that saves less without one. 0 means that all columns have the codec.
    held_bytes : int, optional
        The most bytes of rows that wait in memory for a full row group or stripe. None sets no other limit than the
        size of a row group or stripe.
    options : mapping of str to str
        Options of the format with their prefix, such as ``"parquet.page.size"``.
    executor : Executor, optional
        Where the format can, its tasks encode columns at the same time. The bytes of the file do not depend on it.
    """

    path: str
    fields: tuple[DataField, ...] = field(converter=_fields)
    compression: str = "zstd"
    zstd_level: int = 1
    block_bytes: int | None = None
    block_rows: int | None = None
    least_saving: float = 0.0
    held_bytes: int | None = None
    options: Mapping[str, str] = field(factory=dict)
    executor: Executor | None = None


def _stats(values: Iterable[ColumnStats]) -> tuple[ColumnStats, ...]:
    return tuple(values)


@frozen
class WrittenFile:
    """The result of writing a file.

    Parameters
    ----------
    size_bytes : int
        The size of the file.
    row_count : int
        The number of rows.
    column_stats : tuple of ColumnStats
        One entry per field, with bounds as internal values (`paimon.domain.row.values`) that are not truncated, as
        Java's extractors read them. The entry is empty where the format has no statistics.
    """

    size_bytes: int
    row_count: int
    column_stats: tuple[ColumnStats, ...] = field(converter=_stats)


class FormatWriter(Protocol):
    """Writes one data file. One thread uses it. It ends with one call of `close` or `abort`."""

    def write(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Append rows.

        Parameters
        ----------
        batch : pyarrow.RecordBatch or pyarrow.Table
            Columns in the order of the requested fields, each of exactly the type of
            `paimon.domain.types.arrow.arrow_type`: never a dictionary, a view or a large type. Flags of nullability and
            metadata of the schema may differ, and are ignored. Arrays may be slices, and chunks may be empty.

        Raises
        ------
        InvalidRequest
            A value is null in a column that is NOT NULL, or the format cannot hold it. The caller aborts.
        StorageError
            The sink failed. The caller aborts.
        """

    def estimated_bytes(self) -> int:
        """Return the approximate size of the file so far.

        Returns
        -------
        int
            Bytes; it grows with the rows, with those that the sink does not have yet. The caller uses it to begin the
            next file.
        """

    def held_bytes(self) -> int:
        """Return the memory of the rows that the sink does not have yet.

        Returns
        -------
        int
            Bytes; `flush` does not increase them.
        """

    def flush(self) -> None:
        """Hand held rows to the sink, where the format can. Otherwise do nothing.

        Parquet begins a new row group, so frequent calls make a slow file.

        Raises
        ------
        StorageError
            The sink failed. The caller aborts.
        """

    def close(self) -> WrittenFile:
        """Finish the file and close its sink, which makes the file visible.

        Returns
        -------
        WrittenFile
            The size, the number of rows and the statistics.

        Raises
        ------
        StorageError
            The sink failed. The caller aborts.
        """

    def abort(self) -> None:
        """Abort the sink. No file remains, and further calls do nothing."""


class FormatIO(Protocol):
    """One format of data files. All methods are safe to call from several threads."""

    @property
    def identifier(self) -> str:
        """The format name in lower case, as in the option `file.format`, and the ending of the names of its files."""

    def read(self, source: pa.NativeFile, request: ReadRequest) -> Iterator[pa.RecordBatch]:
        """Read the rows of a file.

        The iterator is lazy and closes nothing. It holds a bounded part of the file in memory.

        Parameters
        ----------
        source : pyarrow.NativeFile
            The open file. The caller closes it after the last batch.
        request : ReadRequest
            The columns and rows.

        Yields
        ------
        pyarrow.RecordBatch
            Batches whose schema equals `paimon.domain.types.arrow.arrow_schema` of the requested fields: the same
            order, types, nullability, and as only metadata the key ``paimon.type`` of some fields. No column is a
            dictionary or a view. Rows are in file order. No batch is empty, or has more than `batch_rows` rows.

        Raises
        ------
        CorruptTable
            The file is truncated, changed or of another format. The error may come with any batch.
        StorageError
            The storage failed. It is the error of `source`, never CorruptTable, because the file may be sound.
        Unsupported
            The file uses a feature of the format that the reader does not know.
        """

    def writer(self, sink: OutputFile, request: WriteRequest) -> FormatWriter:
        """Begin a file.

        Parameters
        ----------
        sink : OutputFile
            An empty output. The writer closes or aborts it.
        request : WriteRequest
            The columns and the layout.

        Returns
        -------
        FormatWriter
            The caller ends it with `close` or `abort`.

        Raises
        ------
        InvalidRequest
            The value of an option of the format is not valid, or the format has no such compression.
        Unsupported
            The format cannot hold a column.
        """


@frozen(eq=False)
class ShareRequest:
    """The columns that another decoder reads of one data file.

    Parameters
    ----------
    path : str
        The path that errors name.
    fields : tuple of DataField
        The columns, with the names and types of the schema that wrote the file.
    row_count : int
        The rows that the manifest states.
    constants : mapping of str to object
        Columns that must have the same value in all rows, as Python values.
    checks : object, optional
        The `checks` of the `SharedFile` that an earlier call returned for this path. Pages that it checked are not
        checked again, if the file did not change.
    """

    path: str
    fields: tuple[DataField, ...] = field(converter=_fields)
    row_count: int
    constants: Mapping[str, Any] = field(factory=dict)
    checks: object | None = None


@runtime_checkable
class FileSharing(Protocol):
    """A `FormatIO` whose files another decoder may read, because it can check them as strictly as `read` does."""

    def share(self, source: pa.NativeFile, request: ShareRequest) -> SharedFile | None:
        """Return the bytes of a file for another decoder.

        Only the metadata of the file is read by this call. The bytes of the requested columns are checked when they
        are read: sizes of pages, numbers of values, and checksums.

        Parameters
        ----------
        source : pyarrow.NativeFile
            The open file. The result reads it, and the caller does not close it.
        request : ShareRequest
            The columns.

        Returns
        -------
        SharedFile or None
            None if another decoder may return other values than `read`: a column has another stored type or is
            missing, or the file does not prove the constants.

        Raises
        ------
        CorruptTable
            The file is damaged, or has another number of rows.
        """


@frozen(eq=False)
class FileContent:
    """The columns and the row count of a data file that another system wrote.

    Parameters
    ----------
    schema : pyarrow.Schema
        The columns, in the order of the file.
    row_count : int
        The number of rows.
    """

    schema: pa.Schema
    row_count: int


@runtime_checkable
class FileInspection(Protocol):
    """A `FormatIO` that can describe files which another system wrote, without reading their rows."""

    def inspect(self, source: pa.NativeFile, path: str) -> FileContent:
        """Return the columns and the number of rows of a file.

        Only metadata is decoded. The call is idempotent.

        Parameters
        ----------
        source : pyarrow.NativeFile
            The open file. The caller closes it.
        path : str
            The path that errors name.

        Returns
        -------
        FileContent
            The content.

        Raises
        ------
        CorruptTable
            The file is damaged, or of another format.
        Unsupported
            Java's Paimon cannot read a column as the file stores it.
        """

    def read_statistics(self, source: pa.NativeFile, path: str, fields: Sequence[DataField]) -> Sequence[ColumnStats]:
        """Return the statistics of columns that the file stores, in the order of `fields`.

        A bound is returned only if it holds for every value: bounds of floating columns leave NaN out and are missing.

        Parameters
        ----------
        source : pyarrow.NativeFile
            The open file. The caller closes it.
        path : str
            The path that errors name.
        fields : sequence of DataField
            Columns of the file, found by name.

        Returns
        -------
        sequence of ColumnStats
            One for each field; a value that the file does not store is None.

        Raises
        ------
        CorruptTable
            The file is damaged.
        """


class RecordIO(Protocol):
    """Files of records: manifests and manifest lists. All methods are safe to call from several threads."""

    def read_records(self, data: bytes, path: str) -> Sequence[dict[str, Any]]:
        """Decode all records of a file.

        Avro, Parquet and ORC are recognized by their magic bytes. The number of decoded bytes is limited, so that a
        small hostile file cannot fill the memory. Values are those that were written: a time is its number.

        Parameters
        ----------
        data : bytes
            The whole file.
        path : str
            The path that errors name.

        Returns
        -------
        sequence of dict
            One dict per record in file order, by the column names of the file.

        Raises
        ------
        CorruptTable
            The file is truncated, changed, too large after decoding, or of an unknown format.
        """

    def read_columns(
        self, files: Sequence[tuple[str, bytes]], kind: pa.StructType
    ) -> tuple[RecordColumns, Sequence[int]]:
        """Decode the records of several files as columns.

        The records are the same as those of `read_records`, but many of them are decoded faster. A column is decoded
        when it is first used.

        Parameters
        ----------
        files : sequence of (str, bytes)
            The path and the whole content of each file.
        kind : pyarrow.StructType
            The columns by name. Numbers are int64. A column that a file lacks is null.

        Returns
        -------
        RecordColumns
            The records of all files, in the order of the files.
        sequence of int
            The number of records of each file.

        Raises
        ------
        CorruptTable
            As for `read_records`. Damage in a column may be raised when the column is first used.
        """

    def select_blocks(self, data: bytes, path: str, values: Collection[bytes]) -> tuple[bytes, int]:
        """Leave out parts of a file whose records have none of these values in their columns of bytes.

        Returning the whole file is correct. The first records of a file are always among the result, so that a file of
        an unknown version is noticed. What is left out is not checked.

        Parameters
        ----------
        data : bytes
            The whole file.
        path : str
            The path that errors name.
        values : collection of bytes
            Values of columns of the type bytes.

        Returns
        -------
        bytes
            A file for `read_columns`: the records that may have one of the values, in their order.
        int
            The number of records that were left out.

        Raises
        ------
        CorruptTable
            As for `read_records`.
        """

    def write_records(
        self, records: Iterable[Mapping[str, Any]], schema: Mapping[str, Any], compression: str, format_name: str
    ) -> bytes:
        """Encode records as one file.

        Parameters
        ----------
        records : iterable of mapping
            One mapping per record, by column name.
        schema : mapping
            The Avro schema as a dict.
        compression : str
            The codec, such as ``"zstd"`` or ``"none"``.
        format_name : str
            ``"avro"``, ``"parquet"`` or ``"orc"``.

        Returns
        -------
        bytes
            The whole file, with the records in their order.

        Raises
        ------
        InvalidRequest
            The format or the compression is not known.
        """
