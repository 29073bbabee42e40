"""Which row groups of a Parquet file a read touches.

Law: a row group is skipped only where its statistics prove that no row of it can match, or where it lies outside of
the range of rows; neighbours that remain are read as one piece.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq
from attrs import evolve, frozen

from paimon.adapters.formats.parquet.reading.selection import first_leaves
from paimon.adapters.formats.parquet.statistics import chunk_stats
from paimon.domain.predicate.pruning import may_match
from paimon.domain.stats.simple_stats import ColumnStats
from paimon.ports.formats import ReadRequest

_TURN_ROWS = 1 << 20


@frozen
class GroupRange:
    """Consecutive row groups: the first `skip` rows are left out, then `count` rows are read."""

    groups: tuple[int, ...]
    skip: int
    count: int


def group_ranges(footer: pq.FileMetaData, schema: pa.Schema, request: ReadRequest) -> Iterator[GroupRange]:
    """What to read, in the order of the file."""
    begin, end = request.row_range or (0, footer.num_rows)
    leaves = first_leaves(schema)
    piece: GroupRange | None = None
    start = 0
    for group in range(footer.num_row_groups):
        chunk = footer.row_group(group)
        rows = chunk.num_rows
        low, high = max(begin, start), min(end, start + rows)
        start += rows
        if low >= high or not _may_match(chunk, leaves, request):
            continue
        if piece is not None and piece.groups[-1] == group - 1:
            piece = evolve(piece, groups=(*piece.groups, group), count=piece.count + high - low)
            continue
        if piece is not None:
            yield piece
        piece = GroupRange((group,), low - (start - rows), high - low)
    if piece is not None:
        yield piece


def turns(piece: GroupRange, footer: pq.FileMetaData) -> Iterator[GroupRange]:
    """A piece in turns of a million rows or one row group: what nobody reads in the end is not fetched or looked at.

    Batches end with their turn; of so many rows that costs nothing.
    """
    left, groups, rows = piece.skip + piece.count, list[int](), 0
    for group in piece.groups:
        groups.append(group)
        rows += footer.row_group(group).num_rows
        if rows >= min(_TURN_ROWS, left):
            yield GroupRange(tuple(groups), 0, min(rows, left))
            left, groups, rows = left - rows, [], 0


def _may_match(chunk: pq.RowGroupMetaData, leaves: dict[str, int], request: ReadRequest) -> bool:
    if request.predicate is None:
        return True
    types = {f.name: f.type for f in request.predicate_fields}

    def stats(name: str) -> ColumnStats | None:
        if name not in leaves or name not in types:
            return None
        return chunk_stats(chunk.column(leaves[name]), types[name])

    return may_match(request.predicate, stats, types, chunk.num_rows)
