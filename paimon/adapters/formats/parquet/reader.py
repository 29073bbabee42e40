"""Read one Parquet file.

Invariant: only wanted leaf columns are decoded, and only the pieces that `group_ranges` selects are read. Rows stream
in batches whose size `guards.parquet_batches` limits, whatever the row groups are. Columns are found by name.
Source: `ParquetReaderFactory`.
"""

# A piece (`GroupRange`) is a range of rows in adjacent row groups. Arrow decodes from the beginning of the first group,
# so `_read_piece` drops the rows before the range, and stops after its last row:
#
#     read_batches       the pieces of the file, by one of three ways:
#                          several row ranges   each batch is cut to the ranges
#                          an equality          the piece is narrowed by a first pass over the columns of the equality
#                          otherwise            the piece as it is
#       _read_rows       rows of a piece in the canonical types: INT96, units of time and missing columns are converted
#         _cut_rows      the pages with few rows far behind or far apart in a row group, as a small file (`cut_pages`)
#         _read_piece    rows of a piece as they are stored
#           _decode_piece  its row groups in steps, each checked by `guards.parquet_batches` before Arrow decodes it

from __future__ import annotations

import contextlib
import inspect
import itertools
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from attrs import evolve, frozen

from paimon.adapters.formats.guards.parquet_batches import (
    BATCH_SHARE,
    MOST_BYTES,
    BatchPlan,
    GroupRange,
    Leaf,
    plan_batches,
)
from paimon.adapters.formats.guards.parquet_footer import open_parquet_file
from paimon.adapters.formats.guards.parquet_pages import Stored
from paimon.adapters.formats.nested import rebuild_leaves
from paimon.adapters.formats.parquet.column_stats import (
    find_lookup_filter,
    narrow_piece,
    plan_group_ranges,
    split_into_steps,
)
from paimon.adapters.formats.parquet.cut_pages import CutFile, cut_pages
from paimon.adapters.formats.parquet.footer import read_int96_as_bytes
from paimon.adapters.formats.parquet.known_files import (
    KnownFile,
    SelectedColumns,
    find_known_file,
    identify_file,
    remember_file,
)
from paimon.adapters.formats.parquet.schema import INT96, from_int96
from paimon.adapters.formats.row_ranges import RowRanges
from paimon.domain.columns.casts.times import fit_timestamps
from paimon.domain.errors import CorruptTable, Unsupported
from paimon.domain.types import data_types as dt
from paimon.domain.types.arrow import arrow_type
from paimon.domain.types.arrow_arrays import from_numpy
from paimon.domain.types.data_types import DataField, DataType
from paimon.ports.cache import ObjectCache
from paimon.ports.formats import ReadRequest

_ARROW_OPTIONS = inspect.signature(pq.ParquetFile.__init__).parameters
_MIN_ROWS_OF_THREADS = 8_192
"""Threads cost more than they save for fewer rows."""
_MIN_SHARE = 8
"""A slice of less than this share of a batch is copied, so that the memory of the batch is released."""
_BUFFER_BYTES = 64 * 1024
"""The read buffer of each column of an open local file."""
_LEAST_SKIPPED_ROWS = 4_096
"""To decode fewer rows in vain costs less than to cut pages."""
_MOST_CUT_ROWS = 4_096
_EXTENSIONS = {"arrow_extensions_enabled": False} if "arrow_extensions_enabled" in _ARROW_OPTIONS else {}


@frozen(eq=False)
class _File:
    """An open file. Arrow opens it again for other options, with the same footer."""

    known: KnownFile
    stored: Stored
    most_bytes: int
    batch_bytes: int
    is_concurrent: bool
    opened: dict[tuple[bool, tuple[str, ...]], pq.ParquetFile]

    def open(self, checksums: bool, coded: tuple[str, ...]) -> pq.ParquetFile:
        """Open the file to compare checksums or not, and to decode some columns as codes of a dictionary."""
        key = checksums, coded
        if key not in self.opened:
            footer, options = self.known.decoding_footer, _list_options(self.stored.source)
            options |= {"page_checksum_verification": checksums, "read_dictionary": list(coded)}
            self.opened[key] = pq.ParquetFile(self.stored.source, metadata=footer, **options)
        return self.opened[key]


def read_batches(
    source: pa.NativeFile, request: ReadRequest, most_bytes: int = MOST_BYTES, cache: ObjectCache | None = None
) -> Iterator[pa.RecordBatch]:
    """Read the rows of a file, in its order, as `paimon.ports.formats.FormatIO.read` describes.

    `most_bytes` limits pages and batches. `cache` keeps what is learned of local files for later reads. A file that is
    damaged or exceeds the limits raises CorruptTable.
    """
    with corrupt_files(request.path):
        file = _open_file(source, request, most_bytes, cache)
        lookup = find_lookup_filter(request)
        ranges = RowRanges.of(request, file.known.footer.num_rows)
        starts = _find_group_starts(file.known.footer) if len(ranges.starts) > 1 else []
        for piece in plan_group_ranges(file.known.footer, file.known.schema, request):
            if starts:
                wanted = ranges.select_block(starts[piece.groups[0]], piece.skip + piece.count)
                yield from _read_ranges(file, piece, wanted, request)
            elif lookup is None:
                yield from _read_rows(file, piece, request.fields, request.batch_rows)
            else:
                found = narrow_piece(piece, lookup, _read_rows(file, piece, lookup.fields, lookup.batch_rows))
                if found is not None:
                    yield from _read_rows(file, found, request.fields, _batch_rows(found, request))


def _find_group_starts(footer: pq.FileMetaData) -> list[int]:
    """Return the position of the first row of each row group."""
    return list(itertools.accumulate((footer.row_group(g).num_rows for g in range(footer.num_row_groups)), initial=0))


@contextlib.contextmanager
def corrupt_files(path: str) -> Iterator[None]:
    """Convert errors of pyarrow about the content of a file to CorruptTable."""
    try:
        yield
    except (pa.ArrowException, OSError, ValueError, KeyError, IndexError, OverflowError, MemoryError) as error:
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise CorruptTable(path, f"cannot be read as Parquet: {reason[0]}") from error


def _open_file(source: pa.NativeFile, request: ReadRequest, most_bytes: int, cache: ObjectCache | None) -> _File:
    """Open a file. Remote files are prefetched; local ones have small buffers, because merges open many files."""
    stored = Stored(source)
    batch_bytes = min(most_bytes // BATCH_SHARE, request.batch_bytes or most_bytes)
    identity = identify_file(source)
    known = find_known_file(cache, request.path, identity)
    opened: dict[tuple[bool, tuple[str, ...]], pq.ParquetFile] = {}
    if known is None:
        file = open_parquet_file(stored, **_list_options(source))
        footer = file.metadata
        has_int96 = any(file.schema.column(leaf).physical_type == "INT96" for leaf in range(footer.num_columns))
        decoding_footer = read_int96_as_bytes(stored.footer_bytes) if has_int96 else footer
        known = KnownFile(identity, footer, decoding_footer, file.schema_arrow)
        remember_file(cache, request.path, known)
        if not has_int96:
            opened[True, ()] = file
    return _File(known, stored, most_bytes, batch_bytes, request.is_concurrent, opened)


def _list_options(source: pa.NativeFile) -> dict[str, Any]:
    """Return the options with which Arrow opens a file."""
    buffer_size = _BUFFER_BYTES if isinstance(source, pa.OSFile) else 0
    return {"pre_buffer": False, "buffer_size": buffer_size, "page_checksum_verification": True, **_EXTENSIONS}


def _batch_rows(piece: GroupRange, request: ReadRequest) -> int:
    """Return a size of batches that divides the piece evenly, so that no row after it is decoded."""
    reach = piece.skip + piece.count
    return -(-reach // -(-reach // request.batch_rows))


def _read_rows(
    file: _File, piece: GroupRange, fields: Sequence[DataField], batch_rows: int
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a piece in the canonical types."""
    columns = file.known.select_columns(tuple(fields))
    cut = _cut_piece(file, piece, columns, batch_rows)
    for batch in _read_piece(file, piece, columns, batch_rows) if cut is None else (cut,):
        yield _canonical(batch, fields, columns.schema)


def _read_ranges(file: _File, piece: GroupRange, wanted: RowRanges, request: ReadRequest) -> Iterator[pa.RecordBatch]:
    """Yield the wanted rows of a piece of one row group in the canonical types."""
    columns = file.known.select_columns(tuple(request.fields))
    cut = _cut_rows(file, piece.groups, wanted, columns, request.batch_rows)
    if cut is not None:
        yield _canonical(cut, request.fields, columns.schema)
        return
    position = piece.skip
    for batch in _read_rows(file, piece, request.fields, _batch_rows(piece, request)):
        found = wanted.cut(batch, position)
        position += batch.num_rows
        if found.num_rows:
            yield found


def _cut_piece(file: _File, piece: GroupRange, columns: SelectedColumns, batch_rows: int) -> pa.RecordBatch | None:
    """Return the rows of a piece as they are stored if their pages can be decoded alone, otherwise None."""
    rows = np.array([[piece.skip], [piece.skip + piece.count]])
    return _cut_rows(file, piece.groups, RowRanges(rows[0], rows[1]), columns, batch_rows)


def _cut_rows(
    file: _File, groups: Sequence[int], wanted: RowRanges, columns: SelectedColumns, batch_rows: int
) -> pa.RecordBatch | None:
    """Return the wanted rows of a row group as they are stored if their pages can be decoded alone, otherwise None."""
    count = wanted.row_count
    is_small = count <= min(batch_rows, _MOST_CUT_ROWS)
    is_far = len(groups) == 1 and is_small and wanted.ends[-1] - count >= _LEAST_SKIPPED_ROWS
    schema = file.known.footer.schema
    if not is_far or not columns.leaves or any(schema.column(leaf).max_repetition_level for leaf in columns.leaves):
        return None
    index = file.known.find_page_index(file.stored)
    if index is None:
        return None
    cut = cut_pages(index, file.stored, groups[0], columns.leaves, wanted, file.batch_bytes)
    return None if cut is None else _read_cut(file, cut, wanted, columns)


def _read_cut(file: _File, cut: CutFile, wanted: RowRanges, columns: SelectedColumns) -> pa.RecordBatch | None:
    """Return the wanted rows from their pages; None if parts of one column have other pages, or if rows are large."""
    source = pa.BufferReader(cut.data)
    parquet = pq.ParquetFile(source, page_checksum_verification=True, **_EXTENSIONS)
    known = KnownFile(None, parquet.metadata, parquet.metadata, file.known.schema)
    small = evolve(file, known=known, stored=Stored(source), opened={(True, ()): parquet})
    found: dict[str, pa.Array] = {}
    size = 0
    for number, (leaves, rows) in enumerate(cut.groups):
        some = evolve(columns, leaves=leaves, paths=tuple(parquet.schema.column(leaf).path for leaf in leaves))
        pieces = []
        for kept in _read_wanted(small, number, rows.find_in_copy(wanted), some):
            pieces.append(kept)
            size += kept.get_total_buffer_size()
            if size > file.batch_bytes:
                return None
        batch = pa.concat_batches(pieces)
        if not found.keys().isdisjoint(batch.schema.names):
            return None
        found |= zip(batch.schema.names, batch.columns, strict=True)
    return pa.RecordBatch.from_arrays(list(found.values()), list(found))


def _read_wanted(file: _File, group: int, wanted: RowRanges, columns: SelectedColumns) -> Iterator[pa.RecordBatch]:
    """Yield the wanted rows of a row group as they are stored."""
    first, end = int(wanted.starts[0]), int(wanted.ends[-1])
    position = first
    for batch in _read_piece(file, GroupRange((group,), first, end - first), columns, end):
        kept = wanted.cut(batch, position)
        position += batch.num_rows
        if kept.num_rows:
            yield kept if kept.num_rows == batch.num_rows else kept.take(from_numpy(np.arange(kept.num_rows)))


def _read_piece(file: _File, piece: GroupRange, columns: SelectedColumns, batch_rows: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a piece as they are stored."""
    skip, left = piece.skip, piece.count
    for batch in _decode_piece(file, piece, columns, batch_rows):
        if skip >= batch.num_rows:
            skip -= batch.num_rows
            continue
        kept = batch.slice(skip, left)
        skip, left = 0, left - kept.num_rows
        if kept.num_rows:
            yield (
                kept if _MIN_SHARE * kept.num_rows > batch.num_rows else kept.take(from_numpy(np.arange(kept.num_rows)))
            )
        if left <= 0:
            return


def _decode_piece(
    file: _File, piece: GroupRange, columns: SelectedColumns, batch_rows: int
) -> Iterator[pa.RecordBatch]:
    known, leaves, paths = file.known, columns.leaves, columns.paths
    if paths:
        threads = file.is_concurrent and len(paths) > 1 and piece.count > _MIN_ROWS_OF_THREADS
        for step in split_into_steps(piece, known.footer):
            plan = _plan_batches(file, step, leaves, batch_rows)
            codes = plan.coded & columns.outer
            coded = tuple(path for leaf, path in zip(leaves, paths, strict=True) if leaf in codes)
            opened = file.open(known.needs_checksums(step.groups, leaves), coded)
            left = _count_rows(file, step)
            for batch in opened.iter_batches(plan.rows, row_groups=step.groups, columns=paths, use_threads=threads):
                left -= batch.num_rows
                if not left:
                    known.note_checksums(step.groups, leaves)
                yield batch
        return
    rows = _count_rows(file, piece)
    for start in range(0, rows, batch_rows):  # no column of the file is wanted: rows are only counted
        yield _empty_columns(min(batch_rows, rows - start))


def _count_rows(file: _File, piece: GroupRange) -> int:
    return sum(file.known.footer.row_group(group).num_rows for group in piece.groups)


def _plan_batches(file: _File, step: GroupRange, leaves: tuple[int, ...], batch_rows: int) -> BatchPlan:
    """Return how batches are decoded, and check the pages of the step if that was not done before."""

    def plan() -> BatchPlan:
        schema = file.known.decoding_footer.schema
        checked = [Leaf.of(schema, leaf) for leaf in leaves]
        footer, limits = file.known.footer, (file.most_bytes, file.batch_bytes)
        return plan_batches(footer, file.stored, step, checked, batch_rows, *limits)

    return file.known.plan_batches((step, leaves, batch_rows, file.most_bytes, file.batch_bytes), plan)


def _empty_columns(rows: int) -> pa.RecordBatch:
    empty = pa.StructArray.from_buffers(pa.struct([]), rows, [None])
    return pa.RecordBatch.from_struct_array(empty)


def _canonical(batch: pa.RecordBatch, fields: Sequence[DataField], schema: pa.Schema) -> pa.RecordBatch:
    if not fields:
        return _empty_columns(batch.num_rows)
    given = dict(zip(batch.schema.names, batch.columns, strict=True))
    arrays = [
        _to_canonical(given[f.name], f) if f.name in given else pa.nulls(batch.num_rows, kind.type)
        for f, kind in zip(fields, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _to_canonical(array: pa.Array, column: DataField) -> pa.Array:
    if array.type.equals(arrow_type(column.type), check_metadata=False):
        return array
    return rebuild_leaves(array, column.type, partial(_canonical_leaf, column.name), masks_fields=True)


def _canonical_leaf(column: str, array: pa.Array, data_type: DataType) -> pa.Array:
    target = arrow_type(data_type)
    if array.type == target:
        return array
    if isinstance(data_type, dt.TimestampType | dt.LocalZonedTimestampType):
        if array.type == INT96:
            return from_int96(array, data_type, column)
        if pa.types.is_timestamp(array.type):
            return fit_timestamps(array, data_type, column)
    if isinstance(data_type, dt.VariantType):
        return _variant(array, target)
    return array.cast(target)


def _variant(array: pa.Array, target: pa.DataType) -> pa.Array:
    parts = dict(zip((f.name for f in array.type), array.flatten(), strict=True))
    if "typed_value" in parts or not {"value", "metadata"} <= parts.keys():
        raise Unsupported("shredded VARIANT", hint="rewrite the file without shredding")
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays([parts["value"], parts["metadata"]], fields=list(target), mask=mask)
