"""Find where the records of many Avro blocks begin: each step moves from one record to the next in all blocks together.

Invariant: the result is a guess, as that of `record_starts`, but the records of each block end where the block ends.
Source: Avro specification, "Binary Encoding".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from paimon.adapters.formats.avro.column_decoder.cursor import Integers
from paimon.adapters.formats.avro.column_decoder.record_starts import (
    FIXED_BYTES,
    SPANS,
    Bytes,
    FlatField,
    ValueWidths,
)

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
