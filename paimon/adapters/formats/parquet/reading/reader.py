"""Reading one Parquet file.

Law: only the leaves that are asked for are decoded, only row groups that may match are touched (and of those that an
equality asks for, only the rows from its first match to its last), and rows stream in batches, so that memory is
bounded by batches whatever the row groups are, and batches are bounded by `weights`. Columns are found by name.
Source: `ParquetReaderFactory`.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.parquet as pq
from attrs import frozen

from paimon.adapters.formats.nested import rebuild
from paimon.adapters.formats.parquet.reading.probe import narrowed, probe_of
from paimon.adapters.formats.parquet.reading.row_groups import GroupRange, group_ranges, turns
from paimon.adapters.formats.parquet.reading.selection import wanted_leaves
from paimon.adapters.formats.parquet.reading.stored import Stored
from paimon.adapters.formats.parquet.reading.weights import MOST_BYTES, Leaf, fitting_rows
from paimon.domain.errors import CorruptTable, Unsupported
from paimon.domain.types import data_types as dt
from paimon.domain.types.arrow import arrow_schema, arrow_type
from paimon.domain.types.data_types import DataField, DataType
from paimon.ports.formats import ReadRequest

_KNOWN = inspect.signature(pq.ParquetFile.__init__).parameters
_SHORT_BATCH = 8_192
_FEW = 8
_BUFFER_BYTES = 64 * 1024
"""Of each column of an open local file."""
_EXTENSIONS = {"arrow_extensions_enabled": False} if "arrow_extensions_enabled" in _KNOWN else {}


@frozen
class _File:
    """An open file."""

    parquet: pq.ParquetFile
    stored: Stored
    most_bytes: int


def read_batches(source: pa.NativeFile, request: ReadRequest, most_bytes: int = MOST_BYTES) -> Iterator[pa.RecordBatch]:
    """The rows of a file; see `paimon.ports.formats`. Pages, and batches, take no more than `most_bytes`."""
    with corrupt_files(request.path):
        file = _opened(source, most_bytes)
        probe = probe_of(request)
        for piece in group_ranges(file.parquet.metadata, file.parquet.schema_arrow, request):
            if probe is None:
                yield from _rows(file, piece, request.fields, request.batch_rows)
                continue
            found = narrowed(piece, probe, _rows(file, piece, probe.fields, probe.batch_rows))
            if found is not None:
                yield from _rows(file, found, request.fields, _batch_rows(found, request))


@contextlib.contextmanager
def corrupt_files(path: str) -> Iterator[None]:
    """Turn pyarrow's errors about a file's content into CorruptTable."""
    try:
        yield
    except (pa.ArrowException, OSError, ValueError, KeyError, IndexError, OverflowError, MemoryError) as error:
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise CorruptTable(path, f"cannot be read as Parquet: {reason[0]}") from error


def _opened(source: pa.NativeFile, most_bytes: int) -> _File:
    """Remote files are fetched ahead; of local ones little is held, because merges have many of them open."""
    stored = Stored(source)
    buffer = _BUFFER_BYTES if isinstance(source, pa.OSFile) else 0
    file = pq.ParquetFile(
        stored.source, pre_buffer=False, buffer_size=buffer, page_checksum_verification=True, **_EXTENSIONS
    )
    return _File(file, stored, most_bytes)


def _batch_rows(piece: GroupRange, request: ReadRequest) -> int:
    """Batches of one size that end where the piece does: nothing is decoded that follows it."""
    reach = piece.skip + piece.count
    return -(-reach // -(-reach // request.batch_rows))


def _rows(
    file: _File, piece: GroupRange, fields: Sequence[DataField], batch_rows: int
) -> Iterator[pa.RecordBatch]:
    """The rows of a piece in the canonical types."""
    schema = arrow_schema(fields)
    leaves = wanted_leaves(file.parquet.schema_arrow, fields)
    for batch in _piece(file, piece, leaves, batch_rows):
        yield _canonical(batch, fields, schema)


def _piece(file: _File, piece: GroupRange, leaves: Sequence[int], batch_rows: int) -> Iterator[pa.RecordBatch]:
    """The rows of consecutive row groups, cut to the range within them."""
    skip, left = piece.skip, piece.count
    for batch in _decoded(file, piece, leaves, batch_rows):
        if skip >= batch.num_rows:
            skip -= batch.num_rows
            continue
        kept = batch.slice(skip, left)
        skip, left = 0, left - kept.num_rows
        if kept.num_rows:
            yield kept if _FEW * kept.num_rows > batch.num_rows else _copied(kept)
        if left <= 0:
            return


def _decoded(file: _File, piece: GroupRange, leaves: Sequence[int], batch_rows: int) -> Iterator[pa.RecordBatch]:
    footer, schema = file.parquet.metadata, file.parquet.schema
    if leaves:
        looked_at = [Leaf.of(schema, leaf) for leaf in leaves]
        paths = [schema.column(leaf).path for leaf in leaves]
        threads = len(paths) > 1 and piece.count > _SHORT_BATCH  # what is little is not worth being handed on
        for turn in turns(piece, footer):
            fitting = fitting_rows(footer, file.stored, turn, looked_at, batch_rows, file.most_bytes)
            yield from file.parquet.iter_batches(fitting, row_groups=turn.groups, columns=paths, use_threads=threads)
        return
    rows = sum(footer.row_group(g).num_rows for g in piece.groups)
    for start in range(0, rows, batch_rows):  # no column of the file is wanted: rows are only counted
        yield _bare(min(batch_rows, rows - start))


def _bare(rows: int) -> pa.RecordBatch:
    empty = pa.StructArray.from_buffers(pa.struct([]), rows, [None])
    return pa.RecordBatch.from_struct_array(empty)


def _copied(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The few rows of a long batch without its memory."""
    return batch.take(pa.array(range(batch.num_rows)))


def _canonical(batch: pa.RecordBatch, fields: Sequence[DataField], schema: pa.Schema) -> pa.RecordBatch:
    if not fields:
        return _bare(batch.num_rows)
    given = dict(zip(batch.schema.names, batch.columns, strict=True))
    arrays = [
        _column(given[f.name], f.type) if f.name in given else pa.nulls(batch.num_rows, kind.type)
        for f, kind in zip(fields, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _column(array: pa.Array, data_type: DataType) -> pa.Array:
    target = arrow_type(data_type)
    return array if array.type.equals(target, check_metadata=False) else rebuild(array, data_type, _canonical_leaf)


def _canonical_leaf(array: pa.Array, data_type: DataType) -> pa.Array:
    target = arrow_type(data_type)
    if array.type == target:
        return array
    if isinstance(data_type, dt.TIMESTAMP_TYPES) and pa.types.is_timestamp(array.type):
        if array.type.unit == target.unit:
            return array.view(target)  # INT96 knows no zone
        return array.cast(pa.timestamp(target.unit, array.type.tz), safe=False).view(target)
    if isinstance(data_type, dt.VariantType):
        return _variant(array, target)
    return array.cast(target)


def _variant(array: pa.Array, target: pa.DataType) -> pa.Array:
    parts = dict(zip((f.name for f in array.type), array.flatten(), strict=True))
    if "typed_value" in parts or not {"value", "metadata"} <= parts.keys():
        raise Unsupported("shredded VARIANT", hint="rewrite the file without shredding")
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays([parts["value"], parts["metadata"]], fields=list(target), mask=mask)
