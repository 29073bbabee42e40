"""Read one Parquet file.

Invariant: only wanted leaf columns are decoded, and only row groups that may match are read. For an equality, only the
rows from the first match to the last are read. Rows stream in batches whose size `guards.parquet_batches` limits,
whatever the row groups are. Columns are found by name. Source: `ParquetReaderFactory`.
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from attrs import evolve, frozen

from paimon.adapters.formats.guards.parquet_batches import BATCH_SHARE, MOST_BYTES, GroupRange, Leaf, count_fitting_rows
from paimon.adapters.formats.guards.parquet_footer import open_parquet_file
from paimon.adapters.formats.guards.parquet_pages import Stored
from paimon.adapters.formats.nested import rebuild_leaves
from paimon.adapters.formats.parquet.footer import read_int96_as_bytes
from paimon.adapters.formats.parquet.known_files import (
    KnownFile,
    SelectedColumns,
    find_first_leaves,
    find_known_file,
    identify_file,
    remember_file,
)
from paimon.adapters.formats.parquet.schema import INT96, from_int96, read_chunk_stats
from paimon.adapters.formats.row_ranges import RowRanges
from paimon.domain.columns.casts.times import fit_timestamps
from paimon.domain.errors import CorruptTable, Unsupported
from paimon.domain.predicate.evaluate_columnar import evaluate
from paimon.domain.predicate.expression import Compare, In, Operator, Predicate
from paimon.domain.predicate.prune_file import may_match
from paimon.domain.predicate.transform import join_conjuncts, split_conjuncts
from paimon.domain.stats.simple_stats import ColumnStats
from paimon.domain.types import data_types as dt
from paimon.domain.types.arrow import arrow_type
from paimon.domain.types.data_types import DataField, DataType
from paimon.ports.cache import ObjectCache
from paimon.ports.formats import ReadRequest

_KNOWN = inspect.signature(pq.ParquetFile.__init__).parameters
_SHORT_BATCH = 8_192
_FEW = 8
_BUFFER_BYTES = 64 * 1024
"""The read buffer of each column of an open local file."""
_EXTENSIONS = {"arrow_extensions_enabled": False} if "arrow_extensions_enabled" in _KNOWN else {}


@frozen
class _File:
    """An open file."""

    parquet: pq.ParquetFile
    known: KnownFile
    stored: Stored
    most_bytes: int
    batch_bytes: int
    is_concurrent: bool


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
                position = starts[piece.groups[0]] + piece.skip
                for batch in _read_rows(file, piece, request.fields, _batch_rows(piece, request)):
                    wanted = ranges.cut(batch, position)
                    position += batch.num_rows
                    if wanted.num_rows:
                        yield wanted
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
    options = {
        "pre_buffer": False,
        "buffer_size": _BUFFER_BYTES if isinstance(source, pa.OSFile) else 0,
        "page_checksum_verification": True,
        **_EXTENSIONS,
    }
    if known is None:
        file = open_parquet_file(stored, **options)
        footer = file.metadata
        has_int96 = any(file.schema.column(leaf).physical_type == "INT96" for leaf in range(footer.num_columns))
        decoded = read_int96_as_bytes(stored.footer_bytes) if has_int96 else footer
        known = KnownFile(identity, footer, decoded, file.schema_arrow)
        remember_file(cache, request.path, known)
        if not has_int96:
            return _File(file, known, stored, most_bytes, batch_bytes, request.is_concurrent)
    file = pq.ParquetFile(stored.source, metadata=known.decoded, **options)
    return _File(file, known, stored, most_bytes, batch_bytes, request.is_concurrent)


def _batch_rows(piece: GroupRange, request: ReadRequest) -> int:
    """Return a size of batches that divides the piece evenly, so that no row after it is decoded."""
    reach = piece.skip + piece.count
    return -(-reach // -(-reach // request.batch_rows))


def _read_rows(
    file: _File, piece: GroupRange, fields: Sequence[DataField], batch_rows: int
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a piece in the canonical types."""
    columns = file.known.select_columns(tuple(fields))
    for batch in _read_piece(file, piece, columns, batch_rows):
        yield _canonical(batch, fields, columns.schema)


def _read_piece(file: _File, piece: GroupRange, columns: SelectedColumns, batch_rows: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of consecutive row groups, cut to the range within them."""
    skip, left = piece.skip, piece.count
    for batch in _decode_piece(file, piece, columns, batch_rows):
        if skip >= batch.num_rows:
            skip -= batch.num_rows
            continue
        kept = batch.slice(skip, left)
        skip, left = 0, left - kept.num_rows
        if kept.num_rows:
            yield kept if _FEW * kept.num_rows > batch.num_rows else _copy_batch(kept)
        if left <= 0:
            return


def _decode_piece(
    file: _File, piece: GroupRange, columns: SelectedColumns, batch_rows: int
) -> Iterator[pa.RecordBatch]:
    footer, paths = file.known.footer, columns.paths
    if paths:
        threads = (
            file.is_concurrent and len(paths) > 1 and piece.count > _SHORT_BATCH
        )  # threads cost more than they save for few rows
        for step in split_into_steps(piece, footer):
            fitting = _count_fitting_rows(file, step, columns.leaves, batch_rows)
            yield from file.parquet.iter_batches(fitting, row_groups=step.groups, columns=paths, use_threads=threads)
        return
    rows = sum(footer.row_group(g).num_rows for g in piece.groups)
    for start in range(0, rows, batch_rows):  # no column of the file is wanted: rows are only counted
        yield _empty_columns(min(batch_rows, rows - start))


def _count_fitting_rows(file: _File, step: GroupRange, leaves: tuple[int, ...], batch_rows: int) -> int:
    """Return how many rows a batch may have, and check the pages of the step if that was not done before."""

    def count() -> int:
        checked = [Leaf.of(file.parquet.schema, leaf) for leaf in leaves]
        footer, limits = file.known.footer, (file.most_bytes, file.batch_bytes)
        return count_fitting_rows(footer, file.stored, step, checked, batch_rows, *limits)

    return file.known.find_fitting_rows((step, leaves, batch_rows, file.most_bytes, file.batch_bytes), count)


def _empty_columns(rows: int) -> pa.RecordBatch:
    empty = pa.StructArray.from_buffers(pa.struct([]), rows, [None])
    return pa.RecordBatch.from_struct_array(empty)


def _copy_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Copy the few rows of a long batch, so that its memory is released."""
    return batch.take(pa.array(range(batch.num_rows)))


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


# Select the row groups of a Parquet file that a read needs.
#
# Invariant: a row group is skipped only if its statistics prove that no row matches, or if it lies outside of the
# ranges of rows. Neighbors that remain are read as one piece; with several ranges, each row group is a piece.


_PIECE_ROWS = 1 << 20


def plan_group_ranges(footer: pq.FileMetaData, schema: pa.Schema, request: ReadRequest) -> Iterator[GroupRange]:
    """Yield the ranges of adjacent row groups that may match, in the order of the file."""
    ranges = RowRanges.of(request, footer.num_rows)
    joins = len(ranges.starts) == 1
    leaves = {} if request.predicate is None else find_first_leaves(schema)
    piece: GroupRange | None = None
    start = 0
    for group in range(footer.num_row_groups):
        chunk = footer.row_group(group)
        rows = chunk.num_rows
        low, high = ranges.find_hull(start, rows)
        start += rows
        if low >= high or not _may_match(chunk, leaves, request):
            continue
        if joins and piece is not None and piece.groups[-1] == group - 1:
            piece = evolve(piece, groups=(*piece.groups, group), count=piece.count + high - low)
            continue
        if piece is not None:
            yield piece
        piece = GroupRange((group,), low, high - low)
    if piece is not None:
        yield piece


def split_into_steps(piece: GroupRange, footer: pq.FileMetaData) -> Iterator[GroupRange]:
    """Split a piece into steps of a million rows or one row group, so that a read can stop early.

    Batches end with their step, which costs little with so many rows.
    """
    left, groups, rows = piece.skip + piece.count, list[int](), 0
    for group in piece.groups:
        groups.append(group)
        rows += footer.row_group(group).num_rows
        if rows >= min(_PIECE_ROWS, left):
            yield GroupRange(tuple(groups), 0, min(rows, left))
            left, groups, rows = left - rows, [], 0


def _may_match(chunk: pq.RowGroupMetaData, leaves: dict[str, int], request: ReadRequest) -> bool:
    if request.predicate is None:
        return True
    types = {f.name: f.type for f in request.predicate_fields}

    def stats(name: str) -> ColumnStats | None:
        """Return the statistics of a column; None if they are unknown."""
        if name not in leaves or name not in types:
            return None
        return read_chunk_stats(chunk.column(leaves[name]), types[name])

    return may_match(request.predicate, stats, types, chunk.num_rows)


# Find the rows of a Parquet file that may match an equality, from the columns of that equality only.
#
# A lookup decodes one column of a file, and often no other. Statistics exclude less if files overlap. If rows are in
# ascending order of that column, nothing is decoded after the values.
#
# Invariant: no row outside of the range that is found matches.


_WORTH = 4
"""At least so many columns are read for each column that is looked at first."""
_FILTER_BATCH_ROWS = 16_384
"""Rows that are looked at before the next check whether a later row can match."""


@frozen
class LookupFilter:
    """The equalities to look for before the other columns are read."""

    predicate: Predicate
    # columns of the equalities
    fields: tuple[DataField, ...]
    # rows that are looked at together
    batch_rows: int
    # if it is true for a row, no later row matches
    past: Predicate | None = None


def find_lookup_filter(request: ReadRequest) -> LookupFilter | None:
    """Return the equalities among the conjuncts of a read's predicate; None if they do not justify a first pass."""
    if request.predicate is None:
        return None
    held = {f.name: f for f in request.predicate_fields}
    equalities = [
        (column, part) for part in split_conjuncts(request.predicate) if (column := _equality_column(part)) in held
    ]
    fields = tuple(f for name, f in held.items() if any(name == column for column, _ in equalities))
    if not fields or _WORTH * len(fields) > len(request.fields):
        return None
    wanted = join_conjuncts(part for _, part in equalities)
    past = next((_is_larger_than(part) for column, part in equalities if column == request.ascending), None)
    return LookupFilter(
        wanted, fields, request.batch_rows if past is None else min(request.batch_rows, _FILTER_BATCH_ROWS), past
    )


def _equality_column(part: Predicate) -> str | None:
    match part:
        case Compare(column=column, op=Operator.EQ) | In(column=column, negated=False):
            return column
    return None


def _is_larger_than(part: Predicate) -> Predicate | None:
    """Return a predicate that is true if the column is larger than all values of an equality."""
    match part:
        case Compare(column=column, literal=literal):
            return Compare(column, Operator.GT, literal)
        case In(column=column, literals=literals):
            known = [literal for literal in literals if literal is not None]
            return Compare(column, Operator.GT, max(known)) if known else None
    return None


def _is_true_of_last_row(batch: pa.RecordBatch, predicate: Predicate) -> bool:
    """Return whether a predicate is true of the last row."""
    return bool(evaluate(predicate, batch.slice(batch.num_rows - 1))[0].as_py())


def narrow_piece(piece: GroupRange, lookup: LookupFilter, batches: Iterable[pa.RecordBatch]) -> GroupRange | None:
    """Return the part of a piece from its first matching row to its last; None if no row matches.

    `batches` are the rows of the piece, in order, with the columns of the equalities.
    """
    first = last = -1
    start = 0
    for batch in batches:
        matching = evaluate(lookup.predicate, batch)
        if matching.true_count:
            hits = np.flatnonzero(matching.to_numpy(zero_copy_only=False))
            first = start + int(hits[0]) if first < 0 else first
            last = start + int(hits[-1])
        start += batch.num_rows
        if lookup.past is not None and start < piece.count and _is_true_of_last_row(batch, lookup.past):
            break
    return None if first < 0 else evolve(piece, skip=piece.skip + first, count=last - first + 1)
