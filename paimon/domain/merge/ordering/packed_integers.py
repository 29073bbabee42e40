"""Pack integer key columns into one word a row, block by block, so that the numbers stay in the cache of a processor.

Invariant: equals `pack_keys` over `to_key_parts` of the columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from paimon.domain.columns.buffers import Numbers, to_stored_numbers
from paimon.domain.merge.ordering.normalized_keys import Words, pack_keys, to_key_parts_by_chunk

_BLOCK_ROWS = 1 << 16
_WRAP = 1 << 64


def pack_key_columns(columns: Sequence[pa.ChunkedArray | pa.Array]) -> list[Words]:
    """Pack key columns of the same length into as few words as hold them, most significant first."""
    if all(_is_whole_number(column) for column in columns):
        blocks = [list(_split_blocks(column)) for column in columns]
        if len({tuple(map(len, numbers)) for numbers in blocks}) == 1:
            bounds = [_find_bounds(numbers) for numbers in blocks]
            bits = [(high - low).bit_length() for low, high in bounds]
            if 0 < sum(bits) <= 64:
                return [_pack_blocks(blocks, [low for low, _ in bounds], bits)]
    return pack_keys(part for column in columns for part in to_key_parts_by_chunk(column))


def _is_whole_number(column: pa.ChunkedArray | pa.Array) -> bool:
    kind = column.type
    is_number = pa.types.is_signed_integer(kind) or pa.types.is_temporal(kind)
    return bool(is_number and kind.bit_width <= 64 and column.null_count == 0 and len(column))


def _split_blocks(column: pa.ChunkedArray | pa.Array) -> Iterator[Numbers]:
    for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
        numbers = to_stored_numbers(chunk)
        for start in range(0, len(numbers), _BLOCK_ROWS):
            yield numbers[start : start + _BLOCK_ROWS]


def _find_bounds(blocks: Sequence[Numbers]) -> tuple[int, int]:
    return min(int(block.min()) for block in blocks), max(int(block.max()) for block in blocks)


def _pack_blocks(columns: Sequence[Sequence[Numbers]], lows: Sequence[int], bits: Sequence[int]) -> Words:
    packed = np.zeros(sum(map(len, columns[0])), dtype=np.uint64)
    start = 0
    for blocks in zip(*columns, strict=True):
        words = packed[start : start + len(blocks[0])]
        start += len(words)
        for numbers, low, width in zip(blocks, lows, bits, strict=True):
            wide = numbers.astype(np.int64, copy=False).view(np.uint64)  # differences are exact modulo 2 to the 64
            words <<= np.uint64(width % 64)  # nothing stands left of 64 bits
            words |= wide - np.uint64(low % _WRAP)
    return packed
