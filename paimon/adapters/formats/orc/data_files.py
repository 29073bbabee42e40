"""OrcFormat: data files in ORC, read by Arrow, stripe by stripe, with the zeros that Java reads, and their statistics.

Invariant: columns are found by name. Arrow does not read stripes that the predicate excludes, unless it reads in
batches (see `FileRows`). Times that do not fit into 64-bit nanoseconds are read by pyorc, which passes through all
stripes. A bound is returned only if it holds for every value as it is read. Floating columns have none (writers leave
NaN out), and CHAR columns have none (bounds are padded with blanks, values are not).
Source: `OrcFileFormat`, `OrcReaderFactory`; ORC specification v1, "Column Statistics".
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Context, Decimal

import numpy as np
import pyarrow as pa
import pyorc
from pyarrow import orc

from paimon.adapters.formats.guards.orc_stripes import MOST_BYTES, StripeMemory, check_stripe, check_types
from paimon.adapters.formats.guards.orc_tail import TIMESTAMP_KINDS, OrcTail, read_tail
from paimon.adapters.formats.nested import rebuild_leaves
from paimon.adapters.formats.orc.physical import from_physical
from paimon.adapters.formats.orc.wide_timestamps import read_column
from paimon.adapters.formats.orc.writer import OrcWriter
from paimon.adapters.formats.protobuf import Part, decode
from paimon.adapters.formats.row_ranges import RowRanges
from paimon.domain.errors import CorruptTable, PaimonError
from paimon.domain.predicate.prune_file import may_match
from paimon.domain.stats.simple_stats import ColumnStats
from paimon.domain.types import data_types as dt
from paimon.domain.types.arrow import arrow_schema, arrow_type
from paimon.domain.types.data_types import NESTED_TYPES, CharType, DataField, DataType, DoubleType, FloatType, RowType
from paimon.ports.files import OutputFile
from paimon.ports.formats import FileContent, FormatWriter, ReadRequest, WriteRequest

# Numbers of members in ORC's protobuf message ColumnStatistics, and in its parts.
_VALUES, _HAS_NULL = 1, 10
_INT, _STRING, _DECIMAL, _DATE, _TIMESTAMP = 2, 4, 6, 7, 9
_MIN_MILLIS, _MAX_MILLIS = 3, 4
_NANOS = 1_000_000
_NEAR_MILLIS = (-(2**63) // _NANOS + 2, 2**63 // _NANOS - 2)
_WIDE = Context(prec=76)  # the default context refuses more than 28 digits
_INTS = (*dt.INTEGER_TYPES, dt.TimeType)
_CHAR_KIND = 17


def read_file_stats(tail: OrcTail, column: DataField) -> ColumnStats:
    """Return the statistics of a column in the whole file."""
    span = tail.spans.get(column.name)
    if span is None or not tail.statistics or isinstance(column.type, NESTED_TYPES):
        return ColumnStats()
    found = read_column_bounds(tail.statistics[span.start], column.type, tail.rows)
    return ColumnStats(null_count=found.null_count) if tail.kinds[span.start] == _CHAR_KIND else found


def read_column_bounds(encoded: bytes, data_type: DataType, rows: int) -> ColumnStats:
    """Return the statistics of one column in one stripe. Bounds are internal values, None if unknown."""
    parts = decode(encoded)
    values = next((p.as_int for p in parts if p.number == _VALUES), None)
    null_count = None if values is None else rows - values
    if any(p.number == _HAS_NULL and p.value == 0 for p in parts):
        null_count = 0
    if values == 0:
        return ColumnStats(null_count=null_count)
    kind = _kind(data_type)
    inner = next((decode(p.as_bytes) for p in parts if p.number == kind), None)
    if inner is None:
        return ColumnStats(null_count=null_count)
    return ColumnStats(_read_bound(inner, 1, data_type), _read_bound(inner, 2, data_type), null_count)


def has_wide_timestamps(encoded: bytes) -> bool:
    """Return whether a timestamp column has, or may have, values that do not fit into 64-bit nanoseconds."""
    parts = decode(encoded)
    if any(p.number == _VALUES and p.value == 0 for p in parts):
        return False
    inner = next((decode(p.as_bytes) for p in parts if p.number == _TIMESTAMP), [])
    millis = {p.number: p.as_signed for p in inner if p.number in (_MIN_MILLIS, _MAX_MILLIS)}
    if len(millis) < 2:
        return True
    return millis[_MIN_MILLIS] < _NEAR_MILLIS[0] or millis[_MAX_MILLIS] > _NEAR_MILLIS[1]


def _kind(data_type: DataType) -> int:
    if isinstance(data_type, _INTS):
        return _INT
    if isinstance(data_type, dt.VarCharType):
        return _STRING
    if isinstance(data_type, dt.DecimalType):
        return _DECIMAL
    if isinstance(data_type, dt.DateType):
        return _DATE
    return _TIMESTAMP if isinstance(data_type, dt.TIMESTAMP_TYPES) else -1


def _read_bound(inner: list[Part], field: int, data_type: DataType) -> int | str | Decimal | None:
    """Return the bound in this field. Bounds of times are in whole milliseconds, so they are widened by one."""
    if isinstance(data_type, dt.TIMESTAMP_TYPES):
        part = next((p for p in inner if p.number == field + 2), None)
        widening = -_NANOS if field == 1 else _NANOS
        return None if part is None else part.as_signed * _NANOS + widening
    part = next((p for p in inner if p.number == field), None)
    if part is None:
        return None
    if isinstance(data_type, dt.VarCharType):
        return part.as_bytes.decode()
    if isinstance(data_type, dt.DecimalType):
        return Decimal(part.as_bytes.decode()).quantize(Decimal(1).scaleb(-data_type.scale), context=_WIDE)
    return part.as_signed


_ARROW_ERRORS = (pa.ArrowException, OSError, MemoryError)
_DECODING_ERRORS = (*_ARROW_ERRORS, ValueError, TypeError, IndexError, KeyError, zlib.error, pyorc.ParseError)


class OrcFormat:
    """`FormatIO` for ORC files; stripes above `most_bytes` when decoded are read in batches (`FileRows`)."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = max(most_bytes, MOST_BYTES)

    @property
    def identifier(self) -> str:
        """The name of the format in options and file names."""
        return "orc"

    def read(self, source: pa.NativeFile, request: ReadRequest) -> Iterator[pa.RecordBatch]:
        """Read the rows in batches that do not cross stripes; CorruptTable if damaged or beyond the limits."""
        watched = _WatchedSource.of(source)
        with _corrupt_files(request.path, watched):
            yield from _read(source if watched is None else watched.open(), request, self._most_bytes)

    def inspect(self, source: pa.NativeFile, path: str) -> FileContent:
        """Return the columns and the number of rows of a file; see `paimon.ports.formats.FileInspection`."""
        watched = _WatchedSource.of(source)
        with _corrupt_files(path, watched):
            opened = source if watched is None else watched.open()
            tail = read_tail(opened)
            check_types(tail)
            return FileContent(orc.ORCFile(opened).schema, tail.rows)

    def read_statistics(self, source: pa.NativeFile, path: str, fields: Sequence[DataField]) -> Sequence[ColumnStats]:
        """Return the statistics that the tail has of columns; nested columns have none."""
        with _corrupt_files(path):
            tail = read_tail(source)
            check_types(tail)
            return [read_file_stats(tail, f) for f in fields]

    def writer(self, sink: OutputFile, request: WriteRequest) -> FormatWriter:
        """Return a writer of one file."""
        return OrcWriter(sink, request)


class _WatchedSource:
    """A file of a store that records the failure of a read, of which Arrow's ORC reader passes on the text only."""

    def __init__(self, source: pa.NativeFile) -> None:
        self._source = source
        self.failure: PaimonError | None = None

    @classmethod
    def of(cls, source: pa.NativeFile) -> _WatchedSource | None:
        """Return the watched file; None if it is local, so that no read calls Python."""
        return cls(source) if isinstance(source, pa.PythonFile) else None

    def open(self) -> pa.NativeFile:
        """Return the file for readers."""
        return pa.PythonFile(self, "r")

    def read(self, size: int | None = None) -> bytes:
        """Read bytes."""
        try:
            return bytes(self._source.read(size))
        except PaimonError as error:
            self.failure = error
            raise

    def seek(self, offset: int, whence: int = 0) -> int:
        """Change the position."""
        return int(self._source.seek(offset, whence))

    def tell(self) -> int:
        """Return the position."""
        return int(self._source.tell())

    def close(self) -> None:
        """Do nothing: the caller closes the source."""

    @property
    def closed(self) -> bool:
        """Whether the source is closed."""
        return bool(self._source.closed)


@contextmanager
def _corrupt_files(path: str, watched: _WatchedSource | None = None) -> Iterator[None]:
    """Convert errors about the content of a file to CorruptTable, and raise a failure of the storage itself."""
    try:
        yield
    except _DECODING_ERRORS as error:
        if watched is not None and watched.failure is not None:
            raise watched.failure from error
        raise CorruptTable(path, f"is not a readable ORC file: {error!r}") from error


def _read(source: pa.NativeFile, request: ReadRequest, most_bytes: int) -> Iterator[pa.RecordBatch]:
    tail = read_tail(source)
    check_types(tail)
    stripes = _Stripes(source, tail, request, most_bytes)
    ranges = RowRanges.of(request, sum(tail.stripe_rows))
    chosen = _matching_stripes(tail, request)
    first = 0
    for stripe, rows in enumerate(tail.stripe_rows):
        low, high = ranges.find_hull(first, rows)
        is_read = low < high and chosen[stripe]
        wide = stripes.wide_columns(stripe)
        at = 0
        for columns, count in stripes.columns(stripe, first, rows) if is_read else ():
            batch = _canonical({k: v.slice(at, count) for k, v in wide.items()} | columns, request.fields, count)
            wanted = ranges.cut(batch, first + at)
            for place in range(0, wanted.num_rows, request.batch_rows):
                yield wanted.slice(place, request.batch_rows)
            at += count
        first += rows


class _Stripes:
    """The stripes of an open file, each checked before it is decoded; a second reader reads far times."""

    def __init__(self, source: pa.NativeFile, tail: OrcTail, request: ReadRequest, most_bytes: int) -> None:
        self._source, self._tail, self._most_bytes = source, tail, most_bytes
        self._batch_rows = request.batch_rows
        self._stripe_information, self._count = tail.stripes, len(request.fields)
        self._file = orc.ORCFile(source)
        stored = {f.name: f for f in self._file.schema}
        spans, kinds = tail.spans, tail.kinds
        places = {name: index for index, name in enumerate(spans)}
        wide = _wide_columns(tail, request)
        self._wide = {f.name: read_column(source, f, places[f.name], request.path) for f in wide}
        self._names = _select_paths(request.fields, stored, self._wide)
        self._roots = [f.name for f in request.fields if f.name in stored and f.name not in self._wide]
        self._kinds = {n: kinds[n] for f in request.fields for n in spans.get(f.name, ())}
        self._rows: FileRows | None = None

    def wide_columns(self, stripe: int) -> dict[str, pa.Array]:
        """Read the columns of the next stripe that Arrow cannot read."""
        if self._wide:
            self._measure(stripe)
        return {name: next(column) for name, column in self._wide.items()}

    def columns(self, stripe: int, first: int, rows: int) -> Iterator[tuple[dict[str, pa.Array], int]]:
        """Yield a stripe's other columns by name in batches, with their row counts, from position `first` on."""
        memory = self._measure(stripe)
        if not self._names:
            yield {}, rows
        elif memory.can_decode_whole(self._most_bytes):
            yield _arrow_columns(self._file, stripe, self._names, rows), rows
        else:
            for batch in self._open_rows().take(first, rows):
                yield dict(zip(batch.schema.names, batch.columns, strict=True)), batch.num_rows

    def _open_rows(self) -> FileRows:
        """Return the reader of the rows in batches that fit into the memory budget, whatever their stripe."""
        if self._rows is None:
            fitting = min(
                self._measure(n).count_fitting_rows(self._most_bytes) for n in range(len(self._stripe_information))
            )
            self._rows = FileRows(self._source, self._roots, min(fitting, self._batch_rows))
        return self._rows

    def _measure(self, stripe: int) -> StripeMemory:
        information = self._stripe_information[stripe]
        return check_stripe(self._source, stripe, information, self._tail.compression, self._count, self._kinds)


def _matching_stripes(tail: OrcTail, request: ReadRequest) -> list[bool]:
    """Return for each stripe whether its statistics allow a row that the predicate selects."""
    stripes, predicate, spans = tail.stripe_statistics, request.predicate, tail.spans
    stripe_rows = tail.stripe_rows
    if predicate is None or len(stripes) != len(stripe_rows):
        return [True] * len(stripe_rows)
    types = {f.name: f.type for f in request.predicate_fields if f.name in spans}

    def matches(statistics: Sequence[bytes], rows: int) -> bool:
        """Return whether a stripe with these statistics may have matching rows."""

        def stats_of(column: str) -> ColumnStats | None:
            """Return the statistics of a column; None if they are unknown."""
            found = types.get(column)
            return None if found is None else read_column_bounds(statistics[spans[column].start], found, rows)

        return may_match(predicate, stats_of, types, rows)

    return [matches(s, rows) for s, rows in zip(stripes, stripe_rows, strict=True)]


def _arrow_columns(file: orc.ORCFile, stripe: int, names: list[str], rows: int) -> dict[str, pa.Array]:
    batch = file.read_stripe(stripe, columns=names)
    if batch.num_rows != rows:
        raise ValueError(f"stripe {stripe} has {batch.num_rows} rows, not {rows}")
    return dict(zip(batch.schema.names, batch.columns, strict=True))


def _canonical(columns: Mapping[str, pa.Array], fields: tuple[DataField, ...], rows: int) -> pa.RecordBatch:
    if not fields:
        return pa.RecordBatch.from_struct_array(pa.nulls(rows, pa.struct([])))
    arrays = [_to_canonical(columns.get(f.name), f.type, rows) for f in fields]
    return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(fields))


def _to_canonical(array: pa.Array | None, data_type: DataType, rows: int) -> pa.Array:
    if array is None:
        return pa.nulls(rows, arrow_type(data_type))
    if isinstance(data_type, (FloatType, DoubleType)) and pa.types.is_floating(array.type):
        array = apply_java_zero_signs(array)
    if array.type.equals(arrow_type(data_type)) and not isinstance(data_type, (CharType, *NESTED_TYPES)):
        return array
    return rebuild_leaves(array, data_type, from_physical)


def _select_paths(
    fields: tuple[DataField, ...], stored: Mapping[str, pa.Field], wide: Mapping[str, object]
) -> list[str]:
    """Return the columns to request from Arrow: names, or dotted names of the wanted parts of a ROW."""
    wanted = [f for f in fields if f.name in stored and f.name not in wide]
    if any("." in name for name in stored):
        return [f.name for f in wanted]
    return [name for f in wanted for name in _paths(f.name, f.type, stored[f.name].type)]


def _paths(path: str, data_type: DataType, stored: pa.DataType) -> list[str]:
    if not isinstance(data_type, RowType) or not pa.types.is_struct(stored):
        return [path]
    inner = {f.name: f.type for f in stored}
    parts = [p for f in data_type.fields if f.name in inner for p in _paths(f"{path}.{f.name}", f.type, inner[f.name])]
    if not parts or any("." in name for name in inner):
        return [path]
    return parts


def _wide_columns(tail: OrcTail, request: ReadRequest) -> list[DataField]:
    """Return the wanted columns that hold, or may hold, times that Arrow cannot read."""
    kinds, spans = tail.kinds, tail.spans
    times = {f.name: [n for n in spans.get(f.name, ()) if kinds[n] in TIMESTAMP_KINDS] for f in request.fields}
    if not any(times.values()):
        return []
    stripes = tail.stripe_statistics or (tail.statistics,)
    return [f for f in request.fields if any(has_wide_timestamps(s[n]) for s in stripes for n in times[f.name])]


# Return zeros of FLOAT and DOUBLE columns with the signs that Java's ORC reader returns.
#
# Invariant: Java reads a column in batches of 1024 rows, and takes a batch without nulls whose values are all `==` for
# one repeated value. A batch of zeros of both signs therefore reads as the sign of its first value. Only top-level
# columns are changed. A stripe that is read in pieces (see `FileRows`) is grouped from the beginning of each piece and
# not of the stripe, so there a zero may have another sign than in Java.
# Source: `TreeReaderFactory.DoubleTreeReader`, `OrcReaderFactory`.


JAVA_BATCH_ROWS = 1024


def apply_java_zero_signs(stripe: pa.Array) -> pa.Array:
    """Return a FLOAT or DOUBLE column as Java reads it; exact if the array is a whole stripe."""
    starts = np.arange(0, len(stripe), JAVA_BATCH_ROWS)
    held = stripe.fill_null(1) if stripe.null_count else stripe
    values = held.to_numpy(zero_copy_only=True)
    mixed = [batch for batch in starts[values[starts] == 0].tolist() if _has_only_mixed_zeros(values, batch)]
    if not mixed:
        return stripe
    changed = values.copy()
    for batch in mixed:
        changed[batch : batch + JAVA_BATCH_ROWS] = values[batch]
    # The other batches may hold nulls, which keep their positions.
    return pa.array(changed, stripe.type, mask=stripe.is_null().to_numpy(zero_copy_only=False))


def _has_only_mixed_zeros(values: np.ndarray[tuple[int], np.dtype[np.floating]], start: int) -> bool:
    batch = values[start : start + JAVA_BATCH_ROWS]
    return not batch.any() and np.unique(np.signbit(batch)).size > 1


# Read stripes in batches of few rows if their rows do not fit into memory together.
#
# Arrow decodes a stripe as a whole, and each of its rows may hold the longest entry of a dictionary. Arrow can also
# read batches, but only of whole files.
#
# Invariant: rows are in the order of the file, each once, and no batch has more rows than requested.


class FileRows:
    """The rows of a whole file, read forwards. `names` are top-level columns."""

    def __init__(self, source: pa.NativeFile, names: Sequence[str], batch_rows: int) -> None:
        from pyarrow import dataset  # loading it takes a tenth of a second, and few files need it

        fragment = dataset.OrcFileFormat().make_fragment(source)
        scanner = fragment.scanner(
            columns=list(names), batch_size=batch_rows, batch_readahead=1, fragment_readahead=1, use_threads=False
        )
        self._batches: Iterator[pa.RecordBatch] = iter(scanner.to_reader())
        self._held: pa.RecordBatch | None = None
        self._at = 0

    def take(self, first: int, count: int) -> Iterator[pa.RecordBatch]:
        """Yield `count` rows from the row `first` on, which is not before the rows that were taken earlier."""
        end = first + count
        while self._at < end:
            if self._held is None:
                self._held = next(self._batches, None)
                if self._held is None:
                    raise ValueError(f"the file has {self._at} rows, not {end}")
            held, start = self._held, max(first - self._at, 0)
            stop = min(end - self._at, held.num_rows)
            self._held = held.slice(stop) if stop < held.num_rows else None
            self._at += stop
            if start < stop:
                yield held.slice(start, stop - start)
