"""Decode blocks of Avro data files with flat records as columns, without a step in Python for each record.

`find_starts_in_blocks` finds where the records of many blocks begin, then each column is decoded from these starts.

Invariant: the result equals the row-wise decoder (`records.decode_block`), or is None. The row-wise decoder then
decodes the block, and reports its damage. Source: Avro specification, "Binary Encoding".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from paimon.adapters.formats.avro.column_decoder.cursor import PADDING, Cursors, Integers, Mask, Rows, span_array
from paimon.adapters.formats.avro.column_decoder.record_starts import (
    FIXED_BYTES,
    SPANS,
    Bytes,
    FlatField,
    ValueWidths,
    find_record_starts,
)
from paimon.adapters.formats.avro.container import Block

# Find where the records of many Avro blocks begin: each step moves from one record to the next in all blocks together.
#
# Invariant: the result is a guess, as that of `record_starts`, but the records of each block end where the block ends.
# Source: Avro specification, "Binary Encoding".


_FEWEST_BLOCKS = 16
"""With fewer records in each step, a parse of all offsets is as fast."""
_SHORT_SPANS = np.array([0 if byte & 0x81 else (byte >> 1) + 1 for byte in range(256)], np.uint8)
"""By its first byte: the bytes of a text with its length; 0 for lengths of several bytes, and for negative ones."""


def has_many_blocks(counts: Integers) -> bool:
    """Return whether blocks have so many records for each of the steps that following them is fast."""
    return int(counts.sum()) >= _FEWEST_BLOCKS * int(counts.max(initial=1))


def find_starts_in_blocks(
    padded: Bytes, ends: Integers, counts: Integers, fields: Sequence[FlatField]
) -> Integers | None:
    """Find the offsets where the records of many blocks begin, ascending by block.

    `padded` is the data of all blocks, followed by `PADDING`. None means that the records of a block do not end where
    the block does.
    """
    widths = ValueWidths.of(padded)
    order = np.argsort(-counts, kind="stable")  # the blocks that have more records come first
    places = np.append(0, ends[:-1])[order]
    first_rows = (np.cumsum(counts) - counts)[order]
    negated = -counts[order]
    starts = np.empty(int(counts.sum()), np.int64)
    for step in range(int(counts.max(initial=0))):
        left = int(np.searchsorted(negated, -step))
        starts[first_rows[:left] + step] = places[:left]
        for flat in fields:
            _skip_value(widths, places[:left], flat)
    return starts if np.array_equal(places, ends[order]) else None


def _skip_value(widths: ValueWidths, places: Integers, flat: FlatField) -> None:
    """Move each offset behind the field that begins there, in place; it may leave the data, which ends the search."""
    if flat.null_branch is None:
        places += _find_sizes(widths, places, flat.primitive, True)
        return
    is_present = widths.padded.take(places, mode="clip") == 2 * (1 - flat.null_branch)
    places += 1
    places += _find_sizes(widths, places, flat.primitive, is_present) * is_present


def _find_sizes(widths: ValueWidths, places: Integers, primitive: str, is_present: Any) -> Any:
    """Return the bytes of the value at each offset; anything where it is not present."""
    if primitive in FIXED_BYTES:
        return np.uint8(FIXED_BYTES[primitive])
    if primitive not in SPANS:
        return widths.varint_sizes.take(places, mode="clip")
    sizes = _SHORT_SPANS.take(widths.padded.take(places, mode="clip"))
    if sizes.all():
        return sizes
    rows = np.flatnonzero((sizes == 0) & is_present)
    long = sizes.astype(np.int64)
    long[rows] = widths.compute(primitive, np.minimum(places[rows], widths.size))
    return long


_FEWEST_RECORDS = 400
"""With fewer records, the fixed cost of the steps is higher than that of row-wise decoding."""
_MOST_BYTES = 32 * 1024 * 1024
"""The search takes memory in proportion to the block; writers make blocks of 64 KB, or of one record."""
_MOST_BYTES_PER_VALUE = 48
"""With longer values, row-wise decoding is faster, because the search for records looks at each byte."""


class _RowWiseOnlyError(Exception):
    """A value does not fit its type, which the row-wise decoder reports."""


_KINDS = {
    "int": (pa.int32(), pa.int64()),
    "long": (pa.int32(), pa.int64()),
    "float": (pa.float32(),),
    "double": (pa.float64(),),
    "boolean": (pa.bool_(),),
    "string": (pa.string(),),
    "bytes": (pa.binary(),),
}
"""The types that values of a primitive type can have; a file's logical type can ask for others."""


def is_flat_worthwhile(blocks: Sequence[Block], fields: Sequence[FlatField]) -> bool:
    """Return whether blocks can be decoded faster as columns than row by row."""
    records = sum(block.record_count for block in blocks)
    size = sum(len(block.data) for block in blocks)
    return records >= _FEWEST_RECORDS and size <= min(_MOST_BYTES, _MOST_BYTES_PER_VALUE * records * len(fields))


def decode_flat_columns(
    blocks: Sequence[Block], fields: Sequence[FlatField], wanted: Mapping[str, pa.DataType]
) -> dict[str, pa.Array] | None:
    """Decode the wanted columns of successive blocks, which have at least one record in all.

    `fields` are all fields of the records; `wanted` has only types that `number_type` returns. None means that the
    blocks must be decoded row by row, which also reports any damage.
    """
    if any(wanted.get(f.name) not in (None, *_KINDS[f.primitive]) for f in fields):
        return None
    padded = np.frombuffer(b"".join([*(block.data for block in blocks), PADDING]), dtype=np.uint8)
    starts = _find_starts(padded, blocks, fields)
    if starts is None:
        return None
    cursors = Cursors.at(padded, starts)
    try:
        columns = {f.name: _read_column(cursors, padded, f, wanted.get(f.name)) for f in fields}
    except (_RowWiseOnlyError, pa.ArrowException):
        return None
    ends = np.append(starts[1:], cursors.limit)
    if cursors.lost or int(starts[0]) or not np.array_equal(cursors.places, ends):
        return None
    return {name: column for name, column in columns.items() if column is not None}


def _find_starts(padded: Bytes, blocks: Sequence[Block], fields: Sequence[FlatField]) -> Integers | None:
    """Return where each record begins; None if the blocks do not begin with records."""
    counts = np.array([block.record_count for block in blocks])
    ends = np.cumsum([len(block.data) for block in blocks])
    if has_many_blocks(counts):
        return find_starts_in_blocks(padded, ends, counts, fields)
    starts = find_record_starts(padded, int(counts.sum()), fields)
    if starts is None:
        return None
    borders = np.append(starts, ends[-1:])[np.cumsum(counts)]
    return starts if np.array_equal(borders, ends) else None


def _read_column(cursors: Cursors, padded: Bytes, flat: FlatField, kind: pa.DataType | None) -> pa.Array | None:
    """Read one field of all records; None if it is not wanted."""
    rows: Rows = None
    valid: Mask | None = None
    if flat.null_branch is not None:
        valid = cursors.branches(None) == 1 - flat.null_branch
        rows, valid = (None, None) if valid.all() else (np.flatnonzero(valid), valid)
    if flat.primitive in ("string", "bytes"):
        starts, lengths = cursors.spans(rows)
        if kind is None or cursors.lost:
            return None
        return span_array(padded, _spread(starts, rows, valid), _spread(lengths, rows, valid), valid, kind)
    values = _read_numbers(cursors, flat.primitive, rows)
    if kind is None or cursors.lost:
        return None
    mask = None if valid is None else ~valid
    return pa.array(_spread(values, rows, valid), kind, mask=mask, from_pandas=False)


def _read_numbers(cursors: Cursors, primitive: str, rows: Rows) -> Any:
    if primitive not in FIXED_BYTES:
        values = cursors.longs(rows)
        if primitive == "int" and values.dtype.itemsize > 4:
            if len(values) and (values.min() < -(1 << 31) or values.max() >= 1 << 31):
                raise _RowWiseOnlyError
            return values.astype(np.int32)
        return values
    words = cursors.read_fixed(rows, FIXED_BYTES[primitive])
    if primitive == "boolean":
        if bool((words > 1).any()):
            raise _RowWiseOnlyError
        return words.astype(np.bool_)
    return words.astype(f"<u{FIXED_BYTES[primitive]}").view(f"<f{FIXED_BYTES[primitive]}")


def _spread(values: Any, rows: Rows, valid: Mask | None) -> Any:
    """Return one value per record: those of `rows`, and zero for the others."""
    if rows is None or valid is None:
        return values
    spread = np.zeros(len(valid), dtype=values.dtype)
    spread[rows] = values
    return spread
