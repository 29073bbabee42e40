"""FormatIO: data files of one format as Arrow batches; RecordIO: manifests as records.

Contract (suite: `paimon.testing.contracts.formats`)
----------------------------------------------------
* `read` yields record batches with exactly the requested fields, in the requested order, in the canonical Arrow
  type of each field (`paimon.domain.types.arrow`), rows in file order. Names are the file's; a requested field that
  the file lacks is a column of nulls. Nested ROW types may be asked for with a part of their fields.
* The predicate only skips what cannot match (row groups, stripes); rows that do not match may still come.
* A file that is truncated, mutated or of another format raises CorruptTable naming its path, never a bare error.
* A writer's `close` answers the file's size, its row count and the statistics that this format tells for each
  field, *untruncated* internal values (see `paimon.domain.row.values`), as Java's extractors would see them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa
from attrs import field, frozen

from paimon.domain.manifest.records.columns import RecordColumns
from paimon.domain.predicate.expression import Predicate
from paimon.domain.stats.simple_stats import ColumnStats
from paimon.domain.types.data_types import DataField
from paimon.ports.files import OutputFile


def _fields(values: Iterable[DataField]) -> tuple[DataField, ...]:
    return tuple(values)


@frozen
class ReadRequest:
    """What to read of a file.

    Parameters
    ----------
    path : str
        For messages only.
    fields : tuple of DataField
        The columns wanted, with names, types and ids as in the schema that wrote the file.
    predicate : Predicate, optional
        Bound to `fields` of the file's schema (it may name columns that are not wanted).
    predicate_fields : tuple of DataField
        The fields that the predicate names.
    batch_rows : int
        Upper bound of rows in a batch.
    row_range : (int, int), optional
        Half-open range of physical rows to read.
    ascending : str, optional
        One of `predicate_fields` in whose order the rows are said to be, so that rows need not be looked at once it
        is past what the predicate asks for. Never a floating one, whose order has more than one home.
    """

    path: str
    fields: tuple[DataField, ...] = field(converter=_fields)
    predicate: Predicate | None = None
    predicate_fields: tuple[DataField, ...] = field(converter=_fields, default=())
    batch_rows: int = 65_536
    row_range: tuple[int, int] | None = None
    ascending: str | None = None


@frozen
class WriteRequest:
    """How to write a file.

    Parameters
    ----------
    path : str
        For messages only.
    fields : tuple of DataField
        The columns, in order, with ids (system columns have their reserved ids).
    compression : str
        ``"zstd"``, ``"snappy"``, ``"lz4"``, ``"gzip"``, ``"none"`` …
    zstd_level : int
        Level for zstd.
    block_bytes : int, optional
        Row group or stripe size.
    block_rows : int, optional
        Where no size is asked for: most rows of a row group, for files of sorted rows, in which a key is looked up.
        Formats that find rows otherwise pay it no heed.
    options : mapping
        Format options, with their prefix (``"parquet.page.size"``).
    """

    path: str
    fields: tuple[DataField, ...] = field(converter=_fields)
    compression: str = "zstd"
    zstd_level: int = 1
    block_bytes: int | None = None
    block_rows: int | None = None
    options: Mapping[str, str] = field(factory=dict)


def _stats(values: Iterable[ColumnStats]) -> tuple[ColumnStats, ...]:
    return tuple(values)


@frozen
class WrittenFile:
    """What a finished file is like: bytes, rows, one ColumnStats a field (empty ones where the format tells none)."""

    size_bytes: int
    row_count: int
    column_stats: tuple[ColumnStats, ...] = field(converter=_stats)


class FormatWriter(Protocol):
    """Writes one file.

    `estimated_bytes` is what has been written so far, as near as the format can tell. `held_bytes` is what rows take
    in memory that the sink does not have yet; `flush` hands them on where the format can (Parquet begins a row group),
    and else does nothing.
    """

    def write(self, batch: pa.RecordBatch | pa.Table) -> None: ...
    def estimated_bytes(self) -> int: ...
    def held_bytes(self) -> int: ...
    def flush(self) -> None: ...
    def close(self) -> WrittenFile: ...
    def abort(self) -> None: ...


class FormatIO(Protocol):
    """One data file format; see the module's contract."""

    @property
    def identifier(self) -> str: ...
    def read(self, source: pa.NativeFile, request: ReadRequest) -> Iterator[pa.RecordBatch]: ...
    def writer(self, sink: OutputFile, request: WriteRequest) -> FormatWriter: ...


class RecordIO(Protocol):
    """Files of records (manifests): plain dicts by column name, after an Avro schema given as a dict.

    `read_records` recognises Avro, Parquet and ORC by their magic bytes, resolves columns by name, and stops at
    `max_decoded_bytes` with CorruptTable. `read_columns` reads several files, given as (path, bytes), as columns of the
    Arrow type `kind` (numbers as int64, columns that a file lacks null), with the number of records of each file: the
    same records as `read_records`, for callers that have many; damage may be told only when its column is asked for.
    `write_records` answers the file's bytes.
    """

    def read_records(self, data: bytes, path: str) -> Sequence[dict[str, Any]]: ...
    def read_columns(
        self, files: Sequence[tuple[str, bytes]], kind: pa.StructType
    ) -> tuple[RecordColumns, Sequence[int]]: ...
    def write_records(
        self, records: Iterable[Mapping[str, Any]], schema: Mapping[str, Any], compression: str, format_name: str
    ) -> bytes: ...
