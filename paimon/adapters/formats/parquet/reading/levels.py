"""How many values the row has that has most of them, told by the repetition levels of a chunk: 0 begins a row.

Law: asked only where a chunk's lists unfold to more than they may together; runs are walked, not values, and more of
them than `_MOST_RUNS` are refused. Source: Parquet's format (repetition levels, the hybrid of runs and packed bits).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from attrs import define

from paimon.adapters.formats.parquet.reading.pages import DATA_PAGES, DICTIONARY_PAGE, header_at, integer
from paimon.adapters.formats.parquet.reading.stored import Stored
from paimon.adapters.formats.parquet.thrift import Source, ThriftStruct

_CODECS = {1: "snappy", 2: "gzip", 4: "brotli", 6: "zstd", 7: "lz4_raw"}
_SECOND = 3
"""Data pages of the second version: their levels stand before what is compressed."""
_RLE = 3
_ENCODING_OF_LEVELS = 4
_REPETITION_BYTES = 6
_LENGTH_BYTES = 4
_MOST_RUNS = 4_000_000
_GROUP = 8
_SLICE_GROUPS = 1 << 16


def most_values(stored: Stored, start: int, end: int, values: int, codec: int, highest: int) -> int:
    """The values of the row that has most.

    Parameters
    ----------
    start, end : int
        Where the chunk lies, which is known to consist of sound pages.
    values : int
        How many of its values are read.
    codec : int
        Its codec's number in the footer.
    highest : int
        The leaf's highest repetition level.

    Raises
    ------
    ValueError
        Levels that cannot be, or that are not told in runs.
    """
    rows = _Rows()
    at = start
    while rows.values < values and at < end:
        header, length = header_at(stored.read_at, at)
        kind, size, packed = (integer(header, number) for number in (1, 2, 3))
        at += length
        if kind != DICTIONARY_PAGE:
            inner = header.get(DATA_PAGES.get(kind, 0))
            if not isinstance(inner, ThriftStruct):
                raise ValueError(f"the page at {at} is no data page")
            levels = _levels(stored.read_at(packed, at), kind, size, inner, codec)
            try:
                _walk(levels, highest.bit_length(), integer(inner, 1), rows)
            except IndexError as error:
                raise ValueError("levels end in the middle of a run") from error
        at += packed
    return rows.longest


@define
class _Rows:
    """What was seen so far: rows may go on over pages."""

    values: int = 0
    longest: int = 0
    current: int = 0
    runs: int = 0

    def go_on(self, count: int) -> None:
        self.current += count
        self.longest = max(self.longest, self.current)

    def begin(self, count: int) -> None:
        """So many rows, of which the last may go on."""
        if count:
            self.current = 0
            self.go_on(1)


def _levels(page: bytes, kind: int, size: int, inner: ThriftStruct, codec: int) -> bytes:
    """The runs of the repetition levels of a page."""
    if kind == _SECOND:
        return page[: integer(inner, _REPETITION_BYTES)]
    if integer(inner, _ENCODING_OF_LEVELS) != _RLE:
        raise ValueError("lists unfold to more than they may, and their levels are not told in runs")
    if codec:
        if codec not in _CODECS:
            raise ValueError("lists unfold to more than they may, within LZ4 in Hadoop's frames")
        page = pa.decompress(page, size, codec=_CODECS[codec], asbytes=True)
    length = int.from_bytes(page[:_LENGTH_BYTES], "little")
    return page[_LENGTH_BYTES : _LENGTH_BYTES + length]


def _walk(levels: bytes, width: int, count: int, rows: _Rows) -> None:
    """Walk through the runs of so many levels."""
    source, left = Source(levels), count
    while left > 0:
        head = source.varint()
        rows.runs += 1
        taken = min(left, (head >> 1) * (_GROUP if head & 1 else 1))
        if taken <= 0 or rows.runs > _MOST_RUNS:
            raise ValueError("lists unfold to more than they may, and their levels are not told in sound runs")
        if head & 1:
            _walk_packed(source.take((head >> 1) * width), width, taken, rows)
        else:
            (rows.go_on if any(source.take((width + 7) // 8)) else rows.begin)(taken)
        left -= taken
    rows.values += count


def _walk_packed(packed: bytes, width: int, count: int, rows: _Rows) -> None:
    step = _SLICE_GROUPS * width
    for begun in range(0, -(-count // _GROUP) * width, step):
        bits = np.unpackbits(np.frombuffer(packed[begun : begun + step], np.uint8), bitorder="little")
        sliced = min(count, _SLICE_GROUPS * _GROUP)
        goes_on = np.any(bits.reshape(-1, width), axis=1)[:sliced]
        begins = np.flatnonzero(np.logical_not(goes_on))
        if len(begins):
            rows.go_on(int(begins[0]))
            rows.longest = max(rows.longest, int(np.diff(begins).max(initial=0)))
            rows.begin(1)
            rows.go_on(sliced - int(begins[-1]) - 1)
        else:
            rows.go_on(sliced)
        count -= sliced
